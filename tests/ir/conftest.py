"""Fixtures for reading modules and comparing them with the oracle."""

from collections.abc import Callable
from types import ModuleType

import pytest
from tvm import IRModule, relax

from irviz.ir.function_graph import extract
from irviz.model.graph.graph import Graph
from irviz.transforms.kernels import library  # noqa: F401 - registers env.relu


@pytest.fixture
def read(constructs: ModuleType) -> Callable:
    """Return a function that reads a function of a construct, given by name, or of a module."""

    def read(source: str | IRModule, function: str = "main"):
        mod = constructs.construct(source) if isinstance(source, str) else source
        return constructs.DescribedGraph(extract(mod, function))

    return read


@pytest.fixture(scope="session")
def check(oracle: ModuleType) -> Callable[[IRModule], dict[str, Graph]]:
    """Return a function that reads all of a module as the other reading does, into graphs."""

    def check(mod: IRModule) -> dict[str, Graph]:
        graphs = {}
        for gvar, function in mod.functions.items():
            if isinstance(function, relax.Function):
                graphs[gvar.name_hint] = extract(mod, gvar.name_hint)
                oracle.check(mod, gvar.name_hint, graphs[gvar.name_hint])
        assert graphs
        return graphs

    return check
