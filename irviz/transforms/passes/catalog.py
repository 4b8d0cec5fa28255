"""The catalog of TVM's passes and pipelines and the user's own, with search by name and words."""

from __future__ import annotations

import difflib
import enum
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar, overload

import tvm
from tvm import ir, relax, s_tir, tirx

from irviz.errors import TransformError
from irviz.runtime.module_serialization import PortableFunction
from irviz.transforms.bind_params import BindParams
from irviz.transforms.passes import pass_metadata
from irviz.transforms.passes.parameters import (
    ParameterKind,
    PassParameter,
    first_sentence,
    read_parameters,
)
from irviz.transforms.passes.pattern_rewrite import Build, Pattern, Rewrite, Rewriter
from irviz.transforms.plugins import PASSES, load_entry_points

_OPERATORS, _PIPELINES = "operator rewrites", "pipelines"

GROUPS = ("relax", _OPERATORS, "tirx", "s_tir", _PIPELINES, "yours")
"""The groups of entries, in display order; operator rewrites are passes of Relax."""

_WHERE = PassParameter(
    "function", ParameterKind.FUNCTION, summary="The function to rewrite; all functions by default."
)
_PASSES = {"relax": relax.transform, "tirx": tirx.transform, "s_tir": s_tir.transform}


class TargetUse(enum.Enum):
    """How a pass gets a target that is not one of its own parameters."""

    NONE = "it needs none"
    AROUND = "it is applied under the target"
    ANNOTATED = "PrimFuncs without a target are annotated with it first"


