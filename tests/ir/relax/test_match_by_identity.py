"""Nodes with the same variable match, and matching nodes have the same value."""

import random

import numpy as np
import pytest
import tvm
from tvm import ir, relax, tirx

from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.ir.function_graph import extract, read_function
from irviz.ir.module_functions import NoFunctionError, relax_functions
from irviz.ir.node_ids import identify
from irviz.model.graph.graph import inlined_id
from irviz.model.matching.inlined_graph import inline_calls, inlined_correspondence
from irviz.model.matching.node_matching import correspondence
from irviz.session.stage_cache import shared_constants, shared_vars
from irviz.transforms.stage import Stage

PARAMS = ("x", "w0", "w1")
_numbers = np.random.default_rng(3)
ARRAYS = {name: (_numbers.standard_normal((4, 4)) / 2).astype("float32") for name in PARAMS}

OPERATORS = {
    "relax.add": np.add,
    "relax.multiply": np.multiply,
    "relax.matmul": np.matmul,
    "relax.nn.relu": lambda a: np.maximum(a, 0),
    "relax.tanh": np.tanh,
    "relax.permute_dims": np.transpose,
}


def shared(mod, other, function="main"):
    """Match a function in two modules by the variables that they share."""
    return shared_vars(Stage("0", mod), Stage("1", other), function, function)


def random_module(seed):
    """Return a module of a few operators on matrices that all have one type."""
    rng = random.Random(seed)
    builder, type_ = relax.BlockBuilder(), relax.TensorType((4, 4), "float32")
    params = [relax.Var(name, type_) for name in PARAMS]
    made = list(params)

    def some():
        return made[-1] if rng.random() < 0.6 else rng.choice(made)

    makers = [
        lambda: relax.op.nn.relu(some()),
        lambda: relax.op.tanh(some()),
        lambda: relax.op.add(some(), some()),
        lambda: relax.op.multiply(some(), rng.choice(params)),
        lambda: relax.op.matmul(some(), rng.choice(params)),
        lambda: relax.op.permute_dims(some()),
    ]
    with builder.function("main", params):
        with builder.dataflow():
            for index in range(rng.randint(3, 14)):
                name = f"n{index}" if seed % 2 else ""
                made += [builder.emit(rng.choice(makers)(), name)]
            result = relax.Tuple(made[-2:]) if rng.random() < 0.4 else made[-1]
            output = builder.emit_output(result)
        builder.emit_func_output(output)
    return builder.get()


BUILT = {}
"""PrimFuncs that were built, by their text: random modules have many that are the same."""


class Values:
    """Runs a module with NumPy, operator by operator; keeps what each node came to."""

    def __init__(self, mod):
        self.functions = {gvar.__chandle__(): f for gvar, f in mod.functions.items()}
        self.found = {}
        self.run(mod["main"], [ARRAYS[param.name] for param in mod["main"].params], "")

    def run(self, function, arguments, call):
        ids = {var.__chandle__(): node_id for var, node_id in identify(function).items()}
        known = {}

        def keep(var, value):
            node_id = ids[var.__chandle__()]
            known[var.__chandle__()] = value
            self.found[inlined_id(call, node_id) if call else node_id] = value

        for param, argument in zip(function.params, arguments, strict=True):
            keep(param, argument)
        for block in function.body.blocks:
            for binding in block.bindings:
                node_id = ids[binding.var.__chandle__()]
                place = inlined_id(call, node_id) if call else node_id
                keep(binding.var, self.value(binding.value, known, place))
        return self.value(function.body.body, known, "")

    def value(self, expr, known, place):
        match expr:
            case ir.Var():
                return known[expr.__chandle__()]
            case ir.GenericConst():
                return expr.value.numpy()
            case ir.Tuple():
                return tuple(self.value(field, known, place) for field in expr.fields)
            case ir.TupleGetItem():
                return self.value(expr.tuple_value, known, place)[expr.index]
        op = expr.op
        if isinstance(op, ir.GlobalVar):
            arguments = [self.value(argument, known, place) for argument in expr.args]
            return self.run(self.functions[op.__chandle__()], arguments, place)
        if op.name != "relax.call_tir":
            arguments = [self.value(argument, known, place) for argument in expr.args]
            return OPERATORS[op.name](*arguments)
        arguments = [self.value(field, known, place) for field in expr.args[1].fields]
        return self.call(self.functions[expr.args[0].__chandle__()], arguments, expr.ty)

    def call(self, function, arguments, type_):
        mod = ir.IRModule({"f": function.with_attr("global_symbol", "f")})
        text = mod.script(show_meta=True)
        if text not in BUILT:
            BUILT[text] = tvm.tirx.build(mod, "llvm")["f"]
        types = list(type_.fields) if isinstance(type_, ir.TupleType) else [type_]
        made = [np.empty((4, 4), "float32") for _ in types]
        tensors = [tvm.runtime.tensor(np.ascontiguousarray(one)) for one in (*arguments, *made)]
        BUILT[text](*tensors)
        results = tuple(one.numpy() for one in tensors[len(arguments) :])
        return results if isinstance(type_, ir.TupleType) else results[0]


