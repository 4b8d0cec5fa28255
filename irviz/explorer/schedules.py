"""The schedule of the shown PrimFunc: its loops, its steps, and how they are measured."""

from __future__ import annotations

from collections.abc import Mapping

from irviz.explorer.selected_node import location
from irviz.explorer.state import State, derived
from irviz.ir import module_functions
from irviz.ir.loop_nest_reader import loop_nest
from irviz.model.loop_nest import LoopNest, ScheduleAddress, schedule_addresses
from irviz.runtime.prim_func_call import prim_func_sizes
from irviz.session.schedule_times import ScheduleStages
from irviz.transforms.schedules import schedule_trace as traces
from irviz.transforms.schedules.schedule_trace import ScheduleTrace

_SIZE = 128
"""The default value of a symbolic size in measurements."""


@derived(lambda state: (state.stage.module,))
def prim_funcs(state: State) -> tuple[str, ...]:
    """Return the names of the current stage's PrimFuncs."""
    return tuple(module_functions.prim_funcs(state.stage.module))


def prim_func(state: State) -> str:
    """Return the PrimFunc whose schedule is shown, "" if the stage has none."""
    names = prim_funcs(state)
    return state.prim_func if state.prim_func in names else next(iter(names), "")


def called_prim_func(state: State) -> str:
    """Return the PrimFunc that the selected node calls, "" for none."""
    found = location(state)
    if found is None or found.inner not in found.graph.index:
        return ""
    callee = found.graph[found.inner].callee
    return callee if callee in prim_funcs(state) else ""


@derived(lambda state: (state.session, prim_func(state)))
def schedule_trace(state: State) -> ScheduleTrace:
    """Return the steps of the PrimFunc's schedule, up to the current stage."""
    return traces.schedule_trace(state.session.stages, state.stage_id, prim_func(state))


@derived(lambda state: (state.stage.module, prim_func(state)))
def nest(state: State) -> LoopNest:
    """Return the loops of the PrimFunc."""
    name = prim_func(state)
    return loop_nest(state.stage.module[name], name)


@derived(lambda state: (nest(state),))
def loop_addresses(state: State) -> Mapping[str, ScheduleAddress]:
    """Return the addresses of the loops and blocks that steps can be applied to, by their ids."""
    return schedule_addresses(nest(state))


def steps_to_time(state: State) -> ScheduleStages | None:
    """Return the stages of the schedule and how to measure them; None without a PrimFunc."""
    name = prim_func(state)
    if not name:
        return None
    trace = schedule_trace(state)
    names = prim_func_sizes(state.stage.module, name)
    sizes = tuple((one, state.step_sizes.get(one, _SIZE)) for one in names)
    return ScheduleStages(
        (trace.base, *trace.stages), name, sizes, state.session.config_for(state.stage)
    )
