"""Compare two pipelines: corresponding passes, the first difference, and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tvm_ffi import structural_equal

from irviz.errors import StageError
from irviz.model.matching.alignment import align_lists
from irviz.session.session import Session
from irviz.session.stage_diff import diff_modules
from irviz.transforms.stage import Stage
from irviz.units import first_names, format_duration
from irviz.view.module_diff import Diff
from irviz.view.svg_primitives import visible

_MOST_NAMED = 10
_LEAST_RATIO = 1.5
_LEAST_DIFFERENCE = 0.001
_TIMES_NOISE = 3
_LEAST_SECONDS_ALONE = 0.02
"""The smallest clear difference of times if there are too few passes to estimate the noise."""
_FEW = 5


@dataclass(frozen=True, eq=False)
class AlignedPass:
    """A pass of one pipeline and the corresponding pass of the other.

    Attributes:
        before: The stage that the first pipeline's pass made, None if it lacks the pass.
        after: The stage that the second pipeline's pass made, None if it lacks the pass.
        modules: The latest stages of both pipelines at this point: those above, or earlier ones.
    """

    before: Stage | None
    after: Stage | None
    modules: tuple[Stage, Stage]

    @property
    def name(self) -> str:
        """The pass's name."""
        stage = self.before or self.after
        assert stage is not None, "one of the pipelines has the pass"
        return stage.label

    @cached_property
    def is_same(self) -> bool:
        """Whether the modules after the pass are equal up to names."""
        one, two = (stage.module for stage in self.modules)
        # variables that attributes of lowered PrimFuncs name count as free ones
        return one.same_as(two) or structural_equal(one, two, map_free_vars=True)

    @property
    def seconds(self) -> tuple[float, float] | None:
        """The pass's own time in both pipelines, None if not recorded."""
        one, two = (stage.seconds if stage else None for stage in (self.before, self.after))
        return None if one is None or two is None else (one, two)


