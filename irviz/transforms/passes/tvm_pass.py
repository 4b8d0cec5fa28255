"""A `tvm.transform.Pass` as a transform: given as an object, or called by its catalog name."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.transforms.passes.catalog import PassCall, named_pass
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.stage import Transform, TransformError


@dataclass(frozen=True)
class TVMPass:
    """A pass object; what it was made with cannot be read back from it."""

    wrapped: tvm.ir.transform.Pass
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The pass's own name."""
        return str(self.wrapped.info.name)

    @property
    def tried_as(self) -> PassCall | None:
        """The catalog's pass of this name: an object cannot travel to the worker."""
        return by_name(self.label)

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the pass."""
        return self.wrapped(mod)

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if that makes the same of the module."""
        call = self.tried_as
        if call is None:
            raise UnwritableError(
                f"{self.label} was given as an object, with a module as its result"
            )
        if not makes(call, before, after):
            raise UnwritableError(f"{self.label} was given as an object, with arguments of its own")
        call.write(script, before, after)


def by_name(name: str) -> PassCall | None:
    """Return the catalog's pass of this name with its defaults, None when there is none."""
    with contextlib.suppress(TransformError):
        return named_pass(name)
    return None


def makes(call: PassCall, before: ir.IRModule, after: ir.IRModule) -> bool:
    """Tell whether a pass makes one module of the other, here and now."""
    try:
        # some passes write into the very module; a copy shares its functions
        return bool(structural_equal(call(before.clone()), after))
    except Exception:  # with its defaults it fails, or its context is not there now
        return False


def as_transform(transform: object, arguments: Mapping[str, object] | None = None) -> Transform:
    """Return a Transform for one, for a `tvm.transform.Pass`, or for a name of the catalog.

    `arguments` belong to a name. Raises TransformError for anything else.
    """
    if isinstance(transform, str):
        return named_pass(transform, **(arguments or {}))
    if arguments:
        raise TransformError(
            f"{', '.join(arguments)} cannot be given with {transform!r}: arguments belong to a "
            "name of the catalog, as in session.apply('FuseOps', fuse_opt_level=2)"
        )
    if isinstance(transform, tvm.ir.transform.Pass):
        return TVMPass(transform)
    if isinstance(transform, Transform):
        return transform
    raise TransformError(
        f"{transform!r} is no transform: give a tvm.transform.Pass such as "
        "relax.transform.FoldConstant(), or a name of the catalog such as 'FoldConstant'"
    )
