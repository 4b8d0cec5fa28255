"""The names of sizes in a function, and graphs in which names do not distinguish operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

from irviz.model.graph.graph import CALLEE, Graph, Node, NodeId, NodeKind, TypeParts

_WORD = r"""'[^']*'|"[^"]*"|[^\W\d][\w.]*(?![\w.(])"""
"""A quoted text, which is kept, or a word that is not called."""
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_SIGN = re.compile(r"\W")
_NUMBERED = re.compile(r"_\d+$")


@dataclass(frozen=True)
class Names:
    """The names of a function's sizes, in the order in which they are defined.

    Types alone define `sizes`; `numbers` are names of nodes, whose uses in expressions have edges.
    """

    sizes: Sequence[str] = ()
    numbers: Sequence[str] = ()

    @property
    def all(self) -> Sequence[str]:
        """All of the names."""
        return (*self.sizes, *self.numbers)


def names_of_sizes(graph: Graph, type_parts: Callable[[Node], TypeParts]) -> Names:
    """Return the names of symbolic sizes that a function defines, and of nodes used in texts."""
    sizes: dict[str, None] = {}
    numbers: dict[str, None] = {}
    for node in graph.nodes:
        if node.is_input or node.kind is NodeKind.MATCH_CAST:
            parts = type_parts(node)
            if parts.symbols:
                words = _IDENTIFIER.findall(parts.text)
                sizes.update((word, None) for word in words if word in parts.symbols)
        if node.kind is NodeKind.OTHER or node.literals:
            edges = graph.entering.get(node.id, ())
            texts = {literal.position for literal in node.literals}
            for edge in edges:
                if node.kind is NodeKind.OTHER or edge.position[:-1] in texts:
                    name = graph[edge.source].name or "v"  # as TVM writes it
                    numbers.update({name: None, without_signs(name): None})
    return Names([name for name in sizes if name not in numbers], list(numbers))


