"""Random mutants of modules, each with what TVM says of it: equal to the module, or another one.

Nothing here is asked of irviz. Whether a mutant is equal is told by TVM's structural equality, up
to the names of private functions; and where only the order of bindings is another one, by a
symbolic run of both (`symbolic_run.py`). What TVM prints as the same text is not counted: nobody
could see it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tvm
import tvm_ffi
from tvm import IRModule, ir, relax, tirx
from tvm.relax import op

Same = Callable[[IRModule, IRModule, str], bool]
Make = Callable[[IRModule, random.Random], "IRModule | None"]


class Mutant(NamedTuple):
    """A module that was made of another one.

    Attributes:
        kind: How it was made.
        is_equal: Whether it is equal up to names, and to orders that change no read.
    """

    kind: str
    module: IRModule
    is_equal: bool


def mutants(
    mod: IRModule,
    chance: random.Random,
    count: int,
    is_same_run: Same,
    kinds: Sequence[Make] = (),
) -> Iterator[Mutant]:
    """Yield so many mutants, of as many kinds as the module allows, in a random order.

    Args:
        is_same_run: Tells whether a function does the same in two modules, by another order.
        kinds: The functions that make them, all by default. TVM may end the process at what
            `other_field` makes.
    """
    kinds = kinds or [*ORDERS, *OTHER, *[other_field] * 3, *EQUAL]
    tried = 0
    while count and tried < 40:
        tried += 1
        make = chance.choice(kinds)
        found = _mutant(make, mod, chance, is_same_run)
        if found is not None:
            count, tried = count - 1, 0
            yield found


def _mutant(
    make: Make,
    mod: IRModule,
    chance: random.Random,
    is_same_run: Same,
) -> Mutant | None:
    try:
        made = make(mod, chance)
        if made is None or (_is_well_formed(mod) and not _is_well_formed(made)):
            return None
        if make is other_field and _names(made) != _names(mod):
            return None  # a name is no field
        if make in EQUAL:
            return Mutant(make.__name__, made, is_equal=True)
        is_equal = tvm_ffi.structural_equal(mod, made, map_free_vars=True)
        if make in ORDERS and not is_equal:
            is_equal = all(is_same_run(mod, made, name) for name in _changed(mod, made))
        elif (
            make is other_field
            and not is_equal
            and (_text(mod) == _text(made) or _is_of_other_type(mod, made))
        ):
            return None
    except REFUSED:
        return None
    return Mutant(make.__name__, made, is_equal)


REFUSED = (ValueError, TypeError, KeyError, IndexError, AttributeError, RuntimeError)
"""What TVM raises for values that it does not take."""


def _is_well_formed(mod: IRModule) -> bool:
    try:
        relax.analysis.well_formed(mod, False)
    except REFUSED:
        return False
    return True


def _changed(mod: IRModule, made: IRModule) -> list[str]:
    return [
        str(gvar.name_hint)
        for gvar, one in mod.functions.items()
        if not made[gvar.name_hint].same_as(one)
    ]


def _is_of_other_type(mod: IRModule, made: IRModule) -> bool:
    """Return whether a field of JSON says that a value is of another type than its variable."""
    place = tvm_ffi.get_first_structural_mismatch(mod, made, map_free_vars=True)
    return bool(re.search(r"\.(value|shape|body)\.ty\b", str(place[0])))


def _names(mod: IRModule) -> set[str]:
    return {str(gvar.name_hint) for gvar in mod.functions}


def _text(mod: IRModule) -> str:
    return mod.script()


# --- functions and bindings --------------------------------------------------------------------


def _relax_functions(mod: IRModule) -> list[tuple[ir.GlobalVar, relax.Function]]:
    return [(g, f) for g, f in mod.functions.items() if isinstance(f, relax.Function)]


def _with(mod: IRModule, *changed: tuple[ir.GlobalVar, ir.BaseFunc]) -> IRModule:
    functions = {**dict(mod.functions.items()), **dict(changed)}
    return IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def _function(old: relax.Function, **new: object) -> relax.Function:
    facts = {
        "params": old.params,
        "body": old.body,
        "ret_ty": old.ret_ty,
        "is_pure": old.is_pure,
        "attrs": old.attrs,
    }
    return relax.Function(*{**facts, **new}.values())


def _blocks(body: ir.Expr) -> Iterator[relax.BindingBlock]:
    for block in body.blocks if isinstance(body, relax.SeqExpr) else ():
        yield block
        for binding in block.bindings:
            for inner in _bodies(binding.value):
                yield from _blocks(inner)


def _bodies(value: ir.Expr) -> Sequence[ir.Expr]:
    if isinstance(value, relax.If):
        return value.true_branch, value.false_branch
    if isinstance(value, relax.Function):
        return (value.body,)
    return (value,) if isinstance(value, relax.SeqExpr) else ()


def _rebuilt(value, change):
    """Return a body, or a value with bodies, with the bindings of each block changed."""
    if isinstance(value, relax.SeqExpr):
        blocks = []
        for block in value.blocks:
            bindings = [
                relax.VarBinding(one.var, new)
                if isinstance(one, relax.VarBinding)
                and not (new := _rebuilt(one.value, change)).same_as(one.value)
                else one
                for one in change(block)
            ]
            blocks.append(type(block)(bindings))
        return relax.SeqExpr(blocks, value.body)
    if isinstance(value, relax.If):
        branches = [_rebuilt(one, change) for one in (value.true_branch, value.false_branch)]
        return relax.If(value.cond, *branches)
    if isinstance(value, relax.Function):
        return _function(value, body=_rebuilt(value.body, change))
    return value


def _with_bindings(mod, chance, change, least=1):
    """Return the module with one random block's bindings changed, None without such a block."""
    found = [
        (gvar, function, block)
        for gvar, function in _relax_functions(mod)
        for block in _blocks(function.body)
        if len(block.bindings) >= least
    ]
    if not found:
        return None
    gvar, function, chosen = chance.choice(found)
    new = change(list(chosen.bindings))
    if new is None:
        return None

    def changed(block):
        return new if block.same_as(chosen) else list(block.bindings)

    return _with(mod, (gvar, _function(function, body=_rebuilt(function.body, changed))))


