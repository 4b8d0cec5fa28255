"""From the dialect of any year to that of the installed TVM: text to text, nothing is run."""

from __future__ import annotations

from irviz.loaders.upgrade.imports import future_first, with_imports
from irviz.loaders.upgrade.names import Names
from irviz.loaders.upgrade.notes import Upgraded
from irviz.loaders.upgrade.readable import read
from irviz.loaders.upgrade.rewriting import Rewriting


def upgraded(source: str, *, futures: bool = True) -> Upgraded:
    """Rewrite Python to the installed TVM's dialect; keep comments and layout; run nothing.

    What cannot be known from the text is left as it is, and noted with its line. Text in today's
    dialect comes back as it is. With `futures`, a `from __future__` import that stands too late
    for Python is put first. Raises NotPython, a ValueError with the line, for other text.
    """
    module = read(source)
    names = Names.of(module)
    rewriting = Rewriting(names, about_tvm=names.about_tvm())
    new = module.visit(rewriting)
    if names.wanted:
        new = with_imports(new, names.wanted)
    if futures:
        new = future_first(new)
    return Upgraded(new.code, tuple(sorted(set(rewriting.notes))))
