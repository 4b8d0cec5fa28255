"""Count the TVMScript definitions in Python files that TVM reads and irviz admits.

    git clone --branch v0.27.0 https://github.com/apache/tvm      whose tests have some 7,000
    python bench/admitted_definitions.py tvm/tests/python
    python bench/admitted_definitions.py tvm/tests/python --list  each that is refused

A definition is a decorated class or function, wherever it stands, and is written to a file of its
own after the imports of its file and of the functions around it. It counts if TVM reads it there:
one that uses a variable from around it does not. What TVM prints of it counts if TVM reads that.
Each must become the module that TVM makes. **The imports and definitions are run**, in child
processes: give files that you trust.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import inspect
import linecache
import re
import sys
import tempfile
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import tvm
from child_processes import in_children
from tvm import ir, relax, tirx
from tvm_ffi import structural_equal

from irviz.loaders.load import read_content
from irviz.loaders.tvmscript.syntax_tree import definitions, line_range

_BATCH = 50
_ADMITTED = "it is admitted"
_PLACE = re.compile(r"^'[^']*'[^:]*: (?:TVM does not read this: )?")


@dataclass(frozen=True)
class Written:
    """A definition: where it stands, its name, the imports that it may use, and its text."""

    place: str
    name: str
    imports: tuple[str, ...]
    text: str


def main() -> None:
    """Count the definitions of all files in a folder, and what TVM prints of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--list", action="store_true", help="print each that is refused")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    inspect.stack = _stack  # TVM's parser spends most of its time in Python's own
    found = [
        one
        for path in sorted(options.path.rglob("*.py"))
        for one in _definitions(path, str(path.relative_to(options.path)))
    ]
    verdicts: list[list[str] | None] = []
    for first in range(0, len(found), _BATCH):
        verdicts += in_children(_verdicts, found[first : first + _BATCH])
    print(f"{len(found)} definitions")
    for index, title in enumerate(("written by hand", "printed by TVM")):
        counted = {
            one.place: verdict[index]
            for one, verdict in zip(found, verdicts, strict=True)
            if verdict is not None and verdict[index]
        }
        _report(title, counted, is_listed=options.list)


def _report(title: str, verdicts: dict[str, str], *, is_listed: bool) -> None:
    refused = {place: verdict for place, verdict in verdicts.items() if verdict != _ADMITTED}
    share = 1 - len(refused) / max(len(verdicts), 1)
    print(
        f"{title}: TVM reads {len(verdicts)}, of these irviz admits "
        f"{len(verdicts) - len(refused)}, {share:.2%}"
    )
    reasons = Counter(_PLACE.sub("", verdict) for verdict in refused.values())
    for reason, count in reasons.most_common():
        print(f"    {count}: {reason}")
    for place, verdict in refused.items() if is_listed else ():
        print(f"    {place}: {verdict}")


def _definitions(path: Path, name: str) -> Iterator[Written]:
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    outer: list[tuple[ast.AST, tuple[str, ...]]] = [(ast.parse(text), ())]
    while outer:
        node, imports = outer.pop()
        body = getattr(node, "body", [])
        imports += tuple(
            ast.unparse(one)
            for one in body
            if isinstance(one, ast.Import)
            or (isinstance(one, ast.ImportFrom) and one.level == 0 and one.module != "__future__")
        )
        known = {(one.name, one.lines) for one in definitions(ast.Module(body, []))}
        for one in body:
            taken = line_range(one)
            if (getattr(one, "name", ""), taken) in known:
                own = textwrap.dedent("\n".join(lines[taken.start - 1 : taken.stop - 1]))
                yield Written(f"{name}:{taken.start}", one.name, imports, own + "\n")
            elif hasattr(one, "body"):
                outer.append((one, imports))


def _verdicts(definition: Written) -> list[str]:
    """Return the verdict on a definition and on what TVM prints of it, "" if it does not count."""
    expected = _read_by_tvm(definition)
    if not isinstance(expected, ir.IRModule | tirx.PrimFunc | relax.Function):
        return ["", ""]
    text = "\n".join([*definition.imports, "", "", definition.text])
    printed = ""
    try:
        script = expected.script(show_meta=True)
        printed = _verdict(script, tvm.script.from_source(script))
    except BaseException:  # what TVM raises includes SystemExit
        pass  # TVM does not read all that it prints
    return [_verdict(text, expected), printed]


def _read_by_tvm(definition: Written) -> object:
    """Return what Python makes of a definition, in a module of its own; None if it fails."""
    imports = [f"try:\n    {one}\nexcept Exception:\n    pass" for one in definition.imports]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "definition.py")
        path.write_text("\n".join([*imports, definition.text]), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("definition", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["definition"] = module  # where `inspect` looks for a text
        try:
            spec.loader.exec_module(module)
        except BaseException:  # what TVM raises includes SystemExit
            return None
    return getattr(module, definition.name, None)


def _stack() -> Any:
    """Return what TVM's decorators need of `inspect.stack`."""
    found: list[SimpleNamespace] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        context = [line] if line else None
        found.append(SimpleNamespace(frame=frame, lineno=frame.f_lineno, code_context=context))
        frame = frame.f_back
    return found


def _verdict(text: str, expected: object) -> str:
    try:
        found = read_content(text.encode(), "definition.py").module
    except Exception as failure:  # TVM raises what it likes
        return " ".join(str(failure).split())
    if not isinstance(expected, ir.IRModule):
        (found,) = found.functions.values()
    is_same = structural_equal(found, expected, map_free_vars=True)
    return _ADMITTED if is_same else "it differs"


if __name__ == "__main__":
    main()
