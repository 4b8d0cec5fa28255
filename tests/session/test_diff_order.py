"""Another order of bindings is a difference exactly where it changes what a node reads."""

import pytest
import tvm
import tvm_ffi
from tvm import ir

import irviz
from irviz.model.diff.diff_result import Aspect, ChangeKind

SOURCE = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def add_one(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("A"):
                v = T.axis.spatial(4, i)
                A[v] = A[v] + T.float32(1)

    @T.prim_func(private=True, s_tir=True)
    def double(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("B"):
                v = T.axis.spatial(4, i)
                B[v] = A[v] * T.float32(2)

    @R.function(private=True)
    def writes(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        b = R.call_tir_inplace(
            cls.add_one, (a,), inplace_indices=[0], out_ty=R.Tensor((4,), "float32")
        )
        return b

    @R.function(private=True)
    def reads(a: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        b = R.exp(a)
        return b

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        cls = Module
{lines}
        return {result}
"""
TENSOR = 'R.Tensor((4,), "float32")'
READ_X, READ_Y = "a = R.exp(x)", "b = R.exp(y)"
WRITES_X = {
    "call_tir_inplace": "w = R.call_tir_inplace(cls.add_one, (x,), inplace_indices=[0], "
    f"out_ty={TENSOR})",
    "call_inplace_packed": 'w = R.call_inplace_packed("env.f", x, inplace_indices=[0], '
    f"ty_args=({TENSOR},))",
    "call_packed": f'w = R.call_packed("env.f", x, ty_args=({TENSOR},))',
    "kernel": "w = cls.add_one(x)",
    "private function": "w = cls.writes(x)",
}


def module(*lines, result="(a, b)"):
    text = "\n".join(" " * 8 + line for each in lines for line in each.split("\n"))
    return tvm.script.from_source(SOURCE.format(lines=text, result=result))


def moves(*modules):
    """Return what is said of the nodes that moved, and check that nothing else differs."""
    (main,) = (one for one in irviz.diff(*modules).functions if one.name == "main")
    assert {one.change for one in main.changed_nodes} <= {ChangeKind.MOVED}
    assert {one.aspect for each in main.nodes for one in each.differences} <= {Aspect.ORDER}
    assert not main.differences
    return {one.after[0]: str(one.differences[0]) for one in main.changed_nodes}


@pytest.mark.parametrize("kind", WRITES_X)
def test_a_write_that_moved_before_a_read_of_its_argument_is_named_with_the_reader(kind):
    before = module(READ_X, READ_Y, WRITES_X[kind])
    after = module(WRITES_X[kind], READ_X, READ_Y)
    assert moves(before, after) == {"w": "order: after a → before a, which reads x"}
    assert moves(after, before) == {"w": "order: before a → after a, which reads x"}
    with pytest.raises(AssertionError, match="which reads x"):
        irviz.assert_ir_equal(after, before)


@pytest.mark.parametrize("kind", WRITES_X)
def test_a_write_that_moved_past_a_read_of_something_else_is_no_difference(kind):
    before = module(READ_X, READ_Y, WRITES_X[kind])
    assert not irviz.diff(before, module(READ_X, WRITES_X[kind], READ_Y))
    assert not irviz.diff(before, module(READ_Y, READ_X, WRITES_X[kind]))


def test_calls_that_only_read_may_change_places():
    before = module("a = cls.reads(x)", "b = R.print(x, format='')", "d = cls.reads(x)")
    after = module("d = cls.reads(x)", "a = cls.reads(x)", "b = R.print(x, format='')")
    assert not irviz.diff(before, after)


def test_effects_outside_of_the_function_keep_their_order():
    lines = ["a = R.print(x, format='1')", "b = R.print(y, format='2')", "d = R.exp(x)"]
    before = module(*lines)
    assert moves(before, module(lines[1], lines[0], lines[2])) == {
        "b": "order: after a → before a, which has an effect as well"
    }
    assert not irviz.diff(before, module(lines[2], *lines[:2]))


ALIASES = {
    "a variable": "v = x",
    "a view": "v = R.memory.view(x, R.shape([2, 2]))",
    "a reshape": "v = R.reshape(x, R.shape([2, 2]))",
    "a field of a tuple": "t = (y, x)\nv = t[1]",
    "a cast of the type": f"v = R.match_cast(x, {TENSOR})",
    "the result in place": "v = " + WRITES_X["call_tir_inplace"][4:],
    "what a function returns": "v = cls.writes(x)",
    "a branch": "if c:\n    v = x\nelse:\n    v = y",
}


@pytest.mark.parametrize("alias", ALIASES)
def test_memory_is_followed_through(alias):
    read, write = "a = R.exp(v)", WRITES_X["kernel"]
    before = module(ALIASES[alias], read, READ_Y, write)
    after = module(ALIASES[alias], write, read, READ_Y)
    assert moves(before, after) == {"w": "order: after a → before a, which reads x"}
    assert (
        not irviz.diff(before, module(ALIASES[alias], read, write, READ_Y)) or alias == "a branch"
    )


def test_another_field_of_a_tuple_is_other_memory():
    alias, read, write = "t = (y, x)\nv = t[0]", "a = R.exp(v)", WRITES_X["kernel"]
    before = module(alias, read, READ_Y, write)
    assert not irviz.diff(before, module(alias, write, read, READ_Y))


BRANCH = """
if c:
    r = R.exp(x)
    v = R.add(r, r)
else:
    v = R.exp(y)
""".strip()


def test_a_write_that_moved_before_a_branch_that_reads_is_a_difference():
    write = WRITES_X["kernel"]
    before, after = (
        module(BRANCH, READ_Y, write, result="v"),
        module(write, BRANCH, READ_Y, result="v"),
    )
    assert moves(before, after) == {"w": "order: after r → before r, which reads x"}
    other = "w = cls.add_one(b)"
    lines = [READ_Y, BRANCH, other]
    assert not irviz.diff(module(*lines, result="v"), module(READ_Y, other, BRANCH, result="v"))


def in_branch(*lines):
    inside = "\n".join(f"    {line}" for line in (*lines, "v = R.exp(y)"))
    return module(f"if c:\n{inside}\nelse:\n    v = R.exp(x)", result="v")


def test_order_matters_inside_of_a_branch():
    read, write = "r = R.print(x, format='')", "w = cls.add_one(x)"
    assert list(moves(in_branch(read, write), in_branch(write, read))) == ["w"]


CLOSURE = f"""
@R.function(pure=False)
def f(p: {TENSOR}):
    cls = Module
    i = cls.add_one(x)
    q = R.add(p, p)
    return q
""".strip()


def test_an_inner_function_writes_where_it_is_called_and_not_where_it_is_defined():
    before = module(CLOSURE, READ_X, "b = f(y)")
    assert not irviz.diff(before, module(READ_X, CLOSURE, "b = f(y)"))
    after = module(CLOSURE, "b = f(y)", READ_X)
    assert moves(before, after) == {"b": "order: after a → before a, which reads x"}


PLANNED = [
    's = R.memory.alloc_storage(R.shape([32]), 0, R.str("global"), R.dtype("float32"))',
    'p = R.memory.alloc_tensor(s, 0, R.shape([4]), R.dtype("float32"), 0)',
    "k1 = cls.double(x, p)",
    "lv = p",
    'q = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), 0, R.str("global"))',
    "k2 = cls.double(lv, q)",
    "f1 = R.memory.kill_tensor(p)",
    'u = R.memory.alloc_tensor(s, 0, R.shape([4]), R.dtype("float32"), 0)',
    "k3 = cls.double(y, u)",
    'z = R.memory.alloc_tensor(s, 16, R.shape([4]), R.dtype("float32"), 0)',
    "k4 = cls.double(y, z)",
    "f2 = R.memory.kill_storage(s)",
]


def planned(*order):
    return module(*(PLANNED[at] for at in order), result="(q, u, z)")


IN_ORDER = range(len(PLANNED))
WRONG = {
    "a reader before the kernel that writes its buffer": (0, 1, 3, 4, 5, 2, 6, 7, 8, 9, 10, 11),
    "a kill before the reader": (0, 1, 2, 3, 4, 6, 5, 7, 8, 9, 10, 11),
    "a kernel that writes over bytes that are still read": (0, 1, 2, 3, 4, 7, 8, 5, 6, 9, 10, 11),
    "a storage that is freed before a view of it is used": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 10),
}
RIGHT = {
    "kernels in other bytes": (0, 1, 9, 10, 2, 3, 4, 5, 6, 7, 8, 11),
    "allocations": (0, 9, 7, 4, 1, 2, 3, 5, 6, 8, 10, 11),
    "a kill that comes later": (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 6, 11),
}


@pytest.mark.parametrize("kind", WRONG)
def test_lowered_code_differs_by(kind):
    assert moves(planned(*IN_ORDER), planned(*WRONG[kind]))
    assert moves(planned(*WRONG[kind]), planned(*IN_ORDER))


@pytest.mark.parametrize("kind", RIGHT)
def test_lowered_code_does_not_differ_by_the_order_of(kind):
    assert not irviz.diff(planned(*IN_ORDER), planned(*RIGHT[kind]))
    assert not irviz.diff(planned(*RIGHT[kind]), planned(*IN_ORDER))


def test_the_same_read_before_and_after_a_write_is_two_values():
    lines = [READ_X, WRITES_X["kernel"], "b = R.exp(x)"]
    before = module(*lines)
    exchanged = module("b = R.exp(x)", lines[1], READ_X, result="(b, a)")
    assert not irviz.diff(before, exchanged)
    assert irviz.diff(before, module(*lines, result="(b, a)"))
    assert irviz.diff(before, module(lines[0], "b = R.exp(x)", lines[1]))


def test_buffers_may_have_each_others_names():
    before = planned(*IN_ORDER)
    names = dict(zip("pquzxys", "quzpyxs", strict=True))
    made = {}

    def other(var):
        key = var.__chandle__()
        if key not in made:
            made[key] = type(var)(names.get(str(var.name), str(var.name)), var.ty)
            made[made[key].__chandle__()] = made[key]  # which is met again
        return made[key]

    main = tvm_ffi.structural_map(before["main"], (ir.Var, other))
    after = ir.IRModule({**before.functions, before.get_global_var("main"): main})
    assert tvm_ffi.structural_equal(before, after)
    assert not irviz.diff(before, after)
    assert not irviz.diff(after, before)


def test_other_arguments_written_in_place_are_a_difference():
    def called(indices):
        return module(
            f'w = R.call_inplace_packed("env.f", x, y, inplace_indices=[{indices}], '
            f"ty_args=({TENSOR},))",
            result="w",
        )

    (main,) = (one for one in irviz.diff(called(0), called(1)).functions if one.name == "main")
    (node,) = main.changed_nodes
    assert [str(one) for one in node.differences] == ["attribute inplace_indices: (0,) → (1,)"]
