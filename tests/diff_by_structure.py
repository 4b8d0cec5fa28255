"""Compare the nodes of a diff with the bindings that TVM finds structurally equal.

This second reading knows the pairs of the diff and nothing else of it. It replaces each variable by
a mark that both of a pair share, and asks TVM whether the two bindings are equal.
"""

import hashlib
import random

import tvm
import tvm_ffi
from tvm import ir, relax, tirx

import irviz
from irviz.ir.node_ids import definitions, identify
from irviz.model.diff.diff_result import Aspect, ChangeKind

BESIDE_THE_BINDING = {Aspect.BODY, Aspect.ORDER, Aspect.BLOCK, Aspect.PURITY}
"""What differs though the binding itself is equal."""

REFUSED = (RuntimeError, ValueError, TypeError, AssertionError, KeyError, AttributeError)

_NESTED = (relax.If, relax.Function, relax.SeqExpr)


def wrong_nodes(before, after):
    """Return the pairs of nodes about which the diff and TVM's structural equality disagree."""
    diff = irviz.diff(before, after)
    names = {one.after: one.before for one in diff.functions if one.before and one.after}
    wrong = []
    for one in diff.functions:
        sides = [side for side in (one.before, one.after) if side]
        mods = zip((before, after), (one.before, one.after), strict=True)
        functions = [mod[name] for mod, name in mods if name]
        if len(sides) == 2 and all(isinstance(each, relax.Function) for each in functions):
            wrong += [(one.name, *pair) for pair in _wrong_in(one, *functions, names)]
    return wrong


def _wrong_in(diff, before, after, names):
    mine, theirs = _Side(before), _Side(after)
    for index, node in enumerate(diff.nodes):
        for side, ids, groups in ((mine, node.before, 0), (theirs, node.after, 1)):
            is_pair = bool(node.before) and bool(node.after)
            held = [each for each in ids if side.holds_a_value(each)]
            for each in ids:
                is_value = is_pair and each == (held or ids)[-1]
                side.mark(each, f"pair {index}" if is_value else f"side {groups}, {each}")
    for node in diff.nodes:
        if len(node.before) != 1 or len(node.after) != 1 or node.callee:
            continue
        one, two = mine.value(node.before[0], {}), theirs.value(node.after[0], names)
        if one is None or two is None:
            continue
        aspects = {each.aspect for each in node.differences}
        calls = [
            graph[each]
            for graph, (each,) in zip(diff.graphs, (node.before, node.after), strict=True)
        ]
        if calls[0].callee == calls[1].callee and calls[0].resolution is not calls[1].resolution:
            aspects.discard(Aspect.CALLEE)  # DataflowUseInplaceCalls deletes functions in use
        is_same = (
            node.change in (ChangeKind.SAME, ChangeKind.MOVED) or aspects <= BESIDE_THE_BINDING
        )
        if is_same is not _is_equal(one, two):
            yield node.before[0], node.after[0], node.change.value, list(map(str, node.differences))


def _is_equal(one, two):
    """Return whether types and values are equal, whatever symbolic sizes are named."""
    return all(
        tvm_ffi.structural_equal(mine, theirs, map_free_vars=True)
        for mine, theirs in zip(one, two, strict=True)
    )


