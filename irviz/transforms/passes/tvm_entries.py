"""The entries of TVM's own passes and pipelines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator

import tvm
from tvm import relax, s_tir, tirx

from irviz.runtime.local.pickle_by_value import PortableFunction
from irviz.transforms.bind_params import BindParams
from irviz.transforms.passes import hints
from irviz.transforms.passes.catalog_entry import CatalogEntry, TargetUse
from irviz.transforms.passes.docstring import first_sentence
from irviz.transforms.passes.parameters import ParameterKind, PassParameter, read_parameters
from irviz.transforms.passes.registered_passes import user_entry

OPERATORS = "operator rewrites"
"""The group of passes that rewrite particular operators."""

PIPELINE, PIPELINES = "pipeline", "pipelines"
"""The namespace and the group of pipelines."""

_PASSES = {"relax": relax.transform, "tirx": tirx.transform, "s_tir": s_tir.transform}


@functools.cache
def pass_entries() -> tuple[CatalogEntry, ...]:
    """Return the passes of `relax.transform`, `tirx.transform` and `s_tir.transform`."""
    return tuple(
        _pass_entry(namespace, name, getattr(module, name))
        for namespace, module in _PASSES.items()
        for name in sorted(vars(module))
        if name not in hints.NO_ENTRY and _makes_pass(name, getattr(module, name))
    )


def pipeline_entries() -> Iterator[CatalogEntry]:
    """Yield the pipelines registered with `relax` so far, then the default one of a target."""
    for name, make in relax.pipeline.PIPELINE_MAP.items():
        yield _pipeline_entry(name, make, f"relax.get_pipeline({name!r}, ")
    default = relax.get_default_pipeline
    yield _pipeline_entry("default_for_target", default, "relax.get_default_pipeline(")


def _makes_pass(name: str, member: object) -> bool:
    """Tell whether a member of one of TVM's pass modules creates a pass.

    These modules also have base classes, decorators, configurations and enums.
    """
    if name.startswith("_") or not name[0].isupper():
        return False
    if inspect.isclass(member):
        is_base = list(inspect.signature(member).parameters) == ["pass_info"]
        return issubclass(member, tvm.ir.transform.Pass) and not is_base
    return inspect.isfunction(member)


def _pass_entry(namespace: str, name: str, make: Callable[..., object]) -> CatalogEntry:
    parameters = read_parameters(make, hints.PARAMETERS.get(name))
    needs_target = TargetUse.NONE
    for use, names in ((TargetUse.AROUND, hints.AROUND), (TargetUse.ANNOTATED, hints.ANNOTATED)):
        if name in names:
            needs_target = use
            parameters = (*parameters, _target(use, names[name]))
    is_operators = namespace == "relax" and name in hints.FOR_OPERATORS
    return CatalogEntry(
        name,
        namespace,
        OPERATORS if is_operators else namespace,
        first_sentence(make),
        parameters,
        # that of irviz first checks the shapes and dtypes, which TVM does not
        _bind if make is relax.transform.BindParams else make,
        f"{namespace}.transform.{name}(",
        needs_target,
        name in hints.MEASURED,
    )


def _target(use: TargetUse, default: str) -> PassParameter:
    return PassParameter("target", ParameterKind.TARGET, default, summary=f"{use.value}.")


def _bind(func_name: str, params: dict[str, tvm.runtime.Tensor]) -> BindParams:
    return BindParams(params, func_name)


@functools.cache
def _pipeline_entry(name: str, make: Callable[..., object], python: str) -> CatalogEntry:
    if not str(make.__module__).startswith("tvm."):
        return user_entry(name, PortableFunction(make), PIPELINE, PIPELINES)
    return CatalogEntry(
        name,
        PIPELINE,
        PIPELINES,
        first_sentence(make),
        read_parameters(make, hints.PARAMETERS.get(name)),
        make,
        python,
        is_measured=name in hints.MEASURED,
    )
