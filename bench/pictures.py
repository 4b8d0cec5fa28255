"""Count what is false in the pictures of recorded models; end with 1 if anything is.

    python bench/pictures.py [session.irviz …]

A session is a recording that was saved, as of the models in tests/models. Of each stage these
pictures are read: the one that `draw` makes, the one that the page shows, those with each group
opened and each frame closed by itself, and both of a comparison with the stage before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import tvm

import irviz
from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.errors import IrvizError
from irviz.explorer import actions, stage_pictures
from irviz.explorer.background_actions import perform
from irviz.explorer.state import State
from irviz.model.graph.graph import Graph, RegionKind
from irviz.session.session import Session

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from picture_contract import violations

Pictures = Iterator[tuple[str, str, Any, str]]
"""The kind of each picture, its SVG and its graph, and the SVG that it is compared with, if any."""

_DATAFLOW = 'class="block dataflow"'


def main() -> int:
    """Read the pictures of each session, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sessions", nargs="*", help="recordings that were saved; none for one of the course's MLP"
    )
    parser.add_argument("--groups", type=int, default=40, help="the most groups of a stage")
    parser.add_argument("--show", type=int, default=0, help="the most that is told of a kind")
    options = parser.parse_args()
    given = ((Path(path).stem, irviz.load(path)) for path in options.sessions)
    sessions = given if options.sessions else [("MLP", _recorded_mlp())]
    false = sum(_count(*one, options.groups, options.show) for one in sessions)
    print(f"{false:,} false")
    return 1 if false else 0


class Counted(NamedTuple):
    """The pictures that were read, by kind, and what is false, with its stage."""

    pictures: Counter[str]
    found: list[tuple[str, ...]]


def false_pictures(session: Session, most_groups: int) -> Counted:
    """Read the pictures of each stage of a session."""
    counted, drawn = Counted(Counter(), []), set()
    for stage in session.stages:
        here = session.checkout(stage.id)
        if stage.is_unchanged or not here.functions:
            continue
        if here.function not in here.functions:
            here = here.select_function(here.functions[0])
        for kind, svg, graph, beside in _pictures(here, most_groups):
            if svg in drawn:
                continue
            if graph is None:
                counted.found.append((kind, "compared", stage.id))
                continue
            drawn.add(svg)
            counted.pictures[kind] += 1
            for what, *where in violations(svg, graph, beside):
                counted.found.append((what, kind, stage.id, *where))
    return counted


def _recorded_mlp() -> Session:
    with irviz.record() as recording:
        tvm.compile(MyModuleHighLevel, "llvm")
    return recording.session()


def _count(name: str, session: Session, most_groups: int, most_shown: int) -> int:
    """Print what is false in the pictures of a recording, and return how much."""
    began = time.perf_counter()
    counted = false_pictures(session, most_groups)
    seconds = time.perf_counter() - began
    pictures = ", ".join(f"{count} {kind}" for kind, count in counted.pictures.items())
    number = len(counted.found)
    print(f"{name}: {pictures}; {number} false; {seconds:.0f} s", flush=True)
    by_kind: dict[str, list[str]] = {}
    for what, kind, stage, *where in counted.found:
        by_kind.setdefault(f"{what} ({kind})", []).append(f"stage {stage}: {', '.join(where)}")
    for what, places in by_kind.items():
        print(f"    {len(places)} {what}", *places[:most_shown], sep="\n        ", flush=True)
    return number


def _pictures(session: Session, most_groups: int) -> Pictures:
    """Yield the pictures of the current stage."""
    view = session.view()
    yield "drawn", session.draw().svg, view.graph, ""
    state = State.of(session)
    yield from _shown(state, "page")
    view = stage_pictures.view_or_none(state, "current")
    toggles = sorted((view.openable | view.closable) if view else ())[:most_groups]
    for one in toggles:
        yield from _shown(perform(state, actions.Toggle(one)), "toggled")
    if session.current.parent is not None:
        with suppress(IrvizError):
            both = perform(state, actions.Compare(session.current.parent))
            scenes = [stage_pictures.scene(both, side) for side in ("reference", "current")]
            svgs = [scene.figure.svg if scene.figure else "" for scene in scenes]
            stages = (session.checkout(session.current.parent), session)
            for stage, scene, svg, beside in zip(stages, scenes, svgs, reversed(svgs), strict=True):
                if scene.view is not None and svg:
                    yield "compared", svg, scene.view.graph, beside
                    if _DATAFLOW in svg and not _has_dataflow(stage.graph()):
                        yield "a dataflow block of the other stage", "", None, ""


def _has_dataflow(graph: Graph) -> bool:
    return any(region.kind is RegionKind.DATAFLOW_BLOCK for region in graph.regions)


def _shown(state: State, kind: str) -> Pictures:
    scene = stage_pictures.scene(state, "current")
    if scene.view is not None and scene.figure is not None:
        yield kind, scene.figure.svg, scene.view.graph, ""


if __name__ == "__main__":
    sys.exit(main())
