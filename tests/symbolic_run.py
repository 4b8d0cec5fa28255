"""Run a Relax function symbolically, to tell whether another order of its bindings reads the same.

This second reading shares no code with irviz. Memory holds terms: what a call writes is a term of
its name and of all that it reads. Two functions do the same if the same calls read the same terms,
and leave the same terms behind. Called functions and branches are run where they are called.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import NamedTuple

import tvm_ffi
from tvm import ir, relax, tirx

_DEEPEST = 12


class Piece(NamedTuple):
    """Bytes of memory; the path tells which field of a tuple they are the memory of."""

    root: int
    begin: float = 0
    end: float = math.inf


class Value(NamedTuple):
    """A value: the memory that it may be in, the object that it is, and the fields of a tuple."""

    pieces: frozenset[Piece] = frozenset()
    handles: frozenset[object] = frozenset()
    fields: tuple[Value, ...] | None = None
    function: relax.Function | None = None
    origin: int = 0  # a term of the call that gave it

    def all(self) -> Value:
        """Return the value with the memory of all of its fields."""
        inner = [one.all() for one in self.fields or ()]
        return Value(
            self.pieces.union(*(one.pieces for one in inner)),
            self.handles.union(*(one.handles for one in inner)),
        )


class Run:
    """The state of a run: terms in memory, what was freed, and what each binding saw."""

    def __init__(self, mod: ir.IRModule) -> None:
        self.mod = mod
        self.memory: dict[int, dict[tuple[float, float], int]] = {}
        self.dead: set[object] = set()
        self.outside = 0
        self.seen: Counter[object] = Counter()
        self.objects = 0
        self.handles = 0
        self.depth = 0
        self.closures: dict[int, dict[object, Value]] = {}
        self.parts: dict[tuple[int, int], Value] = {}

    def new(self, term: object) -> Value:
        """Return a value in memory of its own."""
        self.objects += 1
        self.memory[self.objects] = {(0, math.inf): hash(term)}
        return self.held(Value(frozenset([Piece(self.objects)]), origin=hash(term)))

    def held(self, value: Value) -> Value:
        """Return a value as an object of its own, which keeps its memory alive."""
        if value.fields is not None:
            return value._replace(fields=tuple(map(self.held, value.fields)))
        self.handles += 1
        return value._replace(handles=frozenset([("object", self.handles)]))

    def read(self, value: Value) -> tuple[object, ...]:
        """Return the terms in the memory of a value, whatever the memory is called."""
        if value.fields is not None:
            return tuple(map(self.read, value.fields))
        return tuple(
            sorted(
                tuple(
                    (max(begin, piece.begin) - piece.begin, min(end, piece.end) - piece.begin, term)
                    for (begin, end), term in sorted(self.memory[piece.root].items())
                    if begin < piece.end and piece.begin < end
                )
                for piece in value.all().pieces
            )
        )

    def write(self, value: Value, term: object) -> None:
        for piece in value.all().pieces:
            cells = self.memory[piece.root]
            for (begin, end), old in list(cells.items()):
                if begin < piece.end and piece.begin < end:
                    del cells[begin, end]
                    for left in ((begin, piece.begin), (piece.end, end)):
                        if left[0] < left[1]:
                            cells[left] = old
            cells[piece.begin, piece.end] = hash((term, len(value.all().pieces)))

    def is_dead(self, value: Value) -> tuple[bool, bool]:
        """Return whether the object was freed, and whether its memory was."""
        known = value.all()
        roots = {piece.root for piece in known.pieces}
        return bool(known.handles & self.dead), bool(roots & self.dead)

    # --- bodies ------------------------------------------------------------------------------

    def function(self, function: relax.Function, arguments: list[Value], scope=None) -> Value:
        env = dict(scope or {})
        for param, argument in zip(function.params, arguments, strict=True):
            env[param.__chandle__()] = self.held(argument)
        return self.body(function.body, env)

    def body(self, body: ir.Expr, env: dict[object, Value]) -> Value:
        if not isinstance(body, relax.SeqExpr):
            return self.leaf(body, env)
        for block in body.blocks:
            for binding in block.bindings:
                env[binding.var.__chandle__()] = self.binding(binding, env)
        return self.leaf(body.body, env)

    def leaf(self, value: ir.Expr, env: dict[object, Value]) -> Value:
        if isinstance(value, ir.Var):
            return env.get(value.__chandle__(), Value())
        if isinstance(value, ir.Tuple):
            return Value(fields=tuple(self.leaf(one, env) for one in value.fields))
        if isinstance(value, ir.GenericConst) and hasattr(value.value, "shape"):
            key = "constant", value.value.__chandle__()
            if key not in env:
                env[key] = self.new(key)
            return env[key]
        if isinstance(value, relax.Function):
            return Value(function=value)
        if isinstance(value, ir.Expr) and not isinstance(value, _PLAIN):
            try:
                free = relax.analysis.free_vars(value)
            except Exception:
                free = []
            found = [env[one.__chandle__()] for one in free if one.__chandle__() in env]
            return Value(fields=tuple(found)).all()
        return Value()

    def binding(self, binding: relax.Binding, env: dict[object, Value]) -> Value:
        value = binding.value
        if isinstance(binding, relax.MatchCast):
            return self.used("match_cast", self.leaf(value, env))
        match value:
            case ir.Call():
                return self.call(value, env)
            case ir.TupleGetItem():
                whole = self.used(("item", value.index), self.leaf(value.tuple_value, env))
                return self.item(whole, value.index)
            case relax.If():
                return self.branch(value, env)
            case relax.SeqExpr():
                return self.body(value, dict(env))
            case relax.Function():
                made = Value(function=value)
                env[binding.var.__chandle__()] = made
                self.closures[value.__chandle__()] = env
                return made
        found = self.used(type(value).__name__, self.leaf(value, env))
        return self.held(found) if isinstance(value, ir.Tuple) else found

    def item(self, whole: Value, index: int) -> Value:
        if whole.fields is not None and index < len(whole.fields):
            return self.held(whole.fields[index])
        if len(whole.pieces) == 1:  # a field of a tuple has its own memory
            (piece,) = whole.pieces
            key = piece.root, index
            if key not in self.parts:
                self.parts[key] = self.new((*self.read(whole), index))
            return self.parts[key]
        return whole

    def used(self, label: object, value: Value) -> Value:
        self.seen[label, self.is_dead(value)] += 1
        return value

    def branch(self, value: relax.If, env: dict[object, Value]) -> Value:
        condition = self.read(self.leaf(value.cond, env))
        before = {root: dict(cells) for root, cells in self.memory.items()}
        dead, outside = set(self.dead), self.outside
        results, states = [], []
        for body in (value.true_branch, value.false_branch):
            self.memory = {root: dict(cells) for root, cells in before.items()}
            self.dead, self.outside = set(dead), outside
            results.append(self.body(body, dict(env)))
            states.append((self.memory, self.dead, self.outside))
        (mine, one, first), (theirs, two, second) = states
        self.memory = {**mine, **theirs}
        for root in mine.keys() & theirs.keys():
            if mine[root] != theirs[root]:
                whole = condition, *(sorted(each[root].items()) for each in (mine, theirs))
                self.memory[root] = {(0, math.inf): hash(repr(whole))}
        self.dead, self.outside = one | two, hash((first, second, condition))
        return _either(*results)

    # --- calls -------------------------------------------------------------------------------

    def call(self, call: ir.Call, env: dict[object, Value]) -> Value:
        op, args = call.op, list(call.args)
        name = str(op.name) if isinstance(op, ir.Op) else ""
        callee = op
        if name in _CALLERS and args:
            callee, *args = args
            if _CALLERS[name] and args and isinstance(args[0], ir.Tuple):
                args = [*args[0].fields, *args[1:]]
        given = [self.leaf(one, env) for one in args]
        called = self.leaf(callee, env) if isinstance(callee, ir.Var) else Value()
        known = self.mod.functions.get(callee) if isinstance(callee, ir.GlobalVar) else None
        function = known if isinstance(known, relax.Function) else called.function
        if function is not None and self.depth < _DEEPEST:
            self.depth += 1
            scope = self.closures.get(function.__chandle__(), {}) if called.function else {}
            result = self.function(function, given, scope)
            self.depth -= 1
            return result
        label = (name, _name(callee), _hash(call.attrs), _hash(call.ty_args), *map(_plain, args))
        what = _what(name, callee, known)
        return self.done(call, name, what, (label, args, [*given, called]), known)

    def done(self, call, name, what, called, known) -> Value:
        """Do what a call does: note what it sees, write, free, and return its value."""
        label, args, (*given, closure) = called
        reads, writes = what.pick(given, call, known)
        liveness = tuple(map(self.is_dead, given))
        if name in _FREES and _is_tensor(call.args[0]):  # its bytes are those of the storage
            liveness = (liveness[0][0],)
        terms = tuple(map(self.read, reads))
        origins = tuple(map(_origin, given))
        seen = label, origins, liveness, terms, self.outside if what.is_impure else None
        self.seen[seen] += 1
        for number, one in enumerate(writes):
            self.write(one, (seen, number))
        if what.is_impure:
            self.outside = hash(seen)
        if name in _FREES:
            freed = given[0].all()
            self.dead |= freed.handles
            if not _is_tensor(call.args[0]):
                self.dead |= {piece.root for piece in freed.pieces}
        return self.value_of(call, what, args, [*given, closure], seen)._replace(origin=hash(seen))

    def value_of(self, call, what, args, given, seen) -> Value:
        """Return the value of a call that saw this, in new memory or in that of arguments."""
        own = self.new(seen)
        match what.value:
            case "first":
                return self.held(given[0].all())
            case "first or a copy":
                return self.held(Value(given[0].all().pieces | own.pieces))
            case "bytes":
                (piece,) = given[0].pieces or own.pieces
                return self.held(Value(frozenset([Piece(piece.root, *_bytes(args))])))
            case "any":
                whole = Value(fields=tuple(given)).all()
                return self.held(Value(whole.pieces | own.pieces))
            case "in place":
                indices = list(map(int, call.attrs.inplace_indices))
                fields = [
                    self.held(given[one])._replace(origin=hash((seen, at)))
                    if one >= 0
                    else self.new((seen, at))
                    for at, one in enumerate(indices)
                ]
                return Value(fields=tuple(fields)) if len(fields) > 1 else fields[0]
        return own


def _origin(value: Value) -> object:
    return value.origin if value.fields is None else tuple(map(_origin, value.fields))


def _is_tensor(value: ir.Expr) -> bool:
    return isinstance(value.ty, relax.TensorType)


class What(NamedTuple):
    """What a call does: which arguments it reads and writes, and where its value is."""

    reads: str = "all"
    writes: str = ""
    value: str = "new"
    is_impure: bool = False

    def pick(self, given: list[Value], call: ir.Call, known: object):
        """Return the arguments that are read, and those that are written."""
        if self.writes == "parameters":
            read, written = parameters_of(known)
            chosen = [
                [given[at] for at in sorted(one) if at < len(given)] for one in (read, written)
            ]
            return chosen[0], chosen[1]
        choices = {
            "": [],
            "all": given,
            "second": given[1:2],
            "indices": [given[int(one)] for one in _indices(call) if int(one) >= 0],
        }
        return choices[self.reads], choices[self.writes]


def _indices(call: ir.Call) -> list[int]:
    return list(getattr(call.attrs, "inplace_indices", ()))


_UNKNOWN = What(writes="all", value="any", is_impure=True)


def _what(name: str, callee: ir.Expr, known: object) -> What:
    called = _name(callee)
    if isinstance(known, tirx.PrimFunc) and name in ("", "relax.vm.call_tir_dyn"):
        return What(writes="parameters")
    for pattern, what in _BY_NAME.items():
        if re.fullmatch(pattern, called or name) or re.fullmatch(pattern, name):
            return what
    if name:  # an expression of numbers is pure
        is_pure = not name.startswith("relax.") or ir.Op.get(name).get_attr("FPurity")
        return What() if is_pure else _UNKNOWN
    type_ = getattr(callee, "ty", None)
    is_pure = isinstance(type_, relax.FuncType) and type_.purity
    return What(value="any") if is_pure else _UNKNOWN


_BY_NAME = {
    r"relax\.call_(tir_inplace|inplace_packed)": What(writes="indices", value="in place"),
    r"relax\.(memory|vm)\.alloc_tensor|vm\.builtin\.alloc_tensor": What("", value="bytes"),
    r"relax\.(memory|vm)\.(alloc_storage|kill_tensor|kill_storage|kill_object)": What(""),
    r"vm\.builtin\.(check_\w+|shape_of|null_value|alloc_\w+)": What(""),
    r"relax\.(shape_of|tensor_to_shape|null_value)": What(""),
    r"vm\.builtin\.match_(shape|prim_value)": What("second", "second"),
    r"relax\.memory\.(view|ensure_zero_offset)|relax\.builtin\.stop_lift_params": What(
        "", value="first"
    ),
    r"vm\.builtin\.(reshape|copy|ensure_zero_offset|tuple_getitem)": What("", value="first"),
    r"relax\.(reshape|expand_dims|squeeze|flatten|hint_on_device|to_vdevice)": What(
        value="first or a copy"
    ),
    r"vm\.builtin\.to_device": What(value="first or a copy"),
    r"vm\.builtin\.(make_shape|make_prim_value|read_if_cond|tensor_to_shape)": What(),
    r"(relax|vm\.builtin)\.make_closure|vm\.builtin\.make_tuple": What("", value="any"),
    r"relax\.(call_pure_packed|call_py_func|invoke_pure_closure)": What(value="any"),
    r"relax\.(print|assert_op)": What(is_impure=True),
}
"""By the name of an operator, or of what is called by name; the first one that matches."""
_FREES = {"relax.memory.kill_tensor", "relax.memory.kill_storage", "relax.vm.kill_object"}
_CALLERS = {  # whether the arguments of what they call are a tuple
    "relax.call_tir": True,
    "relax.call_tir_inplace": True,
    "relax.call_tir_with_grad": True,
    "relax.vm.call_tir_dyn": True,
    "relax.dist.call_tir_local_view": True,
    "relax.call_dps_packed": True,
    "relax.call_pure_packed": False,
    "relax.call_inplace_packed": False,
    "relax.call_builtin_with_ctx": True,
    "relax.call_py_func": True,
    "relax.invoke_closure": True,
    "relax.invoke_pure_closure": True,
}
_PLAIN = (ir.GenericConst, ir.StringImm, ir.GlobalVar, relax.ExternFunc, tirx.IntImm, tirx.FloatImm)


def _either(one: Value, two: Value) -> Value:
    if one.fields is not None and two.fields is not None and len(one.fields) == len(two.fields):
        return Value(fields=tuple(map(_either, one.fields, two.fields)))
    mine, theirs = one.all(), two.all()
    return Value(mine.pieces | theirs.pieces, mine.handles | theirs.handles)


def _name(callee: object) -> str:
    if isinstance(callee, ir.GlobalVar):
        return str(callee.name_hint)
    if isinstance(callee, relax.ExternFunc):
        return str(callee.global_symbol)
    return str(callee.value) if isinstance(callee, ir.StringImm) else ""


def _hash(value: object) -> int:
    return tvm_ffi.structural_hash(value, map_free_vars=True) if value is not None else 0


def _plain(argument: ir.Expr) -> object:
    """Return what an argument is apart from the values of variables."""
    if isinstance(argument, ir.Tuple):
        return tuple(map(_plain, argument.fields))
    return "variable" if isinstance(argument, ir.Var) else _hash(argument)


def _bytes(args: list[ir.Expr]) -> tuple[float, float]:
    offsets = [int(one) for one in args if isinstance(one, tirx.IntImm)]
    shapes = [one for one in args if isinstance(one, relax.ShapeExpr)]
    dtypes = [one.value for one in args if isinstance(one, ir.GenericConst)]
    if not (offsets and shapes and dtypes):
        return 0, math.inf
    if not all(isinstance(dim, tirx.IntImm) for dim in shapes[0].values):
        return 0, math.inf
    size = math.prod(int(dim) for dim in shapes[0].values) * dtypes[0].itemsize
    return offsets[0], offsets[0] + size


def parameters_of(function: tirx.PrimFunc) -> tuple[set[int], set[int]]:
    """Return the numbers of the parameters that the text of a PrimFunc reads, and writes."""
    lines = [
        line.strip()
        for line in function.script().splitlines()
        if not line.strip().startswith(("T.reads", "T.writes", "#", "@", "def "))
    ]
    read, written = set(), set()
    for index, param in enumerate(function.params):
        name = re.escape(str(param.name))
        for line in lines:
            target, sign, source = line.partition(" = ")
            if re.match(rf"{name}\[", target) and sign:
                written.add(index)
                line = source + target[len(param.name) :]
            if re.search(rf"(?<![\w.]){name}\[", line):
                read.add(index)
            if re.search(rf"(?<![\w.]){name}\.data|address_of\({name}\b", line):
                read.add(index)
                written.add(index)
    return read, written


def outcome(mod: ir.IRModule, name: str) -> object:
    """Return all that the bindings of a function see, and what it leaves behind."""
    run = Run(mod)
    function = mod[name]
    params = [run.new(("parameter", at)) for at, _ in enumerate(function.params)]
    result = run.function(function, params)
    left = [run.read(one) for one in params]
    memory = Counter(tuple(sorted(cells.items())) for cells in run.memory.values())
    returned = _origin(result), run.read(result), run.is_dead(result)
    return run.seen, returned, left, run.outside, memory


def is_same_run(one: ir.IRModule, two: ir.IRModule, name: str) -> bool:
    """Return whether a function of two modules, with other orders of bindings, does the same."""
    return outcome(one, name) == outcome(two, name)
