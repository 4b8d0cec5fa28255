"""A text that would fill the memory or end the process is refused before it is parsed."""

import ast
import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

from irviz.loaders.file_limits import TVMSCRIPT_LIMITS
from irviz.loaders.tvmscript.admission import RefusedError, admit

_SPEC = importlib.util.spec_from_file_location(
    "irviz_test_attacks", Path(__file__).with_name("attacks.py")
)
attacks = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(attacks)
relax, tirx, gpu = attacks.relax, attacks.tirx, attacks.gpu

_DEEP = 100_000

REFUSED = {
    "a power": relax(shape="10**10**10"),
    "a power of a power": relax(shape="2**100 * 2**100"),
    "a shift": relax(shape="1 << 10**9"),
    "a shift by a product": relax(shape="1 << (99999 * 99999)"),
    "a long product": relax(shape="*".join(["99999999999999"] * 20)),
    "a long text": relax(shape='"a" * 10**9'),
    "a long list": relax(shape="[0] * 10**9"),
    "a long tuple": relax(shape="(0,) * 999999999"),
    "a tuple repeated by its name": tirx("x = (1, 2)\n        y = x * 500000000"),
    "a tuple repeated by another name": tirx(
        "x = (1, 2)\n        y = x\n        z = y * 500000000"
    ),
    "a tuple doubled": tirx("x = (1, 2)\n        x += x"),
    "a shift by an element": tirx("x = (500000000, 2)\n        y = 1 << x[0]"),
    "a shift by an element of two": tirx("x, y = (9, 9), (9, 9)\n        z = 1 << -x[0]"),
    "a long comprehension": relax(shape="[i for i in range(10**9)]"),
    "comprehensions in each other": relax(shape="[[i for i in range(1000)] for j in range(1000)]"),
    "a comprehension of many parts": relax(shape="[i for i in range(1000) for j in range(1000)]"),
    "powers in a comprehension": relax(shape="[i**i**i for i in range(9)]"),
    "shifts in a comprehension": relax(shape="[1 << (i << i) for i in range(999)]"),
    "a shift by a number of LLVM": tirx(
        'T.evaluate(1 << T.llvm_lookup_intrinsic_id("llvm.ctpop"))'
    ),
    "a power of an index of a layout": relax(
        "y = [R.layout_transform(x, lambda i: 9 ** i) for i in range(3)]"
    ),
    "a shift in a layout": relax("y = R.layout_transform(x, lambda i: 1 << (9 << 99))"),
    "a list in a layout": relax("y = R.layout_transform(x, lambda i: [i for k in range(10**9)])"),
    "a layout of many extents": gpu(f"T.TileLayout(T.S[{'9, ' * 100_000}])"),
    "a layout of many strides": gpu(f"T.TileLayout(T.S[4 : ({'9, ' * 100_000})])"),
    "a layout of a list": gpu("T.TileLayout(T.S[[9 for i in range(4000)]])"),
    "a layout of a tuple that was long before": gpu(
        f"s = ({'9, ' * 1000})\n    T.TileLayout(T.S[s])"
    ),
    "an extent beyond all types": gpu("T.TileLayout(T.S[2**100 * 2**100])"),
    "an offset beyond all types": gpu("T.TileLayout(T.S[4] + 2**100 * 2**100)"),
    "an extent that is a power": gpu("T.TileLayout(T.S[9**9**9])"),
    "a number on an axis that is a shift": gpu("T.TileLayout(T.S[4 : (1 << 10**9) @ Axis.m])"),
    "a swizzle of many bits": gpu("T.ComposeLayout(10**9, 3, 3, T.TileLayout(T.S[4]))"),
    "a swizzle of a variable": gpu("n = 9\n    T.ComposeLayout(n, 3, 3, T.TileLayout(T.S[4]))"),
    "a swizzle of less than nothing": gpu("T.ComposeLayout(3, -1, 3, T.TileLayout(T.S[4]))"),
    "layouts in layouts": gpu("T.ComposeLayout(3, 3, 3, " * 5000 + "A" + ")" * 5000),
    "a layout that is a long sum": gpu("T.TileLayout(T.S[4]" + " + 1 @ Axis.m" * 5000 + ")"),
    "an axis on an axis": gpu("T.TileLayout(T.S[4 : 1" + " @ Axis.m" * 5000 + "])"),
    "views of views": gpu("B = A" + ".view(4)" * 5000),
    "indices of views": gpu("B = A" + ".sub[:]" * 5000),
    "a long pattern": gpu(f"B = A.rearrange('{'(' * 100_000}')"),
    "a long instruction": gpu(f"T.ptx['ld{'.b32' * 100_000}'](x)"),
    "words of a long instruction": gpu(f"T.ptx.ld(x, A.data, '{'s0,' * 100_000}')"),
    "many sizes of a view": gpu(f"B = A.view({'9, ' * 65})"),
    "many factors of a view": gpu(f"B = A.tile((0, ({'9, ' * 65})))[0, :]"),
    "many indices of a view": gpu(f"s = ({'9, ' * 65})\n    B = A.tile((0, s))[{'0, ' * 65}]"),
    "a size of a view": gpu("B = A.view(1 << 10**9)"),
    "a number of an instruction": gpu("T.ptx.ld.b32(x, T.ptx.addr(A.data, 9**9**9))"),
    "a long number": relax(shape="9" * 50_000),
    "a long number in hexadecimal": relax(shape="0x" + "f" * 50_000),
    "a number beyond all types": relax(shape="0x" + "f" * 50),
    "an imaginary number": relax(shape="4j"),
    "bytes": relax(shape="b'4'"),
    "dots": relax(shape="..."),
    "brackets": relax(shape="(" * _DEEP + ")" * _DEEP),
    "square brackets": relax(shape="[" * _DEEP),
    "signs": relax(shape="-" * _DEEP + "1"),
    "not": relax(shape="not " * _DEEP + "1"),
    "attributes": relax(shape="x" + ".a" * _DEEP),
    "indices": relax(shape="x" + "[0]" * _DEEP),
    "calls": relax(shape="x" + "()" * _DEEP),
    "a long sum": relax(shape="1" + "+1" * _DEEP),
    "powers": relax(shape="2" + "**2" * _DEEP),
    "functions in functions": relax(shape="lambda:" * _DEEP + "1"),
    "choices": relax(shape="1 if 1 else " * _DEEP + "1"),
    "branches": tirx(
        "if A[0] > 0:\n            pass\n" + "        elif A[0] > 0:\n            pass\n" * 5000
    ),
    "blocks in blocks": "".join(" " * i + "if 1:\n" for i in range(300)) + " " * 300 + "pass\n",
    "a sum that Python still reads": relax(shape="1" + "+1" * 500),
    "quotes in quotes": relax(shape="'R.Tensor((\"n\",))'"),
    "quotes that end": relax(shape='"n)(m"'),
    "quotes with a comment": relax(shape='"n) # "'),
    "quotes with a statement": relax(shape='"n); (m"'),
    "quotes deep in brackets": relax(shape='"' + "(" * 5000 + '"'),
    "a NUL": relax(shape="4\0"),
    "half of a character": relax(shape="'\ud800'"),
    "no Python": "class Module(:",
    "a matrix product": relax(shape="x @ x"),
    "in": relax(shape="4 in x"),
    "is": relax(shape="4 is x"),
    "a star in a call": relax("y = R.concat(*x)"),
    "two stars in a call": relax("y = R.concat(**x)"),
    "two stars in a dictionary": tirx("T.func_attr({**A})"),
    "an else of a loop": tirx(
        "for i in range(4):\n            pass\n        else:\n            pass"
    ),
    "a frame that is none": tirx("with A:\n            pass"),
    "two names for one": relax("y = z = x"),
    "a parameter by name": tirx("pass", "T.int32, *, b: T.int32"),
    "many parameters": tirx("pass", "T.int32, *b"),
    "an option of a decorator that is none": relax().replace(
        "@R.function", "@R.function(impure=True)"
    ),
    "two decorators": relax().replace("@R.function", "@R.function\n    @R.function"),
    "no decorator": relax().replace("    @R.function\n", ""),
    "a rewriter": relax().replace("@I.ir_module", "@R.rewriter"),
    "a name with underscores": relax("__builtins__ = x"),
    "a function with underscores": relax().replace("def main", "def __getattr__"),
    "a named character that is none": relax(shape='"\\N{NOTHING}"'),
}


