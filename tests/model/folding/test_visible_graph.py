"""What is drawn is the whole graph, with what is closed as one node and copies as one copy."""

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irviz.limits import MIN_NODES, MOST_NODES
from irviz.model.folding.expansion import Expansion
from irviz.model.folding.group_tree import Container, container_tree
from irviz.model.folding.visible_graph import visible_graph
from irviz.model.graph.graph import INPUT_KINDS, Graph, NodeKind, RegionKind

SEEDS = st.integers(0, 2**32)


def some_graph(graphs, rng):
    is_nested = rng.random() < 0.5
    graph = graphs.nested(rng) if is_nested else graphs.soup(rng, rng.randint(20, 200))
    return graphs.layered(rng, graph) if rng.random() < 0.4 else graph


def some_choices(graphs, rng, of):
    """Open, close and turn containers at random; some that there are not as well."""
    ids = [one.id for one in graphs.below(of.root)] or [""]
    bundles = [f"leaves:{node.id}" for node in of.graph.nodes if node.kind in INPUT_KINDS]
    choices = Expansion()
    for _ in range(rng.randint(0, 12)):
        one = rng.choice([*ids, "nothing", "", *rng.sample(bundles, min(len(bundles), 3))])
        action = rng.random()
        if action < 0.5:
            choices = choices.open(one)
        elif action < 0.7:
            choices = choices.close(one)
        else:
            choices = choices.show_copy(one, rng.randint(-1, 9))
    return choices


