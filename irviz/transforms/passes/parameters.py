"""The parameters of a pass, read from the signature of the function that creates it."""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tvm
from tvm import ir, relax

from irviz.transforms.passes.docstring import parameter_sentences


class ParameterKind(enum.Enum):
    """What a parameter takes, as plain values that a form can give."""

    BOOL = "true or false"
    INT = "a whole number"
    FLOAT = "a number"
    STR = "text"
    CHOICE = "one of a few values"
    LIST = "a list of text or of whole numbers"
    TARGET = "a target, such as 'llvm'"
    DEVICE = "a virtual device, such as 'llvm' or 'cuda:0'"
    FUNCTION = "the name of a Relax function"
    FUNCTIONS = "a list of names of functions"
    NAMES = "a list of names of a function's parameters"
    VARS = "parameters of the function, by name"
    PARAMS = "arrays by name"
    DIMS = "sizes by the name of a symbolic variable"
    LAYOUTS = "layouts by the name of an operator"
    PATTERNS = "the prefix of names of registered patterns, such as 'cublas'"
    CODE = "a value that only code can give"


@dataclass(frozen=True)
class PassParameter:
    """A parameter of a pass.

    Attributes:
        first: The initial value in a form, where there is no default.
        item: The type of a LIST's items, or the enum whose member names are the choices.
        also: Another kind that code may give instead.
    """

    name: str
    kind: ParameterKind
    default: object = None
    is_required: bool = False
    choices: tuple[object, ...] = ()
    summary: str = ""
    first: object = None
    item: type = str
    also: ParameterKind | None = None

    @property
    def begins_with(self) -> object:
        """The initial value in a form."""
        return self.first if self.is_required or self.default is None else self.default


@dataclass(frozen=True)
class ParameterHint:
    """What the signature does not tell about a parameter."""

    kind: ParameterKind | None = None
    choices: tuple[object, ...] = ()
    first: object = None


_BY_NAME: Mapping[str, ParameterHint] = {
    "func_name": ParameterHint(ParameterKind.FUNCTION),
    "entry_functions": ParameterHint(ParameterKind.FUNCTIONS),
    "work_dir": ParameterHint(first="tuning_logs"),
    "target": ParameterHint(first="llvm"),
}
"""Hints for parameter names that mean the same in every pass."""

_NO_ANNOTATION = inspect.Parameter.empty


def read_parameters(
    make: Callable[..., object], hints: Mapping[str, ParameterHint] | None = None
) -> tuple[PassParameter, ...]:
    """Return the parameters of a function or class that creates a pass, in order."""
    sentences = parameter_sentences(make) or parameter_sentences(make.__init__)
    found = []
    for given in _signature(make).parameters.values():
        if given.kind in (given.VAR_POSITIONAL, given.VAR_KEYWORD):
            continue
        hint = (hints or {}).get(given.name) or _BY_NAME.get(given.name) or ParameterHint()
        found.append(_read(given, hint, sentences.get(given.name, "")))
    return tuple(found)


def _signature(make: Callable[..., object]) -> inspect.Signature:
    try:
        return inspect.signature(make, eval_str=True)
    except Exception:  # an annotation may name what is imported under TYPE_CHECKING only
        return inspect.signature(make)


def _read(given: inspect.Parameter, hint: ParameterHint, summary: str) -> PassParameter:
    has_default = given.default is not given.empty
    default = given.default if has_default else None
    found = _Annotation.of(given.annotation, default)
    if hint.choices:
        found = _Annotation(ParameterKind.CHOICE, hint.choices)
    elif hint.kind is not None:
        found = _Annotation(hint.kind)
    if isinstance(default, enum.Enum):
        default = default.name
    return PassParameter(
        given.name,
        found.kind,
        default,
        not has_default,
        found.choices,
        summary,
        hint.first,
        found.item,
        found.also,
    )


@dataclass(frozen=True)
class _Annotation:
    """The kind of a parameter, from its annotation or else from its default."""

    kind: ParameterKind
    choices: tuple[object, ...] = ()
    item: type = str
    also: ParameterKind | None = None

    @classmethod
    def of(cls, annotation: object, default: object) -> _Annotation:
        if annotation is _NO_ANNOTATION:
            annotation = type(default)
        members = _members(annotation)
        if tvm.target.Target in members:
            return cls(ParameterKind.TARGET)
        if set(members) == {bool, list[str]}:  # all functions, or these: LiftTransformParams
            return cls(ParameterKind.BOOL, also=ParameterKind.FUNCTIONS)
        if ir.Var in members or set(members) == {list[ir.Var]}:
            return cls(ParameterKind.VARS)
        return cls._of_one(members[0]) if len(members) == 1 else cls(ParameterKind.CODE)

    @classmethod
    def _of_one(cls, annotation: object) -> _Annotation:
        if annotation in _PLAIN:
            return cls(_PLAIN[annotation])
        if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
            names = tuple(member.name for member in annotation)
            return cls(ParameterKind.CHOICE, names, annotation)
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Literal:
            return cls(ParameterKind.CHOICE, arguments)
        if origin in _LISTS and arguments and arguments[0] in (str, int):
            return cls(ParameterKind.LIST, item=arguments[0])
        if origin in _LISTS and relax.transform.FusionPattern in _members((*arguments, None)[0]):
            return cls(ParameterKind.PATTERNS)
        if origin in _MAPPINGS and len(arguments) == 2 and str in _members(arguments[0]):
            return cls(_of_mapping(arguments[1]))
        return cls(ParameterKind.CODE)


_PLAIN: Mapping[object, ParameterKind] = {
    bool: ParameterKind.BOOL,
    int: ParameterKind.INT,
    float: ParameterKind.FLOAT,
    str: ParameterKind.STR,
    relax.VDevice: ParameterKind.DEVICE,
}
_LISTS = (list, Sequence)
_MAPPINGS = (dict, Mapping)


def _of_mapping(value: object) -> ParameterKind:
    members = _members(value)
    if any(member in (tvm.runtime.Tensor, np.ndarray) for member in members):
        return ParameterKind.PARAMS
    if members == (list[str],):
        return ParameterKind.LAYOUTS
    if members in ((ir.Expr,), (int,)):
        return ParameterKind.DIMS
    return ParameterKind.CODE


def _members(annotation: object) -> tuple[object, ...]:
    """Return the members of a union without None; the annotation itself if it is not a union."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(a for a in typing.get_args(annotation) if a is not type(None))
    return (annotation,)