def test_arithmetic_with_variables_is_admitted():
    admit(tirx("x = A[0] * 500000000\n        y = x * 2 << 3"))
    admit(relax("y = (x, x)\n        z = y[0] + y[1]"))


SECONDS = 20.0
"""How long a refusal may take, of the processor's time: a busy machine adds little."""


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_at_once(name):
    began = time.process_time()
    with pytest.raises(RefusedError) as caught:
        admit(REFUSED[name], "a.py")
    assert time.process_time() - began < SECONDS
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("#" * (TVMSCRIPT_LIMITS.characters + 1), "characters is refused"),
        ("a = (" + "a," * (TVMSCRIPT_LIMITS.tokens // 2) + ")", "tokens is refused"),
        ("a = f'{" + "a," * 10 + "}'", "a formatted string"),
        ("a = rF'{" + "a," * 10 + "}'", "a formatted string"),
        (
            "a = ()"
            + "#" * (TVMSCRIPT_LIMITS.characters // 8)
            + "\n"
            + "()," * (TVMSCRIPT_LIMITS.tokens // 2),
            "tokens is refused",
        ),
        ("a = '\\\\'" + "a," * (TVMSCRIPT_LIMITS.tokens // 2) + "'", "tokens is refused"),
        (
            '"""' + "\\a" * 2_000_000 + '"""' + "a," * (TVMSCRIPT_LIMITS.tokens // 2),
            "tokens is refused",
        ),
    ],
    ids=["long", "many", "formatted", "formatted raw", "comment", "an escaped quote", "escapes"],
)
def test_what_is_too_large_is_refused_before_it_is_read(text, words, monkeypatch):
    monkeypatch.setattr(ast, "parse", lambda *_, **__: pytest.fail("it was read"))
    began = time.process_time()
    with pytest.raises(RefusedError, match=words):
        admit(text)
    assert time.process_time() - began < SECONDS


def test_long_text_in_quotes_and_comments_is_no_reason():
    text = "# " + "(" * 100_000 + '\n"""' + "[," * TVMSCRIPT_LIMITS.tokens + '"""\n' + relax()
    assert admit(text).definitions


def test_what_is_nested_as_deep_as_allowed_is_read_and_one_more_is_not():
    def nested(depth):
        return relax(shape="1" + "+1" * depth)

    fits = max(
        depth
        for depth in range(TVMSCRIPT_LIMITS.depth - 20, TVMSCRIPT_LIMITS.depth)
        if _is_admitted(nested(depth))
    )
    assert not any(
        _is_admitted(nested(depth)) for depth in range(fits + 1, TVMSCRIPT_LIMITS.depth + 5)
    )


def _is_admitted(text):
    try:
        admit(text)
    except RefusedError:
        return False
    return True


@pytest.mark.worker
def test_no_refusal_ends_the_process_where_stacks_are_small():
    program = """
import sys, threading, importlib.util
from irviz.loaders.tvmscript.admission import admit, RefusedError
spec = importlib.util.spec_from_file_location("t", sys.argv[1])
tests = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tests)
count = []
def refuse():
    for text in tests.REFUSED.values():
        try:
            admit(text)
        except RefusedError:
            count.append(1)
threading.stack_size(1 << 20)  # what Windows gives
thread = threading.Thread(target=refuse)
thread.start()
thread.join()
assert len(count) == len(tests.REFUSED)
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, __file__], check=True)
