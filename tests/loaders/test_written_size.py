"""A small file whose text would be large is refused; models with many shared parts are opened."""

import pytest
import tvm
from tvm import relax

import irviz

pytestmark = pytest.mark.worker


def doubled_tuples(depth):
    builder = relax.BlockBuilder()
    value = relax.Var("x", relax.TensorType((2, 2), "float32"))
    with builder.function("main", [value]):
        for _ in range(depth):
            value = builder.emit(relax.Tuple([value, value]))
        builder.emit_func_output(value)
    return builder.get()


def test_tuples_of_tuples_are_refused_in_tvms_json(tmp_path):
    path = tmp_path / "doubled.json"
    path.write_text(tvm.ir.save_json(doubled_tuples(18)), encoding="utf-8")
    with pytest.raises(irviz.LoadError, match=r"its text would have more than 10,\d+,\d+ parts"):
        irviz.load(path)


def test_tuples_of_tuples_are_refused_in_tvmscript(tmp_path):
    lines = ["from tvm.script import ir as I, relax as R", "@I.ir_module", "class Module:"]
    lines += ["    @R.function", '    def main(x: R.Tensor((2, 2), "float32")):']
    lines += [
        "        t0 = (x, x)",
        *(f"        t{n} = (t{n - 1}, t{n - 1})" for n in range(1, 17)),
    ]
    path = tmp_path / "doubled.py"
    path.write_text("\n".join([*lines, "        return t16"]), encoding="utf-8")
    with pytest.raises(irviz.LoadError, match="contain each other so often"):
        irviz.load(path)


def test_a_few_tuples_of_tuples_are_opened(tmp_path):
    path = tmp_path / "tuples.json"
    path.write_text(tvm.ir.save_json(doubled_tuples(8)), encoding="utf-8")
    assert len(irviz.load(path).graph().nodes) == 9
