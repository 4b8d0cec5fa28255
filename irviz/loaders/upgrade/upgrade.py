"""Rewrite Python from an earlier dialect of TVM to the installed one; nothing is run."""

from __future__ import annotations

from irviz.loaders.upgrade.imports import future_first, with_imports
from irviz.loaders.upgrade.names import DottedNames
from irviz.loaders.upgrade.notes import Upgraded
from irviz.loaders.upgrade.parse import parse_module
from irviz.loaders.upgrade.rewriting import Rewriter


def upgrade(source: str, *, futures: bool = True) -> Upgraded:
    """Rewrite Python to the dialect of the installed TVM, keeping comments and layout.

    Args:
        source: The text. Text in today's dialect is returned unchanged.
        futures: Whether to move `from __future__` imports to the first line, as Python requires.

    Returns:
        The new text, and notes on what could not be rewritten.

    Raises:
        NotPythonError: If the text is not Python.
    """
    module = parse_module(source)
    names = DottedNames.of(module)
    rewriter = Rewriter(names, uses_tvm=names.uses_tvm())
    new = module.visit(rewriter)
    if names.new_imports:
        new = with_imports(new, names.new_imports)
    if futures:
        new = future_first(new)
    return Upgraded(new.code, tuple(sorted(set(rewriter.notes))))
