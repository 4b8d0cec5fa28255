"""A stage: a module, and how it came to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import tvm
from tvm import ir

from irviz.ir.identity import NoFunctionError


class TransformError(ValueError):
    """A transform asked for with arguments that cannot be right; nothing was applied."""


@runtime_checkable
class Transform(Protocol):
    """Anything that makes a module from a module and can say its name."""

    @property
    def label(self) -> str:
        """The words of the stage it makes."""

    @property
    def constant_names(self) -> Mapping[tvm.runtime.Tensor, str]:
        """The names of the tensors it puts into the module."""

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the new module; the old one is untouched."""


@dataclass(frozen=True)
class TVMPass:
    """A `tvm.transform.Pass` as a Transform."""

    wrapped: tvm.ir.transform.Pass
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The pass's own name."""
        return str(self.wrapped.info.name)

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the pass."""
        return self.wrapped(mod)


@dataclass(frozen=True, eq=False)
class Stage:
    """A module and how it came to be; `error` says why there is no new module.

    `id` counts from "0". A stage with an error keeps the module of its parent.
    """

    id: str
    module: ir.IRModule
    label: str = "given"
    parent: str | None = None
    transform: Transform | None = None
    error: str = ""
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)


def as_transform(transform: object) -> Transform:
    """Return a Transform for a Transform or a `tvm.transform.Pass`; raise TransformError else."""
    if isinstance(transform, tvm.ir.transform.Pass):
        return TVMPass(transform)
    if isinstance(transform, Transform):
        return transform
    raise TransformError(
        f"{transform!r} is no transform: give a tvm.transform.Pass such as "
        "relax.transform.FoldConstant()"
    )


def apply(stage: Stage, transform: Transform, new_id: str) -> Stage:
    """Return the stage that the transform makes of this one.

    A pass that fails makes a stage that carries its error. Raises TransformError when the
    transform refuses its arguments, before anything is applied.
    """
    try:
        module, error = transform(stage.module), ""
    except (TransformError, NoFunctionError):
        raise
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        module, error = stage.module, f"{type(failure).__name__}: {failure}".strip()
    return Stage(
        id=new_id,
        module=module,
        label=transform.label,
        parent=stage.id,
        transform=transform,
        error=error,
        constant_names={**stage.constant_names, **transform.constant_names},
    )
