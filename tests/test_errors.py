"""Errors are an interface: one base, few kinds, and the built-in classes that people catch."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
from tvm import relax

import irviz
from irviz.course.mlp import MyModule, MyModuleHighLevel

KINDS = {
    irviz.LoadError: ValueError,
    irviz.SaveError: ValueError,
    irviz.NotFoundError: ValueError,
    irviz.StageError: ValueError,
    irviz.TransformError: ValueError,
    irviz.InputError: ValueError,
    irviz.RunError: RuntimeError,
    irviz.DrawError: ValueError,
    irviz.NumPyError: ValueError,
}

INTERNAL = {
    "AbandonedError",
    "UnknownModuleError",
    "EndedError",
    "FreshProcessEndedError",
    "SandboxError",
    "UnreadableAnswerError",
    "WorkerTraceback",
    "UnsharedError",
    "UnfitSizesError",
    "UnknownDomainError",
}
"""What modules and processes of irviz tell each other: the caller never sees it."""


def error_classes() -> set[type[BaseException]]:
    """Return the public exception classes that the modules of irviz define."""
    found = set()
    for module in pkgutil.walk_packages(irviz.__path__, "irviz."):
        if module.name in ("irviz.course.torch_mlp", "irviz.cli.page_server"):
            continue  # the one needs PyTorch, the other loads a server
        for name, value in vars(importlib.import_module(module.name)).items():
            is_error = inspect.isclass(value) and issubclass(value, BaseException)
            if is_error and value.__module__.startswith("irviz.") and not name.startswith("_"):
                found.add(value)
    return found


def test_all_errors_have_one_base_and_most_are_built_in_errors_too() -> None:
    found = error_classes()
    assert len(found) > 20
    assert {one.__name__ for one in found if not issubclass(one, irviz.IrvizError)} == INTERNAL
    for kind, built_in in KINDS.items():
        assert issubclass(kind, irviz.IrvizError)
        assert issubclass(kind, built_in)


@pytest.mark.worker
def test_each_kind_means_one_thing(tmp_path) -> None:
    session = irviz.Session(MyModule, isolate=False)
    causes = {
        irviz.LoadError: [lambda: irviz.load(3), lambda: irviz.load(tmp_path / "none.py")],
        irviz.SaveError: [lambda: session.draw().save("a.gif")],
        irviz.NotFoundError: [
            lambda: session.checkout("7"),
            lambda: session.select_function("other"),
            lambda: session.graph()["nowhere"],
            lambda: session.value("nowhere"),
            lambda: irviz.draw(MyModule, around="nowhere"),
        ],
        irviz.StageError: [session.undo, session.redo, lambda: session.drop("0")],
        irviz.TransformError: [
            lambda: session.apply("LegaliseOps"),
            lambda: session.swap("relu0", "env.nowhere"),
            session.bind,
        ],
        irviz.InputError: [
            lambda: session.run(np.zeros((1, 3), np.float32)),
            lambda: session.run({"y": "zeros"}),
            lambda: session.trace(case=3),
        ],
        irviz.RunError: [lambda: session.with_run_config(device="nowhere").run()],
        irviz.DrawError: [
            lambda: session.draw(theme="neon"),
            lambda: session.draw(direction="left"),
            lambda: session.draw_overlay("heat"),
            lambda: session.draw_value("x", "images"),
        ],
        irviz.NumPyError: [lambda: irviz.to_numpy(MyModuleHighLevel)],
    }
    assert causes.keys() == KINDS.keys()
    for kind, calls in causes.items():
        for call in calls:
            with pytest.raises(kind) as caught:
                call()
            others = [one for one in KINDS if one is not kind and isinstance(caught.value, one)]
            assert others == []
            assert not str(caught.value).startswith(("'\"", '"'))


def test_a_node_that_is_not_there_is_a_key_error_too() -> None:
    with pytest.raises(KeyError) as caught:
        irviz.graph(MyModule)["nowhere"]
    assert str(caught.value).startswith("'nowhere' is not a node of 'main'; its nodes are 'x'")


@pytest.mark.worker
def test_a_pass_that_fails_raises_nothing() -> None:
    session = irviz.Session(MyModule).apply(relax.transform.MergeCompositeFunctions())
    assert session.current.error.startswith("InternalError: ")


@pytest.mark.worker
def test_a_missing_dependency_is_named_in_one_sentence(tmp_path) -> None:
    code = "import sys; sys.modules[{!r}] = None; from irviz.cli.main import main; main({!r})"
    for missing, arguments, words in (
        ("tvm", ["draw", "m.json", "-o", "a.svg"], "import of tvm halted"),
        ("platformdirs", ["demo", "--no-browser"], "import of platformdirs halted"),
    ):
        script = code.format(missing, arguments).replace("main([", "sys.exit(main([") + ")"
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("irviz: ")
        assert words in done.stderr
        assert done.stderr.count("\n") == 1
