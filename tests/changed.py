"""Print the test files that a change touches, for `make changed`: `python tests/changed.py [BASE]`.

A change is everything since the branch left `main`, committed or not. It touches the tests that
changed, and those that import a changed module, or the nearest modules that import it: first those
named after it, then those that mention its name most often. The nearest files are printed, and
the number of others is noted. pytest-testmon does not see what worker processes run.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
MOST_FILES = 12
BASES = ("origin/main", "main", "HEAD")
PAGES = "tests/test_documentation.py"


def main(arguments: list[str]) -> None:
    """Print the files, and note on standard error how many there are beside them."""
    changed = changed_files(arguments or BASES)
    tests = touched_tests(changed)
    for test in [*tests[:MOST_FILES], *tests_of_pages(changed)]:
        print(test)
    print(f"{len(changed)} files changed, {len(tests)} test files import them", file=sys.stderr)
    if len(tests) > MOST_FILES:
        words = f"the {MOST_FILES} nearest run: `make test` runs the others, too"
        print(words, file=sys.stderr)


def changed_files(bases: tuple[str, ...] | list[str]) -> list[Path]:
    """Return the files that differ from where this branch left the first base that exists."""
    starts = (git("merge-base", "HEAD", base) for base in bases)
    start = next(found[0] for found in starts if found)
    names = git("diff", "--name-only", start) + git("ls-files", "--others", "--exclude-standard")
    return [Path(name) for name in dict.fromkeys(names)]


def git(*arguments: str) -> list[str]:
    """Return the lines that git answers; none if it fails."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if not done.returncode else []


def touched_tests(changed: list[Path]) -> list[Path]:
    """Return the test files without a browser that a change touches, the nearest first."""
    tests = {path: imported_by(path) for path in sorted(ROOT.glob("tests/**/test_*.py"))}
    modules = {module_name(path) for path in changed if path.parts[0] == "irviz"}
    graph = grimp.build_graph("irviz", cache_dir=None)
    touching: set[str] = set()
    for name in modules:
        touching |= nearest_importers(name, graph, tests.values())
    ranks = {}
    for full, imported in tests.items():
        path = full.relative_to(ROOT)
        stems = [name.rpartition(".")[2] for name in modules]
        is_named = any(path.stem == f"test_{stem}" for stem in stems)
        mentions = sum(full.read_text(encoding="utf-8").count(stem) for stem in stems)
        if path in changed:
            ranks[path] = 0, 0
        elif is_named or touching & imported:
            ranks[path] = 1 + (not is_named), -mentions
    return sorted((path for path in ranks if "browser" not in path.parts), key=ranks.__getitem__)


def tests_of_pages(changed: list[Path]) -> Iterator[str]:
    """Yield the tests of changed pages: their links, and the Python of each."""
    pages = [path for path in changed if path.suffix == ".md"]
    if pages:
        yield f"{PAGES}::test_every_link_of_a_page_leads_to_a_file"
    for path in pages:
        if path == Path("README.md") or path.parent == Path("docs"):
            yield f"{PAGES}::test_the_python_of_a_page_runs_from_top_to_bottom[{path.stem}]"


def nearest_importers(name: str, graph: grimp.ImportGraph, tests: Collection[set[str]]) -> set[str]:
    """Return a module that tests import: this one, or else the nearest that import it."""
    known = layer = {name}
    while layer and not any(layer & imported for imported in tests):
        inner = (one for one in layer if one in graph.modules)
        users = {user for one in inner for user in graph.find_modules_that_directly_import(one)}
        layer = users - known
        known = known | layer
    return layer


def module_name(path: Path) -> str:
    """Return the name of a module; a template or a script belongs to its package."""
    parts = path.with_suffix("").parts if path.suffix == ".py" else path.parts[:2]
    return ".".join(parts).removesuffix(".__init__")


def imported_by(path: Path) -> set[str]:
    """Return the modules of irviz that a file may import, from its first line to its last."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("irviz.")}


if __name__ == "__main__":
    main(sys.argv[1:])
