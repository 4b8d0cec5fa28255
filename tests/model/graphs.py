"""Makers of graphs without TVM, and what is true of them told a second time."""

from contextlib import contextmanager, nullcontext

from irviz.model.folding.group_tree import Container
from irviz.model.graph.graph import (
    INPUT_KINDS,
    Edge,
    Graph,
    LayerPart,
    Node,
    NodeId,
    NodeKind,
    Region,
    RegionKind,
)

FRAMED = (RegionKind.DATAFLOW_BLOCK, RegionKind.BRANCH, RegionKind.FUNCTION)


class Text:
    """A function in the making, line by line."""

    def __init__(self, prefix="v"):
        self.nodes, self.edges, self.regions, self.outputs = [], [], [], []
        self.region, self._prefix = None, prefix

    def _name(self, name):
        return NodeId(name or f"{self._prefix}{len(self.nodes)}")

    def param(self, name=None, type_="T", kind=NodeKind.PARAM):
        self.nodes.append(Node(self._name(name), kind, name or "", type_, region=self.region))
        return self.nodes[-1].id

    def constant(self, name=None, type_="T"):
        return self.param(name, type_, NodeKind.CONSTANT)

    def step(self, op, *operands, type_="T", name=None, kind=NodeKind.OPERATOR):
        """Add a step; operands are ids, or pairs of a position and an id."""
        node_id = self._name(name)
        for index, operand in enumerate(operands):
            position, source = ((index,), operand) if isinstance(operand, str) else operand
            self.edges.append(Edge(source, node_id, position))
        self.nodes.append(
            Node(node_id, kind, node_id, type_, op, region=self.region, structure=hash((kind, op)))
        )
        return node_id

    @contextmanager
    def inside(self, kind, name="", owner=None):
        around, self.region = self.region, len(self.regions)
        self.regions.append(Region(kind, name, around, owner))
        yield
        self.region = around

    def block(self):
        return self.inside(RegionKind.DATAFLOW_BLOCK)

    def graph(self, *outputs):
        found = outputs or self.outputs or [self.nodes[-1].id]
        return Graph(
            "main", tuple(self.nodes), tuple(self.edges), tuple(self.regions), tuple(found)
        )


def branches(text, condition, then, other, name=None):
    """Add an If; `then` and `other` add what is in a branch and return what it gives."""
    owner = NodeId(name or f"if{len(text.nodes)}")
    given = []
    for index, (word, body) in enumerate((("then", then), ("else", other))):
        with text.inside(RegionKind.BRANCH, word, owner):
            given.append(((index + 1,), body()))
    return text.step("if", ((0,), condition), *given, name=owner, kind=NodeKind.IF)


def function(text, body, name=None, params=1):
    """Add a function in the function; `body` is given the parameters and returns a value."""
    owner = NodeId(name or f"fn{len(text.nodes)}")
    with text.inside(RegionKind.FUNCTION, str(owner), owner):
        given = body(*(text.param() for _ in range(params)))
    return text.step("fn", ((0,), given), name=owner, kind=NodeKind.FUNCTION)


class Layer:
    """A layer at random: a DAG of operations on carried values, shared ones and its own leaves.

    Each operation has its name, its type and its operands: ("carried", i), ("shared", i),
    ("own", i) or ("step", i). The last ones are what goes on to the next layer.
    """

    def __init__(self, rng, length, carried=1, shared=2, own=2, words=6):
        self.carried, self.own = carried, own
        self.operations = []
        for index in range(length):
            operands = [self._operand(rng, index, shared) for _ in range(rng.randint(1, 3))]
            if index < carried:
                operands[0] = ("carried", index)
            elif rng.random() < 0.8:
                operands[0] = ("step", index - 1)
            self.operations.append((f"op{rng.randrange(words)}", rng.choice("TTTU"), operands))

    def _operand(self, rng, index, shared):
        choices = [("carried", rng.randrange(self.carried)), ("step", rng.randrange(index or 1))]
        choices += [("shared", rng.randrange(shared))] if shared else []
        choices += [("own", rng.randrange(self.own))] * 2 if self.own else []
        kind, which = rng.choice(choices)
        return ("carried", 0) if kind == "step" and index == 0 else (kind, which)

    def add(self, text, carried, shared, own, name=None):
        """Add one copy; return what it makes."""
        made = []
        for op, type_, operands in self.operations:
            of = {"carried": carried, "shared": shared, "own": own, "step": made}
            sources = [of[kind][which] for kind, which in operands]
            label = name(len(made)) if name else None
            made.append(text.step(op, *sources, type_=type_, name=label))
        return made

    def next(self, made):
        return made[-self.carried :]


