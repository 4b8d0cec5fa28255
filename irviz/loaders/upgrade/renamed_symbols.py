"""Names that moved or were removed since earlier versions of TVM, and their imports."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, Final

import libcst as cst
from libcst.helpers import get_full_name_for_node

_DIALECTS: Final = {"T": "tirx", "R": "relax", "I": "ir"}
_HOMES: Final = {short: f"tvm.script.{name}" for short, name in _DIALECTS.items()}
# TVMScript's dialects have these short names here, whatever a script imports them as.
SHORT: Final = {
    f"{home}.{name}": short
    for home in ("tvm.script", "tvm.script.parser")
    for short, name in (*_DIALECTS.items(), ("T", "tir"))
}

# The meaning of names that the text does not bind: a lecture's cell comes without its imports.
USUAL: Final = {
    **_HOMES,
    "tvm": "tvm",
    "relax": "tvm.relax",
    "te": "tvm.te",
    "topi": "tvm.topi",
    "tir": "tvm.tir",
    "ms": "tvm.meta_schedule",
    "relay": "tvm.relay",
}

_BLOCKS: Final = ("Block", "BlockRealize", "BlockScope", "BlockDependenceInfo")
_LAYOUTS: Final = {
    "BijectiveLayout": "SBijectiveLayout",
    "Layout": "SLayout",
    "bijective_layout": "sbijective_layout",
    "layout": "slayout",
}

# Where names are today that their modules lack: with the same last part, in another module.
_PLACES: Final = {
    "tvm.contrib.": "tvm.support.",
    "tvm.relax.op.": "tvm.relax.op.nn.",
    "R.": "R.nn.",
    "tvm.tir.": "tvm.s_tir.",
    "tvm.tir.transform.": "tvm.s_tir.transform.",
    "tvm.tir.analysis.": "tvm.s_tir.analysis.",
}

MOVED: Final[dict[str, str]] = {
    "tvm.script.ir_module": "I.ir_module",
    "T.block": "T.sblock",
    "T.block_attr": "T.sblock_attr",
    "tvm.nd": "tvm.runtime",
    "tvm.nd.array": "tvm.runtime.tensor",
    "tvm.nd.NDArray": "tvm.runtime.Tensor",
    "tvm.runtime.NDArray": "tvm.runtime.Tensor",
    "tvm.runtime.ndarray": "tvm.runtime",
    "tvm.runtime.ndarray.array": "tvm.runtime.tensor",
    "tvm.runtime.ndarray.NDArray": "tvm.runtime.Tensor",
    "tvm.gpu": "tvm.cuda",
    "tvm.nd.gpu": "tvm.cuda",
    "tvm.register_func": "tvm.register_global_func",
    "tvm.ffi.register_func": "tvm.register_global_func",
    "tvm._ffi.register_func": "tvm.register_global_func",
    "tvm.ffi.get_global_func": "tvm.get_global_func",
    "tvm._ffi.get_global_func": "tvm.get_global_func",
    "tvm.ir.structural_equal": "tvm_ffi.structural_equal",
    "tvm.ir.structural_hash": "tvm_ffi.structural_hash",
    "tvm.ir.get_first_structural_mismatch": "tvm_ffi.get_first_structural_mismatch",
    "tvm.build": "tvm.tirx.build",
    "tvm.tir": "tvm.tirx",
    "tvm.tir.schedule.BlockRV": "tvm.s_tir.schedule.SBlockRV",
    "tvm.meta_schedule": "tvm.s_tir.meta_schedule",
    "tvm.dlight": "tvm.s_tir.dlight",
    "tvm.relax.Executable": "tvm.relax.VMExecutable",
    "tvm.relax.vm.Executable": "tvm.relax.VMExecutable",
    "tvm.relax.struct_info": "tvm.relax",
    **{f"tvm.tir.{name}": f"tvm.s_tir.S{name}" for name in _BLOCKS},
    **{f"tvm.tir.{old}": f"tvm.s_tir.{new}" for old, new in _LAYOUTS.items()},
    **{
        f"tvm.relax.{place}{old}": f"tvm.{new}"
        for place in ("", "struct_info.")
        for old, new in {
            "StructInfo": "relax.Type",
            "TensorStructInfo": "relax.TensorType",
            "ShapeStructInfo": "relax.ShapeType",
            "TupleStructInfo": "relax.TupleType",
            "FuncStructInfo": "relax.FuncType",
            "ObjectStructInfo": "relax.AnyType",
        }.items()
    },
    "tvm.relax.Constant": "tvm.ir.GenericConst",
    "tvm.relax.expr.Constant": "tvm.ir.GenericConst",
}

# Names that the installed TVM no longer has, and the reason why nothing replaces them.
GONE: Final[dict[str, str]] = {
    "tvm.relay": "Relay is no longer part of TVM; Relax has its operators and importers",
    "tvm.autotvm": "AutoTVM is no longer part of TVM; tvm.s_tir.meta_schedule tunes TensorIR",
    "tvm.auto_scheduler": (
        "the auto-scheduler is no longer part of TVM; tvm.s_tir.meta_schedule tunes TensorIR"
    ),
    "tvm.micro": "microTVM is no longer part of TVM",
    "tvm.lower": "tvm.lower is gone; tvm.tirx.build lowers and builds at once",
    "tvm.te.create_schedule": (
        "schedules of tensor expressions are gone; schedule te.create_prim_func(...) instead"
    ),
    "tvm.TVMError": "TVM's errors are RuntimeError, ValueError and others of Python now",
    "tvm.tir.stmt_functor": (
        "walks over statements are tvm_ffi.StructuralVisitor and StructuralMutator now, "
        "which are written differently"
    ),
    "tvm.relax.PrimStructInfo": "a number's type is tvm.ir.PrimType now, which holds no value",
    "T.preflattened_buffer": "buffers are no longer flattened by hand",
    "R.match_shape": "it is R.match_cast(x, R.Tensor(shape, dtype)) now: the dtype is not known",
}


def moved(meaning: str) -> str:
    """Return the current full name for a dotted name, which may be unchanged."""
    parts = meaning.split(".")
    for length in range(len(parts), 0, -1):
        head = ".".join(parts[:length])
        if new := MOVED.get(head) or _elsewhere(head):
            return ".".join([new, *parts[length:]])
    return meaning


def _elsewhere(name: str) -> str:
    """Return the name in the module that has it today, where its own lacks it; "" for none."""
    place, dot, last = name.rpartition(".")
    new = _PLACES.get(place + dot, "") + last
    is_moved = new != last and why_missing(f"{moved(place)}.{last}") and not why_missing(new)
    return new if is_moved else ""


def operator_name(name: str) -> str:
    """Return today's name of an operator, as strings give it."""
    if name == "relax.nn.dense":
        return "relax.matmul"
    new = name.replace("relax.", "relax.nn.", 1)
    return new if name not in _operators() and new in _operators() else name


