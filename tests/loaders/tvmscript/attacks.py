"""Texts that would do something when TVM's parser reads them: each makes the file MARK.

That they do is shown by giving them to `tvm.script.from_source`. None of them may be admitted.
"""

OPEN = 'open("MARK", "w")'
_RUN = '__import__("os").mkdir("MARK")'


def relax(body: str = "", shape: str = "4", before: str = "") -> str:
    return f"""{before}
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({shape},), "float32")):
        {body or "y = R.add(x, x)"}
        return x
"""


def tirx(body: str, annotation: str = 'T.Buffer((4,), "float32")', before: str = "") -> str:
    return f"""{before}
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: {annotation}):
        {body}
        T.evaluate(0)
"""


def gpu(body: str) -> str:
    return f"""
@T.prim_func
def main(A: T.Buffer((4,), "uint32")):
    T.device_entry()
    x: T.uint32
    {body}
    T.evaluate(0)
"""


def module(line: str) -> str:
    return f"""
@I.ir_module
class Module:
    {line}

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        return x
"""


_INNER = """s = {said}

        @R.function
        def inner(z: R.Tensor((s,), "float32")) -> R.Tensor((4,), "float32"):
            return z
        y = inner(x)"""

_METADATA = """metadata = tvm.ir.load_json('''{"root_index": 0, "nodes": [
  {"type": "ffi.Map", "data": [1, 2]}, {"type": "ffi.String", "data": "ffi.String"},
  {"type": "ffi.Array", "data": [3]},
  {"type": "ffi.String", "data": "open('MARK', 'w') and 4"}]}''')"""
_FRAMES = "importlib._bootstrap._call_with_frames_removed"
_OWN_NAMES = """    @R.function
    def _bootstrap(x: R.Tensor((4,), "float32")):
        return x

    @R.function
    def _call_with_frames_removed(x: R.Tensor((4,), "float32")):
        return x
"""
_CLASS_OF_A_FILE = (
    "[c for c in {}.__class__.__mro__[-1].__subclasses__() if c.__name__ == '_wrap_close']"
    "[0].__init__.__globals__['mkdir']('MARK')"
)

