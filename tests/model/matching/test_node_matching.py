"""Nodes of two graphs correspond where they stand for one value, or for one place."""

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irviz.model.graph.graph import Edge, Graph, Node, NodeKind, Region, RegionKind, inlined_id
from irviz.model.matching.inlined_graph import inline_calls, inlined_correspondence
from irviz.model.matching.node_matching import correspondence


def graph(text, params="x w", outputs=(), types=None):
    """Make a graph of lines such as `b = relu(a)`; `outputs` is the last line by default."""
    nodes = [Node(name, NodeKind.PARAM, name, "T") for name in params.split()]
    edges = []
    for line in filter(None, map(str.strip, text.split(";"))):
        name, _, call = line.partition(" = ")
        callee, _, operands = call.rstrip(")").partition("(")
        kind = NodeKind.CALL_FUNCTION if callee[:1] == "f" else NodeKind.OPERATOR
        if callee == "const":
            nodes.append(Node(name, NodeKind.CONSTANT, operands, "T"))
            continue
        type_label = (types or {}).get(name, "T")
        nodes.append(Node(name, kind, name, type_label, callee, structure=hash(callee)))
        edges += [
            Edge(source, name, (index,)) for index, source in enumerate(operands.split()) if source
        ]
    return Graph("main", tuple(nodes), tuple(edges), (), tuple(outputs) or (nodes[-1].id,))


def pairs(one, other, identical=None):
    found = correspondence(one, other, identical or {})
    assert len(set(found.values())) == len(found)
    return {a: b for a, b in found.items() if a not in ("x", "w")}


CHAIN = "a = relu(x); b = mm(a w); c = tanh(b)"


def test_what_is_the_same_corresponds_whatever_its_name():
    other = "p = relu(x); q = mm(p w); r = tanh(q)"
    assert pairs(graph(other), graph(CHAIN)) == {"p": "a", "q": "b", "r": "c"}
    assert correspondence(graph(CHAIN), graph(CHAIN))["x"] == "x"


def test_what_is_known_to_be_identical_goes_before_names():
    one = graph("lv1 = relu(x); lv = tanh(x); o = add(lv lv1)")
    other = graph("lv = gelu(x); lv1 = erf(x); o = add(lv lv1)")
    assert pairs(one, other, {"lv1": "lv", "gone": "o", "o": "gone"})["lv1"] == "lv"
    twice = pairs(one, other, {"lv1": "lv", "lv": "lv"})
    assert twice["lv1"] == "lv"


def test_parameters_are_matched_by_name_and_then_by_place():
    assert correspondence(graph("a = relu(x)", "w x"), graph("a = relu(x)", "x w")) == {
        "w": "w",
        "x": "x",
        "a": "a",
    }
    assert correspondence(graph("a = relu(q)", "q v"), graph("a = relu(x)", "x w"))["q"] == "x"
    assert "q" not in correspondence(graph("a = relu(q)", "q"), graph("a = relu(x)", "x w"))


def test_a_bound_parameter_is_the_constant_of_its_name():
    bound = graph("k = const(w); a = relu(x); b = mm(a k); c = tanh(b)", "x")
    assert correspondence(bound, graph(CHAIN)) == {"x": "x", "k": "w", "a": "a", "b": "b", "c": "c"}


def test_a_constant_without_a_name_is_matched_by_what_uses_it():
    one = graph("k = const(); a = add(x k); b = relu(a)")
    other = graph("m = const(); p = add(x m); q = relu(p)")
    assert pairs(one, other) == {"k": "m", "a": "p", "b": "q"}


def test_a_swapped_callee_is_at_the_same_place_and_all_that_follows_is_the_same():
    swapped = "p = relu(x); q = env.mm(p w); r = tanh(q)"
    assert pairs(graph(swapped), graph(CHAIN)) == {"p": "a", "q": "b", "r": "c"}
    longer = "a = relu(x); b = env.mm(a w); c = tanh(b); d = neg(c)"
    assert pairs(graph(longer), graph(CHAIN)) == {"a": "a", "b": "b", "c": "c"}


def test_of_layers_that_look_alike_each_has_its_own():
    def stack(names):
        return "; ".join(
            f"{name} = relu({source})" for source, name in zip("x" + names, names, strict=False)
        )

    found = pairs(graph(stack("pqrs")), graph(stack("abcd")))
    assert found == dict(zip("pqrs", "abcd", strict=True))


def test_a_renumbered_name_does_not_match_another_computation():
    one = graph("lv = tanh(x); lv1 = relu(lv); lv2 = relu(lv1)")
    other = graph("lv = relu(x); lv1 = relu(lv)")
    assert pairs(one, other) == {"lv1": "lv", "lv2": "lv1"}
    fused = graph("lv = fused_relu_add(x); gv = mm(lv w)")
    other = graph("lv = relu(x); lv1 = add(lv lv); lv2 = mm(lv1 w)")
    assert pairs(fused, other) == {"lv": "lv1", "gv": "lv2"}
    fused = graph("lv = fused_relu_add(x); gv = fused_mm_tanh(lv w)")
    other = graph("lv = relu(x); lv1 = add(lv lv); lv2 = mm(lv1 w); lv3 = tanh(lv2)")
    assert pairs(fused, other) == {"lv": "lv1", "gv": "lv3"}


