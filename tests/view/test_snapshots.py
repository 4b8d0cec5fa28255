"""The pictures of the course's modules are those that were looked at and found good.

`make snapshots` writes them anew; what it changes is to be looked at again.
"""

import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from irviz.course.mlp import MODULES
from irviz.session.open_session import draw

SNAPSHOTS = Path(__file__).parents[1] / "snapshots"


def outline(element, depth=0):
    """Yield a line for each element that has a class, an id or text: no places, no colours."""
    names = ("class", "data-node", "data-source", "data-target", "aria-label")
    facts = [f"{name}={element.get(name)!r}" for name in names if element.get(name) is not None]
    text = (element.text or "").strip()
    if facts or text:
        words = [element.tag.rpartition("}")[2], *facts, *([repr(text)] if text else [])]
        yield "  " * depth + " ".join(words)
        depth += 1
    for child in element:
        yield from outline(child, depth)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_of_the_course_looks_as_it_did(name):
    drawn = draw(MODULES[name])
    lines = "\n".join(outline(ElementTree.fromstring(drawn.svg)))
    now = f"{drawn.dot}\n{lines}\n"
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("IRVIZ_SNAPSHOTS") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(now, encoding="utf-8")
    assert path.exists(), "there is no snapshot yet: make snapshots writes it"
    assert now == path.read_text(encoding="utf-8"), "if this is as it should be: make snapshots"


def test_there_is_no_snapshot_of_what_is_no_longer_there():
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(MODULES)
