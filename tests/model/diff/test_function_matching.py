"""Functions correspond by what they do, and then by name; names of sizes do not matter."""

from irviz.model.diff.canonical_names import Names, Renaming
from irviz.model.diff.compare_functions import FunctionFingerprint, match_functions


def matched(before, after, entries=()):
    sides = (
        {
            name: FunctionFingerprint("PrimFunc", body, (), name in entries)
            for name, body in side.items()
        }
        for side in (before, after)
    )
    return match_functions(*sides).partners


def test_a_renumbered_function_is_the_one_that_does_the_same():
    assert matched({"f": 1, "f1": 2}, {"f1": 1, "f2": 2}) == {"f": "f1", "f1": "f2"}


def test_a_function_with_another_body_keeps_its_name():
    assert matched({"f": 1, "g": 2}, {"f": 3, "g": 2}) == {"f": "f", "g": "g"}
    assert matched({"f": 1}, {"g": 2}) == {}


def test_a_function_that_is_called_from_outside_is_the_one_of_that_name():
    assert matched({"main": 1, "f": 2}, {"main": 2, "f": 1}, {"main", "f"}) == {
        "main": "main",
        "f": "f",
    }


def test_sizes_may_have_other_names_but_each_only_one():
    renaming = Renaming(Names(["n", "m"]), Names(["a", "b"]))
    assert renaming.is_equal("Tensor[(n, m)]", "Tensor[(a, b)]")
    assert renaming.is_equal("(n * 2,)", "(a * 2,)")
    assert not renaming.is_equal("(n,)", "(b,)")
    assert not renaming.is_equal("'n'", "'a'")
    assert not Renaming(Names(["n", "m"]), Names(["a", "b"])).is_equal("(n, m)", "(a, a)")
