"""What a run did, as overlays of a picture: its times, its sizes, its values, differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from irviz.app.picture import Picture
from irviz.model.graph import NodeId
from irviz.model.summary import Summary
from irviz.model.tally import gathered, held, total
from irviz.model.trace import Trace
from irviz.view.badge import duration
from irviz.view.overlay import Mark, Overlay

_DECADES = 2
"""What spans more is told apart on a log scale alone."""
_LEAST_DURATION = 5e-7


def time_overlay(trace: Trace, picture: Picture) -> Overlay:
    """Tell which part of the time each node took, linear; groups and closed calls add theirs up."""
    taken = {one: v.seconds for one, v in trace.visits.items() if v.seconds is not None}
    every = trace.seconds or sum(taken.values())
    times = {one: max(seconds, 0.0) for one, seconds in total(picture, taken).items()}
    most = max(times.values(), default=0.0)
    marks = {}
    for one, seconds in times.items():
        words = _duration(seconds)
        if every and seconds >= 0.01 * every:
            words += f" · {_percent(seconds, every)}"
        marks[one] = Mark(seconds / most if most else 0.0, words)
    title = f"time of each node, of {_duration(every)}"
    return Overlay(title, "0 %", _percent(most, every), marks)


def size_overlay(trace: Trace, picture: Picture) -> Overlay:
    """Tell how large each node's value is; groups have the bytes of all their values together."""
    bytes_ = {
        one: float(visit.value.nbytes)
        for one, visit in trace.visits.items()
        if visit.value.summaries
    }
    sizes = gathered(picture, bytes_, sum)
    shares, low, high, scale = _shared(sizes, _size)
    marks = {one: Mark(shares[one], _size(size)) for one, size in sizes.items()}
    return Overlay(f"size of each value{scale}", low, high, marks)


def value_overlay(trace: Trace, picture: Picture) -> Overlay:
    """Tell the largest |value| of each node, in groups of all; NaN and Inf are warned of.

    A closed call warns of what is in it, and the first node with one warns the most.
    """
    largest = {
        one: visit.value.largest
        for one, visit in trace.visits.items()
        if visit.value.largest is not None
    }
    values = gathered(picture, largest, max)
    shares, low, high, scale = _shared(values, _number)
    marks = {one: Mark(shares[one], _number(value)) for one, value in values.items()}
    broken = [one for one, visit in trace.visits.items() if not visit.value.is_finite]
    for place, nodes in held(picture, broken).items():
        summaries = [summary for one in nodes for summary in trace.visits[one].value.summaries]
        is_first = broken[0] in nodes
        words = _not_finite(summaries) + " · first" * is_first
        share = 1.0 if is_first or place not in shares else shares[place]
        marks[place] = Mark(share, words, is_flagged=True, is_first=is_first)
    return Overlay(f"largest |value|{scale}", low, high, marks, "NaN or Inf")


def difference_overlay(
    differences: Mapping[NodeId, float], picture: Picture, parting: Iterable[NodeId] = ()
) -> Overlay:
    """Tell the largest |Δ| of each node against another stage, in groups of all.

    `parting` are the nodes where the stages part, the first of them first: these are warned of. A
    difference that is no number, or infinite, is as well.
    """
    found = gathered(picture, differences, _largest)
    finite = {one: abs(value) for one, value in found.items() if math.isfinite(value)}
    shares, low, high, scale = _shared(finite, _number)
    parted = list(parting)
    flagged = held(picture, parted)
    marks = {}
    for place, value in found.items():
        is_finite = place in finite
        is_first = bool(parted) and parted[0] in flagged.get(place, ())
        marks[place] = Mark(
            shares[place] if is_finite else 1.0,
            (_number(value) if is_finite else "not finite") + " · first" * is_first,
            is_flagged=place in flagged or not is_finite,
            is_first=is_first,
        )
    said = {"the stages part": bool(flagged), "not finite": len(finite) < len(found)}
    flag = ", or ".join(words for words, is_so in said.items() if is_so)
    return Overlay(f"largest |Δ| of each value{scale}", low, high, marks, flag)


def dimmed_places(
    equal: Collection[NodeId], compared: Iterable[NodeId], picture: Picture
) -> list[str]:
    """Return what to draw pale: the nodes of the picture that show nothing but equal values.

    `compared` are the nodes of both stages whose values were compared, the equal ones among them.
    """
    same = frozenset(equal)
    return [
        str(place) for place, nodes in held(picture, compared).items() if same.issuperset(nodes)
    ]


def _shared(
    values: Mapping[NodeId, float], words: Callable[[float], str]
) -> tuple[dict[NodeId, float], str, str, str]:
    """Return the share of each value, what 0 and 1 stand for, and what to say of the scale.

    Linear from 0; where the values span more than two decades it is their logarithm, from the
    least that is above 0.
    """
    positive = [value for value in values.values() if value > 0]
    if not positive:
        return dict.fromkeys(values, 0.0), words(0.0), words(0.0), ""
    low, high = min(positive), max(positive)
    span = math.log10(high) - math.log10(low)
    if span <= _DECADES:
        return {one: value / high for one, value in values.items()}, words(0.0), words(high), ""
    shares = {
        one: min(max((math.log10(value) - math.log10(low)) / span, 0.0), 1.0) if value > 0 else 0.0
        for one, value in values.items()
    }
    least = words(low) if len(positive) == len(values) else f"0 … {words(low)}"
    return shares, least, words(high), ", log scale"


def _largest(values: Sequence[float]) -> float:
    """Return the largest |value|; what is no number is larger than any."""
    return max(map(abs, values), key=lambda one: math.inf if math.isnan(one) else one)


def _not_finite(summaries: Collection[Summary]) -> str:
    nans, infs = sum(one.nans for one in summaries), sum(one.infs for one in summaries)
    words = [f"{count:,} {name}" for count, name in ((nans, "NaN"), (infs, "Inf")) if count]
    return ", ".join(words)


def _duration(seconds: float) -> str:
    return "< 1 µs" if 0 < seconds < _LEAST_DURATION else duration(seconds)


def _percent(part: float, whole: float) -> str:
    share = 100 * part / whole if whole else 0.0
    return f"{share:.0f} %" if share >= 1 or not share else "< 1 %"


def _size(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 999.5 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" or size >= 99.5 else f"{size:.1f} {unit}"


def _number(value: float) -> str:
    """Return a number in few characters: `0.42`, `1.2e-6`, `3.1e12`."""
    text = f"{value:.2g}" if not 1 <= abs(value) < 1e4 else f"{value:.3g}"
    if 100 <= abs(value) < 1e4:
        text = f"{value:.0f}"
    mantissa, is_far, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if is_far else text


BY_TRACE: Mapping[str, Callable[[Trace, Picture], Overlay]] = {
    "time": time_overlay,
    "size": size_overlay,
    "max |value|": value_overlay,
}
"""What a trace alone colours nodes by."""

DIFFERENCE = "|Δ|"
"""What two traces colour nodes by."""
