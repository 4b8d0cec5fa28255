"""Count what is false in the pictures of recorded models; end with 1 if anything is.

    python bench/pictures.py session.irviz …

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
from typing import Any

import irviz
from irviz.errors import IrvizError
from irviz.explorer import actions, selectors
from irviz.explorer.reducer import reduce
from irviz.explorer.state import State
from irviz.session.session import Session

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from picture_contract import TURN, violations

Pictures = Iterator[tuple[str, str, Any]]
"""The kind of each picture, its SVG and its graph."""


def main() -> int:
    """Read the pictures of each session, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sessions", nargs="+", help="recordings that were saved")
    parser.add_argument("--groups", type=int, default=40, help="the most groups of a stage")
    parser.add_argument("--show", type=int, default=0, help="the most that is told of a kind")
    options = parser.parse_args()
    false = 0
    for path in options.sessions:
        false += sum(_count(path, options.groups, options.show).values())
    print(f"{false:,} false")
    return 1 if false else 0


def _count(path: str, most_groups: int, most_shown: int) -> Counter[str]:
    began = time.perf_counter()
    pictures, found, turns = Counter[str](), Counter[str](), 0
    session = irviz.load(path)
    drawn = set()
    for stage in session.stages:
        here = session.checkout(stage.id)
        if stage.is_unchanged or not here.functions:
            continue
        here = here.select_function("main" if "main" in here.functions else here.functions[0])
        for kind, svg, graph in _pictures(here, most_groups):
            if svg in drawn:
                continue
            drawn.add(svg)
            pictures[kind] += 1
            for what, *where in violations(svg, graph):
                if what == TURN:
                    turns += 1
                    continue
                found[f"{what} ({kind})"] += 1
                if found[f"{what} ({kind})"] <= most_shown:
                    print(f"    stage {stage.id}, {kind}: {what}: {', '.join(where)}")
    name, seconds = Path(path).stem, time.perf_counter() - began
    counts = ", ".join(f"{count} {kind}" for kind, count in pictures.items())
    print(
        f"{name}: {counts}; {turns} turns; {sum(found.values())} false; {seconds:.0f} s", flush=True
    )
    for what, count in found.most_common():
        print(f"    {count} {what}", flush=True)
    return found


def _pictures(session: Session, most_groups: int) -> Pictures:
    """Yield the pictures of the current stage."""
    view = session.view()
    yield "drawn", session.draw().svg, view.graph
    state = State.of(session)
    yield from _shown(state, "page")
    view = selectors.view_or_none(state, "current")
    toggles = sorted((view.openable | view.closable) if view else ())[:most_groups]
    for one in toggles:
        yield from _shown(reduce(state, actions.Toggle(one)), "toggled")
    if session.current.parent is not None:
        with suppress(IrvizError):
            both = reduce(state, actions.Compare(session.current.parent))
            for side in ("reference", "current"):
                yield from _shown(both, "compared", side)


def _shown(state: State, kind: str, side: Any = "current") -> Pictures:
    scene = selectors.scene(state, side)
    if scene.view is not None and scene.figure is not None:
        yield kind, scene.figure.svg, scene.view.graph


if __name__ == "__main__":
    sys.exit(main())
