"""The text of types and attributes, created once for all equal ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import tvm_ffi
from tvm import ir

from irviz.ir.text.expression_labels import attributes
from irviz.ir.text.type_labels import type_label, type_parts
from irviz.model.graph.graph import Node
from irviz.model.graph.type_parts import TypeParts
from irviz.worker import answers

_Text = TypeVar("_Text")


class TypeTexts:
    """The texts of equal types, created on first use."""

    def __init__(self, type_: ir.Type | None) -> None:
        self._type = type_

    @cached_property
    def label(self) -> str:
        """The type as short text."""
        return type_label(self._type)

    @cached_property
    def parts(self) -> TypeParts:
        """The parts of the type."""
        return type_parts(self._type)


class TextCache:
    """Caches texts by TVM's structural hash: a large module has few different ones.

    Symbolic sizes are hashed by identity, so a cache serves one module.
    """

    def __init__(self) -> None:
        self._types: dict[int, TypeTexts] = {}
        self._attributes: dict[int, tuple[tuple[str, str], ...]] = {}

    def type_texts(self, type_: ir.Type | None) -> TypeTexts:
        """Return the texts of a type."""
        return TypeTexts(None) if type_ is None else _cached(self._types, type_, TypeTexts)

    def attributes(self, attrs: ir.Attrs | None) -> tuple[tuple[str, str], ...]:
        """Return the attributes of a call."""
        return () if attrs is None else _cached(self._attributes, attrs, attributes)


def _cached(cache: dict[int, _Text], value: object, make: Callable[[Any], _Text]) -> _Text:
    key = tvm_ffi.structural_hash(value)
    if key not in cache:
        cache[key] = make(value)
    return cache[key]


class TypeText:
    """The label of a value's type, made on first use, and its hash computed once."""

    __slots__ = ("_of_type", "_texts", "_value")

    def __init__(self, value: ir.Expr, texts: TextCache) -> None:
        self._value = value
        self._texts = texts
        self._of_type: TypeTexts | None = None

    def __str__(self) -> str:
        return (self._of_type or self._found()).label

    @property
    def parts(self) -> TypeParts:
        """The parts of the type."""
        return (self._of_type or self._found()).parts

    def _found(self) -> TypeTexts:
        self._of_type = self._texts.type_texts(getattr(self._value, "ty", None))
        return self._of_type

    def is_of(self, other: TypeText) -> bool:
        """Return whether it is the type of the same value as another one."""
        return bool(self._value.same_as(other._value))

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


answers.register(TypeText, str, str)


def is_same_type(one: Node, two: Node) -> bool:
    """Return whether two nodes have types with the same text, at once for the same variable."""
    mine, theirs = one.type_text, two.type_text
    is_one = isinstance(mine, TypeText) and isinstance(theirs, TypeText) and mine.is_of(theirs)
    return is_one or type_parts_of(one).text == type_parts_of(two).text


def type_parts_of(node: Node) -> TypeParts:
    """Return the type of a node's value taken apart."""
    text = node.type_text
    return text.parts if isinstance(text, TypeText) else TypeParts(str(text))
