"""What people write by hand is admitted: one text for each construct, in `written.txt`."""

import re
import warnings
from pathlib import Path

import pytest
import tvm
from tvm_ffi import structural_equal

from irviz.loaders.tvmscript.admission import RefusedError, admit
from irviz.loaders.tvmscript.isolated_parser import parse_admitted

_NAMED = Path(__file__).with_name("written.txt").read_text(encoding="utf-8").split("# === ")[1:]
WRITTEN = {name: text for name, _, text in (one.partition("\n") for one in _NAMED)}


def read_by_tvm(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that TVM will drop
        return tvm.script.from_source(text)


def read_here(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return parse_admitted(admit(text).text)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_by_hand_is_read_as_tvm_reads_it(name):
    assert structural_equal(read_here(WRITTEN[name]), read_by_tvm(WRITTEN[name]))


def test_there_is_a_text_for_each_construct_and_its_printed_form_is_admitted():
    assert len(WRITTEN) > 250
    for name, text in WRITTEN.items():
        printed = read_by_tvm(text).script(show_meta=True)
        try:
            known = read_by_tvm(printed)
        except Exception:  # TVM does not read all that it prints
            continue
        assert structural_equal(read_here(printed), known), name


# --- what is not read --------------------------------------------------------------------------

_PRIM_FUNC = '@T.prim_func\ndef main(A: T.Buffer((16,), "float32"), n: T.int32):\n    '
_FUNCTION = '@R.function\ndef main(x: R.Tensor((4, 4), "float32")):\n    '
NOT_READ = {
    "`*` before an argument": (
        "for i, j in T.grid(*A.shape, 2):\n        T.evaluate(i)",
        "a PrimFunc",
    ),
    "an argument or a name": ("for i, *js in T.grid(2, 2):\n        T.evaluate(i)", "a PrimFunc"),
    "functions of Python": ("A[0] = T.float32(max(3, 4))", "a PrimFunc"),
    "formatted strings": ('T.evaluate(T.call_extern("int32", f"x{1}"))', "a PrimFunc"),
    "arithmetic with strings": ('T.evaluate(T.call_extern("int32", "a" + "b"))', "a PrimFunc"),
    "T.cuda": ("T.cuda.cta_sync()", "a PrimFunc"),
    "`**`": ("y = x ** x\n    return y", "a function"),
    "R.emit": ("y = R.emit(R.add(x, x))\n    return y", "a function"),
}


@pytest.mark.parametrize("name", NOT_READ)
def test_what_tvm_reads_and_irviz_refuses_is_named_in_the_readme(name):
    body, kind = NOT_READ[name]
    text = (_PRIM_FUNC if kind == "a PrimFunc" else _FUNCTION) + body + "\n"
    assert read_by_tvm(text)
    with pytest.raises(RefusedError):
        admit(text)
    readme = Path(__file__).parents[3].joinpath("README.md").read_text(encoding="utf-8")
    limits = re.search(r"## Limits, today\n(.*?)\n\n\[", readme, re.S)[1]
    assert name in " ".join(limits.split())