def test_an_exchange_of_names_is_seen_through():
    one = graph("a = tanh(x); b = relu(x); c = add(a b)")
    other = graph("b = tanh(x); a = relu(x); c = add(b a)")
    assert pairs(one, other) == {"a": "b", "b": "a", "c": "c"}


def test_several_that_are_one_value_keep_their_names_and_stay_one_for_one():
    one = graph("b = relu(x); c = relu(x); d = add(b c)")
    other = graph("a = relu(x); b = relu(x); d = add(a b)")
    found = pairs(one, other)
    assert found["b"] == "b"
    assert found["c"] == "a"
    merged = graph("b = relu(x); d = add(b b)")
    assert pairs(merged, other)["b"] == "b"


def test_another_type_is_another_value_unless_the_same_is_called():
    one = graph(CHAIN.replace("mm", "mm16"), types={"b": "T16"})
    assert "b" not in pairs(one, graph(CHAIN))
    one = graph(CHAIN, types={"a": "T(1)", "b": "T(1)", "c": "T(1)"})
    assert pairs(one, graph(CHAIN)) == {"a": "a", "b": "b", "c": "c"}


def test_branches_do_not_correspond_crosswise():
    def branches(first, second):
        regions = tuple(
            Region(RegionKind.BRANCH, name, None, "chosen") for name in ("then", "else")
        )
        nodes = (
            Node("x", NodeKind.PARAM, "x", "T"),
            Node(first, NodeKind.OPERATOR, first, "T", "relu", structure=1, region=0),
            Node(second, NodeKind.OPERATOR, second, "T", "relu", structure=1, region=1),
            Node("chosen", NodeKind.IF, "chosen", "T", structure=2),
        )
        edges = (
            Edge("x", first, (0,)),
            Edge("x", second, (0,)),
            Edge("x", "chosen", (0,)),
            Edge(first, "chosen", (1,)),
            Edge(second, "chosen", (2,)),
        )
        return Graph("main", nodes, edges, regions, ("chosen",))

    found = correspondence(branches("p", "q"), branches("q", "p"))
    assert found == {"x": "x", "p": "q", "q": "p", "chosen": "chosen"}


def test_an_edge_that_leads_back_does_not_hinder():
    def calling_itself(name):
        nodes = (
            Node("x", NodeKind.PARAM, "x", "T"),
            Node(name, NodeKind.FUNCTION, name, "T", structure=1),
            Node(f"{name}1", NodeKind.CALL_FUNCTION, f"{name}1", "T", structure=2),
        )
        edges = (Edge("x", name, (0,)), Edge(name, f"{name}1", (0,)), Edge(f"{name}1", name, (1,)))
        return Graph("main", nodes, edges, (), ("x",))

    found = correspondence(calling_itself("p"), calling_itself("q"))
    assert found == {"x": "x", "p": "q", "p1": "q1"}


def test_storage_of_one_size_is_not_one_storage():
    one = graph("p = alloc(); q = alloc(); r = into(x p); s = into(x q)")
    other = graph("a = alloc(); b = alloc(); c = into(x a); d = into(x b)")
    assert pairs(one, other) == {"p": "a", "q": "b", "r": "c", "s": "d"}


INNER = graph("r = relu(p); m = mm(r q)", "p q")


def test_what_is_in_a_fused_function_has_the_node_that_it_was():
    fused = inline_calls("main", {"main": graph("lv = f(x w); gv = tanh(lv)"), "f": INNER})
    before = inline_calls("main", {"main": graph(CHAIN)})
    found = inlined_correspondence(fused, before)
    assert found[inlined_id("lv", "r")] == "a"
    assert found[inlined_id("lv", "m")] == found["lv"] == "b"
    assert found["gv"] == "c"
    assert inlined_id("lv", "p") not in found
    back = inlined_correspondence(before, fused)
    assert (back["a"], back["b"], back["c"]) == (inlined_id("lv", "r"), inlined_id("lv", "m"), "gv")


def test_calls_that_correspond_lead_to_what_is_in_them():
    def calling(name):
        main = graph(f"{name} = f(x w); last{name} = f({name} w)")
        return inline_calls("main", {"main": main, "f": INNER})

    found = inlined_correspondence(calling("u"), calling("v"))
    assert (found["u"], found["lastu"]) == ("v", "lastv")
    for own in ("p", "q", "r", "m"):
        assert found[inlined_id("lastu", own)] == inlined_id("lastv", own)
    assert len(set(found.values())) == len(found) == len(calling("u").graph.nodes)


