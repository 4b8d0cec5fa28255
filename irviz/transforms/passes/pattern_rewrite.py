"""A rewrite of particular operators: a pattern of `tvm.relax.dpl` and its replacement."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tvm import ir, relax
from tvm.relax import dpl

from irviz.errors import TransformError
from irviz.ir.module_functions import relax_function, relax_functions, with_functions
from irviz.runtime.module_serialization import PortableFunction
from irviz.transforms.export_python import PythonScript, UnwritableError, define_function
from irviz.transforms.stage import SavedAs, Transform

Rewriter: TypeAlias = Callable[..., object]
Pattern: TypeAlias = dpl.DFPattern | dpl.PatternContext
Build: TypeAlias = Callable[[], tuple[Pattern, Rewriter]]

_PATTERNS = (dpl.DFPattern, dpl.PatternContext)


@dataclass(frozen=True, eq=False)
class Rewrite(Transform):
    """Rewrites the matches of a pattern, in all Relax functions or in one.

    Attributes:
        name: The label of the rewrite.
        pattern: A `tvm.relax.dpl` pattern or PatternContext; or a function that returns pattern
            and rewriter, which can also be tried in the worker and written as Python; or an
            IRModule with the Relax functions `pattern` and `replacement`.
        rewriter: What TVM's `rewrite_call` or `rewrite_bindings` takes, for a pattern object.
        function: The only function to rewrite, "" for all.
    """

    saved_as = SavedAs("rewrite", {"name": str, "pattern": ir.IRModule, "function": str})

    name: str
    pattern: Pattern | ir.IRModule | Build | PortableFunction
    rewriter: Rewriter | None = None
    function: str = ""

    def __post_init__(self) -> None:
        """Check the pattern, and that a rewriter is given exactly if it is needed."""
        if not isinstance(self.pattern, (*_PATTERNS, ir.IRModule, PortableFunction)):
            if not callable(self.pattern):
                raise TransformError(
                    f"{self.pattern!r} is not a pattern: give one of tvm.relax.dpl with a "
                    "rewriter, or a function that returns (pattern, rewriter)"
                )
            object.__setattr__(self, "pattern", PortableFunction(self.pattern))
        needs = isinstance(self.pattern, _PATTERNS)
        if needs != callable(self.rewriter):
            words = "needs a rewriter" if needs else "brings its own rewriter"
            raise TransformError(
                f"the pattern of {self.name!r} {words}, and {self.rewriter!r} was given: see "
                "tvm.relax.dpl.rewrite_call"
            )

    def within(self, function: str | None = None) -> Rewrite:
        """Return the rewrite of one function, or of all."""
        return replace(self, function=function or "")

    @property
    def label(self) -> str:
        """The label of the stage it makes."""
        return f"{self.name} in {self.function}" if self.function else self.name

    @property
    def tried_as(self) -> Rewrite | None:
        """The rewrite itself; None for a pattern object, which cannot be sent to a worker."""
        return None if isinstance(self.pattern, _PATTERNS) else self

    def __call__(self, mod: ir.IRModule) -> ir.IRModule:
        """Return the rewritten module; raise NoFunctionError when it lacks the function."""
        chosen = relax_functions(mod)
        if self.function:
            chosen = {self.function: relax_function(mod, self.function)}
        rewrite = self._rewrite_function()
        return with_functions(mod, {name: rewrite(one) for name, one in chosen.items()})

    def write(self, script: PythonScript, before: ir.IRModule, after: ir.IRModule) -> None:  # noqa: ARG002
        """Write the function that builds the pattern, and the loop that rewrites."""
        which = f" and gvar.name_hint == {self.function!r}" if self.function else ""
        if isinstance(self.pattern, ir.IRModule):
            source = script.embedded(self.pattern)
            pair = f"rewrite = dpl.PatternMatchingRewriter.from_module({source})"
            call = "rewrite(function)"
        elif isinstance(self.pattern, PortableFunction):
            pair = f"pattern, rewriter = {define_function(self.pattern.function, script)}()"
            call = f"dpl.{_verb(self._build_pattern()[0])}(pattern, rewriter, function)"
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
            needs=("from tvm import relax", "from tvm.relax import dpl"),
        )

    def _rewrite_function(self) -> Callable[[relax.Function], relax.Function]:
        if isinstance(self.pattern, ir.IRModule):
            return dpl.PatternMatchingRewriter.from_module(self.pattern)  # type: ignore[no-any-return]
        pattern, rewriter = self._build_pattern()
        return functools.partial(getattr(dpl, _verb(pattern)), pattern, rewriter)

    def _build_pattern(self) -> tuple[Pattern, Rewriter | None]:
        """Return pattern and rewriter; raise TransformError if the function returns others."""
        if not isinstance(self.pattern, PortableFunction):
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