def _free(value: ir.Expr) -> set[int]:
    try:
        return {var.__chandle__() for var in relax.analysis.free_vars(value)}
    except Exception:  # a part is not Relax
        found: set[int] = set()
        tvm_ffi.structural_walk(value, (ir.Var, lambda var: found.add(var.__chandle__())))
        return found


def _defined(binding: relax.Binding) -> set[int]:
    """Return the variables that a binding defines, sizes included."""
    found = {binding.var.__chandle__()}
    if isinstance(binding, relax.MatchCast):
        tvm_ffi.structural_walk(binding.ty, (ir.Var, lambda var: found.add(var.__chandle__())))
    return found


# --- other orders ------------------------------------------------------------------------------


def moved(mod, chance):
    """Move one binding to another place where everything that it uses is defined."""
    return _with_bindings(mod, chance, lambda bindings: _moved(bindings, chance), 2)


def moved_next(mod, chance):
    """Exchange two neighbours that do not use each other."""
    return _with_bindings(mod, chance, lambda bindings: _moved(bindings, chance, 1), 2)


def shuffled(mod, chance):
    """Move several bindings of a block."""

    def change(bindings):
        for _ in range(4):
            bindings = _moved(bindings, chance) or bindings
        return bindings

    return _with_bindings(mod, chance, change, 3)


ORDERS = (moved, moved_next, shuffled)


