"""The names that a text imports from TVM's GPU dialect, and their full names.

TVM's functions are written under imported names: `laneid` for `Axis.laneid`. No import is executed:
the syntax tree gets the full names before it is checked, and TVM's parser the objects that they
mean. A name that the text itself binds keeps the text's meaning.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from irviz.loaders.tvmscript.gpu_dialect import AXES, LAYOUT_FUNCTIONS

MEANINGS: Mapping[tuple[str, str], str] = {
    **{("tvm.tirx.layout", name): f"Axis.{name}" for name in AXES},
    ("tvm.tirx.layout", "S"): "T.S",
    ("tvm.tirx.layout", "R"): "T.R",
    ("tvm.tirx.layout", "TileLayout"): "T.TileLayout",
    ("tvm.tirx.layout", "ComposeLayout"): "T.ComposeLayout",
    **{("tvm.tirx.layout", name): f"tvm.tirx.layout.{name}" for name in LAYOUT_FUNCTIONS},
    ("tvm.script.tirx", "tile"): "Tx",
}
"""What may be imported, as a module and a name, and its full name in a text."""


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Return the names that the imports at the outermost level bind, with their full names."""
    return {
        one.asname or one.name: MEANINGS[node.module or "", one.name]
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and not node.level
        for one in node.names
        if (node.module or "", one.name) in MEANINGS
    }


def used_names(tree: ast.Module, imported: Mapping[str, str]) -> dict[str, str]:
    """Return the imported names whose meaning a text does not change."""
    bound = set(_bound(tree)) if imported else set()
    return {name: meaning for name, meaning in imported.items() if name not in bound}


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def with_full_names(tree: ast.Module, imported: Mapping[str, str]) -> ast.Module:
    """Return a tree with the full names of imported ones, at the same places."""
    if imported:  # to visit all nodes takes as long as to parse them
        _FullNames(imported).visit(tree)
    return tree


class _FullNames(ast.NodeTransformer):
    def __init__(self, imported: Mapping[str, str]) -> None:
        self._imported = imported

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return the full name of an imported name."""
        if node.id not in self._imported:
            return node
        root, *path = self._imported[node.id].split(".")
        full: ast.expr = ast.Name(root, node.ctx)
        for name in path:
            full = ast.Attribute(full, name, node.ctx)
        for part in ast.walk(full):
            ast.copy_location(part, node)
        return full
