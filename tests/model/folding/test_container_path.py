"""The copies of a repeat are told node by node, with the inputs that each has of its own."""

from irviz.model.folding.expansion import repeat_copies
from irviz.model.folding.group_tree import container_tree


def test_a_node_has_its_copies_and_so_has_an_input_unless_all_share_it(graphs):
    text = graphs.Text()
    here, shared = text.param(), text.param()
    sums, weights = [], []
    for _ in range(30):
        weights.append(text.param())
        sums.append(text.step("add", text.step("scale", shared, here), weights[-1]))
        here = text.step("relu", sums[-1])
    tree = container_tree(text.graph())
    assert repeat_copies(tree, sums[3]).nodes == tuple(sums)
    found = repeat_copies(tree, weights[3])
    assert found.nodes == tuple(weights)
    assert found.copy == 3
    assert repeat_copies(tree, shared) is None
