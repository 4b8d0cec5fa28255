"""Passes as transforms: calls of catalog entries, pass objects, and plain functions."""

from __future__ import annotations

import contextlib
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import FunctionType
from typing import Any, NoReturn

import tvm
from tvm import ir, tirx
from tvm_ffi import structural_equal

from irviz.errors import TransformError
from irviz.loaders.file_limits import brief
from irviz.runtime.module_serialization import PortableFunction
from irviz.transforms.export_python import PythonScript, UnwritableError, define_function
from irviz.transforms.passes import parameters, pass_metadata
from irviz.transforms.passes.catalog import CatalogEntry, TargetUse, find, user_entry
from irviz.transforms.passes.parameters import ParameterKind
from irviz.transforms.passes.pattern_rewrite import Rewrite
from irviz.transforms.stage import SavedAs, Transform
from irviz.worker.captured_output import captured_stderr

_TARGET = "target"  # the parameter that the catalog adds to passes that need a target
_HOST = "llvm"  # splitting a PrimFunc needs a target with a host


@dataclass(frozen=True)
class PassCall(Transform):
    """A catalog entry by its full name, with plain arguments.

    Variables, functions and targets are given by name and looked up when the pass is applied, so a
    call can be pickled and applied to other modules. `own` is the user's function or rewrite if the
    entry is not TVM's.
    """

    saved_as = SavedAs("pass", {"name": str, "arguments": dict})

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    own: PortableFunction | Rewrite | None = None

    @property
    def entry(self) -> CatalogEntry:
        """The catalog entry."""
        return _entry(self.name, self.own)

    @property
    def label(self) -> str:
        """The pass's name, with its arguments."""
        given = ", ".join(
            f"{name}={parameters.argument_label(value)}" for name, value in self.arguments.items()
        )
        return f"{self.entry.label}({given})" if given else self.entry.label

    @property
    def constant_names(self) -> Mapping[tvm.runtime.Tensor, str]:
        """The names of the tensors in its arguments."""
        params = {one.name for one in self.entry.parameters if one.kind is ParameterKind.PARAMS}
        return {
            tensor: str(key)
            for name, value in self.arguments.items()
            if name in params and isinstance(value, Mapping)
            for key, tensor in value.items()
        }

    @property
    def tried_as(self) -> PassCall | None:
        """The call itself, because any pass may crash; None for a pass that measures.

        Measuring takes as long as the user asked for, and runs in separate processes anyway.
        """
        measures = any(self.arguments.get(name) for name in pass_metadata.TRIALS)
        if self.entry.is_measured and measures:
            return None
        return self if not isinstance(self.own, Rewrite) or self.own.tried_as else None

    @property
    def evaluates_code(self) -> bool:
        """Whether the entry does."""
        return self.entry.evaluates_code

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Create the pass and run it; raise TransformError for names that the module lacks."""
        use, context = self.entry.needs_target, contextlib.nullcontext()
        here = tvm.target.Target.current(allow_none=True)
        if use is TargetUse.AROUND and (here is None or self.arguments.get(_TARGET)):
            context = parameters.make_target(self._target)
        elif use is TargetUse.ANNOTATED:
            chosen = parameters.make_target(self._target)
            chosen = chosen if chosen.host else tvm.target.Target(chosen, host=_HOST)
            mod = tirx.transform.BindTarget(chosen)(mod)
        with context:
            return self._create(mod)(mod)

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the call."""
        if self.entry.is_measured:
            if not structural_equal(before, after):
                raise UnwritableError(f"{self.label} depends on what was measured")
            script.comment("it measured, and changed nothing")
            return
        created = self._create(before)
        if isinstance(created, Transform):
            created.write(script, before, after)
            return
        with captured_stderr():
            # on a copy, because some passes modify the module that they are given; others
            # number what they insert, and give another module each time
            if not structural_equal(self(before.clone()), after):
                raise UnwritableError(f"{self.label} makes something else each time")
        self.write_failing(script)

    def write_failing(self, script: PythonScript) -> None:
        """Write the call, and run nothing."""
        call = f"mod = {self._expression(script)}(mod)"
        needs = () if self.own else (f"from tvm import {self.entry.python.partition('.')[0]}",)
        match self.entry.needs_target:
            case TargetUse.NONE:
                lines = [call]
            case TargetUse.AROUND:
                lines = [f"with {parameters.target_source(self._target)}:", f"    {call}"]
            case TargetUse.ANNOTATED:
                host = "" if parameters.make_target(self._target).host else _HOST
                chosen = parameters.target_source(self._target, host)
                lines = [f"mod = tirx.transform.BindTarget({chosen})(mod)", call]
                needs = (*needs, "from tvm import tirx")
        script.add(*lines, needs=needs)

    @property
    def _target(self) -> str:
        default = self.entry.parameter(_TARGET).default
        return str(self.arguments.get(_TARGET) or default)

    @property
    def _function(self) -> str | None:
        """The function that the call applies to, if it names one."""
        kinds = {one.kind: one.name for one in reversed(self.entry.parameters)}
        name = self.arguments.get(kinds.get(ParameterKind.FUNCTION, ""))
        return None if name is None else str(name)

    @property
    def _pass_arguments(self) -> dict[str, object]:
        """The arguments of the pass itself, without a target that the catalog added."""
        has_target = self.entry.needs_target is not TargetUse.NONE
        return {n: v for n, v in self.arguments.items() if not (has_target and n == _TARGET)}

    def _create(self, mod: ir.IRModule) -> tvm.ir.transform.Pass | Transform:
        entry, scope = self.entry, parameters.NameScope(mod, self._function)
        arguments = {
            name: parameters.resolve_argument(entry.parameter(name), value, scope)
            for name, value in self._pass_arguments.items()
        }
        created = entry.make(**arguments)
        if not isinstance(created, tvm.ir.transform.Pass | Transform):
            raise TransformError(
                f"{self.label} returned {created!r}, where a tvm.transform.Pass was expected: let "
                "the function return one, such as relax.transform.FoldConstant()"
            )
        return created

    def _expression(self, script: PythonScript) -> str:
        entry = self.entry
        arguments = {
            name: parameters.argument_source(entry.parameter(name), value, script, self._function)
            for name, value in self._pass_arguments.items()
        }
        if isinstance(self.own, PortableFunction):
            define_function(self.own.function, script)
        given = ", ".join(f"{name}={text}" for name, text in arguments.items())
        return f"{entry.python}{given}".removesuffix(", ") + ")"

    def saved_values(self) -> Mapping[str, object] | None:
        """Return name and arguments; None for a user's own pass, or one that names a path.

        What a session file says must be written nowhere else on the disk.
        """
        return None if self.arguments.keys() & pass_metadata.PATHS else super().saved_values()

    @classmethod
    def restored(cls, values: Mapping[str, Any]) -> PassCall:
        """Return the call; raise TransformError for arguments that only code may give."""
        arguments = {key: _picklable(one) for key, one in values["arguments"].items()}
        call = named_pass(values["name"], **arguments)
        if call.own is not None:
            raise TransformError(f"{call.name!r} is not a pass of TVM")
        if paths := call.arguments.keys() & pass_metadata.PATHS:
            raise TransformError(
                f"its {min(paths)} names a place on the disk, which no session's file may do"
            )
        given: Mapping[str, Any] = call.arguments
        for name, value in given.items():
            kind = call.entry.parameter(name).kind
            if kind is ParameterKind.PATTERNS and not all(isinstance(one, str) for one in value):
                raise TransformError(f"its {name} is {brief(value)}, and takes {kind.value}")
        return call

    def __reduce__(self) -> tuple[object, ...]:
        """Replace tensors by arrays, because using an unpickled tensor crashes the process."""
        arguments = {name: _picklable(value) for name, value in self.arguments.items()}
        return _unpickled_call, (self.name, self.own, arguments)