class Whole:
    """The whole graph seen through a picture, told by nothing but its frames."""

    def __init__(self, graphs, of, picture, choices):
        self.graph, self.picture = of.graph, picture.graph
        self.steps = graphs.bound(self.graph)
        self.at = {node.id: index for index, node in enumerate(self.steps)}
        self.where = {node.id: picture.where(node.id) for node in self.graph.nodes}
        self.open = {region.id for region in self.picture.regions}
        self.copies, self.closed, self.shown = [], {}, {}
        self._choices = choices
        self._look(of.root, 0)
        leaves = [node.id for node in self.graph.nodes if node.id not in self.at]
        places = {one: self.picture.index.get(self.where[one], -1) for one in leaves}
        kinds = {one: self.picture.nodes[at].kind for one, at in places.items() if at >= 0}
        self.in_each = {
            one
            for one, kind in kinds.items()
            if kind not in INPUT_KINDS
            and not self.where[one].startswith("leaves:")
            and len(self.users(one)) > 3
        }
        """Weights that many nodes use and that are drawn in these."""

    def _look(self, container, offset):
        for child in container.children:
            if not isinstance(child, Container):
                self.shown[child + offset] = self.steps[child + offset].id
            elif child.id not in self.open:
                span = range(child.start + offset, child.stop + offset)
                self.closed[child.id] = child
                self.shown.update(dict.fromkeys(span, child.id))
            else:
                copy = min(max(self._choices.copies.get(child.id, 0), 0), child.copies - 1)
                if child.copies > 1:
                    self.copies.append((child.start + offset, child.held, child.copies, copy))
                self._look(child, offset + copy * child.held)

    def seen(self, step):
        """Return the step that is shown in place of one: outer repeats come first."""
        for start, held, copies, copy in self.copies:
            if start <= step < start + held * copies:
                step = start + copy * held + (step - start) % held
        return step

    def is_carried(self, source, target):
        for start, held, copies, copy in self.copies:
            found = []
            for step in (source, target):
                is_in = start <= step < start + held * copies
                found.append((step - start) // held if is_in else None)
            if None not in found and found[0] != found[1]:
                return True
            moved = [0 if one is None else (copy - one) * held for one in found]
            source, target = source + moved[0], target + moved[1]
        return False

    def users(self, leaf):
        return {edge.target for edge in self.graph.leaving.get(leaf, ())}

    def edges(self):
        """Return every edge there is between what the picture's nodes stand for."""
        found = set()
        for edge in self.graph.edges:
            source, target = self.where[edge.source], self.where[edge.target]
            is_carried = edge.source in self.at and self.is_carried(
                self.at[edge.source], self.at[edge.target]
            )
            is_inside = target in self.closed or edge.source not in self.at  # a weight as a line
            if edge.source in self.in_each:
                continue
            if source != target or not is_inside or is_carried:
                position = () if target in self.closed else edge.position
                found.add((source, target, position, is_carried))
        return found

    def is_out(self, node):
        """Tell whether a node is in a copy that is not shown, or a leaf for such ones only."""
        if node.id in self.at:
            return self.at[node.id] not in self.shown
        uses = self.graph.leaving.get(node.id, ())
        return bool(uses) and not any(self._is_seen(use) for use in uses)

    def _is_seen(self, use):
        step = self.at[use.target]
        return step in self.shown or any(
            start <= step < start + held and self._is_entry(use, step, start, held)
            for start, held, _, _ in self.copies
        )

    def _is_entry(self, use, step, start, held):
        """Tell whether the second copy has here what the first one makes."""
        second = self.graph.entering[self.steps[step + held].id]
        source = next(one.source for one in second if one.position == use.position)
        return start <= self.at.get(source, -1) < start + held


@given(seed=SEEDS)
def test_every_node_is_somewhere_and_counted_once(graphs, seed):
    rng = random.Random(seed)
    of = container_tree(some_graph(graphs, rng))
    choices = some_choices(graphs, rng, of)
    picture = visible_graph(of, choices)
    whole = Whole(graphs, of, picture, choices)
    ids = [node.id for node in picture.graph.nodes]
    assert len(set(ids)) == len(ids) <= MOST_NODES
    unused = {node.id for node in whole.graph.nodes if graphs.is_unused(whole.graph, node)}
    assert {one for one, place in whole.where.items() if place is None} == unused
    assert set(whole.where.values()) - {None} == set(ids)
    for step, node in enumerate(whole.steps):
        assert whole.where[node.id] == whole.shown[whole.seen(step)]
    held = [node for node in whole.graph.nodes if not whole.is_out(node) and node.id not in unused]
    counts = Counter(whole.where[node.id] for node in held)
    lines = {
        one.id: sum(whole.where[leaf.id] == one.id for leaf in one.weights)
        for one in picture.graph.nodes
    }
    assert {one.id: one.size + lines[one.id] for one in picture.graph.nodes} == counts
    outputs = list(dict.fromkeys(whole.where[one] for one in whole.graph.outputs))
    assert list(dict.fromkeys(picture.graph.outputs)) == outputs


@given(seed=SEEDS)
def test_a_weight_is_a_line_in_its_only_call_or_in_each_of_many_and_a_node_if_it_is_chosen(
    graphs, seed
):
    rng = random.Random(seed)
    of = container_tree(graphs.layered(rng, graphs.soup(rng, rng.randint(20, 100))))
    choices = some_choices(graphs, rng, of)
    picture = visible_graph(of, choices)
    whole = Whole(graphs, of, picture, choices)
    lines = Counter()
    for leaf in whole.graph.nodes:
        place = picture.graph[whole.where[leaf.id]] if whole.where[leaf.id] else None
        users = whole.users(leaf.id)
        if place is None or leaf.id in whole.at or whole.is_out(leaf):
            continue
        if place.kind not in (*INPUT_KINDS, NodeKind.GROUP):
            places = {whole.where[one] for one in users}
            lines.update(places - whole.closed.keys())
            assert leaf.layers if leaf.kind is NodeKind.PARAM else whole.graph.has_weights
            assert places == {place.id} or len(users) > 3
            chosen = visible_graph(of, choices.open(leaf.id))
            assert chosen.where(leaf.id) == leaf.id
        elif len(users) == 1 and leaf.kind is NodeKind.PARAM and leaf.layers:
            user = picture.graph[whole.where[users.pop()]]
            assert user.kind not in (NodeKind.OPERATOR, NodeKind.CALL_TIR)
        elif len(users) > 3 and place.id == leaf.id and leaf.layers:
            kinds = {picture.graph[whole.where[one]].kind for one in users}
            assert kinds - {NodeKind.OPERATOR, NodeKind.CALL_TIR, NodeKind.GROUP}
    assert lines == Counter(
        {one.id: len(one.weights) for one in picture.graph.nodes if one.weights}
    )


@given(seed=SEEDS)
def test_an_edge_is_drawn_where_there_is_one_between_what_is_shown(graphs, seed):
    rng = random.Random(seed)
    of = container_tree(some_graph(graphs, rng))
    choices = some_choices(graphs, rng, of)
    picture = visible_graph(of, choices)
    drawn = [(e.source, e.target, e.position, e.is_carried) for e in picture.graph.edges]
    assert len(set(drawn)) == len(drawn)
    assert set(drawn) == Whole(graphs, of, picture, choices).edges()
    for node in picture.graph.nodes:
        positions = [edge.position for edge in picture.graph.entering.get(node.id, ())]
        assert positions == sorted(positions)


@given(seed=SEEDS)
def test_frames_are_what_is_open(graphs, seed):
    rng = random.Random(seed)
    of = container_tree(some_graph(graphs, rng))
    choices = some_choices(graphs, rng, of)
    picture = visible_graph(of, choices).graph
    regions = picture.regions
    ids = [region.id for region in regions]
    around = {
        child.id: one.id
        for one in (of.root, *graphs.below(of.root))
        for child in one.children
        if isinstance(child, Container)
    }
    assert len(set(ids)) == len(ids)
    assert choices.closed.isdisjoint(ids)
    for region in regions:
        assert around[region.id] == ("" if region.parent is None else regions[region.parent].id)
    groups = {node.id for node in picture.nodes if node.kind is NodeKind.GROUP}
    assert groups.isdisjoint(ids)
    for node in picture.nodes:
        is_param = node.kind is NodeKind.PARAM and of.graph[node.id].region is None
        if is_param and node.region is not None:
            kinds = (RegionKind.REPEAT, RegionKind.PART, RegionKind.LAYER)
            assert regions[node.region].kind in kinds


@given(seed=SEEDS)
@example(seed=461)  # others would fit if it were collapsed by the reader
def test_opening_and_closing_again_changes_nothing(graphs, seed):
    rng = random.Random(seed)
    of = container_tree(some_graph(graphs, rng))
    choices = some_choices(graphs, rng, of)
    before = visible_graph(of, choices).graph
    containers = {one.id for one in graphs.below(of.root)} - set(choices.opened)
    closed = [node.id for node in before.nodes if node.id in containers]
    for one in rng.sample(closed, min(3, len(closed))):
        assert visible_graph(of, choices.open(one).close(one)).graph == before


@given(seed=SEEDS)
def test_a_small_graph_with_all_open_is_drawn_as_it_is(graphs, seed):
    graph = graphs.soup(random.Random(seed), 40)
    of = container_tree(graph)
    choices = Expansion()
    for one in graphs.below(of.root):
        choices = choices.open(one.id)
    picture = visible_graph(of, choices).graph
    if any(one.copies > 1 for one in graphs.below(of.root)):
        return
    if any(node.kind is NodeKind.GROUP for node in picture.nodes):  # many leaves used alike
        return
    assert [n._replace(region=None) for n in picture.nodes] == [
        n._replace(region=None) for n in graph.nodes
    ]
    assert Counter(picture.edges) == Counter(graph.edges)
    assert picture.outputs == graph.outputs


@given(seed=SEEDS)
def test_never_more_nodes_than_the_limit(graphs, seed):
    rng = random.Random(seed)
    of = container_tree(graphs.wide(rng))
    limit = rng.choice((150, MOST_NODES))
    for _ in range(3):
        choices = some_choices(graphs, rng, of)
        picture = visible_graph(of, choices, limit)
        assert len(picture.graph.nodes) <= limit
        whole = Whole(graphs, of, picture, choices)
        drawn = {(e.source, e.target, e.position, e.is_carried) for e in picture.graph.edges}
        assert drawn == whole.edges()
        assert sum(node.size for node in picture.graph.nodes) == len(whole.graph.nodes)


def all_there_is(graphs, of):
    """Count what is drawn where everything is open: of a repeat that is one copy."""
    leaves = [f"leaves:{node.id}" for node in of.bound.graph.nodes if node.kind in INPUT_KINDS]
    every = Expansion(opened=(*leaves, *(one.id for one in graphs.below(of.root))))
    return len(visible_graph(of, every, 10**9).graph.nodes)


@given(seed=SEEDS)
def test_at_first_at_least_eight_nodes_are_drawn_where_there_are_eight(graphs, seed):
    rng = random.Random(seed)
    graph = (graphs.wide if rng.random() < 0.3 else graphs.alike)(rng)
    if rng.random() < 0.4:
        graph = some_graph(graphs, rng)
    of = container_tree(graph)
    drawn = len(visible_graph(of, minimum=MIN_NODES).graph.nodes)
    assert min(8, all_there_is(graphs, of)) <= drawn <= MOST_NODES


def test_a_block_that_stands_alone_is_open_though_it_has_many_parameters(graphs):
    """As `FuseOps` leaves resnet18: more than is opened by itself, and nothing beside it."""
    of = container_tree(flat(graphs, 78, 3, in_block=True))
    drawn = visible_graph(of, minimum=MIN_NODES).graph
    assert sum(node.kind is NodeKind.OPERATOR for node in drawn.nodes) == 78
    assert len(drawn.nodes) <= MOST_NODES
    (block,) = of.root.children
    choices = Expansion().close(block.id)  # which the reader may
    closed = visible_graph(of, choices, minimum=MIN_NODES).graph
    assert [node.size for node in closed.nodes if node.id == block.id] == [78]


def test_of_blocks_that_are_closed_the_largest_is_opened_first(graphs):
    text = graphs.Text()
    here = text.param()
    for length in (100, 110, 90):
        with text.block():
            for _ in range(length):
                here = text.step(f"op{len(text.nodes)}", here, *(text.param() for _ in range(2)))
    picture = visible_graph(container_tree(text.graph()), minimum=MIN_NODES)
    assert [picture.tree.root.children[1].id] == [one.id for one in picture.graph.regions]


def test_a_bundle_too_large_to_be_opened_stays_closed(graphs):
    text = graphs.Text()
    params = [text.param(f"p{index}") for index in range(500)]
    text.step("tuple", *params, name="all")
    of = container_tree(text.graph())
    picture = visible_graph(of, Expansion().open("leaves:p0")).graph
    assert [(node.name, node.size) for node in picture.nodes] == [("500 params", 500), ("all", 1)]
    (edge,) = {(edge.source, edge.target) for edge in picture.edges}
    assert edge == ("leaves:p0", "all")


def test_of_a_bundle_so_many_are_drawn_alone_that_something_is_seen(graphs):
    text = graphs.Text()
    text.step("tuple", *(text.param(f"p{index}") for index in range(500)), name="all")
    of = container_tree(text.graph())
    picture = visible_graph(of, minimum=MIN_NODES).graph
    first = [(f"p{index}", 1) for index in range(6)]
    assert [(node.name, node.size) for node in picture.nodes] == [
        *first,
        ("494 params", 494),
        ("all", 1),
    ]
    edges = {(edge.source, edge.target) for edge in picture.edges}
    assert edges == {*((name, "all") for name, _ in first), ("leaves:p0", "all")}


def test_a_bundle_of_few_is_opened(graphs):
    text = graphs.Text()
    text.step("tuple", *(text.param(f"p{index}") for index in range(20)))
    picture = visible_graph(container_tree(text.graph()), Expansion().open("leaves:p0")).graph
    assert len(picture.nodes) == 21


def flat(graphs, length, params=0, *, in_block=False):
    """Return a graph of different operations, each with parameters of its own."""
    text = graphs.Text()
    here = text.param()
    block = text.block() if in_block else None
    if block:
        block.__enter__()
    for index in range(length):
        here = text.step(f"op{index}", here, *(text.param() for _ in range(params)))
    if block:
        block.__exit__(None, None, None)
    return text.graph()


@pytest.mark.parametrize("in_block", [False, True])
@pytest.mark.parametrize("length", [100, 120, 121, 500])
def test_all_can_be_opened_however_many_parameters_each_operation_has(graphs, length, in_block):
    of = container_tree(flat(graphs, length, 7, in_block=in_block))
    assert len(visible_graph(of).graph.nodes) <= MOST_NODES
    for one in graphs.below(of.root):
        if any(not isinstance(child, Container) for child in one.children):
            picture = visible_graph(of, Expansion().open(one.id)).graph
            assert one.id in {region.id for region in picture.regions}


def test_what_was_opened_last_stays_open_as_long_as_there_is_room(graphs):
    of = container_tree(flat(graphs, 2000))
    parts = [one.id for one in of.root.children]
    choices = Expansion()
    for count, part in enumerate(parts, 1):
        choices = choices.open(part)
        is_open = {region.id for region in visible_graph(of, choices).graph.regions}
        assert set(parts[max(0, count - 4) : count]) <= is_open
    assert len(is_open) < len(parts)
    assert part not in {
        region.id for region in visible_graph(of, choices.close(part)).graph.regions
    }
    both = Expansion(opened=(part,), closed=frozenset({part}))
    assert part not in {region.id for region in visible_graph(of, both).graph.regions}


def layers(graphs, count, copy=0, *, is_open=True):
    """Return the picture of a stack whose layers have their own weight, step and mask."""
    text = graphs.Text()
    here, mask = text.param("x"), text.param("mask")
    parts = [text.step("get", mask, here, name=f"part{index}") for index in range(count)]
    for index in range(count):
        norm = text.step("norm", here, parts[index], name=f"norm{index}")
        weight = text.param(f"w{index}")
        for word in "abcd":
            norm = text.step(word, norm, weight, mask)
        here = text.step("add", here, norm, name=f"add{index}")
    of = container_tree(text.graph(here, f"w{count - 2}", "norm1"))
    (repeat,) = [one for one in graphs.repeats(of) if one.held == 6]
    choices = Expansion().show_copy(repeat.id, copy)
    choices = choices.open(repeat.id) if is_open else choices.close(repeat.id)
    return visible_graph(of, choices), repeat


@pytest.mark.parametrize("copy", [0, 1, 9])
def test_an_open_repeat_shows_one_copy_and_what_goes_to_the_next(graphs, copy):
    picture, repeat = layers(graphs, 10, copy)
    graph: Graph = picture.graph
    carried = {(edge.source, edge.target) for edge in graph.edges if edge.is_carried}
    assert carried == {(f"add{copy}", f"norm{copy}"), (f"add{copy}", f"add{copy}")}
    into = {edge.source for edge in graph.entering[f"norm{copy}"]}
    assert into == {"x", f"add{copy}", *(picture.where(f"part{index}") for index in range(10))}
    assert [region.name for region in graph.regions if region.id == repeat.id] == [
        f"×10 · copy {copy + 1}"
    ]
    assert {picture.where(f"w{index}") for index in range(10)} == {f"w{copy}"}
    assert graph.outputs == (f"add{copy}", f"w{copy}", f"norm{copy}")


def test_a_closed_repeat_is_one_node_with_all_that_is_its_own(graphs):
    picture, repeat = layers(graphs, 10, is_open=False)
    group = picture.graph[repeat.id]
    assert group.size == 10 * 6 + 10
    assert {picture.where(f"w{index}") for index in range(10)} == {repeat.id}
    assert not [edge for edge in picture.graph.edges if edge.source == edge.target]
    assert ("x", repeat.id) in {(edge.source, edge.target) for edge in picture.graph.edges}


def test_a_closed_function_holds_its_parameters(graphs):
    text = graphs.Text()
    outer = text.param("outer")
    made = graphs.function(text, lambda a: text.step("add", a, outer), "f")
    text.step("call", ((), made), outer, name="called")
    of = container_tree(text.graph())
    (body,) = graphs.below(of.root)
    picture = visible_graph(of, Expansion().close(body.id)).graph
    assert [node.id for node in picture.nodes] == ["outer", body.id, "f", "called"]
    assert picture[body.id].size == 2


def test_what_a_closed_block_hands_to_itself_in_the_next_copy_is_drawn(graphs):
    text = graphs.Text()
    here = text.param("x")
    for _ in range(12):
        with text.block():
            for word in ("norm", "matmul", "relu", "add"):
                here = text.step(word, here, text.param())
        text.step("print", here)
    of = container_tree(text.graph(here))
    (repeat,) = graphs.repeats(of)
    block = repeat.children[0].id
    picture = visible_graph(of, Expansion().open(repeat.id).close(block)).graph
    edges = {(edge.source, edge.target, edge.is_carried) for edge in picture.edges}
    assert {("x", block, False), (block, block, True)} <= edges
    assert (block, block, False) not in edges


def test_a_constant_that_was_computed_in_one_of_several_stages_is_a_step(graphs):
    text = graphs.Text()
    text.step("add", text.param("x"), name="sum")
    folded = text.constant("folded")
    text.edges.append(text.edges[-1]._replace(source="sum", target=folded))
    text.step("relu", folded, name="last")
    picture = visible_graph(container_tree(text.graph())).graph
    assert [node.id for node in picture.nodes] == ["x", "sum", "folded", "last"]
    assert len(picture.edges) == 3