def common_names(
    before: Names, after: Names, *, are_exchanged: bool = False
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """Return, for each side, a common name for each size by its own name.

    Sizes with the same name correspond, and the others correspond by position; all of them do if
    they `are_exchanged`. If all names are the same, nothing has to be replaced.
    """
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    for mine, theirs in ((before.sizes, after.sizes), (before.numbers, after.numbers)):
        gone = [name for name in mine if are_exchanged or name not in theirs]
        new = [name for name in theirs if are_exchanged or name not in mine]
        if gone and len(gone) == len(new):
            there.update(zip(gone, new, strict=True))
            back.update(zip(new, new, strict=True))
    return there, back


def without_names(graph: Graph, sizes: Mapping[str, str], names: Names) -> Graph:
    """Return a graph whose operations do not depend on names; `sizes` are written otherwise."""
    closures = {edge.target for edge in graph.edges if edge.position == CALLEE}
    if not (closures or sizes or names.numbers):
        return graph
    texts = _Texts(sizes, names)
    return graph.with_nodes([_without_names(node, graph, texts, closures) for node in graph.nodes])


class _Texts:
    """Rewrites texts with other names; texts without names of sizes stay the same objects."""

    def __init__(self, sizes: Mapping[str, str], names: Names) -> None:
        self.sizes = sizes
        self.numbers = frozenset(names.numbers)
        self._words = token_pattern(names)

    def mapped(self, text: str) -> str:
        """Return a text with the common names of sizes."""
        if not self.sizes:
            return text
        return self._words.sub(lambda found: self.sizes.get(found[0], found[0]), text)

    def numbered(self, text: str) -> str:
        """Return a text with the names of nodes replaced by their order."""
        order: dict[str, str] = {}

        def other(found: re.Match[str]) -> str:
            if base_name(found[0], self.numbers):
                return order.setdefault(found[0], f"_{len(order)}")
            return self.sizes.get(found[0], found[0])

        return self._words.sub(other, text)


def token_pattern(names: Names, rest: str = "") -> re.Pattern[str]:
    """Return a pattern for names, quoted texts, and the further patterns given."""
    odd = sorted((one for one in names.numbers if not one.isidentifier()), key=len, reverse=True)
    return re.compile("|".join([*map(re.escape, filter(None, odd)), _WORD, *filter(None, [rest])]))


def without_signs(name: str) -> str:
    """Return a name as TVM prints it in an expression."""
    return _SIGN.sub("_", name)


def base_name(word: str, names: frozenset[str]) -> str:
    """Return the name that a word in an expression stands for, "" if none.

    TVM numbers variables of one expression that share a name, and replaces special characters.
    """
    plain = _NUMBERED.sub("", word)
    return word if word in names else plain if plain in names else ""


def _without_names(node: Node, graph: Graph, texts: _Texts, closures: Container[NodeId]) -> Node:
    if texts.sizes:
        node = node._replace(type_text=texts.mapped(node.type_label))
    changed = node
    if node.kind is NodeKind.OTHER:
        changed = _with_texts(node, frozenset(), texts, texts.numbered)
    elif node.literals and (texts.numbers or texts.sizes):
        edges = graph.entering.get(node.id, ())
        used = frozenset(edge.position[:-1] for edge in edges if len(edge.position) > 1)
        changed = _with_texts(node, used, texts, texts.mapped)
    is_closure = (
        node.id in closures and node.resolution is None and node.kind is not NodeKind.OPERATOR
    )
    if changed is node and not is_closure:
        return node
    callee = "" if is_closure else node.callee
    facts = (node.kind.value, callee, node.operator, changed.attributes, changed.literals)
    return changed._replace(structure=hash(facts))


def _with_texts(
    node: Node, used: frozenset[tuple[int, ...]], texts: _Texts, of_attribute: Callable[[str], str]
) -> Node:
    """Return a node with names replaced in its literals and attributes, or the node itself."""
    literals = tuple(
        one._replace(text=(texts.numbered if one.position in used else texts.mapped)(one.text))
        for one in node.literals
    )
    attributes = tuple((name, of_attribute(text)) for name, text in node.attributes)
    if literals == node.literals and attributes == node.attributes:
        return node
    return node._replace(literals=literals, attributes=attributes)


def with_contents(graph: Graph) -> Graph:
    """Return a graph in which branches and inner functions are known by the operations in them."""
    owners = {region.owner for region in graph.regions if region.owner is not None}
    if not owners:
        return graph
    nodes = list(graph.nodes)
    inside: dict[NodeId | None, list[int]] = {owner: [] for owner in owners}
    for index, node in enumerate(nodes):
        if node.id in inside:
            # in any order: independent ones may change places
            facts = (node.kind.value, node.attributes, tuple(sorted(inside[node.id])))
            nodes[index] = node = node._replace(structure=hash(facts))
        for at in graph.regions_around(node.region):
            owner = graph.regions[at].owner
            if owner is not None and node.kind is not NodeKind.CONSTANT:
                inside[owner].append(node.structure)
    return graph.with_nodes(nodes)


# --- Which names in two functions stand for the same symbolic sizes ------------------------------


_SIGNS = r"\d+|\w+|\S"


class Renaming:
    """A one-to-one relation of symbolic sizes before and after, learned from texts.

    Only the given names are symbols; every other word has to be the same on both sides.
    """

    def __init__(self, before: Names, after: Names) -> None:
        self._names = frozenset(before.all), frozenset(after.all)
        self._tokens = token_pattern(before, _SIGNS), token_pattern(after, _SIGNS)
        self.knows_names = bool(before.all and after.all)
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def copy(self) -> Renaming:
        """Return an independent copy."""
        made = copy(self)
        made._there, made._back = dict(self._there), dict(self._back)
        return made

    def is_equal(self, before: str, after: str) -> bool:
        """Return whether two texts are equal up to names, and learn which names correspond."""
        if not self.knows_names:
            return before == after
        mine, theirs = self._names
        one, two = (
            tokens.findall(text) for tokens, text in zip(self._tokens, (before, after), strict=True)
        )
        if len(one) != len(two):
            return False
        learned: dict[str, str] = {}
        for word, other in zip(one, two, strict=True):
            if base_name(word, mine) and base_name(other, theirs):
                word, other = without_signs(word), without_signs(other)
                is_known = word in self._there or other in self._back
                if is_known and self._there.get(word) != other:
                    return False
                if learned.setdefault(word, other) != other:
                    return False
            elif word != other:
                return False
        if len(set(learned.values())) < len(learned):
            return False
        self._there.update(learned)
        self._back.update({other: word for word, other in learned.items()})
        return True