def test_what_is_identical_in_a_called_function_counts():
    fused = inline_calls("main", {"main": graph("lv = f(x w); gv = tanh(lv)"), "f": INNER})
    other = inline_calls("main", {"main": graph("a = gelu(x); b = gelu(x); c = erf(b)")})
    found = inlined_correspondence(fused, other, {inlined_id("lv", "r"): "b", "lv": "a"})
    assert found[inlined_id("lv", "r")] == "b"
    assert found["lv"] == found[inlined_id("lv", "m")] == "a"


def test_a_function_that_calls_itself_is_not_followed_there():
    main, looping = graph("a = f(x w)"), graph("b = f(p q)", "p q")
    found = inline_calls("main", {"main": main, "f": looping})
    assert [one.id for one in found.graph.nodes] == [
        "x",
        "w",
        inlined_id("a", "p"),
        inlined_id("a", "q"),
        inlined_id("a", "b"),
        "a",
    ]
    assert found.origin("a") == inlined_id("a", "b")
    assert found.origin(inlined_id("a", "p")) == "x"


def test_items_of_what_a_called_function_returns_are_what_was_put_there():
    inner = graph("r = relu(p); m = tanh(p)", "p", outputs=("r", "m"))
    nodes = (
        Node("x", NodeKind.PARAM, "x", "T"),
        Node("both", NodeKind.CALL_FUNCTION, "both", "Tuple[T, T]", "f"),
        Node("item", NodeKind.TUPLE_GET_ITEM, "item", "T", attributes=(("index", "1"),)),
    )
    edges = (Edge("x", "both", (0,)), Edge("both", "item", (0,)))
    found = inline_calls("main", {"main": Graph("main", nodes, edges, (), ("item",)), "f": inner})
    assert found.origin("item") == inlined_id("both", "m")
    other = inline_calls("main", {"main": graph("a = relu(x); b = tanh(x)", "x")})
    assert inlined_correspondence(found, other)[inlined_id("both", "m")] == "b"


@st.composite
def programs(draw):
    """Return lines of a program that makes each value of those before."""
    lines, made = [], ["x", "w"]
    for index in range(draw(st.integers(1, 12))):
        callee = draw(st.sampled_from(["relu", "tanh", "add"]))
        operands = draw(st.lists(st.sampled_from(made), min_size=1, max_size=2))
        lines.append((f"lv{index}", callee, operands))
        made.append(f"lv{index}")
    return lines


def written(lines):
    return graph("; ".join(f"{name} = {call}({' '.join(args)})" for name, call, args in lines))


def value(lines):
    """Return what each name stands for, written out in full."""
    known = {"x": "x", "w": "w"}
    for name, call, args in lines:
        known[name] = f"{call}({','.join(known[one] for one in args)})"
    return known


@given(lines=programs(), data=st.data())
def test_dropping_and_numbering_again_leaves_every_node_its_own(lines, data):
    used = {lines[-1][0]}
    kept = []
    for name, call, args in reversed(lines):
        if name in used or data.draw(st.booleans()):
            kept.insert(0, (name, call, args))
            used.update(args)
    names = {name: f"lv{index}" for index, (name, _, _) in enumerate(kept)}
    fewer = [
        (names[name], call, [names.get(one, one) for one in args]) for name, call, args in kept
    ]
    found = pairs(written(fewer), written(lines))
    mine, theirs = value(fewer), value(lines)
    assert len(found) == len(fewer)
    assert all(mine[one] == theirs[other] for one, other in found.items())


@given(one=programs(), other=programs(), data=st.data())
def test_nodes_correspond_one_for_one_whatever_is_compared(one, other, data):
    ids = st.sampled_from([name for name, _, _ in [*one, *other]])
    identical = data.draw(st.dictionaries(ids, ids, max_size=3))
    found = pairs(written(one), written(other), identical)
    assert found.keys() <= {name for name, _, _ in one}
    assert set(found.values()) <= {name for name, _, _ in other}


@pytest.mark.parametrize("changed", [None, 0, 0.5, 1])
def test_large_graphs_take_little_more_for_each_node(changed):
    def stack(count, changed=None):
        callees = ["new" if at == changed else f"op{at % 7}" for at in range(count)]
        sources = ["x", *(f"lv{at}" for at in range(count - 1))]
        calls = zip(callees, sources, strict=True)
        return graph("; ".join(f"lv{at} = {c}({x} w)" for at, (c, x) in enumerate(calls)))

    def steps(count):
        at = None if changed is None else round(changed * (count - 1))
        one, other = stack(count, at), stack(count)
        counted = itertools.count()

        def count_step(frame, *_):
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            next(counted)
            return count_step

        before = sys.gettrace()
        sys.settrace(count_step)
        try:
            found = correspondence(one, other)
        finally:
            sys.settrace(before)
        assert len(found) == count + 2
        return next(counted)

    assert steps(1000) < 2.5 * steps(500)