def _moved(bindings, chance, most=12):
    at = chance.randrange(len(bindings))
    one = bindings[at]
    used, defined = _uses(one), _defined(one)
    places = []
    for step in (-1, 1):
        place = at
        for _ in range(most):
            place += step
            if not 0 <= place < len(bindings):
                break
            other = bindings[place]
            if (used & _defined(other)) if step < 0 else (defined & _uses(other)):
                break
            places.append(place)
    if not places:
        return None
    rest = bindings[:at] + bindings[at + 1 :]
    place = chance.choice(places)
    return [*rest[:place], one, *rest[place:]]


def _uses(binding: relax.Binding) -> set[int]:
    found = _free(binding.value)
    tvm_ffi.structural_walk(binding.var.ty, (ir.Var, lambda var: found.add(var.__chandle__())))
    return found


# --- other modules -----------------------------------------------------------------------------


def _scope(function: relax.Function) -> list[ir.Var]:
    found = list(function.params)
    for block in _blocks(function.body):
        found += [binding.var for binding in block.bindings]
    return found


def _alike(var: ir.Var, scope: Sequence[ir.Var]) -> list[ir.Var]:
    return [
        one
        for one in scope
        if not one.same_as(var) and tvm_ffi.structural_equal(one.ty, var.ty, map_free_vars=False)
    ]


def other_operand(mod, chance):
    """Give a call another value of the same type."""

    def change(bindings):
        calls = [at for at, one in enumerate(bindings) if isinstance(one.value, ir.Call)]
        if not calls:
            return None
        at = chance.choice(calls)
        before = [one.var for one in bindings[:at]]
        uses = []
        tvm_ffi.structural_walk(bindings[at].value, (ir.Var, uses.append))
        choices = [(one, two) for one in uses for two in _alike(one, before)]
        if not choices or isinstance(bindings[at], relax.MatchCast):
            return None
        old, new = chance.choice(choices)
        value = tvm_ffi.structural_map(
            bindings[at].value, (ir.Var, lambda var: new if var.same_as(old) else var)
        )
        return [*bindings[:at], relax.VarBinding(bindings[at].var, value), *bindings[at + 1 :]]

    return _with_bindings(mod, chance, change)


def operands_exchanged(mod, chance):
    """Exchange two arguments of a call."""

    def change(bindings):
        calls = [
            at
            for at, one in enumerate(bindings)
            if isinstance(one, relax.VarBinding)
            and isinstance(one.value, ir.Call)
            and len(_arguments(one.value)) > 1
        ]
        if not calls:
            return None
        at = chance.choice(calls)
        call = bindings[at].value
        arguments = _arguments(call)
        one, two = chance.sample(range(len(arguments)), 2)
        arguments[one], arguments[two] = arguments[two], arguments[one]
        value = _with_arguments(call, arguments)
        return [*bindings[:at], relax.VarBinding(bindings[at].var, value), *bindings[at + 1 :]]

    return _with_bindings(mod, chance, change)


def _arguments(call: ir.Call) -> list[ir.Expr]:
    tuples = [one for one in call.args if isinstance(one, ir.Tuple)]
    return list(tuples[0].fields if tuples else call.args)


def _with_arguments(call: ir.Call, arguments: list[ir.Expr]) -> ir.Call:
    tuples = [one for one in call.args if isinstance(one, ir.Tuple)]
    if tuples:
        args = [relax.Tuple(arguments) if one.same_as(tuples[0]) else one for one in call.args]
    else:
        args = arguments
    return relax.Call(call.op, args, call.attrs, call.ty_args)


def other_result(mod, chance):
    """Return another value of the same type."""
    gvar, function = chance.choice(_relax_functions(mod))
    if not isinstance(function.body, relax.SeqExpr) or not isinstance(function.body.body, ir.Var):
        return None
    last = [one.var for block in function.body.blocks for one in block.bindings]
    plain = [one for one in last if not isinstance(one, relax.DataflowVar)]
    choices = _alike(function.body.body, [*function.params, *plain])
    if not choices:
        return None
    body = relax.SeqExpr(function.body.blocks, chance.choice(choices))
    return _with(mod, (gvar, _function(function, body=body)))