@dataclass(frozen=True)
class CatalogEntry:
    """A pass of the catalog.

    Attributes:
        make: Creates the pass, or a transform of irviz in its place.
        python: The expression that creates the pass, up to its arguments.
        is_measured: Whether it takes measurements, so that each run gives another module.
        evaluates_code: Whether it runs code of the module, or of a file that an argument names.
        own: The user's function or rewrite, if it is not a pass of TVM.
    """

    name: str
    namespace: str
    group: str
    summary: str
    parameters: tuple[PassParameter, ...]
    make: Callable[..., object]
    python: str
    needs_target: TargetUse = TargetUse.NONE
    is_measured: bool = False
    evaluates_code: bool = False
    own: PortableFunction | Rewrite | None = None

    @property
    def full_name(self) -> str:
        """The unique name, such as "tirx.StmtSimplify"."""
        return f"{self.namespace}.{self.name}"

    @property
    def label(self) -> str:
        """The name in stage labels, without the namespace for Relax's and the user's passes."""
        return self.name if self.namespace in ("relax", "yours") else self.full_name

    @property
    def code_only(self) -> str:
        """How to apply it from code, "" if a form can provide all its arguments."""
        required = [one for one in self.parameters if one.is_required]
        names = " and ".join(one.name for one in required if one.kind is ParameterKind.CODE)
        if not names:
            return ""
        return (
            f"{self.name} takes {names}, which a form cannot give. From code: "
            f"session.apply({self.python}{', '.join(one.name for one in required)}))"
        )

    def parameter(self, name: str) -> PassParameter:
        """Return a parameter by name; raise TransformError, listing the known names."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        there = ", ".join(repr(parameter.name) for parameter in self.parameters)
        advice = f"its parameters are {there}: give one of these" if there else "it takes none"
        raise TransformError(f"{self.label} has no parameter {name!r}; {advice}")


def catalog() -> tuple[CatalogEntry, ...]:
    """Return all entries registered so far, sorted by group and name."""
    load_entry_points(PASSES)
    own = (user_entry(name, each) for name, each in PASSES_BY_NAME.items())
    unsorted = [*pass_entries(), *_pipeline_entries(), *own]
    return tuple(sorted(unsorted, key=lambda entry: (GROUPS.index(entry.group), entry.name)))


def find(name: str) -> CatalogEntry:
    """Return the entry of this name, such as "StmtSimplify" or "tirx.StmtSimplify".

    If several entries share a short name, it stands for that of Relax. Raises TransformError with
    the nearest names if there is no such entry or several.
    """
    entries = catalog()
    found = [entry for entry in entries if name in (entry.name, entry.full_name)]
    in_relax = [entry for entry in found if entry.namespace == "relax"]
    if len(found) == 1 or in_relax:
        return (in_relax or found)[0]
    if found:
        names = " or ".join(repr(entry.full_name) for entry in found)
        raise TransformError(f"{len(found)} passes are called {name!r}: say {names}")
    known = {entry.name.lower(): entry.full_name for entry in entries}
    near = difflib.get_close_matches(name.lower(), known, 3, 0.75)
    names = ", ".join(repr(known[one]) for one in near)
    advice = f"nearest are {names}" if near else "no name is near that"
    raise TransformError(
        f"the catalog has no pass {name!r}; {advice}: give a name from "
        "irviz.transforms.passes.catalog.catalog(), or a tvm.transform.Pass"
    )


def search(words: str) -> tuple[CatalogEntry, ...]:
    """Return the entries whose names or summaries contain all the words, best matches first.

    Names that begin with the words rank first, then names that contain them, then summaries.
    Without words all entries are returned.
    """
    wanted = words.lower().split()
    ranked = [(rank, entry) for entry in catalog() if (rank := _rank(entry, wanted)) is not None]
    return tuple(entry for _, entry in sorted(ranked, key=lambda pair: pair[0]))


def _rank(entry: CatalogEntry, wanted: list[str]) -> tuple[int, int] | None:
    """Return the sort key of an entry, None if it lacks one of the words."""
    name, full_name = entry.name.lower(), entry.full_name.lower()
    if not wanted:
        return 0, 0
    if not all(word in full_name or word in entry.summary.lower() for word in wanted):
        return None
    together = "".join(wanted)
    matches = (
        together in (name, full_name),
        name.startswith(together),
        all(word in name for word in wanted),
        all(word in full_name for word in wanted),
    )
    rank = matches.index(True) if True in matches else len(matches)
    return rank, (0, *[len(name)] * 3, -sum(word in name for word in wanted))[rank]


def user_entry(
    name: str, own: PortableFunction | Rewrite, namespace: str = "yours", group: str = "yours"
) -> CatalogEntry:
    """Return the entry of a function that creates a pass, or of a rewrite."""
    make: Callable[..., object]
    parameters: tuple[PassParameter, ...]
    if isinstance(own, Rewrite):
        make, parameters, summary = own.within, (_WHERE,), "Rewrite what a pattern matches."
        if isinstance(own.pattern, PortableFunction):
            summary = first_sentence(own.pattern.function)
    else:
        make = own.function
        parameters, summary = read_parameters(make), first_sentence(make)
    python = f"{getattr(make, '__name__', name)}("
    return CatalogEntry(name, namespace, group, summary, parameters, make, python, own=own)


@functools.cache
def pass_entries() -> tuple[CatalogEntry, ...]:
    """Return the passes of `relax.transform`, `tirx.transform` and `s_tir.transform`."""
    return tuple(
        _pass_entry(namespace, name, make)
        for namespace, module in _PASSES.items()
        for name, make in vars(module).items()
        if name not in pass_metadata.NO_ENTRY and _makes_pass(name, make)
    )


def _makes_pass(name: str, member: object) -> bool:
    """Tell whether a member creates a pass; there are also base classes, decorators and enums."""
    if inspect.isclass(member) and issubclass(member, tvm.ir.transform.Pass):
        return list(inspect.signature(member).parameters) != ["pass_info"]
    return inspect.isfunction(member) and name[0].isupper()


def _pass_entry(namespace: str, name: str, make: Callable[..., object]) -> CatalogEntry:
    is_operators = namespace == "relax" and name in pass_metadata.FOR_OPERATORS
    group, python = _OPERATORS if is_operators else namespace, f"{namespace}.transform.{name}("
    entry = _entry(name, namespace, group, make, python)
    if make is relax.transform.BindParams:
        return replace(entry, make=_bind)
    return _with_target(entry)


def _with_target(entry: CatalogEntry) -> CatalogEntry:
    """Give an entry that needs a target the parameter for it."""
    for use, names in (
        (TargetUse.AROUND, pass_metadata.AROUND),
        (TargetUse.ANNOTATED, pass_metadata.ANNOTATED),
    ):
        if entry.name in names:
            summary, default = f"{use.value}.", names[entry.name]
            target = PassParameter("target", ParameterKind.TARGET, default, summary=summary)
            return replace(entry, needs_target=use, parameters=(*entry.parameters, target))
    return entry


def _bind(func_name: str, params: dict[str, tvm.runtime.Tensor]) -> BindParams:
    """Return irviz's own transform, which first checks shapes and dtypes, unlike TVM's."""
    return BindParams(params, func_name)


def _pipeline_entries() -> Iterator[CatalogEntry]:
    """Yield the pipelines registered with `relax` so far, then the default one of a target."""
    default = {"default_for_target": relax.get_default_pipeline}
    for name, make in (*relax.pipeline.PIPELINE_MAP.items(), *default.items()):
        if not str(make.__module__).startswith("tvm."):
            yield user_entry(name, PortableFunction(make), "pipeline", _PIPELINES)
            continue
        is_default = make is relax.get_default_pipeline
        python = "relax.get_default_pipeline(" if is_default else f"relax.get_pipeline({name!r}, "
        yield _with_target(_entry(name, "pipeline", _PIPELINES, make, python))


@functools.cache
def _entry(
    name: str, namespace: str, group: str, make: Callable[..., object], python: str
) -> CatalogEntry:
    return CatalogEntry(
        name,
        namespace,
        group,
        first_sentence(make),
        read_parameters(make, pass_metadata.PARAMETERS.get(name)),
        make,
        python,
        is_measured=name in pass_metadata.MEASURED,
        evaluates_code=name in pass_metadata.EVALUATES_CODE
        or (group == _PIPELINES and name not in pass_metadata.ONLY_LOWERING),
    )


# --- The user's own passes and rewrites, which the catalog lists beside TVM's --------------------


Make = TypeVar("Make", bound=Callable[..., object])

PASSES_BY_NAME: dict[str, PortableFunction | Rewrite] = {}
"""The passes and rewrites registered so far; `catalog` first loads those of other packages."""


def register_pass(name: str) -> Callable[[Make], Make]:
    """Add the decorated function, which returns a `tvm.transform.Pass`, to the catalog.

    The catalog takes the pass's parameters from the signature and its summary from the docstring.
    Registering a name again replaces the pass. Raises ValueError for an empty name.
    """
    _check_name(name)

    def decorate(make: Make) -> Make:
        PASSES_BY_NAME[name] = PortableFunction(make)
        return make

    return decorate


@overload
def register_rewrite(name: str) -> Callable[[Build], Build]: ...


@overload
def register_rewrite(
    name: str, pattern: Pattern | ir.IRModule | Build, rewriter: Rewriter | None = None
) -> Rewrite: ...


def register_rewrite(
    name: str,
    pattern: Pattern | ir.IRModule | Build | None = None,
    rewriter: Rewriter | None = None,
) -> Rewrite | Callable[[Build], Build]:
    """Add a rewrite of particular operators to the catalog, and return it; see `Rewrite`.

    Without a pattern, this decorates a function that returns a pattern and a rewriter. Raises
    ValueError for an empty name, TransformError if `pattern` is not a pattern.
    """
    _check_name(name)
    if pattern is None:

        def decorate(build: Build) -> Build:
            register_rewrite(name, build)
            return build

        return decorate
    rewrite = PASSES_BY_NAME[name] = Rewrite(name, pattern, rewriter)
    return rewrite


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a pass needs a name, not {name!r}: give one that is not empty")
