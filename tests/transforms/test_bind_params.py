"""Bound parameters become constants; those that do not fit are refused before anything happens."""

import re

import numpy as np
import pytest
from tvm import relax
from tvm_ffi import structural_equal

from irviz.course.digits import digits, mlp_params
from irviz.course.mlp import MODULES, MyModule, MyModuleStatic
from irviz.errors import TransformError
from irviz.ir.function_graph import extract
from irviz.model.graph.graph import NodeKind
from irviz.runtime.run import CallInputs, run
from irviz.transforms.bind_params import bind_params

PARAMS = mlp_params()


def open_params(mod):
    return [param.name for param in mod["main"].params]


@pytest.mark.parametrize("name", MODULES)
def test_all_parameters_bound_leave_the_input_alone(name):
    bound = bind_params(PARAMS)(MODULES[name])
    assert open_params(bound) == ["x"]
    kinds = [node.kind for node in extract(bound).nodes]
    assert kinds.count(NodeKind.CONSTANT) == 4


def test_some_bound_leave_the_others_open():
    bound = bind_params({"w1": PARAMS["w1"]})(MyModuleStatic)
    assert open_params(bound) == ["x", "w0", "b0", "b1"]


@pytest.mark.worker
def test_a_bound_module_computes_the_same():
    images = digits().images[:5]
    before = run(MyModuleStatic, inputs=CallInputs(inputs=images, params=PARAMS))
    partly = bind_params({"w0": PARAMS["w0"], "b1": PARAMS["b1"]})(MyModuleStatic)
    after = run(partly, inputs=CallInputs(inputs=images, params=PARAMS))
    assert before.outputs[0].tobytes() == after.outputs[0].tobytes()


def test_sizes_become_known_with_what_is_bound():
    bound = bind_params({"w0": PARAMS["w0"]})(MyModule)
    assert extract(bound)["x"].type_label == "Tensor[(1, 784)]"
    assert extract(bound)["w1"].type_label == "Tensor[(k, 128)]"


def test_the_given_module_stays_as_it_was():
    text = MyModuleStatic.script(show_meta=True)
    bind_params(PARAMS)(MyModuleStatic)
    assert MyModuleStatic.script(show_meta=True) == text


def test_values_are_copied_as_they_are_bound():
    params = {name: array.copy() for name, array in PARAMS.items()}
    bind = bind_params(params)
    for array in params.values():
        array[:] = 0
    assert structural_equal(bind(MyModuleStatic), bind_params(PARAMS)(MyModuleStatic))


def test_an_array_may_lie_in_memory_as_it_likes():
    turned = np.asfortranarray(PARAMS["w0"])
    backwards = PARAMS["b0"][::-1][::-1]
    bound = bind_params({**PARAMS, "w0": turned, "b0": backwards})(MyModuleStatic)
    assert structural_equal(bound, bind_params(PARAMS)(MyModuleStatic))


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint8"])
def test_other_dtypes_bind_too(modules, dtype):
    name = {"bool": "flags", "float16": "half", "uint8": "small"}[dtype]
    array = np.ones(3 if dtype == "uint8" else 2, dtype)
    bound = bind_params({name: array})(modules.Dtypes)
    assert name not in open_params(bound)
    assert structural_equal(
        bound, relax.transform.BindParams("main", {name: array})(modules.Dtypes)
    )


def test_a_scalar_binds_too(modules):
    bound = bind_params({"scalar": np.float32(2)})(modules.Dtypes)
    assert [lit.text for lit in extract(bound)["d"].literals] == ["2.0", "2.0"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        (
            {"w7": PARAMS["w0"]},
            "'main' has no parameter 'w7'; its parameters are 'x', 'w0', 'b0', 'w1', 'b1'",
        ),
        ({}, "'main' has nothing to bind; its parameters are 'x', 'w0'"),
        ({"w0": PARAMS["w1"]}, "'w0' has shape (10, 128), the function wants (128, 784)"),
        ({"w0": PARAMS["w0"][0]}, "'w0' has shape (784,), the function wants (128, 784)"),
        (
            {"b0": PARAMS["b0"].astype("float64")},
            "'b0' has dtype float64, the function wants float32: give b0.astype('float32')",
        ),
        ({"b0": [1, 2]}, "'b0' has dtype int64, the function wants float32"),
        ({"b0": np.array([None])}, "'b0' cannot become a tensor: unknown dtype `object`; give"),
        ({"b0": np.array(["a"])}, "'b0' cannot become a tensor: "),
        ({"b0": [[1], [1, 2]]}, "'b0' cannot become a tensor: "),
        ({"b0": PARAMS["b0"].astype(">f4")}, "numpy.asarray(b0, dtype='float32')"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(params, words):
    with pytest.raises(TransformError, match=re.escape(words)):
        bind_params(params)(MyModuleStatic)


def test_arrays_that_do_not_fit_each_other_are_refused():
    with pytest.raises(TransformError, match=r"wants \(n,\), and the others make m = 784, n = 128"):
        bind_params({"w0": PARAMS["w0"], "b0": PARAMS["b1"]})(MyModule)


def test_a_function_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="no function 'other'; its Relax functions are 'main'"):
        bind_params(PARAMS, "other")(MyModuleStatic)


def test_the_stage_it_makes_names_what_is_bound():
    bind = bind_params({"w0": PARAMS["w0"], "b0": PARAMS["b0"]})
    assert bind.label == "BindParams w0, b0"
    many = bind_params({f"w{number}": PARAMS["w0"] for number in range(9)})
    assert many.label == "BindParams 9 parameters"
    assert sorted(bind.constant_names.values()) == ["b0", "w0"]