def stack(rng, layer, copies, *, name=None, preamble=0, epilogue=0, is_kept=False):
    """Return a graph with copies of a layer, and where the first begins; `is_kept` uses each."""
    text = Text()
    shared = [text.param(f"shared{index}") for index in range(2)]
    made = [text.param(f"x{index}") for index in range(layer.carried)]
    for _ in range(preamble):
        made.append(text.step(f"op{rng.randrange(6)}", rng.choice(made), type_=rng.choice("TU")))
    carried, start = made[-layer.carried :], preamble
    kept = []
    for copy in range(copies):
        own = [text.constant() if index % 2 else text.param() for index in range(layer.own)]
        label = name and (lambda index, copy=copy: name(copy, index))
        made = layer.add(text, carried, shared, own, label)
        carried = layer.next(made)
        kept += made[:1] if is_kept else []
    for _ in range(epilogue):
        made.append(text.step(f"op{rng.randrange(6)}", rng.choice(made), type_=rng.choice("TU")))
    return text.graph(made[-1], *kept), start


def nested(rng):
    """Return a stack of layers with a stack in each, whose copies have what is theirs outside."""
    text = Text()
    shared = [text.param() for _ in range(2)]
    inner = Layer(rng, rng.randint(3, 6), 1, 1, 2)
    outer = Layer(rng, rng.randint(3, 8), rng.randint(1, 2), 1, 1, 9)
    carried = [text.step(f"first{index}", shared[0]) for index in range(outer.carried)]
    wide, high = rng.randint(3, 6), rng.randint(3, 6)
    has_states, has_branches, uses = rng.random() < 0.5, rng.random() < 0.4, rng.randrange(3)
    parts = [text.step("get", carried[0]) for _ in range(wide * high)] if uses == 0 else []
    kept = []
    for layer in range(high):
        made = outer.add(text, carried, shared, [text.param()])
        here = text.param(f"h{layer}") if has_states else made[-1]
        for copy in range(wide):
            from_outside = parts[layer * wide + copy] if parts else (made[0], shared[1])[uses - 1]
            own = [text.param(), text.constant()]
            here = inner.add(text, [here], [from_outside], own)[-1]
        if has_branches:
            then, other = (
                lambda word=word, here=here: text.step(word, here, text.constant())
                for word in ("then", "else")
            )
            here = branches(text, shared[0], then, other)
        carried = [*made[:1], text.step("join", here, made[-1])][-outer.carried :]
        kept.append(here)
    text.step("last", carried[-1])
    leaves = [node.id for node in text.nodes if node.kind in INPUT_KINDS]
    kept = kept if rng.random() < 0.5 else []
    return text.graph(text.nodes[-1].id, *rng.sample(leaves, 3), *kept)


def wide(rng):
    """Return a graph of different operations, with parameters used here and there."""
    text = Text()
    leaves = [text.param() for _ in range(rng.randint(10, 400))]
    made = leaves[:1]
    operation = iter(range(1000))
    for _ in range(rng.randint(2, 30)):
        with text.block() if rng.random() < 0.5 else nullcontext():
            for _ in range(rng.randint(1, 12)):
                count = min(len(leaves), rng.choice((0, 1, 3, 8, 10, 30)))
                used = rng.sample(leaves, count)
                made.append(text.step(f"op{next(operation)}", rng.choice(made[-5:]), *used))
    return text.graph(*rng.sample(made, 2))


