"""The parameters of a pass, read from the signature of the function that creates it."""

from __future__ import annotations

import enum
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import tvm
from tvm import ir, relax

_SECTION = re.compile(
    r"^Parameters *\n-{3,}\s*\n(.*?)(?=^\S[^\n]*\n-{3,}[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_PARAMETER = re.compile(r"^(\w+)\s*:.*\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<!i\.e)(?<!e\.g)[.:!?](?=\s|$)")


class ParameterKind(enum.Enum):
    """What a parameter takes, as plain values that a form can give."""

    BOOL = "true or false"
    INT = "a whole number of 64 bits"
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
        first: The initial value in a form if there is no default.
        item: The type of a LIST's items, or the enum whose member names are the choices.
        also: Another kind that code may pass instead.
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
    """What the signature does not say about a parameter."""

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


def read_parameters(
    make: Callable[..., object], hints: Mapping[str, ParameterHint] | None = None
) -> tuple[PassParameter, ...]:
    """Return the parameters of a function or class that creates a pass, in order."""
    sentences = parameter_sentences(make) or parameter_sentences(make.__init__)
    try:
        signature = inspect.signature(make, eval_str=True)
    except Exception:  # an annotation may name what is imported under TYPE_CHECKING only
        signature = inspect.signature(make)
    found = []
    for given in signature.parameters.values():
        if given.kind in (given.VAR_POSITIONAL, given.VAR_KEYWORD):
            continue
        hint = (hints or {}).get(given.name) or _BY_NAME.get(given.name) or ParameterHint()
        is_required = given.default is given.empty
        default = None if is_required else given.default
        if hint.choices:
            takes = PassParameter(given.name, ParameterKind.CHOICE, choices=hint.choices)
        elif hint.kind is not None:
            takes = PassParameter(given.name, hint.kind)
        else:
            annotated = given.annotation is not given.empty
            takes = _read(given.name, given.annotation if annotated else type(default))
        found.append(
            replace(
                takes,
                default=default.name if isinstance(default, enum.Enum) else default,
                is_required=is_required,
                summary=sentences.get(given.name, ""),
                first=hint.first,
            )
        )
    return tuple(found)


def _read(name: str, annotation: object) -> PassParameter:  # noqa: C901 - one case a kind
    """Return a parameter of the kind that an annotation denotes."""
    parameter = functools.partial(PassParameter, name)
    members = _members(annotation)
    if tvm.target.Target in members:
        return parameter(ParameterKind.TARGET)
    if set(members) == {bool, list[str]}:  # all functions, or these: LiftTransformParams
        return parameter(ParameterKind.BOOL, also=ParameterKind.FUNCTIONS)
    if ir.Var in members or set(members) == {list[ir.Var]}:
        return parameter(ParameterKind.VARS)
    if len(members) > 1:
        return parameter(ParameterKind.CODE)
    annotation = members[0]
    if annotation in _PLAIN:
        return parameter(_PLAIN[annotation])
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        names = tuple(member.name for member in annotation)
        return parameter(ParameterKind.CHOICE, choices=names, item=annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return parameter(ParameterKind.CHOICE, choices=arguments)
    if origin in (list, Sequence):
        if arguments and arguments[0] in (str, int):
            return parameter(ParameterKind.LIST, item=arguments[0])
        if relax.transform.FusionPattern in _members((*arguments, None)[0]):
            return parameter(ParameterKind.PATTERNS)
    if origin in (dict, Mapping) and len(arguments) == 2 and str in _members(arguments[0]):
        values = _members(arguments[1])
        if tvm.runtime.Tensor in values or np.ndarray in values:
            return parameter(ParameterKind.PARAMS)
        return parameter(_BY_VALUE.get(values, ParameterKind.CODE))
    return parameter(ParameterKind.CODE)


_PLAIN: Mapping[object, ParameterKind] = {
    bool: ParameterKind.BOOL,
    int: ParameterKind.INT,
    float: ParameterKind.FLOAT,
    str: ParameterKind.STR,
    relax.VDevice: ParameterKind.DEVICE,
}
_BY_VALUE: Mapping[tuple[object, ...], ParameterKind] = {
    (list[str],): ParameterKind.LAYOUTS,
    (ir.Expr,): ParameterKind.DIMS,
    (int,): ParameterKind.DIMS,
}
"""The kinds of mappings, by the type of their values."""


def _members(annotation: object) -> tuple[object, ...]:
    """Return the members of a union without None; the annotation itself if it is not a union."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(a for a in typing.get_args(annotation) if a is not type(None))
    return (annotation,)


def first_sentence(value: object) -> str:
    """Return the first sentence of an object's docstring, which may span several lines."""
    return _sentence((inspect.getdoc(value) or "").strip())


def parameter_sentences(value: object) -> dict[str, str]:
    """Return the first sentence about each parameter of a NumPy-style docstring."""
    section = _SECTION.search(f"{inspect.getdoc(value) or ''}\n")
    return {
        name: _sentence(inspect.cleandoc(text))
        for name, text in _PARAMETER.findall(section[1] if section else "")
    }


def _sentence(text: str) -> str:
    """Return the first sentence of a text, joined into one line."""
    paragraph = text.partition("\n\n")[0]
    first, _, rest = paragraph.partition("\n")
    words = [first.strip()]
    for line in rest.splitlines():
        if words[-1].endswith((".", ":", "!", "?")) and not words[-1].endswith(("i.e.", "e.g.")):
            break
        end = _SENTENCE_END.search(line)
        words.append((line[: end.end()] if end else line).strip())
    return " ".join(word for word in words if word)
