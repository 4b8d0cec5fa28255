"""The rows of the tree of stages: their order and depth say what each was made from."""

import pytest

from irviz.explorer.stage_rows import stage_rows
from irviz.explorer.state import State
from irviz.session.session import Session
from irviz.transforms.stage import Stage


@pytest.fixture
def rows(modules):
    """Returns the rows of stages, each given as (id, id of its parent, passes around it)."""

    def made(*stages):
        session = Session.from_stages(
            [
                Stage(name, modules.EveryKind, name, parent, enclosing_passes=tuple(within))
                for name, parent, *within in stages
            ]
        )
        return stage_rows(State.of(session))

    return made


def parents(rows):
    """Return each row's parent as its place in the drawing says it."""
    found = {}
    for at, row in enumerate(rows):
        deepest = row["depth"] - row["isBranch"]
        above = (one["id"] for one in reversed(rows[:at]) if one["depth"] <= deepest)
        found[row["id"]] = next(above, "")
    return found


def drawn(rows):
    return [(row["id"], row["depth"], row["isBranch"]) for row in rows]


def test_a_chain_is_not_indented(rows):
    chain = rows(("0", None), ("1", "0"), ("2", "1"))
    assert drawn(chain) == [("0", 0, False), ("1", 0, False), ("2", 0, False)]


def test_passes_applied_to_the_first_stage_after_a_chain_are_drawn_as_its_children(rows):
    branched = rows(("0", None), ("1", "0"), ("2", "1"), ("3", "0"), ("4", "0"))
    assert drawn(branched) == [
        ("0", 0, False),
        ("1", 1, True),
        ("2", 1, False),
        ("3", 1, True),
        ("4", 1, True),
    ]
    assert parents(branched) == {"0": "", "1": "0", "2": "1", "3": "0", "4": "0"}


def test_a_branch_stands_with_what_was_made_from_it_below_its_parent(rows):
    nested = rows(
        *(("0", None), ("1", "0"), ("2", "1"), ("3", "2")),
        *(("4", "1"), ("5", "0"), ("6", "4"), ("7", "5")),
    )
    assert [row["id"] for row in nested] == ["0", "1", "2", "3", "4", "6", "5", "7"]
    given = {row["id"]: row["parent"] for row in nested}
    assert parents(nested) == given
    assert given["6"] == "4"


def test_a_recorded_pipeline_has_a_heading_and_its_stages_stand_inside(rows):
    recorded = rows(("0", None), ("1", "0", "outer", "inner"), ("2", "1", "outer"), ("3", "2"))
    assert [row["depth"] for row in recorded] == [0, 2, 1, 0]
    assert [row["headings"] for row in recorded] == [
        [],
        [{"name": "outer", "depth": 0}, {"name": "inner", "depth": 1}],
        [],
        [],
    ]


def test_a_branch_inside_of_a_pipeline_stays_inside_of_its_heading(rows):
    recorded = rows(
        *(("0", None), ("1", "0", "outer"), ("2", "1", "outer"), ("3", "1")),
        *(("4", "2"), ("5", "4", "later")),
    )
    assert drawn(recorded) == [
        *(("0", 0, False), ("1", 1, False), ("2", 2, True), ("4", 2, False)),
        *(("5", 3, False), ("3", 2, True)),
    ]
    assert [row["headings"] for row in recorded if row["headings"]] == [
        [{"name": "outer", "depth": 0}],
        [{"name": "later", "depth": 2}],
    ]


def test_a_branch_that_begins_with_a_pipeline_has_its_heading_one_step_in(rows):
    branched = rows(("0", None), ("1", "0", "outer"), ("2", "1", "outer"), ("3", "0"))
    assert drawn(branched) == [("0", 0, False), ("1", 2, True), ("2", 2, False), ("3", 1, True)]
    assert branched[1]["headings"] == [{"name": "outer", "depth": 1}]


def test_passes_inside_of_a_pass_stand_below_it_without_a_heading_of_its_name(rows):
    # a stage's label is its id here
    recorded = rows(("0", None), ("1", "0", "outer"), ("2", "1", "outer", "1#2"), ("3", "2"))
    assert [row["depth"] for row in recorded] == [0, 1, 2, 0]
    assert [row["headings"] for row in recorded] == [[], [{"name": "outer", "depth": 0}], [], []]