def alike(rng):
    """Return a graph of few kinds of steps, with leaves that are used alike, all in blocks."""
    text = Text()
    leaves = [text.param() for _ in range(rng.choice((0, 1, 3, 10, 50, 300)))]
    leaves += [text.constant() for _ in range(rng.choice((1, 1, 2, 30)))]
    here, words = leaves[-1], rng.randint(1, 3)
    for _ in range(rng.randint(1, 2)):
        with nullcontext() if rng.random() < 0.3 else text.block():
            for index in range(rng.choice((1, 2, 5, 20, 70, 150, 400))):
                more = leaves if rng.random() < 0.01 else leaves[:1]
                own = [text.param() for _ in range(rng.choice((0, 0, 1, 4)))]
                here = text.step(f"op{index % words}", here, *more, *own)
    return text.graph(here)


def soup(rng, length):
    """Return a graph that nearly repeats itself here and there, with regions in it."""
    text = Text()
    leaves = [text.param(type_=rng.choice("TU")) for _ in range(rng.randint(1, 6))]
    made = list(leaves[:1])
    words = [f"op{i}" for i in range(rng.randint(1, 3))]
    makers = (_some, _block, _ifs, _function, _copies)
    while len(text.nodes) < length:
        rng.choice(makers)(rng, text, made, leaves, words)
    return text.graph(
        *rng.sample([n.id for n in text.nodes], min(len(text.nodes), rng.randint(1, 3)))
    )


def _some(rng, text, made, leaves, words):
    for _ in range(rng.randint(1, 10)):
        back = [made[-min(len(made), rng.choice((1, 1, 1, 2, 3, 4)))] for _ in range(2)]
        more = [_leaf(rng, text, leaves)] if rng.random() < 0.4 else []
        made.append(text.step(rng.choice(words), *back[: rng.randint(1, 2)], *more))


def _block(rng, text, made, leaves, words):
    with text.block():
        _some(rng, text, made, leaves, words)


def _ifs(rng, text, made, leaves, _):
    for _ in range(rng.randint(2, 8)):
        made.append(_if(rng, text, made, leaves))


def _copies(rng, text, made, leaves, _):
    layer = Layer(rng, rng.randint(1, 5), 1, 1, 1, 2)
    own = [rng.choice(leaves)]
    for _ in range(rng.randint(2, 12)):
        if rng.random() < 0.9:
            own = [text.param()]
        made += layer.add(text, [made[-1]], [rng.choice(made[-3:])] * 2, own)


def _leaf(rng, text, leaves):
    new = rng.random()
    if new < 0.3:
        leaves.append(text.param() if new < 0.15 else text.constant())
        return leaves[-1]
    return rng.choice(leaves)


def _if(rng, text, made, leaves):
    source = made[-1]

    def branch():
        here = source
        for _ in range(rng.choice((0, 1, 1, 2))):
            here = text.step("op0", here, _leaf(rng, text, leaves))
        return here

    return branches(text, leaves[0], branch, branch)


def _function(rng, text, made, *_):
    outer = made[-1]

    def body(first, _):
        here = text.step("op0", first, outer)
        return text.step("op1", here) if rng.random() < 0.5 else here

    made.append(text.step("op2", outer, function(text, body, params=2)))


def layered(rng, graph):
    """Return the graph with layers at random: runs of steps serve one, and some serve several."""
    layers = [
        tuple(LayerPart(f"{kind}.{rng.randrange(3)}", kind) for kind in ("block", "part", "leaf"))
        for _ in range(12)
    ]
    served = {}
    for node in bound(graph):
        if not served or rng.random() < 0.3:
            layer = rng.choice(layers)[: rng.randint(0, 3)]
            now = (layer, rng.choice(layers)) if rng.random() < 0.1 else (layer,)
        served[node.id] = now
    nodes = [node._replace(layers=served.get(node.id, ((),))) for node in graph.nodes]
    return graph.with_nodes(nodes)


def is_unused(graph, node):
    """Tell whether a node is a weight of a model that nothing uses, which is not drawn."""
    is_weight = node.kind is NodeKind.PARAM and node.layers
    return bool(is_weight and node.id not in graph.leaving and node.id not in graph.outputs)


