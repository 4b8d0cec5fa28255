"""A pass of the catalog, called with plain arguments."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import dataclass, field

import tvm
from tvm import ir, tirx
from tvm_ffi import structural_equal

from irviz.transforms.passes import hints
from irviz.transforms.passes.argument import checked, shown
from irviz.transforms.passes.carried import Carried
from irviz.transforms.passes.entry import Entry, TargetUse
from irviz.transforms.passes.listing import find
from irviz.transforms.passes.own_passes import own_entry
from irviz.transforms.passes.parameter import ParameterKind
from irviz.transforms.passes.resolution import Scope, resolved, target_of
from irviz.transforms.passes.rewrite import Rewrite
from irviz.transforms.passes.source import define
from irviz.transforms.passes.written import target, written
from irviz.transforms.python import Script, UnwritableError
from irviz.transforms.stage import Transform, TransformError
from irviz.worker.noise import caught_noise

_OWN_TARGET = "target"  # the parameter that is the catalog's, where the pass has none
_HOST = "llvm"  # a PrimFunc is split for a target that has a host


@dataclass(frozen=True)
class PassCall:
    """A pass of the catalog by its full name, with arguments that say their names only.

    So it can be sent to another process, and be applied to another module: variables, functions
    and targets are looked up when it is applied. `own` is what a pass of the user's is made by.
    """

    name: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)
    own: Carried | Rewrite | None = None

    @property
    def entry(self) -> Entry:
        """The entry of the catalog that is called."""
        return _entry(self.name, self.own)

    @property
    def label(self) -> str:
        """The pass's name, with its arguments."""
        given = ", ".join(f"{name}={shown(value)}" for name, value in self.arguments.items())
        return f"{self.entry.label}({given})" if given else self.entry.label

    @property
    def tried_as(self) -> Transform | None:
        """Itself, because no pass is known to be harmless; None for one that measures.

        That takes as long as it is told to, and has other processes of its own.
        """
        measures = any(self.arguments.get(name) for name in hints.TRIALS)
        if self.entry.is_measured and measures:
            return None
        return self if not isinstance(self.own, Rewrite) or self.own.tried_as else None

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Make the pass and run it; raise TransformError for what the module does not have."""
        use = self.entry.needs_target
        if use is TargetUse.NONE:
            return self._made(mod)(mod)
        chosen = target_of(self._target)
        if use is TargetUse.AROUND:
            with chosen:
                return self._made(mod)(mod)
        chosen = chosen if chosen.host else tvm.target.Target(chosen, host=_HOST)
        return self._made(mod)(tirx.transform.BindTarget(chosen)(mod))

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        """Write the call."""
        if self.entry.is_measured:
            self._write_measured(script, before, after)
            return
        made = self._made(before)
        if isinstance(made, Transform):
            made.write(script, before, after)
            return
        with caught_noise():
            # a copy, as some passes write into the very module
            if not structural_equal(
                self(before.clone()), after
            ):  # one that numbers what it inserts
                raise UnwritableError(f"{self.label} makes something else each time")
        call = f"mod = {self._expression(script)}(mod)"
        needs = self.entry.imports
        match self.entry.needs_target:
            case TargetUse.NONE:
                lines = [call]
            case TargetUse.AROUND:
                lines = [f"with {target(self._target)}:", f"    {call}"]
            case TargetUse.ANNOTATED:
                host = "" if target_of(self._target).host else _HOST
                chosen = target(self._target, host)
                lines = [f"mod = tirx.transform.BindTarget({chosen})(mod)", call]
                needs = (*needs, "from tvm import tirx")
        script.add(*lines, needs=needs)

    def _write_measured(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:
        if not structural_equal(before, after):
            raise UnwritableError(f"{self.label} depends on what was measured")
        script.say("it measured, and changed nothing")

    @property
    def _target(self) -> str:
        default = self.entry.parameter(_OWN_TARGET).default
        return str(self.arguments.get(_OWN_TARGET) or default)

    @property
    def _function(self) -> str | None:
        """The function that the call is about, if it names one."""
        name = self.arguments.get(self.entry.function_parameter)
        return str(name) if name is not None else None

    @property
    def _given(self) -> dict[str, object]:
        """The arguments that the pass itself takes."""
        has_target = self.entry.needs_target is not TargetUse.NONE
        return {n: v for n, v in self.arguments.items() if not (has_target and n == _OWN_TARGET)}

    def _made(self, mod: ir.IRModule) -> tvm.ir.transform.Pass | Transform:
        entry, scope = self.entry, Scope(mod, self._function)
        arguments = {
            name: resolved(entry.parameter(name), value, scope)
            for name, value in self._given.items()
        }
        made = entry.make(**arguments)
        if not isinstance(made, tvm.ir.transform.Pass | Transform):
            raise TransformError(
                f"{self.label} returned {made!r}, where a tvm.transform.Pass was expected: let "
                "the function return one, such as relax.transform.FoldConstant()"
            )
        return made

    def _expression(self, script: Script) -> str:
        entry = self.entry
        arguments = {
            name: written(entry.parameter(name), value, script, self._function)
            for name, value in self._given.items()
        }
        if isinstance(self.own, Carried):
            given = ", ".join(f"{name}={text}" for name, text in arguments.items())
            return f"{define(self.own.function, script)}({given})"
        return entry.expression(arguments)

    def __getstate__(self) -> dict[str, object]:
        """Give tensors as arrays: those that are unpickled end the process that uses them."""
        arguments = {name: _sent(value) for name, value in self.arguments.items()}
        return {"name": self.name, "arguments": arguments, "own": self.own}

    def __setstate__(self, state: Mapping[str, object]) -> None:
        """Take arrays as tensors again."""
        sent: Mapping[str, object] = state["arguments"]  # type: ignore[assignment]
        arguments = {key: _arrived(value) for key, value in sent.items()}
        name, own = str(state["name"]), state["own"]
        assert own is None or isinstance(own, Carried | Rewrite), "as it was given"
        vars(self).update(vars(_called(_entry(name, own), own, arguments)))


def named_pass(name: str, /, **arguments: object) -> PassCall:
    """Return the call of the pass of this name.

    Raises TransformError when there is none, or it does not take these arguments.
    """
    entry = find(name)
    own = entry.own
    if own is None or isinstance(own, Carried | Rewrite):
        return _called(entry, own, arguments)
    return _called(entry, Carried(own), arguments)


def _called(
    entry: Entry, own: Carried | Rewrite | None, arguments: Mapping[str, object]
) -> PassCall:
    """Return the call of an entry, its arguments checked."""
    plain = {
        name: checked(entry.parameter(name), value, entry.label)
        for name, value in arguments.items()
    }
    for parameter in entry.parameters:
        if parameter.is_required and parameter.name not in plain:
            raise TransformError(
                entry.code_only
                or f"{entry.label} needs {parameter.name}, {parameter.kind.value}: give it, as in "
                f"session.apply({entry.full_name!r}, {parameter.name}=…)"
            )
    tensors = {
        tensor: str(key)
        for name, value in plain.items()
        if entry.parameter(name).kind is ParameterKind.PARAMS and isinstance(value, Mapping)
        for key, tensor in value.items()
    }
    return PassCall(entry.full_name, plain, tensors, own)


def _entry(full_name: str, own: Carried | Rewrite | None) -> Entry:
    if own is None:
        return find(full_name)
    namespace, _, name = full_name.partition(".")
    return own_entry(name, own, namespace)


def _sent(value: object) -> object:
    if isinstance(value, tvm.runtime.Tensor):
        return value.numpy()
    if isinstance(value, types.FunctionType):
        return Carried(value)
    if isinstance(value, dict):
        return {key: _sent(one) for key, one in value.items()}
    return value


def _arrived(value: object) -> object:
    if isinstance(value, dict):
        return {key: _arrived(one) for key, one in value.items()}
    return value.function if isinstance(value, Carried) else value