def other_result_type(mod, chance):
    """Declare that a function returns another type."""
    gvar, function = chance.choice(_relax_functions(mod))
    new = _other_type(function.ret_ty, chance)
    return None if new is None else _with(mod, (gvar, _function(function, ret_ty=new)))


def _other_type(type_: ir.Type, chance: random.Random) -> ir.Type | None:
    if isinstance(type_, ir.TupleType) and len(type_.fields):
        fields = list(type_.fields)
        at = chance.randrange(len(fields))
        new = _other_type(fields[at], chance)
        return None if new is None else ir.TupleType([*fields[:at], new, *fields[at + 1 :]])
    if not isinstance(type_, relax.TensorType):
        return None
    dtype = str(type_.dtype)
    shape = type_.shape
    if chance.random() < 0.5 or not isinstance(shape, relax.ShapeExpr) or not len(shape.values):
        return relax.TensorType(shape, "float16" if dtype == "float32" else "float32")
    dims = list(shape.values)
    dims[chance.randrange(len(dims))] = tirx.IntImm("int64", chance.choice([3, 5, 7, 11]))
    return relax.TensorType(dims, dtype)


def other_visibility(mod, chance):
    """Make a public function private, or a private one public."""
    gvar, function = chance.choice(list(mod.functions.items()))
    if not isinstance(function, relax.Function | tirx.PrimFunc):
        return None
    is_public = function.attrs is not None and "global_symbol" in function.attrs.keys()  # noqa: SIM118
    made = (
        function.without_attr("global_symbol")
        if is_public
        else function.with_attr("global_symbol", gvar.name_hint)
    )
    return _with(mod, (gvar, made))


def other_purity(mod, chance):
    """Declare a function impure, or pure."""
    gvar, function = chance.choice(_relax_functions(mod))
    return _with(mod, (gvar, _function(function, is_pure=not function.is_pure)))


def other_attribute(mod, chance):
    """Add an attribute to a function, or to the module."""
    name = chance.choice(["relax.force_pure", "number", "text"])
    value = {"number": chance.randrange(100), "text": "a"}.get(name, True)
    if chance.random() < 0.3:
        return mod.with_attr(name, value)
    gvar, function = chance.choice(_relax_functions(mod))
    return _with(mod, (gvar, function.with_attr(name, value)))


def other_constant(mod, chance):
    """Change one number of a constant, or its type."""
    found = []
    for _, function in _relax_functions(mod):
        tvm_ffi.structural_walk(function, (ir.GenericConst, found.append))
    found = [one for one in found if isinstance(one.value, tvm.runtime.Tensor)]
    if not found:
        return None
    chosen = chance.choice(found)
    array = np.array(chosen.value.numpy())
    if chance.random() < 0.3 and array.dtype == np.float32:
        array = array.astype("float64" if chance.random() < 0.5 else "float16")
    elif array.dtype == np.bool_:
        array = ~array
    elif array.size:
        place = tuple(chance.randrange(size) for size in array.shape)
        array[place] = array[place] + 1 if array[place] else -array[place] or array[place] + 1
    new = relax.const(array, str(array.dtype))

    def change(one):
        return new if one.same_as(chosen) else one

    changed = [
        (gvar, tvm_ffi.structural_map(function, (ir.GenericConst, change)))
        for gvar, function in _relax_functions(mod)
    ]
    return _with(mod, *changed)


def branches_exchanged(mod, chance):
    """Exchange the branches of an If."""

    def change(bindings):
        at = [at for at, one in enumerate(bindings) if isinstance(one.value, relax.If)]
        if not at:
            return None
        at = chance.choice(at)
        old = bindings[at].value
        new = relax.If(old.cond, old.false_branch, old.true_branch)
        return [*bindings[:at], relax.VarBinding(bindings[at].var, new), *bindings[at + 1 :]]

    return _with_bindings(mod, chance, change)


