"""The text of types and attributes, made once for all values that are alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import tvm_ffi
from tvm import ir

from irviz.ir.text.expression_labels import attributes
from irviz.ir.text.type_labels import type_label, type_parts
from irviz.model.graph.graph import Node
from irviz.model.graph.type_parts import TypeParts

_Text = TypeVar("_Text")


class TextCache:
    """Caches texts by TVM's structural hash: a large module has few different ones.

    Symbolic sizes are hashed by identity, so a cache serves one module.
    """

    def __init__(self) -> None:
        self._types: dict[int, str] = {}
        self._attributes: dict[int, tuple[tuple[str, str], ...]] = {}
        self._parts: dict[int, TypeParts] = {}

    def type_label(self, type_: ir.Type | None) -> str:
        """Return a type as short text."""
        return type_label(None) if type_ is None else _cached(self._types, type_, type_label)

    def type_parts(self, type_: ir.Type | None) -> TypeParts:
        """Return a type taken apart."""
        return type_parts(None) if type_ is None else _cached(self._parts, type_, type_parts)

    def attributes(self, attrs: ir.Attrs | None) -> tuple[tuple[str, str], ...]:
        """Return the attributes of a call."""
        return () if attrs is None else _cached(self._attributes, attrs, attributes)


def _cached(cache: dict[int, _Text], value: object, make: Callable[[Any], _Text]) -> _Text:
    key = tvm_ffi.structural_hash(value)
    if key not in cache:
        cache[key] = make(value)
    return cache[key]


class TypeText:
    """The label of a value's type, made on first use."""

    __slots__ = ("_label", "_parts", "_texts", "_value")

    def __init__(self, value: ir.Expr, texts: TextCache) -> None:
        self._value = value
        self._texts = texts
        self._label: str | None = None
        self._parts: TypeParts | None = None

    def __str__(self) -> str:
        if self._label is None:
            self._label = self._texts.type_label(getattr(self._value, "ty", None))
        return self._label

    @property
    def parts(self) -> TypeParts:
        """The type taken apart."""
        if self._parts is None:
            self._parts = self._texts.type_parts(getattr(self._value, "ty", None))
        return self._parts

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


def is_same_type(one: Node, two: Node) -> bool:
    """Return whether two nodes have types with the same text, at once for the same variable."""
    mine, theirs = one.type_text, two.type_text
    is_one = isinstance(mine, TypeText) and isinstance(theirs, TypeText) and mine.is_of(theirs)
    return is_one or type_parts_of(one).text == type_parts_of(two).text


def type_parts_of(node: Node) -> TypeParts:
    """Return the type of a node's value taken apart."""
    text = node.type_text
    return text.parts if isinstance(text, TypeText) else TypeParts(str(text))
