"""Rewrite Python from an earlier dialect of TVM to the installed one; nothing is run."""

from __future__ import annotations

import libcst as cst

from irviz.loaders.file_limits import UPGRADE_LIMITS
from irviz.loaders.tvmscript.syntax_tree import RefusedError, parse_tree
from irviz.loaders.upgrade.dotted_names import DottedNames
from irviz.loaders.upgrade.imports import future_first, with_imports
from irviz.loaders.upgrade.rewriting import Rewriter
from irviz.loaders.upgrade.upgrade_result import Upgraded


def upgrade(source: str, *, futures: bool = True) -> Upgraded:
    """Rewrite Python to the dialect of the installed TVM, keeping comments and layout.

    `futures` tells whether to move `from __future__` imports to the first line, as Python requires.
    Raises RefusedError if the text is not Python, or exceeds a limit.
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


def parse_module(source: str) -> cst.Module:
    """Return a text's concrete syntax tree; raise RefusedError as `parse_tree` does."""
    parse_tree(source, "", UPGRADE_LIMITS)  # first: extreme nesting ends libcst's process
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as failure:
        raise RefusedError("", failure.raw_line, 1, "this is not Python") from failure