def gone(meaning: str) -> str:
    """Return why a dotted name was removed, or "" if it was not."""
    parts = meaning.split(".")
    heads = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((GONE[head] for head in heads if head in GONE), "")


# --- installed names ---------------------------------------------------------------------------
#
# Look up the names of a text in the installed TVM; TVM's modules are imported, nothing is called.
#
# Only names that are certainly missing are reported. Attributes of objects of unknown type, and of
# modules that cannot be imported here, are assumed to exist.


_PACKAGES: Final = ("tvm", "tvm_ffi")
_PROGRAMS: Final = "tvm.exec"
_OPERATOR_PREFIX: Final = "relax."


class _Unknown:
    """Stands for a value that cannot be known without running code."""


def why_missing(name: str) -> str:
    """Return the reason why a dotted name is not in the installed TVM, or "" if it may be."""
    head, _, rest = name.partition(".")
    parts = [*_HOMES.get(head, head).split("."), *rest.split(".")] if rest else [head]
    if parts[0] not in _PACKAGES:
        return ""
    for length in range(2, len(parts) + 1):
        if _found(".".join(parts[:length])) is None:
            return (
                f"the installed TVM has no {parts[length - 1]} in {'.'.join(parts[: length - 1])}"
            )
    return ""


def unknown_keywords(name: str, keywords: Iterable[str]) -> list[str]:
    """Return the keywords that the function with a dotted name does not accept."""
    head, dot, rest = name.partition(".")
    accepted = _keywords(_HOMES.get(head, head) + dot + rest)
    return [] if accepted is None else [word for word in keywords if word not in accepted]