@dataclass(frozen=True, eq=False, repr=False)
class PipelineComparison:
    """What two pipelines have in common and where they diverge; true if anything differs.

    Attributes:
        titles: The names of the two pipelines.
        passes: The passes of both, in order; the first entry is the module that they start from.
    """

    titles: tuple[str, str]
    passes: tuple[AlignedPass, ...]

    def __bool__(self) -> bool:
        """Return whether any module differs, or one pipeline has a pass that the other lacks."""
        return self.first is not None or any(None in (one.before, one.after) for one in self.passes)

    @property
    def first(self) -> AlignedPass | None:
        """The first pass after which the modules differ in more than names, None if none."""
        return self._first_difference and self._first_difference[0]

    @property
    def diff(self) -> Diff | None:
        """The differences after that pass, None if no module differs."""
        return self._first_difference and self._first_difference[1]

    @cached_property
    def _first_difference(self) -> tuple[AlignedPass, Diff] | None:
        for aligned in self.passes:
            if aligned.is_same:
                continue
            one, two = (
                f"{title}: {stage.id} {stage.label}"
                for title, stage in zip(self.titles, aligned.modules, strict=True)
            )
            if diff := diff_modules(*aligned.modules, (one, two)):
                return aligned, Diff.of(diff)
        return None

    @cached_property
    def clear_differences(self) -> tuple[AlignedPass, ...]:
        """The passes whose own times differ by more than noise.

        A recording times each pass once. The noise is estimated from passes that did the same work
        in both pipelines: a difference is clear if it is at least three times the largest of
        theirs, and one time at least 1.5 times the other. With fewer than five such passes, a
        difference is clear from 20 ms.
        """
        pairs = [(one, one.seconds) for one in self.passes]
        was_same = [False, *(one.is_same for one in self.passes)]
        did_same = [all(was_same[at : at + 2]) for at in range(len(pairs))]
        gaps = [abs(times[1] - times[0]) if times else 0.0 for _, times in pairs]
        noise = sorted(gap for gap, same in zip(gaps, did_same, strict=True) if same)
        found = []
        for (one, times), gap, same in zip(pairs, gaps, did_same, strict=True):
            others = list(noise)
            if same:
                others.remove(gap)
            least = _LEAST_SECONDS_ALONE
            if len(others) >= _FEW:
                least = max(_LEAST_DIFFERENCE, _TIMES_NOISE * others[-1])
            if times and gap >= least and max(times) >= _LEAST_RATIO * min(times):
                found.append(one)
        return tuple(found)

    def session(self) -> Session:
        """Return a session of the two modules after the first pass where they differ.

        `irviz.explore` shows them side by side, and `Session.save_html` writes them to a page.

        Raises:
            StageError: No module differs.
        """
        if self.first is None or self.diff is None:
            raise StageError("the two pipelines have the same modules: there is none to show")
        one, two = self.first.modules
        labels = self.diff.before, self.diff.after
        first = replace(one, id="0", label=labels[0], parent=None, made_from=None, error="")
        second = replace(two, id="1", label=labels[1], parent="0", made_from=first, error="")
        second = replace(second, is_unchanged=False)
        return Session.from_stages([first, second]).checkout("1")

    def to_dict(self) -> dict[str, object]:
        """Return the comparison as dictionaries, lists and strings, ready for JSON."""
        clear = set(self.clear_differences)
        rows = [
            {
                "pass": one.name,
                "before": one.before.id if one.before else None,
                "after": one.after.id if one.after else None,
                "same_module": one.is_same,
                "seconds": one.seconds,
                "times_clearly_differ": one in clear,
            }
            for one in self.passes
        ]
        first = self.first
        return {
            "before": self.titles[0],
            "after": self.titles[1],
            "differs": bool(self),
            "first": None if first is None else [stage.id for stage in first.modules],
            "passes": rows,
            "diff": self.diff.to_dict() if self.diff else None,
        }

    def __str__(self) -> str:
        """Return the unmatched passes, the first difference, and the times."""
        return "\n".join(map(visible, self._lines()))

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        one, two = self.titles
        both = sum(None not in (each.before, each.after) for each in self.passes) - 1
        yield f"{one} and {two}: {both} pass{'es' * (both != 1)} in both"
        for title, name in ((one, "after"), (two, "before")):
            own = [each.name for each in self.passes if getattr(each, name) is None]
            if own:
                yield f"only in {title}: {first_names(own, _MOST_NAMED)}"
        first = self.first
        if first is None:
            yield "the modules are the same after each pass"
        elif first is self.passes[0]:
            yield "the modules that they begin with differ"
        else:
            ids = " and ".join(stage.id for stage in first.modules)
            yield f"first difference: after {first.name} (stages {ids})"
        timed = [each.seconds for each in self.passes if each.seconds]
        if timed:
            total = [sum(times) for times in zip(*timed, strict=True)]
            yield f"time of the passes in both: {' and '.join(map(format_duration, total))}"
            for each in self.clear_differences:
                yield f"  {each.name}: {_ratio(each.seconds)}"
            if not self.clear_differences:
                yield "  no pass differs by more than times vary"

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Show the figure of the diff in a notebook, beside the text."""
        shown = self.diff._repr_mimebundle_() if self.diff else {}
        return {**shown, "text/plain": str(self)}


def compare_pipelines(
    before: Session, after: Session, titles: tuple[str, str] = ("before", "after")
) -> PipelineComparison:
    """Compare the passes that made the stages of two sessions, and the module after each."""
    return PipelineComparison(titles, tuple(_aligned(before.stages, after.stages)))


def _aligned(before: Sequence[Stage], after: Sequence[Stage]) -> Iterator[AlignedPass]:
    """Pair the stages of passes with the same name inside of the same passes."""
    keys, other_keys = ([_key(one) for one in stages[1:]] for stages in (before, after))
    one, two = before[0], after[0]
    yield AlignedPass(one, two, (one, two))
    numbers = range(len(keys)), range(len(other_keys))
    for stretch in align_lists(keys, other_keys).union(*numbers):
        mine = [before[at + 1] for at in stretch.before]
        theirs = [after[at + 1] for at in stretch.after]
        pairs: list[tuple[Stage | None, Stage | None]] = list(zip(mine, theirs, strict=False))
        if not stretch.is_common:
            pairs = [*((stage, None) for stage in mine), *((None, stage) for stage in theirs)]
        for first, second in pairs:
            one, two = first or one, second or two
            yield AlignedPass(first, second, (one, two))


def _key(stage: Stage) -> tuple[str, ...]:
    """Return the names of a pass and of those around it, without arguments and numbers."""
    enclosing = (name.partition("#")[0] for name in stage.enclosing_passes)
    return (*enclosing, stage.label.partition("(")[0])


def _ratio(times: tuple[float, float] | None) -> str:
    assert times is not None, "only times that are known are compared"
    one, two = times
    words = f"{format_duration(one)} and {format_duration(two)}"
    return f"{words} ({two / one:.1f} ×)" if one else words