def binding_removed(mod, chance):
    """Remove a binding that nothing uses."""

    def change(bindings):
        at = chance.randrange(len(bindings))
        return bindings[:at] + bindings[at + 1 :]

    return _with_bindings(mod, chance, change)


def binding_repeated(mod, chance):
    """Compute a value once more."""

    def change(bindings):
        at = chance.randrange(len(bindings))
        one = bindings[at]
        if not isinstance(one, relax.VarBinding) or not isinstance(one.value, ir.Call):
            return None
        again = relax.VarBinding(type(one.var)("again", one.var.ty), one.value)
        return [*bindings[: at + 1], again, *bindings[at + 1 :]]

    return _with_bindings(mod, chance, change)


def other_callee(mod, chance):
    """Call a copy of a function whose first number is another one, by the old name or a new one."""
    called: list[ir.GlobalVar] = []
    for _, function in _relax_functions(mod):
        tvm_ffi.structural_walk(function.body, (ir.GlobalVar, called.append))
    kernels = [one for one in called if isinstance(mod[one.name_hint], tirx.PrimFunc)]
    if not kernels:
        return None
    gvar = chance.choice(kernels)
    old = mod[gvar.name_hint]
    numbers = []
    tvm_ffi.structural_walk(old.body, (tirx.FloatImm, numbers.append))
    if not numbers:
        return None
    chosen = chance.choice(numbers)
    new = tirx.FloatImm(str(chosen.ty.dtype), float(chosen.value) + 1)
    made = tvm_ffi.structural_map(
        old, (tirx.FloatImm, lambda one: new if one.same_as(chosen) else one)
    )
    return _with(mod, (mod.get_global_var(gvar.name_hint), made))


def other_field(mod, chance):
    """Change one field of TVM's JSON that belongs to a Relax function, or to the module."""
    content = json.loads(tvm.ir.save_json(mod))
    nodes = content["nodes"]
    inside: set[int] = set()
    waiting = [at for at, node in enumerate(nodes) if node["type"] == "tirx.PrimFunc"]
    while waiting:  # what PrimFuncs are made of is left alone
        at = waiting.pop()
        if at not in inside:
            inside.add(at)
            waiting += _references(nodes[at], len(nodes))
    candidates = [
        (at, key)
        for at, node in enumerate(nodes)
        if at not in inside and isinstance(node.get("data"), dict)
        for key in node["data"]
        if key not in ("span", "name", "name_hint", "source_name", "op", "ty_args")
        and node["type"] not in ("ir.Span", "ir.IRModule", "relax.expr.VarBinding")
    ]
    candidates += [
        (at, item)
        for at, node in enumerate(nodes)
        if at not in inside and node["type"] == "ffi.Array"
        for item in range(len(node["data"]))
    ]
    candidates += [
        (at, None)
        for at, node in enumerate(nodes)
        if at not in inside and node["type"] in ("int", "ffi.String", "float", "bool")
    ]
    at, key = chance.choice(candidates)
    node = nodes[at]
    old = node["data"] if key is None else node["data"][key]
    new = _other_value(old, at, key, nodes, chance)
    if new is None or new == old:
        return None
    if key is None:
        node["data"] = new
    else:
        node["data"][key] = new
    return tvm.ir.load_json(json.dumps(content))


def _references(node: dict[str, object], count: int) -> list[int]:
    data = node.get("data")
    fields: list[object] = []
    if isinstance(data, dict):
        fields = [one for key, one in data.items() if (node["type"], key) not in _NUMBERS]
    elif isinstance(data, list):
        fields = data
    return [one for one in fields if type(one) is int and one < count]


