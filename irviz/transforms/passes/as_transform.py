"""Make a transform from what the user passes: a name, a pass object, a function or a transform."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import FunctionType
from typing import NoReturn

import tvm
from tvm import ir
from tvm_ffi import structural_equal

from irviz.errors import TransformError
from irviz.runtime.build_module import PortableFunction
from irviz.transforms.passes import pass_facts
from irviz.transforms.passes.arguments import make_target
from irviz.transforms.passes.pass_call import PassCall, named_pass
from irviz.transforms.python_script import PythonScript, UnwritableError, define_function
from irviz.transforms.stage import Transform


@dataclass(frozen=True)
class TVMPass(Transform):
    """A pass object, whose arguments cannot be read back from it."""

    wrapped: tvm.ir.transform.Pass

    @property
    def label(self) -> str:
        """The pass's name."""
        return str(self.wrapped.info.name)

    @property
    def tried_as(self) -> Callable[[ir.IRModule], ir.IRModule] | None:
        """The catalog's passes of these names, because a pass object cannot be pickled."""
        if (named := default_pass_call(self.label)) is not None:
            return named
        calls = tuple(call for call in self._parts if call is not None)
        return partial(_in_order, calls) if len(calls) == len(self._parts) else None

    @property
    def evaluates_code(self) -> bool:
        """Whether a pass in it does, or is not in the catalog: TVM's pipelines have no names."""
        named = default_pass_call(self.label)
        if named is None and None in self._parts:
            return True
        return any(call.evaluates_code for call in (named, *self._parts) if call is not None)

    @property
    def _parts(self) -> tuple[PassCall | None, ...]:
        return tuple(map(default_pass_call, _leaf_names(self.wrapped)))

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the pass; if it needs a target and there is none, use the catalog's default."""
        names = (name.rpartition(".")[2] for name in _leaf_names(self.wrapped))
        wanted = next(filter(None, map(pass_facts.AROUND_OBJECTS.get, names)), None)
        if wanted is None or tvm.target.Target.current(allow_none=True):
            return self.wrapped(mod)
        words = f"{self.label} wants a target and none was given: it ran for {wanted}\n"
        with contextlib.suppress(OSError):  # where TVM writes, which is kept with the stage
            os.write(2, words.encode())
        with make_target(wanted):
            return self.wrapped(mod)

    def __reduce__(self) -> NoReturn:
        """Raise TypeError, because TVM pickles a pass without its function."""
        raise TypeError(f"the pass object {self.label} cannot be pickled")

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it gives the same module."""
        write_by_name(self.label, script, before, after, f"{self.label} was given as an object")

    def write_failing(self, script: PythonScript) -> None:
        """Write the catalog's passes of these names."""
        named = default_pass_call(self.label)
        calls = [named] if named is not None else self._parts
        for call in calls:
            if call is None:
                raise UnwritableError(f"{self.label} is an object, which a script cannot contain")
            call.write_failing(script)


def _in_order(calls: Sequence[PassCall], mod: ir.IRModule) -> ir.IRModule:
    for call in calls:
        mod = call(mod)
    return mod


def _leaf_names(wrapped: tvm.ir.transform.Pass) -> Iterator[str]:
    if not isinstance(wrapped, tvm.transform.Sequential):
        yield str(wrapped.info.name)
        return
    for one in wrapped.passes:
        yield from _leaf_names(one)


def default_pass_call(name: str) -> PassCall | None:
    """Return the catalog's pass of this name with default arguments, None if there is none."""
    with contextlib.suppress(TransformError):
        return named_pass(name)
    return None


def write_by_name(
    name: str, script: PythonScript, before: ir.IRModule, after: ir.IRModule, known: str
) -> None:
    """Write the catalog's pass of this name, if it turns one module into the other.

    Raises UnwritableError if there is no such pass, or it gives another module in the current
    PassContext; the message begins with how the pass is known.
    """
    call = default_pass_call(name)
    if call is None:
        raise UnwritableError(f"{known}, and no pass of the catalog is called that")
    try:
        # on a copy, because some passes modify the module that they are given
        is_same = structural_equal(call(before.clone()), after)
    except Exception:  # it needs other arguments, or a context that has been left
        is_same = False
    if not is_same:
        raise UnwritableError(f"{known}, with arguments of its own")
    call.write(script, before, after)


def as_transform(transform: object, arguments: Mapping[str, object] | None = None) -> Transform:
    """Return the transform for a name, pass, function or transform; raise TransformError."""
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
    if isinstance(transform, FunctionType) and not transform.__module__.startswith("tvm."):
        return FunctionPass(transform, transform.__name__)
    raise TransformError(
        f"{transform!r} is not a transform: give a tvm.transform.Pass such as "
        "relax.transform.FoldConstant(), a name of the catalog such as 'FoldConstant', or a "
        "function that takes a module and returns one"
    )


# --- A pass that is a plain Python function ------------------------------------------------------


@dataclass(frozen=True)
class FunctionPass(Transform):
    """A function from a module to a module, which the worker tries first."""

    function: Callable[[ir.IRModule], object]
    name: str

    @property
    def label(self) -> str:
        """The name of the function."""
        return self.name

    @property
    def tried_as(self) -> FunctionPass:
        """The same pass, with the function's code."""
        return replace(self, function=PortableFunction(self.function))

    @property
    def evaluates_code(self) -> bool:
        """Always true, because what the function does is unknown."""
        return True

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Call the function; raise TypeError unless it returns a module."""
        made = self.function(mod)
        if not isinstance(made, ir.IRModule):
            raise TypeError(
                f"{self.name} returned {type(made).__name__}, not an IRModule: a pass is a "
                "function that takes a module and returns one"
            )
        return made

    def write(self, script: PythonScript, *_: object) -> None:
        """Write the function, if a script can have all that it uses."""
        self.write_failing(script)

    def write_failing(self, script: PythonScript) -> None:
        """Write the function, if a script can have all that it uses."""
        script.add(f"mod = {define_function(self.function, script)}(mod)")
