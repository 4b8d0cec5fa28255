"""The diff of two modules, as data and as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum

from irviz.model.diff.differences import Difference
from irviz.model.diff.module_text import FunctionText, ModuleText
from irviz.model.diff.records import FunctionChange, FunctionDiff
from irviz.view.text.diff_text import diff_text


@dataclass(frozen=True)
class Diff:
    """What differs between two modules; it is true where anything does.

    Attributes:
        before: The title of the module before.
        after: The title of the module after.
        functions: What became of each function, also of those that are the same.
        differences: What differs of the module itself.
        texts: The TVMScript of both modules.
    """

    before: str
    after: str
    functions: tuple[FunctionDiff, ...]
    differences: tuple[Difference, ...] = ()
    texts: tuple[ModuleText, ModuleText] | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        """Return whether anything differs; names of variables do not count."""
        changed = any(one.change is not FunctionChange.SAME for one in self.functions)
        return bool(self.differences) or changed

    def __str__(self) -> str:
        """Return the diff as text, without colours."""
        return self.text()

    def text(self, *, colour: bool = False) -> str:
        """Return TVMScript of both modules, with signs before the lines that differ.

        Lines are matched by the nodes that they bind, so that a renamed variable is no difference.

        Args:
            colour: Whether to write the colours of a terminal.
        """
        none: Mapping[str, FunctionText] = {}
        one, two = self.texts or (None, None)
        texts = one.functions if one else none, two.functions if two else none
        titles = self.before, self.after
        return diff_text(titles, self.functions, self.differences, texts, colour=colour)

    def to_dict(self) -> dict[str, object]:
        """Return the diff as dictionaries, lists and texts, as for JSON."""
        return {
            "before": self.before,
            "after": self.after,
            "differs": bool(self),
            "differences": _plain(self.differences),
            "functions": _plain(self.functions),
        }


def _plain(value: object) -> object:
    """Return records as dictionaries, without what does not take part in comparisons."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value) if one.compare}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {name: _plain(each) for name, each in zip(value._fields, value, strict=True)}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value
