"""The schedule of the shown PrimFunc: its loops, its steps, and how they are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irviz.errors import TransformError
from irviz.explorer.actions import Apply, DoStep, ReplaySchedule
from irviz.explorer.selected_node import location
from irviz.explorer.state import Failure, LoopChoice, State, derived
from irviz.explorer.viewer.schema import OfferedStep, Schedule, StepField
from irviz.ir.module_functions import prim_funcs
from irviz.ir.symbolic_shapes import symbolic_sizes
from irviz.model import loop_nest
from irviz.session.measure_schedule import SIZE, ScheduleStages
from irviz.session.stage_cache import nest_of
from irviz.transforms.schedules import schedule_trace as traces
from irviz.transforms.schedules.legal_steps import StepOffer
from irviz.transforms.schedules.primitives import (
    CHOICES,
    ArgumentKind,
    PrimitiveParameter,
    primitive,
)
from irviz.transforms.schedules.schedule_step import (
    IllegalStepError,
    IndexMapText,
    ScheduleStep,
    ScheduleTraceError,
)
from irviz.transforms.schedules.schedule_trace import ScheduleTrace, parse_value
from irviz.view.svg_primitives import visible


def prim_func(state: State) -> str:
    """Return the PrimFunc whose schedule is shown, "" if the stage has none."""
    names = prim_funcs(state.stage.module)
    wanted = (state.function, state.prim_func, *names)
    return next((one for one in wanted if one in names), "")


def called_prim_func(state: State) -> str:
    """Return the PrimFunc that the selected node calls, "" for none."""
    found = location(state)
    if found is None or found.inner not in found.graph.index:
        return ""
    callee = found.graph[found.inner].callee
    return callee if callee in prim_funcs(state.stage.module) else ""


@derived(lambda state: (state.session, prim_func(state)))
def shown_trace(state: State) -> ScheduleTrace:
    """Return the steps of the PrimFunc's schedule, up to the current stage."""
    return traces.schedule_trace(state.session.tree.lineage(state.stage_id), prim_func(state))


def nest(state: State) -> loop_nest.LoopNest:
    """Return the loops of the PrimFunc; those that are drawn are known already."""
    found = nest_of(state.stage, prim_func(state))
    assert found is not None, "the stage has a PrimFunc"
    return found


@derived(lambda state: (nest(state),))
def loop_addresses(state: State) -> Mapping[str, loop_nest.ScheduleAddress]:
    """Return the addresses of the loops and blocks that steps can be applied to, by their ids."""
    return loop_nest.schedule_addresses(nest(state))


# --- what is chosen ----------------------------------------------------------------------------


def loop_choice(state: State, loop: str, *, adds: bool) -> LoopChoice | None:
    """Return what is chosen after a click on a loop or block, or on nothing."""
    if not loop:
        return None
    before = _chosen_ids(state) if adds else ()
    others = tuple(one for one in before if one != loop)
    chosen = others if loop in before else (*others, loop)
    return LoopChoice(state.stage, prim_func(state), chosen)


def _chosen_ids(state: State) -> tuple[str, ...]:
    chosen = state.chosen_loops
    is_there = chosen is not None and chosen.function == prim_func(state)
    return chosen.ids if chosen and is_there and chosen.stage.module is state.stage.module else ()


@derived(lambda state: (state.stage.module, prim_func(state), state.chosen_loops))
def chosen_loops(state: State) -> tuple[str, ...]:
    """Return the ids of the chosen loops and blocks of the PrimFunc, as far as they are there."""
    return tuple(one for one in _chosen_ids(state) if one in loop_addresses(state))


def refusal(state: State) -> Exception | None:
    """Return why the last step of the PrimFunc's schedule was rejected, None if it was not."""
    match state.failure:
        case Failure(DoStep(), error):
            return error
        case Failure(
            Apply(transform=ScheduleStep(function=name)) | ReplaySchedule(function=name), error
        ):
            return error if name == prim_func(state) else None
    return None


def refused_loops(state: State) -> list[str]:
    """Return the ids of what TVM's error refers to, with the chosen loops if that is no loop.

    An error that refers to nothing is about the other arguments.
    """
    refused = refusal(state)
    if not isinstance(refused, IllegalStepError):
        return []
    loops = nest(state)
    marks = [one for path in refused.paths if (one := loop_nest.innermost_node(loops, path))]
    there = {node.id: node for node in loop_nest.walk(loops)}
    if marks and not any(isinstance(there[one], loop_nest.Loop) for one in marks):
        marks += [one for one in chosen_loops(state) if isinstance(there[one], loop_nest.Loop)]
    return marks


# --- what is offered ---------------------------------------------------------------------------


def steps_offered_key(state: State) -> LoopChoice | None:
    """Return what the steps are to be tried for, None where nothing is chosen."""
    chosen = chosen_loops(state)
    return LoopChoice(state.stage, prim_func(state), chosen) if chosen else None


def step_offers(state: State) -> tuple[StepOffer, ...]:
    """Return the steps that were tried with what is chosen, () until they were."""
    known = state.step_offers
    return known[1] if known is not None and known[0] == steps_offered_key(state) else ()


def offered_step(state: State, wanted: DoStep) -> ScheduleStep:
    """Return a step that is offered, with values; raise TransformError for a wrong one."""
    for one in step_offers(state):
        if (one.step.primitive, visible(one.target)) == (wanted.primitive, wanted.target):
            return _with_values(one, wanted.values)
    raise TransformError(
        f"{wanted.primitive} is not offered for what is chosen: choose a loop or a block again"
    )


