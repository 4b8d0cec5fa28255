"""A text that is not TVMScript is refused, also where TVM would ignore it or crash."""

import importlib.util
from pathlib import Path

import pytest

from irviz.loaders.tvmscript.admission import RefusedError, admit

_SPEC = importlib.util.spec_from_file_location(
    "irviz_test_attacks", Path(__file__).with_name("attacks.py")
)
attacks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(attacks)
relax, tirx, module, gpu = attacks.relax, attacks.tirx, attacks.module, attacks.gpu
OPEN = attacks.OPEN

_LAYOUT = "from tvm.tirx.layout import laneid\n"
_OPERATIONS = "from tvm.script.tirx import tile as Tx\n"
REFUSED = {
    "extents outside of a layout": gpu("T.tile.fill(A, T.S[4])"),
    "copies outside of a layout": gpu("T.hint('a', x=T.R[4])"),
    "extents in a variable": gpu("s = T.S[4]"),
    "extents as a type": gpu("x: T.S = 1"),
    "a number on an axis outside of a layout": gpu("x = 4 @ Axis.laneid"),
    "an axis by itself": gpu("T.tile.fill(A, Axis.laneid)"),
    "an axis that TVM would register": gpu("T.TileLayout(T.S[4] + 1 @ Axis.get('MARK'))"),
    "an axis of no name": gpu("T.TileLayout(T.S[4] + 1 @ Axis.MARK)"),
    "a text as an axis": gpu("T.TileLayout(T.S[4 : 'MARK'])"),
    "a layout of a variable": gpu("s = (4, 4)\n    T.TileLayout(T.S[s])"),
    "a layout of an element of a tuple": gpu("s = (4, (4, 4))\n    T.TileLayout(T.S[(s[1], 4)])"),
    "a layout of a call": gpu("T.TileLayout(T.S[T.axis.remap('S', [1])])"),
    "a layout of a slice of a slice": gpu("T.TileLayout(T.S[4:1:1])"),
    "a layout of nothing": gpu("T.TileLayout(T.S[:])"),
    "a layout of no layout": gpu("T.TileLayout(A)"),
    "a layout of a sum that begins with a number": gpu("T.TileLayout(4 + T.S[4])"),
    "a layout with an option": gpu("T.TileLayout(T.S[4], x=1)"),
    "a swizzled layout of too little": gpu("T.ComposeLayout(3, 3)"),
    "a swizzled layout of nothing": gpu("T.ComposeLayout()"),
    "a swizzled layout by name": gpu(
        "T.ComposeLayout(1, 1, 1, T.TileLayout(T.S[4]), per_element=9)"
    ),
    "a marked operand in a variable": gpu("y = T.ptx.pred(1)"),
    "a marked address in a tile operation": gpu("T.tile.fill(A, T.ptx.addr(A.data, 4))"),
    "a discarded operand elsewhere": gpu("T.tile.fill(A, T.ptx.SINK)"),
    "a marked operand in another": gpu("T.ptx.ld.b32(x, T.ptx.addr(T.ptx.addr(A.data, 4), 4))"),
    "an instruction without a call": gpu("T.tile.fill(A, T.ptx.ld.b32)"),
    "an instruction by text without a call": gpu("T.tile.fill(A, T.ptx['ld.b32'])"),
    "an instruction of a variable": gpu("T.ptx[x](x)"),
    "an option of an instruction": gpu("T.ptx.ld.b32(x, A.data, marker=1)"),
    "text with code for an instruction": gpu("T.ptx.ld(x, A.data, 'open(1)', '')"),
    "a type for a tile operation": gpu("T.tile.fill(A, T.bool)"),
    "a type in the configuration of a tile operation": gpu("T.cta.fill(A, x, foo=T.int8)"),
    "a type in a tuple of a tile operation": gpu("Tx.cta.fill(A, x, foo=(1, T.int8))"),
    "a type in a hint": gpu("T.hint('a', x=T.handle)"),
    "the tile operations by themselves": gpu("x = Tx"),
    "the tile operations with another meaning": gpu("Tx = x"),
    "axes with another meaning": gpu("Axis = x"),
    "a scope by itself": gpu("T.tile.fill(A, T.cta)"),
    "an operation of no scope": gpu("T.cta.reshape(A)"),
    "a function beside the tile operations": gpu("T.tile.decl_buffer((4,))"),
    "a class of Python objects": gpu("p = T.SMEMPool()"),
    "a decorator of a class of Python objects": gpu("T.meta_class(A)"),
    "a timer that reads an attribute": gpu("T.cuda.timer_start(x, A, A, A, 1, 1)"),
    "an index maker by itself": gpu("T.tile.fill(A, A.sub)"),
    "a tiling by itself": gpu("T.tile.fill(A, A.tile((0, (2, 2))))"),
    "a method of a view that is none": gpu("A.view(2, 2).script()"),
    "an attribute of a view": gpu("T.evaluate(A.view(2, 2).data)"),
    "text with code as a pattern": gpu("A.rearrange('a -> a; open()')"),
    "text with code for a method": gpu("A.view('open()')"),
    "text for the lambda of a wait": gpu(
        "T.cuda.wait_until('open(1)', A.data, lambda v: R.Tensor((v,)))"
    ),
    "text by name for the lambda of a wait": gpu(
        "T.cuda.wait_until(dst='open(1)', ptr=A.data, predicate=lambda v: R.Tensor((v,)))"
    ),
    "an imported name for those of Python": "from tvm.tirx.layout import S as __builtins__\n"
    + gpu("T.evaluate(__builtins__['open'])"),
    "a lambda for an intrinsic": gpu("T.cuda.printf('%d', lambda: 1)"),
    "a lambda for another tile operation": gpu("T.tile.fill(A, lambda i: i)"),
    "a function beside layouts": gpu("tvm.tirx.layout.tmem_mma_operand_layout('A', (4, 4), 'f')"),
    "a function of a target": gpu("T.evaluate(tvm.target.Target.from_device('cuda'))"),
    "a list of operators": gpu("T.evaluate(tvm.ir.Op.list_op_names())"),
    "an import of another function of layouts": relax(
        before="from tvm.tirx.layout import tmem_mma_operand_layout"
    ),
    "an import of Python of the tile operations": relax(
        before="from tvm.script.tirx import tile_op"
    ),
    "an imported name that is called": _LAYOUT + gpu("T.evaluate(laneid())"),
    "an attribute of an imported name": _OPERATIONS + gpu("T.evaluate(Tx.functools)"),
    "an imported name in quotes": _LAYOUT.replace("laneid", "laneid as n")
    + relax().replace('R.Tensor((4,), "float32")', 'R.Tensor(("n.script()",))'),
    "an imported name as a size": _LAYOUT + relax(shape="laneid"),
    "a name of Python for an imported one": "from tvm.tirx.layout import m as open\n"
    + relax(shape="open('MARK', 'w') and 4"),
    "the dialect as an imported name": "from tvm.script.tirx import tile as T\n"
    + gpu("T.tvm.base.os.mkdir('MARK')"),
    "a function of the virtual machine with a name of Python": tirx("pass").replace(
        "def main", "def __vmtir____init__"
    ),
    "a default": relax().replace('"float32"))', f'"float32") = {OPEN})'),
    "a base": relax().replace("class Module:", f"class Module({OPEN}):"),
    "a metaclass": relax().replace("class Module:", f"class Module(metaclass={OPEN}):"),
    "a decorator of the module": relax().replace("@I.ir_module", f"@{OPEN}"),
    "a Python function": module(f"@I.pyfunc\n    def f(self):\n        {OPEN}"),
    "an import": relax(before="import os"),
    "an import under a known name": relax(before="from os import path as T"),
    "an import of all": relax(before="from tvm.script import *"),
    "an import of another dialect": relax(before="from tvm.script import tirx as R"),
    "an import from beside": relax(before="from .tvm.script import tirx as T"),
    "an import in a function": relax("import os"),
    "an import beside more": relax(before=f"import tvm; {OPEN}"),
    "async": relax(before="async def f():\n    pass"),
    "await": relax("await x"),
    "yield": relax("yield x"),
    "try": relax("try:\n            pass\n        except:\n            pass"),
    "del": relax("del x"),
    "raise": relax("raise x"),
    "global": relax("global x"),
    "nonlocal": relax("nonlocal x"),
    "a class in a function": relax("class C:\n            pass"),
    "a class in a class": module("class C:\n        pass"),
    "the type of a variable in a variable": relax("t = x.ty"),
    "the type of a variable as a size": relax("y: R.Tensor((x.ty,)) = x"),
    "a part of the type of a variable": relax('R.call_packed("f", x, ty_args=[x.ty.shape])'),
    "a star before what is no shape": tirx(f"for i in T.grid(*{OPEN}):\n            pass"),
    "a star before a list": tirx("for i in T.grid(*[4]):\n            pass"),
    "a star in another call": tirx("T.evaluate(T.max(*A.shape, 4))"),
    "a product of a tuple in a tuple": tirx("a, b = (1, 2), 3\n        T.evaluate((a * b)[0])"),
    "a product of a tuple that is unpacked": tirx(
        "c = ((1, 2), 3)\n        a, b = c\n        T.evaluate((a * b)[0])"
    ),
    "an attribute of a thread": tirx("T.evaluate(T.thread_id([4]).name)"),
    "threads without a call": tirx("T.evaluate(T.thread_id)"),
    "an annotation in quotes": relax().replace("x: R.Tensor", "x: 'R.Tensor'"),
    "an annotation that ends Python": tirx("pass", "exit"),
    "an annotation that asks": tirx("pass", "input"),
    "a parameter that hides a name too late": tirx("pass", "T.int32, exit: exit"),
    "a field that ends Python": relax().replace('R.Tensor((4,), "float32")', "R.Tuple(exit)"),
    "what is called that ends Python": relax().replace(
        'R.Tensor((4,), "float32")', "R.Callable(exit)"
    ),
    "a name that a block has left": tirx(
        "with T.sblock('b'):\n            exit = T.int32(1)\n        x: exit = 1"
    ),
    "a name of a dataflow block that does not leave it": relax(
        "with R.dataflow():\n            exit = R.add(x, x)\n            R.output()\n"
        "        y: R.Tuple(exit) = (x,)"
    ),
    "a name of one branch": tirx(
        "if A[0] > 0:\n            exit = T.int32(1)\n        x: exit = 1"
    ),
    "a name of both branches": tirx(
        "if A[0] > 0:\n            exit = R.const(1.0)\n        else:\n"
        "            exit = R.const(2.0)\n        x: exit = 1"
    ),
    "a name of both branches of Relax": relax(
        "if x:\n            exit = x\n        else:\n"
        "            exit = x\n        y: R.Tuple(exit) = x"
    ),
    "a name in a loop": tirx("for exit in range(4):\n            pass\n        x: exit = 1"),
    "a dialect with another meaning": relax("R = x"),
    "a dialect as a parameter": tirx("pass", "T.int32, T: T.int32"),
    "a dialect as a bound name": tirx("for T in range(4):\n            pass"),
    "a dialect without a dot": relax("y = R"),
    "range with another meaning": tirx("for range in T.grid(4):\n            pass"),
    "the module with another meaning": relax("Module = x"),
    "an alias with another meaning": relax("cls = Module\n        cls = x"),
    "an attribute that is set": relax("R.nn.relu = x"),
    "an attribute of Python that is set": relax("x.__class__ = x"),
    "an attribute of a variable": relax("y = x.ty"),
    "a method of a variable": relax("y = x.script()"),
    "a method of an element": relax("y = x[0].show()"),
    "an element that is called": relax("y = x[0]()"),
    "a call that is called": relax("y = R.add(x, x)()"),
    "text for a function of the text": relax("cls = Module\n        y = cls.main('a')"),
    "a function as an argument": relax("y = R.concat(R.add)"),
    "a module as an argument": relax("y = R.concat(R.nn)"),
    "a lambda for another function": relax("y = R.call_tir(lambda i: i)"),
    "a type as a value": relax("y = R.Tensor"),
    "a type as one of several values": relax("y = (x, (R.Tensor, x))"),
    "a type that is chosen": relax("y = R.Tensor if True else x"),
    "a type out of a tuple": relax("y = (R.Tensor, x)[0]"),
    "a function as a value": relax("y = R.add"),
    "another function of the module": relax("cls = Module\n        y = cls.functions"),
    "a kernel from a file": tirx('T.call_kernel("MARK.cu", [1], A)'),
    "a macro": tirx("@T.macro\n        def f():\n            pass"),
    "a kernel made at a call": relax(before="@T.jit\ndef f(N: T.constexpr):\n    pass"),
    "TVM's registry of names": tirx("T.register_script_namespace('os', A)"),
    "Python functions of a module": relax("y = R.call_py_func('f', x, out_ty=R.Tensor)"),
    "operators by Python": relax("y = R.emit_te(x, x)"),
    "a module called as Python's": relax().replace("class Module", "class license"),
    "a module called as TVM's": relax().replace("class Module", "class T"),
    "another name of the module, as Python's": relax("license = Module"),
    "a list in a variable, to be repeated": relax("a = [0 for i in range(9)]\n        b = a * 9"),
    "a shape that is repeated": relax("y = R.concat(x.shape * 1000)"),
    "a list of products in a variable": relax("a = [2 * 2 for i in range(1)]"),
    "a type in a variable, to be read": relax("y = R.Tensor((4,), 'float32')"),
    "a size in quotes where none is": relax('y = R.match_cast(x, R.Tensor(("n",), "float32"))'),
    "a type as an attribute": relax('R.func_attr({"a": R.Shape})'),
    "a type in a list of attributes": relax('R.func_attr({"a": [[R.Shape]]})'),
    "a type as an attribute of a call": relax(
        'y = R.call_packed("f", x, a=R.Shape, ty_args=R.Object)'
    ),
    "a type in a sum in a variable": relax(
        "X, Y = ((R.Tensor, 1) if True else ()) + (x if True else x)"
    ),
    "a field of the name of a size": relax().replace(
        'R.Tensor((4,), "float32")', 'R.Tuple(R.Tensor(("exit",)), exit)'
    ),
    "a field in a shape of the name of a size": relax().replace(
        'R.Tensor((4,), "float32")', 'R.Shape(["exit", R.Tuple(exit)])'
    ),
    "what is called of the name of a size": relax().replace(
        'R.Tensor((4,), "float32")', 'R.Callable(R.Tensor(("exit",)), exit)'
    ),
    "a call of the name of a size": tirx("pass", "T.int32, exit: T.int32, b: T.Buffer((exit(),))"),
    "a call of the name of a size in quotes": relax().replace(
        'R.Tensor((4,), "float32")', 'R.Tensor(("exit", "exit()"))'
    ),
    "an attribute of the name of a size": relax().replace(
        'R.Tensor((4,), "float32")', 'R.Tensor(("exit", "exit.code"))'
    ),
    "a parameter after the size of its name": tirx("pass", "T.Buffer((exit,)), exit: T.int32"),
    "the name of a size as a type": tirx("pass", "T.int32, exit: T.int32, b: exit"),
    "the name of a size in the body": relax("y = R.match_cast(x, R.Shape([exit]))").replace(
        "R.Tensor((4,)", 'R.Tensor(("exit",)'
    ),
    "words for a cast": relax('y = x.astype("float32 # open()")'),
    "words in capitals for a cast": relax('y = x.astype("X")'),
    "a cast of a module": relax('y = R.nn.astype("float32")'),
    "a cast of text": relax('y = "a".astype("float32")'),
    "a cast of a list": relax('y = [x].astype("float32")'),
    "another method of a call": relax("y = R.add(x, x).view(4)"),
    "the type of another call": relax("y = R.print(R.add(x, x).ty)"),
    "the type of a function": relax("y = R.print(T.handle.ty)"),
    "a type of a type": tirx("T.evaluate(T.handle().ty.ty)"),
    "an attribute of a type": tirx("T.evaluate(T.handle().ty.storage_scope)"),
    "a data type as a size": tirx("T.evaluate(0)", "T.Buffer((4,)), b: T.Buffer((A.dtype,))"),
    "a data type in a variable": relax("y = x.dtype"),
    "a data type that is cut": tirx("T.evaluate(T.Cast(A.dtype[0:3], 1))"),
    "a data type of a call": relax("y = R.astype(x, R.add(x, x).dtype)"),
    "a data type as a method": relax("y = R.astype(x, x.dtype())"),
    "a layout with all indices": relax("y = R.layout_transform(x, lambda *i: i)"),
    "a layout with names": relax("y = R.layout_transform(x, lambda **i: i)"),
    "a layout with text": relax('y = R.layout_transform(x, lambda i: "i")'),
    "a layout of a dialect": relax("y = R.layout_transform(x, lambda R: R)"),
    "a layout of the module": relax("y = R.layout_transform(x, lambda Module: Module)"),
    "a layout of a name of Python": relax("y = R.layout_transform(x, lambda i: exit)"),
    "another function of tvm": tirx("T.evaluate(tvm.tirx.Var('x', 'int32'))"),
    "a module of tvm": tirx("T.evaluate(tvm.tirx)"),
    "a function of tvm without a call": tirx("T.evaluate(tvm.tirx.const)"),
    "a float of other text": relax('y = R.const(float("1e400"))'),
    "a float without a call": relax("y = R.const(float)"),
    "a float of two": relax('y = R.const(float("inf", "nan"))'),
    "a type in quotes that is none": relax('y = R.match_cast(x, R.Tensor("n"))'),
    "a string of metadata in a variable": relax(
        'y = metadata["ir.StringImm"][0]',
        before='metadata = tvm.ir.load_json(\'{"root_index": 0, "nodes": [{"type": "ffi.Map", '
        '"data": []}]}\')',
    ),
    "a size of another name": relax(before='n = TypeVar("m")'),
    "values of a kind that is called": relax(
        shape='metadata["ir.EnvFunc"][0]',
        before='metadata = tvm.ir.load_json(\'{"root_index": 0, "nodes": [{"type": "ffi.Map", '
        '"data": [1, 2]}, {"type": "ffi.String", "data": "ir.EnvFunc"}, {"type": "ffi.Array", '
        '"data": []}]}\')',
    ),
    "values filed under another kind": relax(
        shape='metadata["ir.GenericConst"][0]',
        before='metadata = tvm.ir.load_json(\'{"root_index": 0, "nodes": [{"type": "ffi.Map", '
        '"data": [1, 2]}, {"type": "ffi.String", "data": "ir.GenericConst"}, {"type": "ffi.Array", '
        '"data": [1]}]}\')',
    ),
    "values twice": relax(
        before="metadata = tvm.ir.load_json("
        '\'{"root_index": 0, "nodes": [{"type": "ffi.Map", "data": []}]}\')\n' * 2
    ),
    "values that are no JSON": relax(before="metadata = tvm.ir.load_json('[')"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_tvmscript_does_not_need_is_refused_where_it_stands(name):
    text = REFUSED[name]
    with pytest.raises(RefusedError) as caught:
        admit(text, "a.py")
    refusal = caught.value
    assert str(refusal) == f"a.py, line {refusal.line}, column {refusal.column}: {refusal.reason}"
    assert 1 <= refusal.line <= text.count("\n") + 1
    assert 1 <= refusal.column <= len(text.split("\n")[refusal.line - 1]) + 1
    assert "\n" not in str(refusal)
    assert "Traceback" not in str(refusal)


def test_each_reason_says_what_is_meant():
    """Many of them would be refused for something else too: this is what they are about."""
    for name, words in {
        "a base": "the base class of Module is refused",
        "a Python function": "this decorator is refused",
        "an import": "this import is refused",
        "an import of another dialect": "this import is refused",
        "an annotation that ends Python": "exit is refused",
        "a name that a block has left": "exit is refused",
        "a name of both branches": "exit is refused",
        "a name of both branches of Relax": "exit is refused",
        "a dialect with another meaning": "a variable called R is refused",
        "extents outside of a layout": "it is a part of a layout",
        "a number on an axis outside of a layout": "the operator @ is refused",
        "a layout of a variable": "write a tuple of numbers",
        "a layout of no layout": "this layout is refused",
        "a swizzled layout of nothing": "this layout is refused",
        "a marked operand in a variable": "it marks an operand of an instruction",
        "an instruction of a variable": "it is not a PTX instruction",
        "an instruction without a call": "it must be called",
        "a type for a tile operation": "a type in attributes is refused",
        "a type in a hint": "a type in attributes is refused",
        "a class of Python objects": "it keeps a Python object",
        "text with code as a pattern": "a string is refused here",
        "an imported name that is called": "Axis.laneid is refused",
        "a name of Python for an imported one": "a call of open is refused",
        "the dialect as an imported name": "T.tvm.base.os.mkdir is refused",
        "text for the lambda of a wait": "a string is refused here",
        "a kernel from a file": "it opens files and starts a compiler",
        "a type as an attribute": "a type in attributes is refused",
        "a type in a list of attributes": "a type in attributes is refused",
        "a type as an attribute of a call": "a type in attributes is refused",
        "a type in a sum in a variable": "arithmetic with a tuple is refused",
        "a field of the name of a size": "exit is refused",
        "a field in a shape of the name of a size": "exit is refused",
        "a call of the name of a size": "a call of exit is refused",
        "the name of a size as a type": "exit is refused",
        "words for a cast": "a string is refused here",
        "a data type as a size": "a string is refused here",
        "a data type in a variable": "a string is refused here",
        "a string of metadata in a variable": "a string is refused here",
        "a layout with all indices": "parameters with",
        "a layout of a name of Python": "exit is refused",
        "a function of tvm without a call": "tvm is refused",
        "values of a kind that is called": "these metadata are refused",
        "values filed under another kind": "these metadata are refused",
    }.items():
        with pytest.raises(RefusedError, match=words):
            admit(REFUSED[name])