def why_no_operator(name: str) -> str:
    """Return the reason why a string names no operator, or "" if it may name something."""
    last = name.removeprefix(_OPERATOR_PREFIX)
    if last == name or not all(part.isidentifier() and part.islower() for part in last.split(".")):
        return ""
    if name in _operators() or not why_missing(f"tvm.{name}"):
        return ""
    return "the installed TVM has no operator of this name"


def why_no_program(name: str) -> str:
    """Return the reason why a function of TVM cannot run the program that it needs, or ""."""
    if name != "tvm.support.clang.create_llvm":
        return ""
    from tvm.support.clang import find_clang

    return "" if find_clang(required=False) else "it runs clang, which is not installed here"


@cache
def _operators() -> Collection[str]:
    """Return what a string like `relax.add` can name: operators, functions, and options."""
    import tvm
    from tvm_ffi.registry import list_global_func_names

    return frozenset(
        [
            *map(str, tvm.ir.Op.list_op_names()),
            *map(str, list_global_func_names()),
            *map(str, tvm.transform.PassContext.list_configs()),
        ]
    )


@lru_cache(10_000)  # a text may have any number of names
def _found(name: str) -> Any:
    """Return the object with a dotted name, _Unknown if that cannot be told, None if missing."""
    home, _, last = name.rpartition(".")
    owner: Any = _found(home) if home else None
    if home and not inspect.ismodule(owner):
        is_missing = inspect.isclass(owner) and owner is not _Unknown and not hasattr(owner, last)
        return None if is_missing else _Unknown
    if home and hasattr(owner, last):
        return getattr(owner, last)
    if home and last != "__main__" and not hasattr(owner, "__path__"):
        return None
    place = f"{owner.__name__}.{last}" if home else name  # modules have other names as well
    is_program = place.startswith(_PROGRAMS) or last == "__main__"
    if is_program or place.partition(".")[0] not in _PACKAGES:
        return _Unknown  # importing it may have side effects
    try:
        return importlib.import_module(place) if find_spec(place) is not None else None
    except ModuleNotFoundError:
        return _Unknown if find_spec(place) is not None else None  # it wants another package
    except (Exception, SystemExit):
        return _Unknown  # it is there, and wants something that is not


@lru_cache(10_000)
def _keywords(name: str) -> Collection[str] | None:
    """Return the keywords that a function or a class of TVM takes, or None if any may be right."""
    function: Any = _found(name)
    if not (inspect.isfunction(function) or inspect.isclass(function)) or function is _Unknown:
        return None
    try:
        # a wrapper takes what it says itself
        parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in parameters)


Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def rewrite_import(line: cst.SimpleStatementLine) -> list[cst.SimpleStatementLine]:
    """Return the lines that import the same objects from today's TVM under the same names."""
    match line.body:
        case [cst.Import(names=names) as statement]:
            return [
                line.with_changes(body=[statement.with_changes(names=list(map(_module, names)))])
            ]
        case [cst.ImportFrom(module=module, names=names, relative=()) as statement] if (
            module is not None and not isinstance(names, cst.ImportStar)
        ):
            return _from(line, statement, module, names)
    return [line]


def _module(alias: cst.ImportAlias) -> cst.ImportAlias:
    name = get_full_name_for_node(alias.name) or ""
    new = new_name(name)
    return alias if new == name else alias.with_changes(name=cst.parse_expression(new))


def _from(
    line: cst.SimpleStatementLine,
    statement: cst.ImportFrom,
    module: cst.CSTNode,
    names: Sequence[cst.ImportAlias],
) -> list[cst.SimpleStatementLine]:
    """Return the lines that import names from the modules that they are in today."""
    old_place = get_full_name_for_node(module)
    by_place: dict[str, list[cst.ImportAlias]] = {}
    for alias in names:
        old = f"{old_place}.{get_full_name_for_node(alias.name)}"
        place, _, name = new_name(old).rpartition(".")
        is_same = f"{place}.{name}" == old
        by_place.setdefault(place, []).append(alias if is_same else _renamed(alias, name))
    if len(by_place) == 1:
        ((place, kept),) = by_place.items()
        new = module if place == old_place else cst.parse_expression(place)
        return [line.with_changes(body=[statement.with_changes(module=new, names=kept)])]
    lines = []
    for place, kept in by_place.items():
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        part = statement.with_changes(
            module=cst.parse_expression(place), names=kept, lpar=None, rpar=None
        )
        lines.append(cst.SimpleStatementLine([part]))
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    lines[-1] = lines[-1].with_changes(trailing_whitespace=line.trailing_whitespace)
    return lines


