"""`%%tvmscript`: a lecture's cell of any year, pasted as it is, opened in the explorer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand
from IPython.display import HTML, display

from irviz.explorer.explorer import explore
from irviz.loaders.tvmscript.definitions import CellDefinitions, tvmscript_definitions
from irviz.loaders.tvmscript.modules import modules_of
from irviz.loaders.upgrade.cells import mask_magics, upgrade_cells
from irviz.loaders.upgrade.notes import Upgraded, unified_diff
from irviz.view.templating import escape

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

CELL = "the cell"


def register(shell: InteractiveShell) -> None:
    """Give a notebook's shell the cell magic `%%tvmscript [name]`."""

    @no_var_expand
    def tvmscript(line: str, cell: str) -> None:
        """Open the TVMScript of this cell in the explorer, upgraded from the dialect of any year.

        Its modules go into the notebook's namespace by their names; of several, [name] is the one
        that is opened, and a single one is called so. Other Python in the cell is not run.
        """
        open_cell(shell, line.strip(), cell)

    add: Callable[..., None] = shell.register_magic_function
    add(tvmscript, magic_kind="cell", magic_name="tvmscript")


def open_cell(shell: InteractiveShell, name: str, cell: str) -> None:
    """Upgrade a cell, read its modules, name them in the notebook, and open one of them.

    Raises UsageError, which a notebook shows as one line, for what cannot be read or named.
    """
    (upgraded,) = upgrade_cells([cell])
    for note in upgraded.notes:
        if note.what == CELL:
            raise UsageError(f"{CELL}, line {note.line}: {note.why}")
        if note.what.startswith("%%"):
            raise UsageError(f"{CELL} starts with {note.what}: paste TVMScript alone")
    script = tvmscript_definitions(mask_magics(upgraded.text))
    if not script.names:
        raise UsageError(f"{CELL} has no TVMScript: paste a class below @tvm.script.ir_module")
    chosen = _chosen(name, script)
    try:
        found = modules_of(script.text, CELL)
    except ValueError as failure:
        raise UsageError(" ".join(str(failure).split())) from failure
    modules = {name if name and len(found) == 1 else key: mod for key, mod in found.items()}
    shell.user_ns.update(modules)
    _show(_told(cell, upgraded, script, list(modules)))
    try:
        explorer = explore(modules[chosen])
    except ValueError as failure:  # kernels alone have no graph to show
        _show(f"<p>{escape(str(failure))}</p>")
    else:
        display(explorer)  # type: ignore[no-untyped-call]


def _show(html: str) -> None:
    display(HTML(html))  # type: ignore[no-untyped-call]


def _chosen(name: str, script: CellDefinitions) -> str:
    if name and not name.isidentifier():
        raise UsageError(
            f"{name!r} is no name: write %%tvmscript alone, or with one name behind it"
        )
    if not name or len(script.names) == 1:
        return name or script.names[-1]
    if name not in script.names:
        there = ", ".join(script.names)
        raise UsageError(f"{CELL} defines no {name!r}: it has {there}")
    return name


def _told(cell: str, upgraded: Upgraded, script: CellDefinitions, names: list[str]) -> str:
    """Return what was done as HTML: the names, what was left out, the changes behind a fold."""
    words = [f"{', '.join(names)}: read from this cell."]
    if script.others:
        lines = ", ".join(map(str, script.others))
        words.append(f"Only TVMScript is read here: the Python at line {lines} was not run.")
    words += [f"Left as it is, {note}." for note in upgraded.notes]
    told = "".join(f"<p>{escape(sentence)}</p>" for sentence in words)
    changes = unified_diff(cell, upgraded.text, "cell")
    if not changes:
        return told
    count = sum(line.startswith("+") and not line.startswith("+++") for line in changes.split("\n"))
    lines = "1 line" if count == 1 else f"{count} lines"
    return (
        f"{told}<details><summary>{lines} upgraded to the installed TVM</summary>"
        f"<pre>{escape(changes)}</pre></details>"
    )