def is_same(one, other):
    if isinstance(one, tuple) or isinstance(other, tuple):
        return len(one) == len(other) and all(map(is_same, one, other))
    return np.allclose(one, other, 1e-4, 1e-4)


def unfold(mod):
    return inline_calls("main", {name: extract(mod, name) for name in relax_functions(mod)})


def bound(mod):
    weights = {name: tvm.runtime.tensor(ARRAYS[name]) for name in PARAMS[1:]}
    return relax.transform.BindParams("main", weights)(mod)


LOWERED = (relax.transform.LegalizeOps(), relax.transform.AnnotateTIROpPattern())
PASSES = {
    "LegalizeOps": LOWERED[:1],
    "FuseOps": (*LOWERED, relax.transform.FuseOps()),
    "FuseTIR": (*LOWERED, relax.transform.FuseOps(), relax.transform.FuseTIR()),
    "CanonicalizeBindings": (relax.transform.CanonicalizeBindings(),),
    "EliminateCommonSubexpr": (relax.transform.EliminateCommonSubexpr(),),
    "BindParams": (bound,),
    "FoldConstant": (bound, LOWERED[0], relax.transform.FoldConstant()),
    "TopologicalSort": (relax.transform.TopologicalSort("depth-first", "from-outputs"),),
}
LEAST = {"FuseTIR": 0.85, "FuseOps": 0.9}
"""The share of nodes with an equal value in the other stage that have to be found."""


def possible(values, others):
    """Count how many pairs of nodes with equal values there could be, one for one."""
    left, count = list(others.values()), 0
    for value in values.values():
        at = next((at for at, other in enumerate(left) if is_same(value, other)), None)
        if at is not None:
            left.pop(at)
            count += 1
    return count


@pytest.mark.build
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("is_known", [True, False], ids=["in this session", "from elsewhere"])
def test_what_corresponds_after_a_pass_has_the_same_value(name, is_known):
    right = most = 0
    for seed in range(5):
        before = after = random_module(seed)
        for step in PASSES[name]:
            after = step(after)
        values, others = Values(after).found, Values(before).found
        identical = shared(after, before) if is_known else {}
        found = inlined_correspondence(unfold(after), unfold(before), identical)
        told = {one: other for one, other in found.items() if one in values and other in others}
        wrong = [pair for pair in told.items() if not is_same(values[pair[0]], others[pair[1]])]
        assert wrong == [], seed
        right += len(told)
        most += possible(values, others)
    if is_known:
        assert right >= most * LEAST.get(name, 1)


@pytest.mark.build
def test_step_by_step_more_is_found_than_at_once():
    count = at_once = 0
    for seed in range(5):
        stages = [random_module(seed)]
        for step in PASSES["FuseTIR"]:
            stages.append(step(stages[-1]))
        values, others = Values(stages[-1]).found, Values(stages[0]).found
        found = {one: one for one in values}
        for a, b in zip(stages[:0:-1], stages[-2::-1], strict=True):
            step = inlined_correspondence(unfold(a), unfold(b), shared(a, b))
            found = {one: step[other] for one, other in found.items() if other in step}
        told = {one: other for one, other in found.items() if one in values and other in others}
        assert all(is_same(values[one], others[other]) for one, other in told.items())
        count += len(told)
        ends = stages[-1], stages[0]
        at_once += len(correspondence(*map(extract, ends), shared(*ends)))
    assert count >= at_once


def test_passes_leave_the_variables_of_what_they_keep():
    legal = relax.transform.LegalizeOps()(MyModuleHighLevel)
    found = shared(legal, MyModuleHighLevel)
    assert found == {node.id: node.id for node in extract(MyModuleHighLevel).nodes}


def test_fusing_keeps_the_variables_in_the_functions_that_it_makes():
    fused = MyModuleHighLevel
    for step in PASSES["FuseOps"]:
        fused = step(fused)
    found = shared(fused, MyModuleHighLevel)
    assert found[inlined_id("lv", "lv0")] == "lv0"
    assert shared(MyModuleHighLevel, fused)["lv0"] == inlined_id("lv", "lv0")


def test_modules_that_were_read_anew_share_nothing():
    text = tvm.ir.load_json(tvm.ir.save_json(MyModuleHighLevel))
    assert shared(text, MyModuleHighLevel) == {}


def test_constants_of_one_tensor_are_one():
    before = bound(random_module(4))
    after = relax.transform.LegalizeOps()(before)
    constants, others = read_function(after).constants, read_function(before).constants
    assert shared_constants(constants, others) == {one: one for one in others}
    assert shared_constants(constants, read_function(bound(random_module(4))).constants) == {}


def test_a_prim_func_shares_no_variables_and_a_missing_function_is_an_error():
    legal = relax.transform.LegalizeOps()(MyModuleHighLevel)
    name = next(g.name_hint for g, f in legal.functions.items() if isinstance(f, tirx.PrimFunc))
    assert shared(legal, legal, name) == {}
    with pytest.raises(NoFunctionError, match="no function 'gone'"):
        shared(legal, legal, "gone")