def _other_value(old, place, key, nodes, chance):
    node = nodes[place]
    if isinstance(old, bool):
        return not old
    if isinstance(old, float):
        return old + 1
    if isinstance(old, str):
        if key in ("dtype",) or old in _DTYPES:
            return chance.choice(_DTYPES)
        return f"{old}_" if node["type"] in ("ffi.String", "ir.StringImm") else None
    if isinstance(old, int):
        if (node["type"], key) in _NUMBERS or key is None:
            return old + chance.choice([-1, 1, 2])
        if not 0 <= old < len(nodes):
            return None
        kind = nodes[old]["type"]
        if kind.startswith(("ffi.Array", "ffi.Map")):  # whose items may be of other types
            return None
        earlier = nodes[: max(old + 1, place)]  # what a node refers to comes before it
        return chance.choice([at for at, one in enumerate(earlier) if one["type"] == kind])
    return None


_DTYPES = ["float32", "float16", "int64", "int32", "bool"]
_NUMBERS = {
    ("ir.IntImm", "value"),
    ("relax.TensorType", "ndim"),
    ("relax.ShapeType", "ndim"),
    ("ir.TupleGetItem", "index"),
}

OTHER = (
    other_operand,
    operands_exchanged,
    other_result,
    other_result_type,
    other_visibility,
    other_purity,
    other_attribute,
    other_constant,
    branches_exchanged,
    binding_removed,
    binding_repeated,
    other_callee,
)


# --- equal modules -----------------------------------------------------------------------------


def read_again(mod, chance):  # noqa: ARG001
    """Read the module from TVM's JSON."""
    return tvm.ir.load_json(tvm.ir.save_json(mod))


def other_names(mod, chance):
    """Give all variables other names, sizes included."""
    return _renamed(mod, lambda at, _: f"{chance.choice('abc')}{at}")


def names_exchanged(mod, chance):
    """Give the variables of each function each other's names."""
    names = []
    _renamed(mod, lambda at, name: names.append(f"{name}_{at}" if name in names else name))
    chance.shuffle(names)
    return _renamed(mod, lambda at, _: names[at])


def _renamed(mod, rename):
    count = 0

    def changed(function):
        nonlocal count
        made = {}

        def other(var):
            nonlocal count
            key = var.__chandle__()
            if key not in made:
                type_ = tvm_ffi.structural_map(var.ty, (ir.Var, other))
                name = rename(count, str(var.name)) or str(var.name)
                made[key] = type(var)(name, type_)
                made[made[key].__chandle__()] = made[key]  # which is met again
                count += 1
            return made[key]

        return tvm_ffi.structural_map(function, (ir.Var, other))

    made = _with(mod, *((gvar, changed(one)) for gvar, one in _relax_functions(mod)))
    return made if tvm_ffi.structural_equal(mod, made) else None


def private_renamed(mod, chance):
    """Give a private function another name."""
    private = [
        gvar
        for gvar, one in mod.functions.items()
        if isinstance(one, relax.Function | tirx.PrimFunc)
        and (one.attrs is None or "global_symbol" not in one.attrs.keys())  # noqa: SIM118
    ]
    if not private:
        return None
    old = chance.choice(private)
    new = ir.GlobalVar("another_name")
    relax.expr._update_type(new, old.ty)

    def change(one):
        return new if one.name_hint == old.name_hint else one

    functions = {
        change(gvar): tvm_ffi.structural_map(one, (ir.GlobalVar, change))
        if isinstance(one, relax.Function)
        else one
        for gvar, one in mod.functions.items()
    }
    return IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


EQUAL = (read_again, other_names, names_exchanged, private_renamed)


# --- modules to mutate -------------------------------------------------------------------------


def sources(more: Mapping[str, IRModule]) -> dict[str, IRModule]:
    """Return modules to mutate, by name: those given and their lowered stages, and `in_place`."""
    found = dict(more)
    for name, mod in more.items():
        found |= {f"{name}, stage {at}": one for at, one in enumerate(lowered_stages(mod))}
    return found | {f"in place {seed}": in_place(seed) for seed in range(12)}


