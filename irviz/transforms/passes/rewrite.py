"""A rewrite of particular operators: a pattern of `tvm.relax.dpl`, and what replaces it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import tvm
from tvm import ir, relax
from tvm.relax import dpl

from irviz.ir.identity import relax_function
from irviz.transforms.passes.carried import Carried
from irviz.transforms.passes.source import define
from irviz.transforms.python import Script, UnwritableError, embedded
from irviz.transforms.stage import Transform, TransformError

Rewriter: TypeAlias = Callable[..., object]
Pattern: TypeAlias = dpl.DFPattern | dpl.PatternContext
Build: TypeAlias = Callable[[], tuple[Pattern, Rewriter]]

_PATTERNS = (dpl.DFPattern, dpl.PatternContext)


@dataclass(frozen=True, eq=False)
class Rewrite:
    """Rewrite what a pattern matches, in all Relax functions or in `function`.

    `pattern` is a `tvm.relax.dpl` pattern or PatternContext, with the `rewriter` that TVM's
    `rewrite_call` or `rewrite_bindings` takes. Or it is a function that returns the two: so it
    can be tried in the worker first, and be written as Python. Or it is an IRModule with the
    Relax functions `pattern` and `replacement`.
    """

    name: str
    pattern: Pattern | ir.IRModule | Build | Carried
    rewriter: Rewriter | None = None
    function: str = ""
    constant_names: Mapping[tvm.runtime.Tensor, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is no pattern, or lacks a rewriter or has one too many."""
        if not isinstance(self.pattern, _PATTERNS) and not isinstance(self.pattern, ir.IRModule):
            if not callable(self.pattern):
                raise TransformError(
                    f"{self.pattern!r} is no pattern: give one of tvm.relax.dpl with a rewriter, "
                    "or a function that returns (pattern, rewriter)"
                )
            if not isinstance(self.pattern, Carried):
                object.__setattr__(self, "pattern", Carried(self.pattern))
        if isinstance(self.pattern, _PATTERNS) != callable(self.rewriter):
            needs = isinstance(self.pattern, _PATTERNS)
            words = "needs a rewriter" if needs else "brings its own rewriter"
            raise TransformError(
                f"the pattern of {self.name!r} {words}, and {self.rewriter!r} was given: see "
                "tvm.relax.dpl.rewrite_call"
            )

    @property
    def label(self) -> str:
        """The words of the stage it makes."""
        return f"{self.name} in {self.function}" if self.function else self.name

    @property
    def tried_as(self) -> Transform | None:
        """Itself; None for a pattern object, which is another one when it arrives elsewhere."""
        return None if isinstance(self.pattern, _PATTERNS) else self

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the module rewritten; raise NoFunctionError when it lacks the function."""
        if self.function:
            relax_function(mod, self.function)
        rewrite = self._rewriting()
        functions = {
            gvar: rewrite(function) if self._is_meant(gvar, function) else function
            for gvar, function in mod.functions.items()
        }
        return ir.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)

    def write(self, script: Script, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the function that builds the pattern, and the loop that rewrites."""
        which = f" and gvar.name_hint == {self.function!r}" if self.function else ""
        if isinstance(self.pattern, ir.IRModule):
            needs: tuple[str, ...] = ("from tvm.relax import dpl", "import base64", "import zlib")
            pair = f"rewrite = dpl.PatternMatchingRewriter.from_module({embedded(self.pattern)})"
            call = "rewrite(function)"
        elif isinstance(self.pattern, Carried):
            needs = ("from tvm.relax import dpl",)
            pair = f"pattern, rewriter = {define(self.pattern.function, script)}()"
            call = f"dpl.{_verb(self._built()[0])}(pattern, rewriter, function)"
        else:
            raise UnwritableError(
                f"the pattern of {self.name} was given as an object, and not as a function that "
                "makes it"
            )
        script.add(
            pair,
            "functions = {}",
            "for gvar, function in mod.functions.items():",
            f"    if isinstance(function, relax.Function){which}:",
            f"        function = {call}",
            "    functions[gvar] = function",
            "mod = tvm.IRModule(functions, attrs=mod.attrs, global_infos=mod.global_infos)",
            needs=("from tvm import relax", *needs),
        )

    def _is_meant(self, gvar: ir.GlobalVar, function: ir.BaseFunc) -> bool:
        return isinstance(function, relax.Function) and self.function in ("", gvar.name_hint)

    def _rewriting(self) -> Callable[[relax.Function], relax.Function]:
        if isinstance(self.pattern, ir.IRModule):
            rewriting: Callable[..., relax.Function] = dpl.PatternMatchingRewriter.from_module(
                self.pattern
            )
            return rewriting
        pattern, rewriter = self._built()
        verb = getattr(dpl, _verb(pattern))
        return lambda function: verb(pattern, rewriter, function)

    def _built(self) -> tuple[Pattern, Rewriter | None]:
        """Return the pattern and the rewriter; raise TransformError for what are none."""
        if not isinstance(self.pattern, Carried):
            return self.pattern, self.rewriter
        built = self.pattern()
        match built:
            case (dpl.DFPattern() | dpl.PatternContext() as pattern, rewriter) if callable(
                rewriter
            ):
                return pattern, rewriter
        raise TransformError(
            f"{self.name} returned {built!r}, where (pattern, rewriter) was expected: see "
            "tvm.relax.dpl.rewrite_call"
        )


def _verb(pattern: object) -> str:
    return "rewrite_bindings" if isinstance(pattern, dpl.PatternContext) else "rewrite_call"