ATTACKS = {
    # what is passed over where it stands
    "an attribute that is set to the module": relax(f"{OPEN}.x = Module"),
    "an attribute that is set to the module, in a kernel": tirx(f"{OPEN}.x = Module"),
    "the bound of a list, compared": relax(shape=f"[i for i in range({OPEN} == 1)] and 4"),
    "the bound of a list, chosen": relax(shape=f"[i for i in range(4 if {OPEN} else 2)] and 4"),
    "the bound of a list, or another": relax(
        shape=f"[i for i in range(0 or ({OPEN} and 4))] and 4"
    ),
    "the bound of a list, indexed": relax(shape=f"[i for i in range((1, 2)[{OPEN} and 0])] and 4"),
    # text that becomes a variable, and then a size
    "a comment behind a size in quotes": relax(
        "X = R.Tensor((\"n # open('MARK', 'w') and 4\",))\n"
        "        y = R.match_cast(x, R.Shape([X.shape[0][4:]]))"
    ),
    "sizes in quotes put together": relax(
        'X = R.Tensor(("ope", "n", "((77, 65)[0]*0)"))\n'
        "        Y = R.Tensor((\"n # ('MARK', 'w') and 4\",))\n"
        "        y = R.match_cast(x, R.Shape([X.shape[0] + X.shape[1] + Y.shape[0][4:]]))"
    ),
    # names of Python
    "a shell": relax(shape='__import__("os").system("touch MARK") or 4'),
    "a folder": relax(shape=f"{_RUN} or 4"),
    "a file": relax(shape=f"{OPEN} and 4"),
    "exec": relax(shape="exec(\"open('MARK', 'w')\") or 4"),
    "eval": relax(shape="eval(\"open('MARK', 'w')\") and 4"),
    "compile": relax(shape="eval(compile(\"open('MARK', 'w')\", '', 'eval')) and 4"),
    "getattr": relax(shape='getattr(getattr(tvm, "base"), "os").mkdir("MARK") or 4'),
    "getattr of globals": relax(
        shape='getattr(R.add, "__globals__")["__builtins__"]["open"]("MARK", "w") and 4'
    ),
    "globals": relax(shape='globals()["__builtins__"]["open"]("MARK", "w") and 4'),
    "a name of another script": relax(shape='__ｉmport__("os").mkdir("MARK") or 4'),
    "a name in bold": relax(shape='𝐨𝐩𝐞𝐧("MARK", "w") and 4'),
    "a name over two lines": relax(shape='open\\\n("MARK", "w") and 4'),
    "a name and a tab": relax(shape='open\t\x0c("MARK", "w") and 4'),
    "map": relax(shape='list(map(open, ["MARK"], ["w"])) and 4'),
    "sorted": relax(shape='sorted(["MARK"], key=tvm.base.os.mkdir) and 4'),
    "type": relax(shape='type("X", (), {"f": open})().f("MARK", "w") and 4'),
    "an escape in a name": relax(shape='__import__("\\x6fs").mkdir("MARK") or 4'),
    "a character by its name": relax(
        shape="eval(\"\\N{LATIN SMALL LETTER O}pen('MARK', 'w')\") and 4"
    ),
    # modules of TVM
    "tvm": relax(shape='tvm.base.os.mkdir("MARK") or 4'),
    "a module that a dialect holds": relax(shape='T.external_kernel.os.mkdir("MARK") or 4'),
    "a module in a module of a dialect": relax(shape='T.tile.tvm.base.os.mkdir("MARK") or 4'),
    "a module that I holds": relax(shape='I.entry.inspect.os.mkdir("MARK") or 4'),
    "a module that R holds": relax(
        shape='R.dist.Optional and R.parser.tvm.base.os.mkdir("MARK") or 4'
    ),
    "a dialect by its other name": relax(shape='relax.parser.tvm.base.os.mkdir("MARK") or 4'),
    "tirx": relax(shape='tirx.parser.entry.inspect.os.mkdir("MARK") or 4'),
    "a text that is read while it is read": relax(
        shape="tvm.script.from_source('''@T.prim_func\n"
        'def f(x: open("MARK", "w")): pass\'\'\') or 4'
    ),
    # ways through attributes
    "globals of a function": relax(
        shape='R.add.__globals__["__builtins__"]["open"]("MARK", "w") and 4'
    ),
    "globals of a method": relax(
        shape='T.float32.__class__.__call__.__globals__["__builtins__"]["open"]("MARK", "w") and 4'
    ),
    "classes": relax(
        shape="[c for c in ().__class__.__base__.__subclasses__() if c.__name__ == '_wrap_close']"
        '[0].__init__.__globals__["mkdir"]("MARK") or 4'
    ),
    "a class of text": relax(
        shape="[c for c in ''.__class__.__mro__[1].__subclasses__() if c.__name__ == "
        "'_wrap_close'][0].__init__.__globals__['mkdir']('MARK') or 4"
    ),
    "the module's class": relax(
        'y = Module.__class__.__getattr__.__globals__["__builtins__"]["open"]("MARK", "w")'
    ),
    "the parser": relax(
        shape="__current_script_parser__.__init__.__globals__['__builtins__']"
        "['open']('MARK', 'w') and 4"
    ),
    "an attribute of a constant": relax(
        shape="(1).__class__.__base__.__subclasses__()and __import__('os').mkdir('MARK') or 4"
    ),
    # text that is evaluated
    "a size in quotes": relax(shape="\"open('MARK', 'w') and 4\""),
    "a size in quotes by name": tirx(
        "pass", "T.Buffer(shape=(\"T.external_kernel.os.mkdir('MARK') or 4\",))"
    ),
    "a size of a buffer in quotes": tirx(
        "pass", "T.Buffer((\"T.external_kernel.os.mkdir('MARK') or 4\",))"
    ),
    "a size of a buffer deep in quotes": tirx(
        "pass", "T.Buffer((T.int64(\"T.external_kernel.os.mkdir('MARK') or 4\"),))"
    ),
    "a shape in quotes": relax().replace(
        'x: R.Tensor((4,), "float32")', "x: R.Shape([\"open('MARK', 'w') and 4\"])"
    ),
    "a shape in a tuple": relax().replace(
        'x: R.Tensor((4,), "float32")', "x: R.Tuple(R.Tensor((\"open('MARK', 'w') and 4\",)))"
    ),
    "a shape of what is called": relax().replace(
        'x: R.Tensor((4,), "float32")',
        "x: R.Callable((R.Tensor((\"open('MARK', 'w') and 4\",)),), R.Tensor)",
    ),
    "a size in the result": relax().replace(
        '"float32")):', "\"float32\")) -> R.Tensor((\"open('MARK', 'w') and 4\",)):"
    ),
    "quotes put together": relax(shape="\"op\" + \"en('MARK', 'w') and 4\""),
    "quotes of which each part is harmless": relax(
        shape='"tvm.base.os.mkdir" + "(\'MARK\')" + " or 4"'
    ),
    "quotes that are formatted": relax(shape="\"open(%s, 'w') and 4\" % \"'MARK'\""),
    "quotes out of a list": relax(shape="[\"open('MARK', 'w') and 4\"][0]"),
    "quotes out of a dictionary": relax(shape="{0: \"open('MARK', 'w') and 4\"}[0]"),
    "quotes that are chosen": relax(shape="\"open('MARK', 'w') and 4\" if True else 4"),
    "quotes after or": relax(shape="\"\" or \"open('MARK', 'w') and 4\""),
    "quotes that are joined": relax(shape='"".join(["open(\'MARK\',", "\'w\') and 4"])'),
    "quotes in a variable": relax(_INNER.format(said="\"open('MARK', 'w') and 4\"")),
    "quotes in two variables": relax(
        _INNER.format(said='""; s, t = "open(\'MARK\', \'w\') and 4", ""').replace('s = ""; ', "")
    ),
    "quotes for a type in a variable": relax(
        "X = R.Tensor\n\n        @R.function\n"
        "        def inner(z: X((\"open('MARK', 'w') and 4\",), 'float32')) -> R.Tensor:\n"
        "            return z\n        y = inner(x)"
    ),
    "quotes for a type of several": relax(
        "X, Y = (R.Shape, R.Tensor)\n\n        @R.function\n"
        "        def inner(z: X([\"open('MARK', 'w') and 4\"])) -> R.Tensor:\n"
        "            return x\n        y = inner(x)"
    ),
    "quotes outside of all": relax(shape="s", before="s = \"open('MARK', 'w') and 4\""),
    "quotes of a comprehension": relax(shape="*[s for s in [\"open('MARK', 'w') and 4\"]]"),
    "quotes by two stars": relax().replace(
        'R.Tensor((4,), "float32")', "R.Tensor(**{\"shape\": (\"open('MARK', 'w') and 4\",)})"
    ),
    "quotes by one star": relax().replace(
        'R.Tensor((4,), "float32")', "R.Tensor(*((\"open('MARK', 'w') and 4\",), \"float32\"))"
    ),
    "an attribute of the module as a size": module(
        "I.module_attrs({\"s\": \"open('MARK', 'w') and 4\"})"
    ).replace("((4,)", '((I.module_get_attr("s"),)'),
    "a value kept aside": relax(shape="T.meta_var(\"open('MARK', 'w') and 4\").value"),
    # expressions of other kinds
    "a formatted string": relax(shape="f\"{open('MARK', 'w')}\" and 4"),
    "format": relax(shape="\"{}\".format(open('MARK', 'w')) and 4"),
    "a list": relax(shape=f"[{OPEN} for i in range(1)] and 4"),
    "a list with a condition": relax(shape=f"[i for i in range(1) if {OPEN}] or 4"),
    "a set": relax(shape=f"{{{OPEN} for i in range(1)}} and 4"),
    "a dictionary": relax(shape=f"{{0: {OPEN} for i in range(1)}} and 4"),
    "a generator in a call": relax(shape=f"[*({OPEN} for i in range(1))] and 4"),
    "an assignment in a list": relax(shape=f"[(q := {OPEN}) for i in range(1)] and 4"),
    "a function without a name": relax(shape=f"(lambda: {OPEN})() and 4"),
    "an index map": tirx(f"T.index_map(lambda i: {OPEN})"),
    "a default of a function without a name": tirx(f"T.index_map(lambda i=({OPEN}): i)"),
    "a combiner": tirx(f"T.comm_reducer(lambda x, y: {OPEN} and x, [T.float32(0)])"),
    "an option": relax(f"y = R.sum(x, keepdims={OPEN} and True)"),
    "a choice": relax(shape=f"4 if {OPEN} else 2"),
    "a comparison": relax(shape=f"0 if {OPEN} == 1 else 4"),
    "a sign": relax(shape="-len(str(open('MARK', 'w')))"),
    "an index": tirx(f"A[{OPEN} and 0] = T.float32(0)"),
    "a slice": tirx(f"T.reads(A[0:{OPEN} and 4])"),
    # statements
    "a loop": tirx(f"for i in {OPEN}: pass"),
    "the bound of a loop": tirx(f"for i in range({OPEN} and 4): pass"),
    "an option of a loop": tirx(f"for i in range(4, annotations={{'a': {OPEN} and 1}}): pass"),
    "a loop by a condition": tirx(f"while {OPEN}: pass"),
    "a condition": tirx(f"if {OPEN} and True: pass"),
    "a block": tirx(f"with {OPEN}: pass"),
    "a block with a name": tirx(f"with {OPEN} as f: pass"),
    "an assertion": tirx(f"assert {OPEN} and True, 'no'"),
    "the words of an assertion": tirx(f"assert True, {OPEN} and 'no'"),
    "a result": tirx(f"return {OPEN}"),
    "a sum": tirx(f"A[0] += {OPEN} and T.float32(0)"),
    "an annotation": tirx(f"x: {OPEN} = 1"),
    "a let": tirx(f"x: T.let[{OPEN}] = 1"),
    "a match": relax(f'y = R.match_cast(x, R.Tensor(({OPEN} and 4,), "float32"))'),
    "a kernel's options": tirx(f"T.func_attr({{'a': {OPEN} and 1}})"),
    "a condition of Relax": relax(
        f"if {OPEN}:\n            y = x\n        else:\n            y = x"
    ),
    "a statement": relax(f"{OPEN}"),
    # definitions
    "an inline function": tirx(f"@T.inline\n        def f(a={OPEN}):\n            pass"),
    "a decorator of an inline function": tirx(
        f"@{OPEN}\n        @T.inline\n        def f():\n            pass"
    ),
    "a decorator": relax().replace("@R.function", f"@{OPEN}"),
    "an option of a decorator": relax().replace(
        "@R.function", f"@R.function(pure={OPEN} and True)"
    ),
    "an attribute of the module": module(f"I.module_attrs({{'a': {OPEN} and 1}})"),
    "a value in the module": module(f"a = {OPEN}"),
    "a statement in the module": module(f"{OPEN}"),
    "a value outside": relax(before=f"a = {OPEN}"),
    "a size outside": relax(before=f'n = TypeVar("n", bound={OPEN})'),
    "a size outside, with more": relax(before=f'n = ({OPEN}, TypeVar("n"))[1]'),
    "a file of values": relax(before=f"metadata = tvm.ir.load_json({OPEN} and '')"),
    "a library function by TVM": relax(
        shape="tvm.get_global_func('ffi.ReprPrint') and tvm.base.os.mkdir('MARK') or 4"
    ),
    "tests of a module by its alias": relax(
        'cls = Module\n        y = cls.__getattr__.__globals__["__builtins__"]["open"]("MARK", "w")'
    ),
    "an import that is none": relax(
        shape='__import__("importlib").import_module("os").mkdir("MARK") or 4'
    ),
    "a semicolon": relax(before=f"n = TypeVar('n'); a = {OPEN}"),
    "a cookie": "# coding: utf-7\n" + relax(shape=f"{OPEN} and 4"),
    "a name that is bound elsewhere": relax("open = R.add(x, x)", shape=f"{OPEN} and 4"),
    "a name that is bound too late": tirx(f"T.evaluate({OPEN} and 0)\n        open = T.int32(1)"),
    # ways through what is admitted for a single purpose
    "a private name that the module's functions have too": relax(
        shape=f'I.entry.inspect.{_FRAMES}(open, "MARK", "w") and 4'
    )
    + _OWN_NAMES,
    "a private name of the module's class": relax(
        "cls = Module\n        y = cls._call_with_frames_removed.__class__.__call__"
        f"""{'.__globals__["__builtins__"]["open"]("MARK", "w")'}"""
    )
    + _OWN_NAMES,
    "a cast of a file": relax(f'y = {OPEN}.astype("float32")'),
    "a cast of a file in a sum": relax(f'y = (x + {OPEN}).astype("float32")'),
    "a cast of an element": relax(f'y = (x, {OPEN})[1].astype("float32")'),
    "a cast of a comparison": relax(f'y = ({OPEN} == 1).astype("float32")'),
    "a cast of a sign": relax(f'y = (-{OPEN}).astype("float32")'),
    "the type of a cast": relax(f"y = x.astype({OPEN})"),
    "the type of a load": tirx(f"T.evaluate(A.vload([0], {OPEN} and 'float32'))"),
    "the mode of a pointer": tirx(f"T.evaluate(A.access_ptr({OPEN} and 'r'))"),
    "the type of a handle": tirx(f"T.evaluate(T.isnullptr(T.handle({OPEN}).ty))"),
    "the type of a file": tirx(f"T.evaluate({OPEN}.ty)"),
    "globals of the type of a handle": tirx(
        'T.evaluate(T.handle().ty.script.__globals__["__builtins__"]["open"]("MARK", "w"))'
    ),
    "the class of a data type": tirx(f"T.evaluate({_CLASS_OF_A_FILE.format('A.dtype')})"),
    "a layout": relax(f"y = R.layout_transform(x, index_map=lambda i: {OPEN} and i)"),
    "a layout by place": relax(f"y = R.layout_transform(x, lambda i: {OPEN} and i)"),
    "a default of a layout": relax(f"y = R.layout_transform(x, lambda i=({OPEN}): i)"),
    "a default by name of a layout": relax(f"y = R.layout_transform(x, lambda *, i={OPEN}: i)"),
    "a list in a layout": relax(
        f"y = R.layout_transform(x, lambda i: [i for k in range(1) if {OPEN}])"
    ),
    "a layout in a layout": relax(f"y = R.layout_transform(x, lambda i: (lambda: {OPEN})() and i)"),
    "the class of an index": relax(
        "y = R.layout_transform(x, lambda i: i.__class__.__init__.__globals__"
        '["__builtins__"]["open"]("MARK", "w") and i)'
    ),
    "the value beyond a layout": relax(
        f"y = R.layout_transform(x, lambda i: i, pad_value={OPEN} and 0)"
    ),
    "a number of tvm": tirx(f"T.evaluate(tvm.tirx.const({OPEN} and 0, 'int32'))"),
    "globals of a number of tvm": tirx(
        'T.evaluate(tvm.tirx.const.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "globals of a device": relax(
        'y = R.hint_on_device(x, tvm.cpu.__globals__["__builtins__"]["open"]("MARK", "w"))'
    ),
    "a module beside the numbers of tvm": tirx(
        'T.evaluate(tvm.tirx.build.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "the number of a device": relax(f"y = R.hint_on_device(x, R.cpu({OPEN} and 0))"),
    "a float of a file": relax(f"y = R.const(float({OPEN}), 'float32')"),
    "a float by name": relax(f"y = R.const(float(x={OPEN}), 'float32')"),
    "the class of a float": relax(f"y = R.const({_CLASS_OF_A_FILE.format('float')})"),
    "the class of infinity": relax(
        "y = R.const(" + _CLASS_OF_A_FILE.format("(float('inf'))") + ")"
    ),
    "a pointer to what is called": tirx("pass", f"T.Ptr(lambda: {OPEN})"),
    "the shape of what is called": tirx(f"for i in T.grid(*{OPEN}.shape):\n            pass"),
    "a number of threads": tirx(f"T.thread_id([{OPEN} and 4])"),
    "the type of what is called": relax(f'y = R.call_packed("f", x, ty_args=[{OPEN}.ty])'),
    "a type of a type as a size": relax(
        f'y = R.call_packed("f", x, ty_args=[R.Tensor(({OPEN} and x.ty,))])'
    ),
    "a static check": tirx(f"T.static_assert({OPEN})"),
    "a node of a return": tirx(f"T.Return({OPEN} and 0)"),
    "quotes out of metadata": relax(shape='metadata["ffi.String"][0]', before=_METADATA),
    "quotes out of metadata in a shape": relax(before=_METADATA).replace(
        'x: R.Tensor((4,), "float32")', 'x: R.Shape([metadata["ffi.String"][0]])'
    ),
    "quotes out of metadata in a tuple": relax(before=_METADATA).replace(
        'x: R.Tensor((4,), "float32")', 'x: R.Tuple(R.Tensor((metadata["ffi.String"][0],)))'
    ),
    "quotes out of metadata, chosen": relax(
        shape='metadata["ffi.String"][0] if True else 4', before=_METADATA
    ),
    "quotes out of metadata, cut": relax(shape='metadata["ffi.String"][0][0:]', before=_METADATA),
    "quotes out of metadata in a variable": relax(
        _INNER.format(said='metadata["ffi.String"][0]'), before=_METADATA
    ),
    "quotes out of metadata for the result": relax(before=_METADATA).replace(
        '"float32")):', '"float32")) -> R.Tensor((metadata["ffi.String"][0],)):'
    ),
    "a file as the size of a name of Python": relax().replace(
        "x: R.Tensor", f'max: R.Prim("int64"), x: R.Tensor(({OPEN} and max,)), y: R.Tensor'
    ),
    # the language for GPUs
    "a module in the tile operations": gpu('Tx._builder.tvm.base.os.mkdir("MARK")'),
    "globals of the class of tile operations": gpu(
        'T.tile.ScopedOp.__call__.__globals__["__builtins__"]["open"]("MARK", "w")'
    ),
    "globals of the tile operation of a scope": gpu(
        'T.cta.copy.__globals__["__builtins__"]["open"]("MARK", "w")'
    ),
    "globals of an intrinsic": gpu(
        'T.evaluate(T.cuda.cta_sync.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "globals of an intrinsic with underscores": gpu(
        'T.evaluate(T.cuda.__activemask.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "globals of an axis": gpu(
        'T.evaluate(Axis.get.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "attributes of Python as words of PTX": gpu(
        'T.evaluate(T.ptx["ld.__class__.__getattr__.__globals__.get"]("__builtins__")'
        '["open"]("MARK", "w") and 0)'
    ),
    "attributes of Python as words of PTX with colons": gpu(
        'T.evaluate(T.ptx["ld.::class::.::getattr::.::globals::.get"]("__builtins__")'
        '["open"]("MARK", "w") and 0)'
    ),
    "attributes of Python of an instruction": gpu(
        "T.evaluate(T.ptx.ld.__class__.__call__"
        '.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "words of PTX that are computed": gpu(f'T.ptx[{OPEN} and "ld.global.b32"](x, A.data)'),
    "an operand of an instruction": gpu(f"T.ptx.ld.global_.b32({OPEN} and x, A.data)"),
    "an address of an instruction": gpu(
        f"T.ptx.ld.global_.b32(x, T.ptx.addr(A.data, {OPEN} and 4))"
    ),
    "a predicate of an instruction": gpu(
        f"T.ptx.ld.global_.b32(x, A.data, pred=T.ptx.pred({OPEN} and 1))"
    ),
    "a tile": gpu(f"Tx.cta.fill(A[0:{OPEN} and 4], T.uint32(0))"),
    "the configuration of a tile operation": gpu(
        f"T.tile.fill(A, T.uint32(0), unroll={OPEN} and 4)"
    ),
    "the dispatch of a tile operation": gpu(
        f'T.tile.fill(A, T.uint32(0), dispatch={OPEN} and "any")'
    ),
    "a lambda of a tile operation": gpu(
        f"Tx.select(A, A, T.uint32(0), lambda i: {OPEN} and i < 2)"
    ),
    "a lambda of a tile operation of a scope": gpu(
        f"T.cta.select(A, A, T.uint32(0), lambda i: {OPEN} and i < 2)"
    ),
    "a default of a lambda of a tile operation": gpu(
        f"T.tile.select(A, A, T.uint32(0), lambda i=({OPEN}): i < 2)"
    ),
    "a lambda of a wait": gpu(f"T.cuda.wait_until(x, A.data, lambda v: {OPEN} and v > x)"),
    "the source code of a call": gpu(f'T.cuda.func_call("f", source_code={OPEN} and "")'),
    "a hint": gpu(f'T.hint("a", access={OPEN} and 1)'),
    "extents of a layout": gpu(f"T.alloc_local((4,), layout=T.TileLayout(T.S[{OPEN} and 4]))"),
    "an extent of several": gpu(
        f"T.alloc_local((4,), layout=T.TileLayout(T.S[({OPEN} and 4, 1) : (1, 1)]))"
    ),
    "the strides of a layout": gpu(
        f"T.alloc_local((4,), layout=T.TileLayout(T.S[4 : {OPEN} and 1]))"
    ),
    "the copies of a layout": gpu(
        f"T.alloc_local((4,), layout=T.TileLayout(T.S[4] + T.R[{OPEN} and 4]))"
    ),
    "the offset of a layout": gpu(
        f"T.alloc_local((4,), layout=T.TileLayout(T.S[4] + ({OPEN} and 4)))"
    ),
    "a number on an axis": gpu(
        f"T.alloc_local((4,), layout=T.TileLayout(T.S[4] + ({OPEN} and 4) @ Axis.laneid))"
    ),
    "an axis": gpu(
        f"T.alloc_local((4,), layout=T.TileLayout(T.S[4] + 4 @ ({OPEN} and Axis.laneid)))"
    ),
    "what a layout is made of": gpu(f"T.alloc_local((4,), layout=T.TileLayout({OPEN} and T.S[4]))"),
    "a swizzled layout": gpu(
        f"T.alloc_local((4,), layout=T.ComposeLayout({OPEN} and 1, 1, 0, T.TileLayout(T.S[4])))"
    ),
    "the layout of a swizzled layout": gpu(
        f"T.alloc_local((4,), layout=T.ComposeLayout(1, 1, 0, {OPEN} and T.TileLayout(T.S[4])))"
    ),
    "an option of a swizzled layout": gpu(
        "T.alloc_local((4,), layout=T.ComposeLayout("
        f"1, 1, 0, T.TileLayout(T.S[4]), swizzle_inner={OPEN} and True))"
    ),
    "the sizes of a view": gpu(f"B = A.view({OPEN} and 2, 2)"),
    "the sizes of a view of a view": gpu(f"B = A.view(2, 2).view({OPEN} and 4)"),
    "the index of a view": gpu(f"B = A.sub[{OPEN} and 0]"),
    "the index of a view of a view": gpu(f"B = A.view(2, 2).sub[{OPEN} and 0, :]"),
    "the factors of a view": gpu(f"B = A.tile((0, (2, {OPEN} and 2)))[0, :]"),
    "the pattern of a view": gpu(f'B = A.rearrange({OPEN} and "(a b) -> a b", a=2)'),
    "a size of the pattern of a view": gpu(f'B = A.rearrange("(a b) -> a b", a={OPEN} and 2)'),
    "the class of a view": gpu(
        'T.evaluate(A.view(2, 2).view.__globals__["__builtins__"]["open"]("MARK", "w") and 0)'
    ),
    "the target of a function": gpu(
        f'T.func_attr({{"target": tvm.target.Target({OPEN} and "llvm")}})'
    ),
    "globals of a target": gpu(
        'T.evaluate(tvm.target.Target.__init__.__globals__["__builtins__"]["open"]("MARK", "w")'
        " and 0)"
    ),
    "an operator by its name": gpu(f'T.evaluate(tvm.ir.Op.get({OPEN} and "tirx.exp") and 0)'),
    "a node by its operator": gpu(
        f'T.evaluate(T.Call("tirx.cuda.cta_sync", [{OPEN} and 0], ret_ty="void"))'
    ),
    "a name of a variable": gpu(f'n = T.Var({OPEN} and "n", "int32")'),
    "a layout by its full name": gpu(
        f"T.alloc_local((4,), layout=tvm.tirx.layout.wg_local_layout({OPEN} and 4))"
    ),
}