def _renamed(alias: cst.ImportAlias, name: str) -> cst.ImportAlias:
    # The script's own name for it stays, as every use of it stays too.
    called = alias.asname
    if called is None and isinstance(alias.name, cst.Name) and alias.name.value != name:
        called = cst.AsName(cst.Name(alias.name.value))
    return alias.with_changes(name=cst.Name(name), asname=called)


def new_name(name: str) -> str:
    """Return the full name under which an object is imported today."""
    if name == "tvm.script.tir" or name.startswith("tvm.script.tir."):
        return name.replace("tvm.script.tir", "tvm.script.tirx", 1)
    head, _, rest = moved(name).partition(".")
    return name if head in SHORT.values() else f"{head}.{rest}" if rest else head


def with_imports(module: cst.Module, new: Collection[str]) -> cst.Module:
    """Return a module that also imports these: T, R, I, or modules by full name."""
    body = list(module.body)
    dialects = sorted(set(new) & set(_DIALECTS))
    scripts = [index for index, line in enumerate(body) if _is_from(line, "tvm.script")]
    if scripts and dialects:
        body[scripts[0]] = _extended(body[scripts[0]], dialects)
        dialects = []
    text = [f"import {name}" for name in sorted(set(new) - set(_DIALECTS))]
    if dialects:
        names = ", ".join(f"{_DIALECTS[short]} as {short}" for short in dialects)
        text.append(f"from tvm.script import {names}")
    places = (index for index, line in enumerate(body, 1) if _imports_tvm(line))
    place = next(places, _head_length(body))
    for statement in reversed(text):
        line = cst.parse_statement(statement)
        if place < len(body) and not (place and _imports_tvm(body[place - 1])):
            # Comments above the first statement stay at the top.
            first = body[place]
            line = line.with_changes(leading_lines=getattr(first, "leading_lines", ()))
            body[place] = first.with_changes(leading_lines=())
        body.insert(place, line)
    return module.with_changes(body=body)


def _extended(line: Statement, shorts: Sequence[str]) -> Statement:
    """Return a line like `from tvm.script import ir as I` that imports more dialects."""
    assert isinstance(line, cst.SimpleStatementLine)
    (statement,) = line.body
    assert isinstance(statement, cst.ImportFrom)
    assert not isinstance(statement.names, cst.ImportStar)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    *names, last = statement.names
    for short in shorts:
        names.append(last.with_changes(comma=comma))
        last = cst.ImportAlias(
            cst.Name(_DIALECTS[short]), cst.AsName(cst.Name(short)), comma=last.comma
        )
    return line.with_changes(body=[statement.with_changes(names=[*names, last])])


def _is_from(line: cst.CSTNode, module: str) -> bool:
    """Tell whether a line imports names from a module, and nothing else."""
    match line:
        case cst.SimpleStatementLine(body=[cst.ImportFrom(names=[*_])]):
            return _imported(line) == [module]
    return False


def _imported(line: cst.CSTNode) -> list[str]:
    """Return the modules that a line imports, or imports from."""
    nodes: list[cst.CSTNode] = []
    for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
        if isinstance(statement, cst.Import):
            nodes += [alias.name for alias in statement.names]
        elif isinstance(statement, cst.ImportFrom) and statement.module and not statement.relative:
            nodes.append(statement.module)
    return [get_full_name_for_node(node) or "" for node in nodes]


def _imports_tvm(line: cst.CSTNode) -> bool:
    return any(name.partition(".")[0] == "tvm" for name in _imported(line))


def _head_length(body: Sequence[cst.CSTNode]) -> int:
    """Return how many lines are the docstring and the imports from the future below it."""
    match body:
        case [cst.SimpleStatementLine(body=[cst.Expr(value=text), *_]), *_]:
            length = int(isinstance(text, cst.SimpleString | cst.ConcatenatedString))
        case _:
            length = 0
    while length < len(body) and _is_from(body[length], "__future__"):
        length += 1
    return length


def future_first(module: cst.Module) -> cst.Module:
    """Return a module whose `from __future__` imports come first, as Python requires."""
    head = _head_length(module.body)
    rest = sorted(module.body[head:], key=lambda line: not _is_from(line, "__future__"))
    return module.with_changes(body=[*module.body[:head], *rest])
