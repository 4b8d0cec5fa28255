"""The tree of stages: it branches, is undone and done again, renamed and dropped."""

import pytest

from irviz.course.mlp import MyModuleStatic
from irviz.transforms.stage import Stage, StageTree


def made(stage_id, parent):
    return Stage(stage_id, MyModuleStatic, f"pass {stage_id}", parent)


def grown(*parents):
    tree = StageTree((Stage("0", MyModuleStatic),))
    for parent in parents:
        tree = tree.add([made(str(tree.count), parent)])
    return tree


def ids(tree):
    return [stage.id for stage in tree.stages]


def test_a_new_stage_is_current_and_the_old_tree_is_as_it_was():
    before = grown()
    after = before.add([made("1", "0")])
    assert (ids(before), before.current_id) == (["0"], "0")
    assert (ids(after), after.current_id) == (["0", "1"], "1")


def test_a_change_is_undone_and_done_again():
    tree = grown("0", "1")
    undone = tree.undo()
    assert (ids(undone), undone.current_id) == (["0", "1"], "1")
    assert ids(undone.undo()) == ["0"]
    again = undone.undo().redo().redo()
    assert (ids(again), again.current_id) == (ids(tree), tree.current_id)


def test_checking_out_another_stage_is_nothing_to_undo_and_keeps_what_can_be_done_again():
    tree = grown("0", "1").undo().checkout("0")
    assert ids(tree.redo()) == ["0", "1", "2"]
    assert ids(tree.undo()) == ["0"]


def test_a_new_change_forgets_what_was_undone():
    tree = grown("0", "1").undo().rename("1", "mine")
    with pytest.raises(ValueError, match="nothing to redo"):
        tree.redo()


@pytest.mark.parametrize("verb", ["undo", "redo"])
def test_where_there_is_nothing_it_says_so(verb):
    with pytest.raises(ValueError, match=f"nothing to {verb}"):
        getattr(grown(), verb)()


def test_no_id_is_given_twice():
    tree = grown("0", "1").undo()
    assert tree.add([made(str(tree.count), "1")]).current_id == "3"
    tree = grown("0").drop("1")
    assert tree.count == 2


def test_a_label_is_changed_and_the_rest_of_the_stage_stays():
    tree = grown("0").rename("1", "  my words ")
    assert tree.stage("1").label == "my words"
    assert tree.stage("1").parent == "0"
    assert tree.current_id == "1"
    with pytest.raises(ValueError, match="'1' needs a label"):
        tree.rename("1", " \n")


def test_with_a_stage_goes_all_that_was_made_from_it():
    tree = grown("0", "1", "2", "0", "1").checkout("3")  # 1 of 0, 2 of 1, 3 of 2, 4 of 0, 5 of 1
    left = tree.drop("2")
    assert (ids(left), left.current_id) == (["0", "1", "4", "5"], "1")
    assert ids(left.undo()) == ids(tree)
    assert tree.checkout("4").drop("1").current_id == "4"


def test_the_first_stage_cannot_be_dropped_and_none_that_is_not_there():
    with pytest.raises(ValueError, match="the first stage is what all others come from"):
        grown("0").drop("0")
    for verb in ("checkout", "drop", "stage"):
        with pytest.raises(ValueError, match="there is no stage '7'; the stages are '0', '1'"):
            getattr(grown("0"), verb)("7")
