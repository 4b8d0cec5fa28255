"""Count the TVMScript that TVM reads and irviz admits, and print what is refused.

    python bench/admitted_texts.py      some ten minutes

Printed texts are of the modules of the course and of the tests, after each pass of the catalog and
at each stage of a build. Texts by hand are those of the tests and of TVM's own sources. Each step
is a child process, because passes and readers of TVM can end theirs.
"""

from __future__ import annotations

import contextlib
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import tvm
from child_processes import in_children
from shared_with_tests import TESTS, from_tests
from tvm import ir
from tvm_ffi import structural_equal

from irviz.course.mlp import MODULES
from irviz.errors import LoadError
from irviz.loaders.tvmscript.admission import admit
from irviz.loaders.tvmscript.read_modules import parse_admitted
from irviz.loaders.upgrade.upgrade import upgrade
from irviz.transforms.passes.catalog import catalog
from irviz.transforms.passes.pass_transform import named_pass

_DECORATOR = re.compile(r"@(?:\w+\.)*(?:ir_module|prim_func|function)\b")
_BATCH = 50
_ADMITTED = "it is admitted"


def main() -> None:
    """Count both kinds of texts."""
    warnings.simplefilter("ignore")
    _report("printed by TVM", _printed())
    _report("written by hand", _written())


def _report(title: str, texts: dict[str, str]) -> None:
    """Print the share of texts that are admitted, and why others are not."""
    found: list[str | None] = []
    listed = list(texts)
    for first in range(0, len(listed), _BATCH):
        found += in_children(_verdict, listed[first : first + _BATCH])
    read = {text: verdict for text, verdict in zip(listed, found, strict=True) if verdict}
    refused = {text: verdict for text, verdict in read.items() if verdict != _ADMITTED}
    share = 1 - len(refused) / len(read)
    print(f"{title}: {len(texts)}, TVM reads {len(read)}, of these irviz admits {share:.2%}")
    for text, verdict in refused.items():
        print(f"    {texts[text]}: {verdict}")


def _verdict(text: str) -> str:
    """Return why a text is not admitted, or that it is, or "" if TVM does not read it."""
    try:
        expected = tvm.script.from_source(text)
    except BaseException:  # what TVM raises includes SystemExit
        return ""
    try:
        found = parse_admitted(admit(text).text)
    except Exception as failure:  # TVM raises what it likes
        return " ".join(str(failure).split())
    return _ADMITTED if structural_equal(found, expected) else "it differs"


# --- what TVM prints ---------------------------------------------------------------------------


def _printed() -> dict[str, str]:
    """Return texts, and the module that each is of."""
    found: dict[str, str] = {}
    for name, mod in _modules().items():
        for texts in in_children(_scripts, list(_stages(mod))):
            found.update(dict.fromkeys(texts or (), name))
    return found


def _modules() -> dict[str, ir.IRModule]:
    small, constructs = from_tests("modules"), from_tests("constructs")
    written = {name: one for name, one in vars(small).items() if isinstance(one, ir.IRModule)}
    return {
        **MODULES,
        **written,
        **{one: constructs.construct(one) for one in constructs.CONSTRUCTS},
    }


def _stages(mod: ir.IRModule) -> Iterator[Callable[[], list[ir.IRModule]]]:
    yield lambda: [mod]
    yield lambda: _build_stages(mod)
    for entry in catalog():
        if not entry.is_measured and not any(one.is_required for one in entry.parameters):
            yield lambda entry=entry: [named_pass(entry.full_name)(mod.clone())]


def _build_stages(mod: ir.IRModule) -> list[ir.IRModule]:
    stages: list[ir.IRModule] = []

    @tvm.ir.instrument.pass_instrument
    class Watch:
        def run_after_pass(self, mod: ir.IRModule, info: object) -> None:  # noqa: ARG002
            stages.append(mod)

    with tvm.transform.PassContext(instruments=[Watch()]), contextlib.suppress(Exception):
        tvm.compile(mod, target="llvm")
    return stages


def _scripts(make: Callable[[], list[ir.IRModule]]) -> list[str]:
    with contextlib.suppress(Exception):  # a pass that does not apply
        return sorted({mod.script(show_meta=meta) for mod in make() for meta in (False, True)})
    return []


# --- what people write -------------------------------------------------------------------------


def _written() -> dict[str, str]:
    """Return the definitions of the tests and in TVM's sources and docstrings, in today's words."""
    named = (TESTS / "loaders/tvmscript/written.txt").read_text(encoding="utf-8").split("# === ")
    found = {text: name for name, _, text in (one.partition("\n") for one in named[1:])}
    folder = Path(tvm.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        for text in _definitions(path.read_text(encoding="utf-8").split("\n")):
            with contextlib.suppress(LoadError):
                found.setdefault(upgrade(text).text, str(path.relative_to(folder)))
    return found


def _definitions(lines: list[str]) -> Iterator[str]:
    """Yield each decorated definition, also those in docstrings, without its indent."""
    for first, line in enumerate(lines):
        if _DECORATOR.match(line.lstrip()):
            indent = len(line) - len(line.lstrip())
            header = next(
                (
                    n
                    for n, one in enumerate(lines[first:], first)
                    if "):" in one or one.endswith(":")
                ),
                first,
            )
            last = header + 1
            while last < len(lines) and (
                not lines[last].strip() or len(lines[last]) - len(lines[last].lstrip()) > indent
            ):
                last += 1
            yield textwrap.dedent("\n".join(lines[first:last])).rstrip() + "\n"


if __name__ == "__main__":
    main()
