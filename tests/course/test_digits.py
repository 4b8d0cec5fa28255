"""The shipped digits and the shipped MLP fit the lecture's shapes and each other."""

import subprocess
import sys

import numpy as np
import pytest

from irviz.course.digits import class_names, digits, mlp_params


def test_images_are_rows_of_784_brightnesses():
    """Each image is one float32 row of the MLP's input, from 0 to 1, with its own label."""
    shipped = digits()
    assert shipped.images.shape == (len(shipped.labels), 784)
    assert shipped.images.dtype == np.float32
    assert (shipped.images.min(), shipped.images.max()) == (0, 1)
    assert shipped.labels.dtype == np.int64
    assert len(shipped.labels) >= 100


def test_every_class_has_a_name_and_images():
    """All ten digits are among the images, about equally often."""
    assert class_names == ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
    counts = np.bincount(digits().labels, minlength=10)
    assert counts.shape == (10,)
    assert counts.min() >= 0.8 * counts.max()


def test_no_image_is_shipped_twice():
    """Every image is another drawing, not a copy that would flatter the accuracy."""
    images = digits().images
    assert len(np.unique(images, axis=0)) == len(images)


def test_parameters_have_the_lecture_names_and_shapes():
    """The weights go by the names that BindParams looks for in ``main``."""
    params = mlp_params()
    assert {name: array.shape for name, array in params.items()} == {
        "w0": (128, 784),
        "b0": (128,),
        "w1": (10, 128),
        "b1": (10,),
    }
    assert {array.dtype for array in params.values()} == {np.dtype("float32")}
    assert all(array.flags.c_contiguous for array in params.values())


def test_numpy_mlp_reads_held_out_digits():
    """At least 97 of 100 digits that were never trained on are read right."""
    shipped, params = digits(), mlp_params()
    hidden = np.maximum(shipped.images @ params["w0"].T + params["b0"], 0)
    scores = hidden @ params["w1"].T + params["b1"]
    assert (scores.argmax(axis=1) == shipped.labels).mean() >= 0.97


def test_a_caller_may_write_into_what_it_got():
    """One caller's changes are not another's data."""
    digits().images[:] = 0
    mlp_params()["w0"][:] = 0
    assert digits().images.any()
    assert mlp_params()["w0"].any()


@pytest.mark.worker
def test_reading_needs_neither_tvm_nor_scikit_learn():
    """The data is there for anyone with NumPy."""
    script = (
        "import sys, importlib.util;"
        "spec = importlib.util.spec_from_file_location('digits', sys.argv[1]);"
        "module = importlib.util.module_from_spec(spec);"
        "sys.modules['digits'] = module;"
        "spec.loader.exec_module(module);"
        "assert not {'tvm', 'sklearn', 'scipy'} & set(sys.modules)"
    )
    path = sys.modules[digits.__module__].__file__
    subprocess.run([sys.executable, "-c", script, path], check=True)