def named_pass(name: str, /, **arguments: object) -> PassCall:
    """Return a call of a catalog entry; raise TransformError for an invalid name or argument."""
    return _checked_call(find(name), arguments)


def _checked_call(entry: CatalogEntry, arguments: Mapping[str, object]) -> PassCall:
    plain = {
        name: parameters.plain_argument(entry.parameter(name), value, entry.label)
        for name, value in arguments.items()
    }
    for parameter in entry.parameters:
        if parameter.is_required and parameter.name not in plain:
            raise TransformError(
                entry.code_only
                or f"{entry.label} needs {parameter.name}, {parameter.kind.value}: give it, as in "
                f"session.apply({entry.full_name!r}, {parameter.name}=…)"
            )
    return PassCall(entry.full_name, plain, entry.own)


def _entry(full_name: str, own: PortableFunction | Rewrite | None) -> CatalogEntry:
    if own is None:
        return find(full_name)
    namespace, _, name = full_name.partition(".")
    return user_entry(name, own, namespace)


def _unpickled_call(
    name: str, own: PortableFunction | Rewrite | None, pickled: Mapping[str, object]
) -> PassCall:
    return _checked_call(
        _entry(name, own), {key: _unpickled(value) for key, value in pickled.items()}
    )


def _picklable(value: object) -> object:
    if isinstance(value, tvm.runtime.Tensor):
        return value.numpy()
    if isinstance(value, types.FunctionType):
        return PortableFunction(value)
    if isinstance(value, dict):
        return {key: _picklable(one) for key, one in value.items()}
    return value