class _Side:
    """A function, with a mark for each of its variables."""

    def __init__(self, function):
        self.vars = {node_id: var for var, node_id in identify(function).items()}
        self.bindings = {
            var.__chandle__(): binding
            for var, binding in definitions(function.params, function.body)
        }
        self.marks = {}

    def mark(self, node_id, mark):
        var = self.vars.get(node_id)
        if var is not None and isinstance(var.ty, ir.PrimType):
            # a size is a part of expressions, which take numbers alone
            digest = hashlib.blake2b(mark.encode(), digest_size=3).digest()
            number = 10_000 + int.from_bytes(digest, "big")
            if str(var.ty.dtype) == "int64":
                self.marks[var.__chandle__()] = tirx.IntImm("int64", number)
        elif var is not None:
            self.marks[var.__chandle__()] = relax.ExternFunc(mark)

    def holds_a_value(self, node_id):
        """Return whether a node has a value, unlike a call that writes to buffers."""
        var = self.vars.get(node_id)
        if var is None or isinstance(var.ty, relax.AnyType):
            return False
        return not isinstance(var.ty, ir.TupleType) or bool(var.ty.fields)

    def value(self, node_id, names):
        """Return the type and the value of a node, or None where it has none of its own."""
        var = self.vars.get(node_id)
        if var is None:
            return None
        binding = self.bindings[var.__chandle__()]
        if binding is None:
            return var.ty, relax.ExternFunc("parameter")
        if isinstance(binding.value, _NESTED) or self._uses_other_numbers(binding.value):
            return None
        return self._marked(var.ty, names), self._marked(binding.value, names)

    def _uses_other_numbers(self, value):
        """Return whether a value uses a number for which there is no mark."""
        found = []
        tvm_ffi.structural_walk(value, (ir.Var, found.append))
        unmarked = [var for var in found if var.__chandle__() not in self.marks]
        return any(var.__chandle__() in self.bindings for var in unmarked)

    def _marked(self, value, names):
        def of_var(var):
            return self.marks.get(var.__chandle__(), var)

        def of_function(gvar):
            return relax.ExternFunc(f"function {names.get(gvar.name_hint, gvar.name_hint)}")

        return tvm_ffi.structural_map(value, [(ir.Var, of_var), (ir.GlobalVar, of_function)])


def passed(entry, mod):
    """Return the module after a pass without arguments, or None where it refuses it."""
    try:
        with tvm.target.Target("llvm"):
            return entry.make()(mod.clone())
    except REFUSED:
        return None


UNMARKABLE = {"sharded"}
"""TVM's structural_map does not copy what is in these constructs."""


def ends(entry, name):
    """Return whether TVM 0.27 ends the process where a pass is applied to a construct."""
    return entry.name == "FuseTransposeMatmul" and name.startswith("python functions")


def wrong_after(entry, mod):
    """Return the wrong pairs of both directions after a pass, or None where it refuses."""
    after = passed(entry, mod)
    return None if after is None else wrong_nodes(mod, after) + wrong_nodes(after, mod)


def renamed(mod):
    """Return the module with other variables, of other names, those of sizes included."""
    functions = {
        gvar: _renamed(one) if isinstance(one, relax.Function) else one
        for gvar, one in mod.functions.items()
    }
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def _renamed(function):
    made = {}

    def other(var):
        key = var.__chandle__()
        if key not in made:
            type_ = tvm_ffi.structural_map(var.ty, (ir.Var, other))
            made[key] = type(var)(f"renamed{len(made)}", type_)
            made[made[key].__chandle__()] = made[key]  # which is met again
        return made[key]

    return tvm_ffi.structural_map(function, (ir.Var, other))


def permuted(mod, seed):
    """Return the module with the bindings of each dataflow block in a random order that works."""
    shuffle = random.Random(seed).shuffle
    functions = dict(mod.functions.items())
    for gvar, function in functions.items():
        if isinstance(function, relax.Function) and isinstance(function.body, relax.SeqExpr):
            blocks = [_permuted_block(block, shuffle) for block in function.body.blocks]
            body = relax.SeqExpr(blocks, function.body.body)
            functions[gvar] = relax.Function(
                function.params, body, function.ret_ty, function.is_pure, function.attrs
            )
    return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)


def _permuted_block(block, shuffle):
    if not isinstance(block, relax.DataflowBlock):
        return block
    left, done = list(block.bindings), []
    own = {binding.var.__chandle__() for binding in left}
    while left:
        ready = [
            binding
            for binding in left
            if not own & {var.__chandle__() for var in relax.analysis.free_vars(binding.value)}
        ]
        shuffle(ready)
        left.remove(ready[0])
        done.append(ready[0])
        own.discard(ready[0].var.__chandle__())
    return relax.DataflowBlock(done)