def lowered_stages(mod: IRModule, most: int = 30) -> list[IRModule]:
    """Return what the passes of the default build make of a module, each that changes it."""
    found: list[IRModule] = []

    @tvm.instrument.pass_instrument
    class Keep:
        def run_after_pass(self, made: IRModule, _: object) -> None:
            if not found or not tvm_ffi.structural_equal(found[-1], made):
                found.append(made)

    try:
        with tvm.transform.PassContext(instruments=[Keep()]), tvm.target.Target("llvm"):
            relax.get_pipeline("default")(mod)
    except REFUSED:
        pass
    is_relax = [one for one in found if _relax_functions(one)]
    return is_relax[:: max(1, -(-len(is_relax) // most))]


def in_place(seed: int, count: int = 14, *, is_runnable: bool = False) -> IRModule:
    """Return a random function that calls kernels in place, prints, views, and calls the like.

    Args:
        is_runnable: Whether it calls no functions that nobody has registered.
    """
    chance = random.Random(seed)
    builder = relax.BlockBuilder()
    square = relax.TensorType((4, 4), "float32")
    kernel = builder.add_func(_add_one(), "add_one")
    copy = builder.add_func(_add_to(), "add_to")
    params = [relax.Var(name, square) for name in "xyz"]
    inner = relax.Var("given", square)
    with builder.function("helper", [inner], attrs={}, private=True):
        call = op.call_tir_inplace(kernel, (inner,), [0], square)
        result = builder.emit(call)
        helper = builder.emit_func_output(result if chance.random() < 0.5 else inner)
    values: list[ir.Expr] = list(params)
    with builder.function("main", params, pure=False):
        for _ in range(count):
            one, two = chance.choice(values[-6:]), chance.choice(values[-6:])
            made = _calls(one, two, square, kernel, copy, helper)
            call = chance.choice(made[:-4] if is_runnable else made)()
            value = builder.emit(call)
            if isinstance(call, relax.Tuple):
                value = builder.emit(relax.TupleGetItem(value, chance.randrange(2)))
            if isinstance(value.ty, relax.TensorType):
                values.append(value)
        builder.emit_func_output(relax.Tuple(values[-3:]))
    return builder.get()


def _calls(one, two, square, kernel, copy, helper):
    """Return what makes each kind of value of two others; the last ones can not be run."""

    def packed(name, *given, **options):
        return relax.Call(relax.ExternFunc(name), given, ty_args=[square], **options)

    return [
        lambda: op.exp(one),
        lambda: op.add(one, two),
        lambda: op.call_tir_inplace(kernel, (one,), [0], square),
        lambda: op.call_tir_inplace(copy, (one, two), [1], square),
        lambda: op.reshape(one, (4, 4)),
        lambda: relax.Call(helper, [one]),
        lambda: relax.Tuple([one, two]),
        lambda: op.print(one, format="{}"),
        lambda: packed("env.unknown", one, two),
        lambda: op.call_inplace_packed(
            "env.in_place", one, two, inplace_indices=[0], ty_args=[square]
        ),
        lambda: op.call_pure_packed("env.pure", one, ty_args=[square]),
    ]


def _add_one() -> tirx.PrimFunc:
    from tvm.script import tirx as T  # noqa: N812 - as TVMScript is written

    @T.prim_func(private=True, s_tir=True)
    def add_one(A: T.Buffer((4, 4), "float32")):  # noqa: N803
        for i, j in T.grid(4, 4):
            with T.sblock("A"):
                v, w = T.axis.remap("SS", [i, j])
                A[v, w] = A[v, w] + T.float32(1)

    return add_one


def _add_to() -> tirx.PrimFunc:
    from tvm.script import tirx as T  # noqa: N812 - as TVMScript is written

    @T.prim_func(private=True, s_tir=True)
    def add_to(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):  # noqa: N803
        for i, j in T.grid(4, 4):
            with T.sblock("A"):
                v, w = T.axis.remap("SS", [i, j])
                B[v, w] = B[v, w] + A[v, w] * T.float32(2)

    return add_to