def _unpickled(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unpickled(one) for key, one in value.items()}
    return value.function if isinstance(value, PortableFunction) else value


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
        calls = tuple(call for call in self._calls if call is not None)
        return partial(_in_order, calls) if len(calls) == len(self._calls) else None

    @property
    def evaluates_code(self) -> bool:
        """Whether a pass in it does, or is not in the catalog: TVM's pipelines have no names."""
        every = (*self._calls, *self._parts)
        return None in self._calls or any(one.evaluates_code for one in every if one is not None)

    @property
    def _calls(self) -> Sequence[PassCall | None]:
        """The catalog's pass of this name if it has the same passes in it, or else those."""
        named = default_pass_call(self.label)
        if named is not None and isinstance(self.wrapped, tvm.transform.Sequential):
            with contextlib.suppress(Exception):  # it needs arguments
                if _pass_names(named._create(ir.IRModule())) == _pass_names(self.wrapped):
                    return [named]
            return self._parts
        return self._parts if named is None else [named]

    @property
    def _parts(self) -> Sequence[PassCall | None]:
        return list(map(default_pass_call, _pass_names(self.wrapped)))

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Run the pass; if it needs a target and there is none, use the catalog's default."""
        names = (name.rpartition(".")[2] for name in _pass_names(self.wrapped))
        wanted = next(filter(None, map(pass_metadata.AROUND_OBJECTS.get, names)), None)
        if wanted is None or tvm.target.Target.current(allow_none=True):
            return self.wrapped(mod)
        words = f"{self.label} wants a target and none was given: it ran for {wanted}\n"
        with contextlib.suppress(OSError):  # where TVM writes, which is kept with the stage
            os.write(2, words.encode())
        with parameters.make_target(wanted):
            return self.wrapped(mod)

    def __reduce__(self) -> NoReturn:
        """Raise TypeError, because TVM pickles a pass without its function."""
        raise TypeError(f"the pass object {self.label} cannot be pickled")

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the catalog's pass of this name, if it gives the same module."""
        write_by_name(self.label, script, before, after, f"{self.label} was given as an object")

    def write_failing(self, script: PythonScript) -> None:
        """Write the catalog's passes of these names."""
        for call in self._calls:
            if call is None:
                raise UnwritableError(f"{self.label} is an object, which a script cannot contain")
            call.write_failing(script)


def _in_order(calls: Sequence[PassCall], mod: ir.IRModule) -> ir.IRModule:
    for call in calls:
        mod = call(mod)
    return mod


def leaf_passes(passes: object) -> Iterator[Any]:
    """Yield the passes of a pipeline or a list one by one, also of those inside it."""
    if isinstance(passes, tvm.transform.Sequential):
        passes = list(passes.passes)
    if isinstance(passes, Sequence) and not isinstance(passes, str):
        for one in passes:
            yield from leaf_passes(one)
    else:
        yield passes


def _pass_names(passes: object) -> list[str]:
    return [str(one.info.name) for one in leaf_passes(passes)]


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
