"""The cell magic `%%tvmscript`, which opens a pasted lecture cell of any TVM version."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand
from IPython.display import HTML, display

from irviz.explorer.explorer import explore
from irviz.loaders.file_limits import FileError, read_in_worker
from irviz.loaders.notebook_cells import CELL, CellModules, read_cell
from irviz.view.templating import escape

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def register(shell: InteractiveShell) -> None:
    """Register the cell magic `%%tvmscript [name]` in a notebook's shell."""

    @no_var_expand
    def tvmscript(line: str, cell: str) -> None:
        """Open the TVMScript of this cell in the explorer, upgraded from any older dialect.

        Its modules are added to the notebook's namespace by name. If there are several, [name]
        chooses the one to open; a single one is given this name. Other Python in the cell is not
        run.
        """
        open_cell(shell, line.strip(), cell)

    add: Callable[..., None] = shell.register_magic_function
    add(tvmscript, magic_kind="cell", magic_name="tvmscript")


def open_cell(shell: InteractiveShell, name: str, cell: str) -> None:
    """Upgrade a cell, read its modules, add them to the notebook, and open one of them.

    Raises UsageError, which notebooks show as one line, if the cell cannot be read or named.
    """
    try:
        read = read_in_worker(read_cell, cell)
    except FileError as failure:
        raise UsageError(f"{CELL} {failure}") from failure
    except ValueError as failure:
        raise UsageError(" ".join(str(failure).split())) from failure
    chosen, found = _chosen(name, list(read.modules)), read.modules
    modules = {name if name and len(found) == 1 else key: mod for key, mod in found.items()}
    shell.user_ns.update(modules)
    _show(_told(read, list(modules)))
    try:
        explorer = explore(modules[chosen])
    except ValueError as failure:  # kernels alone have no graph to show
        _show(f"<p>{escape(str(failure))}</p>")
    else:
        display(explorer)  # type: ignore[no-untyped-call]


def _show(html: str) -> None:
    display(HTML(html))  # type: ignore[no-untyped-call]


def _chosen(name: str, names: list[str]) -> str:
    if name and not name.isidentifier():
        raise UsageError(
            f"{name!r} is not a name: write %%tvmscript alone, or followed by one name"
        )
    if not name or len(names) == 1:
        return name or names[-1]
    if name not in names:
        there = ", ".join(names)
        raise UsageError(f"{CELL} defines no {name!r}: it has {there}")
    return name


def _told(read: CellModules, names: list[str]) -> str:
    """Report the upgrade in HTML: names, parts that were left out, and the changes, collapsed."""
    words = [f"{', '.join(names)}: read from this cell."]
    if read.others:
        lines = ", ".join(map(str, read.others))
        words.append(f"Only TVMScript is read here: the Python at line {lines} was not run.")
    words += [f"Left as it is, {note}." for note in read.upgraded.notes]
    told = "".join(f"<p>{escape(sentence)}</p>" for sentence in words)
    if not read.diff:
        return told
    added = [line for line in read.diff.split("\n") if line.startswith("+")]
    count = sum(not line.startswith("+++") for line in added)
    lines = "1 line" if count == 1 else f"{count} lines"
    return (
        f"{told}<details><summary>{lines} upgraded to the installed TVM</summary>"
        f"<pre>{escape(read.diff)}</pre></details>"
    )