def bound(graph):
    """Return the nodes that are steps."""
    return [node for node in graph.nodes if node.kind not in INPUT_KINDS]


def below(container):
    """Yield what a container holds, each before what is in it."""
    for child in container.children:
        if isinstance(child, Container):
            yield child
            yield from below(child)


def repeats(tree):
    return [one for one in below(tree.root) if one.copies > 1]


def framed(graph, region):
    """Return the regions around and including this one that have a frame, from the outside in."""
    path = []
    while region is not None:
        if graph.regions[region].kind in FRAMED:
            path.insert(0, region)
        region = graph.regions[region].parent
    return tuple(path)


def difference(graph, start, stop, copies):
    """Tell how two of these copies that follow each other differ, "" when none do."""
    copies_ = Copies(graph, start, stop, copies)
    found = (text for copy in range(copies - 1) for text in copies_.differences(copy))
    return next(found, "")


class Copies:
    """Stretches of the steps of a graph, one after the other, compared one by one."""

    def __init__(self, graph, start, stop, copies):
        self.graph, self.nodes = graph, bound(graph)
        self.start, self.held = start, (stop - start) // copies
        self.at = {node.id: index for index, node in enumerate(self.nodes)}
        self.shared, self.owners = {}, {}

    def differences(self, copy):
        """Yield how a copy and the one after it differ."""
        begin = self.start + copy * self.held
        after, before, frames = {}, {}, {}
        for step in range(begin, begin + self.held):
            one, two = self.nodes[step], self.nodes[step + self.held]
            if does(one) != does(two) or not stand_alike(self.graph, one, two, frames):
                yield f"{two.id} is something else than {one.id}"
            mine, theirs = (self.graph.entering.get(node.id, ()) for node in (one, two))
            if [edge.position for edge in mine] != [edge.position for edge in theirs]:
                yield f"{two.id} has other operands than {one.id}"
            for slot, (x, y) in enumerate(zip(mine, theirs, strict=False)):
                x, y = x.source, y.source
                if self.at.get(x, -1) >= self.start:
                    if not self.is_next(copy, x, y):
                        yield f"{two.id} has {y} where {one.id} has {x}"
                    continue
                if not self.is_outside(copy, (step - begin, slot), x, y):
                    yield f"{two.id} has {y} where {one.id} has {x}, which is outside"
                if after.setdefault(x, y) != y or before.setdefault(y, x) != x:
                    yield f"{y} is not used as {x} is"

    def is_next(self, copy, x, y):
        """Tell whether two copies use what is made at the same place: in them, or before."""
        begin = self.start + copy * self.held
        is_near = begin - self.held <= self.at[x] < begin + self.held
        return is_near and self.at.get(y) == self.at[x] + self.held

    def is_outside(self, copy, place, x, y):
        """Tell whether the first uses what is outside as the second does, or as the first can."""
        before, after = self.at.get(x, -1), self.at.get(y, -1)
        if after >= self.start:
            return copy == 0 and after < self.start + self.held
        if does(self.graph[x]) != does(self.graph[y]) or (before < 0) != (after < 0):
            return False
        if self.shared.setdefault(place, x == y) != (x == y):
            return False
        is_own = self.owners.setdefault(x, copy) == copy, self.owners.setdefault(y, copy + 1)
        return x == y or is_own == (True, copy + 1)


def does(node):
    return node.kind, node.structure, node.type_label


def stand_alike(graph, one, two, frames):
    """Tell whether two nodes stand in frames of the same kinds, as others there do."""
    first, second = framed(graph, one.region), framed(graph, two.region)
    for a, b in zip(first, second, strict=False):
        mine, theirs = graph.regions[a], graph.regions[b]
        is_named = mine.kind is RegionKind.BRANCH
        if mine.kind is not theirs.kind or (is_named and mine.name != theirs.name):
            return False
        if frames.setdefault(("to", a), b) != b or frames.setdefault(("from", b), a) != a:
            return False
    return len(first) == len(second)