def _with_values(offer: StepOffer, texts: Sequence[str]) -> ScheduleStep:
    arguments = dict(offer.step.arguments)
    for parameter, text in zip(offer.fields, texts, strict=False):
        value, example = _value(parameter, text.strip()), _EXAMPLES.get(parameter.kind, "")
        if parameter.is_required and value in (None, []):
            words = f"{parameter.name} is empty: write {parameter.kind.value}"
            raise TransformError(f"{words}, such as {example}" if example else words)
        if value not in (None, parameter.default):
            arguments[parameter.name] = value
    return replace(offer.step, arguments=arguments)


def _value(parameter: PrimitiveParameter, text: str) -> object:
    kind = parameter.kind
    if kind is ArgumentKind.FLAG:
        return text == "True"
    try:
        return _read(kind, text)
    except ScheduleTraceError as failure:
        words = f"{parameter.name} is {text!r}: {failure.words}; it takes {kind.value}"
        raise TransformError(f"{words}, such as {_EXAMPLES.get(kind, '')}") from None


_EXAMPLES: Mapping[ArgumentKind, str] = {
    ArgumentKind.FACTORS: "None, 4",
    ArgumentKind.NUMBERS: "1, 2",
    ArgumentKind.NUMBER: "0",
    ArgumentKind.VALUE: "0",
    ArgumentKind.TEXT: "a name",
    ArgumentKind.ANNOTATION: '16, "text", [1, 2] or {"key": 1}',
    ArgumentKind.INDEX_MAP: "lambda i, j: (j, i)",
    ArgumentKind.BLOCKS: "names of blocks; none for all",
}


def _read(kind: ArgumentKind, text: str) -> object:
    """Parse a text, None if empty; raise ScheduleTraceError for a value of another kind."""
    if not text:
        return None
    if kind is ArgumentKind.BLOCKS:
        names = [name.strip() for name in text.split(",") if name.strip()]
        return [loop_nest.BlockAddress(name) for name in names] or None
    if kind in (ArgumentKind.TEXT, ArgumentKind.CHOICE):
        return text
    if kind in (ArgumentKind.FACTORS, ArgumentKind.NUMBERS):
        return parse_value(text if text.startswith("[") else f"[{text}]")
    value = parse_value(text)
    if kind is ArgumentKind.INDEX_MAP and not isinstance(value, IndexMapText):
        raise ScheduleTraceError("it is not an index map")
    return value


@derived(
    lambda state: (
        *(state.stage, prim_func(state), chosen_loops(state), step_offers(state)),
        *(state.failure, steps_offered_key(state) and state.step_offers),
    )
)
def schedule_data(state: State) -> Schedule:
    """Return what can be done with what is chosen, as the page shows it: the legal steps first."""
    chosen, offers, key = chosen_loops(state), step_offers(state), steps_offered_key(state)
    nodes = {node.id: node for node in loop_nest.walk(nest(state))} if chosen else {}
    described = [_described(nodes[one]) for one in chosen]
    names = dict.fromkeys(one.step.primitive for one in offers)
    steps = [_offered([one for one in offers if one.step.primitive == name]) for name in names]
    return {
        "function": visible(prim_func(state)),
        "chosen": list(chosen),
        "refused": refused_loops(state),
        "title": visible(", then ".join(title for title, _ in described)),
        "facts": visible(described[0][1]) if len(chosen) == 1 else "",
        "isTried": key is None or (state.step_offers or (None,))[0] == key,
        "steps": sorted(steps, key=lambda one: bool(one["reason"])),
    }


def _offered(offers: Sequence[StepOffer]) -> OfferedStep:
    legal, first = [one for one in offers if not one.reason], offers[0]
    name = first.step.primitive
    return {
        "primitive": name,
        "summary": visible(primitive(name).summary),
        "targets": [visible(one.target) for one in legal],
        "fields": [_field(one, first.step.arguments.get(one.name)) for one in first.fields],
        "isTried": first.is_tried,
        "reason": "" if legal else visible(first.reason),
    }


def _field(parameter: PrimitiveParameter, tried: object) -> StepField:
    value = parameter.default if tried is None else tried
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    is_flag = parameter.kind is ArgumentKind.FLAG
    return {
        "name": parameter.name,
        "value": "" if value is None else text,
        "values": ["True", "False"] if is_flag else list(CHOICES.get(parameter.name, ())),
        "example": _EXAMPLES.get(parameter.kind, ""),
        "isRequired": parameter.is_required,
    }


def _described(node: loop_nest.LoopNode) -> tuple[str, str]:
    """Return the title of a loop or a block, and facts about it."""
    title, notes = "", []
    match node:
        case loop_nest.Loop():
            title = f"loop {node.variable}"
            notes = [f"extent {node.extent}", *(kind.value for kind in node.axes)]
            if node.kind is not loop_nest.LoopKind.SERIAL:
                notes += [node.kind.value, node.thread]
        case loop_nest.Block():
            title = f"block {node.name}"
            notes = [
                f"{verb} {', '.join(dict.fromkeys(one.buffer for one in those))}"
                for verb, those in (("reads", node.reads), ("writes", node.writes))
                if those
            ]
    return title, " · ".join(filter(None, notes))


# --- how it is measured ------------------------------------------------------------------------


def steps_to_time(state: State) -> ScheduleStages | None:
    """Return the stages of the schedule and how to measure them; None without a PrimFunc."""
    name = prim_func(state)
    if not name:
        return None
    trace = shown_trace(state)
    names = symbolic_sizes(state.stage.module[name])
    sizes = tuple((one, state.step_sizes.get(one, SIZE)) for one in names)
    return ScheduleStages(
        (trace.base, *trace.stages), name, sizes, state.session.config_for(state.stage)
    )
