"""Load .pt2 files, and run their programs for comparison with the imported modules."""

from __future__ import annotations

import ast
import json
import math
import re
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from irviz.errors import LoadError
from irviz.ir.framework_calls import operator_name
from irviz.loaders.file_limits import FileError, brief, file_errors
from irviz.loaders.loaded_model import Loaded, Missing, OriginFile
from irviz.loaders.models.imported_layers import place_words
from irviz.loaders.models.torch_models import import_program, load_errors, quiet
from irviz.loaders.models.torch_origin import ProgramOrigin, Returned
from irviz.model.runs.execution_trace import Array
from irviz.model.runs.run_result import Origin, OriginRun

if TYPE_CHECKING:
    import torch

NEEDED = "it needs PyTorch: install irviz[torch], as in pip install 'irviz[torch]'"


def from_pt2(content: bytes, path: Path | None = None, missing: Missing = "error") -> Loaded:
    """Return the program in a .pt2 file, running nothing in it; raise LoadError for other files.

    Parts that torch would run are removed first, or the file is refused. Runs in the worker.
    """
    loaded = import_program(_read_pt2(content), missing)
    if not isinstance(loaded.origin, ProgramOrigin):
        return loaded
    returned = repr(loaded.origin.returned.template)
    return replace(loaded, origin=Pt2Origin(OriginFile.of(content, path), returned))


@dataclass(frozen=True, eq=False)
class Pt2Origin(Origin):
    """The program in a .pt2 file, which the worker reads again and runs.

    `returned` is the structure of what it returns, with sets of numbers in place of outputs.
    """

    file: OriginFile
    returned: str
    name = "torch"
    is_isolated = True

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Read the file and run its program; raise RunError if it has been changed.

        It is decomposed and imported only if values of nodes are recorded: that takes longer than
        the run.
        """
        program = _read_pt2(self.file.read())
        names = {node.name for node in program.graph.find_nodes(op="placeholder")}
        if not budget and arguments.keys() <= names:
            return ProgramOrigin(program, {}, Returned.of(program)).run(arguments, 0)
        origin = import_program(program, "opaque").origin
        assert origin is not None, "a program with calls that nothing computes has no origin"
        return origin.run(arguments, budget)

    def value(self, outputs: Sequence[Array]) -> object:
        """Return outputs in dicts, lists and tuples as the program returns them."""

        def filled(part: Any) -> object:
            match part:
                case set():
                    return outputs[min(part)]
                case dict():
                    return {key: filled(each) for key, each in part.items()}
                case list() | tuple():
                    return type(part)(map(filled, part))
            return part

        return filled(ast.literal_eval(self.returned))


def _read_pt2(content: bytes) -> torch.export.ExportedProgram:
    archive = plain_archive(content)
    try:
        import torch
    except ImportError:
        raise LoadError(NEEDED) from None
    with quiet(), load_errors(f"it is damaged, or not from torch {torch.__version__}"):
        return torch.export.load(BytesIO(archive))


# --- Remove everything from a .pt2 archive that torch would run while reading it -----------------
#
# torch.export.load unpickles sample inputs, and falls back to the unsafe unpickler if the safe
# one refuses them. It unpickles old weights and constants, loads compiled libraries, evaluates
# the text of symbolic sizes, imports the names in the text of a structure, and writes names into
# Python code that it runs. So a new archive is written with only the graph and plain numbers,
# and every string in it is checked: names are identifiers, operators are ATen's, sizes are
# arithmetic, and classes that hold inputs or outputs, such as a ModelOutput, are dicts and
# tuples.


_AGAIN: Final = "save it again with torch.export.save(torch.export.export(model, inputs), path)"
_ROOT: Final = "model"
_MAX_GROWTH: Final = 1 << 26
_NAME: Final = re.compile(r"[\w.]*")
_PATH: Final = re.compile(r"[\w.-]*")
"""The path of a module or parameter, which is not used as a name in Python code."""
_PATHS: Final = ("parameter_name", "buffer_name", "tensor_constant_name", "fqn")
_OPS: Final = "torch.ops."
_HIGHER: Final = re.compile(
    r"torch\.ops\.higher_order\.(cond|while_loop|wrap_with_set_grad_enabled|wrap_with_autocast)"
)
_SCALARS: Final = re.compile(
    r"_operator\.(add|sub|mul|truediv|floordiv|mod|neg|pos|pow|eq|ne|lt|le|gt|ge|and_|or_|not_"
    r"|getitem)|math\.(ceil|floor|trunc)|torch\.sym_(int|float|max|min|not|ite|sum|sqrt)"
)
_FUNCTION_NAMES: Final = """
    Symbol Integer Rational Float Add Mul Pow Mod Max Min Abs Eq Ne Lt Le Gt Ge And Or Not
    Equality Unequality StrictLessThan LessThan StrictGreaterThan GreaterThan floor ceiling
    FloorDiv ModularIndexing Where PythonMod CleanDiv CeilToInt FloorToInt CeilDiv LShift RShift
    PowByNatural FloatPow FloatTrueDiv IntTrueDiv TruncToFloat TruncToInt RoundToInt RoundDecimal
    ToFloat Identity
"""
_FUNCTIONS: Final = frozenset(_FUNCTION_NAMES.split())
_POWERS: Final = ("Pow", "PowByNatural", "FloatPow", "LShift")
_MAX_EXPONENT: Final = 64
_SIZE_BITS, _MAX_BITS = 64, 8_192
"""The most bits of a symbolic size, and of a value computed from sizes."""
_PLAIN: Final = (None, "builtins.tuple", "builtins.list")
_DROPPED: Final = "treespec_namedtuple_fields"
_MAX_FRAMES: Final = 20
_FRAME: Final = re.compile(r'File "([\w./\\ :<>+-]{1,300})", line (\d{1,7}), in ([\w<>]{1,100})')
_LAYER: Final = r"[\w.@\[\]'-]{0,500}(?:,[\w.@\[\]'-]{0,500}){2}"
_LAYERS: Final = re.compile(rf"{_LAYER}(?:;{_LAYER})*")
_UNCHECKED: Final = ("as_string", "as_strings", "torch_version")  # torch only quotes these
_NOT_FINITE: Final = ("Infinity", "-Infinity", "NaN")
_FLOATS: Final = ("as_float", "as_floats", "as_float_lists")
_MAX_NESTING: Final = 60
_MAX_EXPRESSION: Final = 4_000  # characters of a symbolic size, which Python's parser reads


def plain_archive(content: bytes) -> bytes:
    """Return an archive with only the graph and the numbers, for torch.export.load.

    Raises FileError if the model needs anything else, or if this is not a .pt2 archive.
    """
    damaged = "is damaged or cut short"
    with file_errors(damaged, _AGAIN), zipfile.ZipFile(BytesIO(content)) as archive:
        return _plain(archive)


def _plain(archive: zipfile.ZipFile) -> bytes:
    # without the folder that contains all members
    names = {info.filename.partition("/")[2]: info for info in archive.infolist()}
    if not names or min(info.header_offset for info in names.values()):
        # the end is missing, and zipfile found the end of an archive inside this one
        raise FileError(f"is damaged or cut short; {_AGAIN}")
    graphs = [name for name in names if re.fullmatch(r"models/\w+\.json", name)]
    if "archive_format" not in names or not graphs:
        raise FileError(_other_archive(names))
    if len(graphs) > 1:
        raise FileError(f"holds {len(graphs)} programs: save one of them alone")
    declared = sum(info.file_size for info in names.values())
    if declared > 2 * sum(info.compress_size for info in names.values()) + _MAX_GROWTH:
        raise FileError(f"would be {declared:,} bytes unpacked, far more than packed; {_AGAIN}")
    model = graphs[0][len("models/") : -len(".json")]
    program = json.loads(archive.read(names[graphs[0]]))
    members = {
        f"models/{_ROOT}.json": json.dumps(_checked(program)).encode(),
        f"data/sample_inputs/{_ROOT}.pt": b"",
        "archive_format": b"pt2",
        "archive_version": archive.read(names["archive_version"]),
        ".data/version": b"6\n",
        "byteorder": b"little",
    }
    for folder in ("weights", "constants"):
        config = f"data/{folder}/{model}_{folder}_config.json"
        if config not in names:
            raise FileError(f"keeps its {folder} in pickles, as older versions did; {_AGAIN}")
        read = json.loads(archive.read(names[config]))
        _check_payload(read, folder)
        members[f"data/{folder}/{_ROOT}_{folder}_config.json"] = json.dumps(read).encode()
        for entry in read["config"].values():
            path = f"data/{folder}/{entry['path_name']}"
            members[path] = archive.read(names[path])
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as plain:
        for name, part in members.items():
            plain.writestr(f"{_ROOT}/{name}", part)
    return file.getvalue()


_PROGRAM: Final = f"not a torch.export program; {_AGAIN}"
_ARCHIVES: Final = {
    r"data/aotinductor/": f"is compiled by AOTInductor, {_PROGRAM}",
    r"code/": f"is TorchScript, which is code, {_PROGRAM}",
    r"data\.pkl$": f"is a pickle from torch.save, which may run anything, {_PROGRAM}",
    r"(.*/)?saved_model\.pb$": (
        "is a SavedModel of TensorFlow: convert it to ONNX with python -m tf2onnx.convert"
    ),
    r"Manifest\.json$": "is a Core ML package: give the model itself, as ONNX or .pt2",
}
"""What is said of zip archives, by the names of their members."""


def _other_archive(names: Collection[str]) -> str:
    """Describe a zip archive that is not a .pt2 program."""
    for pattern, words in _ARCHIVES.items():
        if any(re.match(pattern, name) for name in names):
            return words
    return "is a zip archive, not a torch.export program; unpack it, and give a model that is in it"


def _check_payload(read: Any, folder: str) -> None:
    _checked({**read, "config": list(read["config"].values())})
    wanted = "weight" if folder == "weights" else "tensor"
    for name, entry in read["config"].items():
        _text(name, "fqn")
        if entry["use_pickle"] is not False or entry["tensor_meta"] is None:
            raise FileError(f"keeps {name!r} as a pickle, which may run anything; {_AGAIN}")
        if not re.fullmatch(rf"{wanted}_\d+", entry["path_name"]):
            raise FileError(
                f"holds a custom object ({entry['path_name'][:80]!r}), which only code can "
                "make: export a model of only tensors"
            )


def _checked(value: Any, key: str = "", depth: int = 0) -> Any:
    """Return a part of the program without anything that torch could run, or raise FileError."""
    if depth > _MAX_NESTING:
        raise FileError(f"is nested more than {_MAX_NESTING} deep; {_AGAIN}")
    match value:
        case dict():
            return {
                _text(name, ""): _member(name, part, value, depth)
                for name, part in value.items()
                if name != "guards_code"
            }
        case list():
            return [_checked(part, key, depth + 1) for part in value]
        case str():
            return _text(value, key)
        case _:
            return value


def _member(name: str, value: Any, owner: dict[str, Any], depth: int) -> Any:
    if name == "metadata":
        return _origin(value)
    if name == "target":
        _check_operator(value, owner)
        return value
    if name == "range_constraints":  # those of a derived size, such as 2*s0, follow from s0's
        value = {s: limits for s, limits in value.items() if plain_size(s) and s.isidentifier()}
    return {} if name == _DROPPED else _checked(value, name, depth + 1)


def _origin(metadata: dict[str, Any]) -> dict[str, str]:
    """Return the layers and source lines of a node, which torch only quotes."""
    found = {}
    if frames := _FRAME.findall(str(metadata.get("stack_trace"))):
        found["stack_trace"] = "\n".join(
            f'File "{file}", line {line}, in {name}' for file, line, name in frames[-_MAX_FRAMES:]
        )
    layers = metadata.get("nn_module_stack")
    if isinstance(layers, str) and _LAYERS.fullmatch(layers):
        found["nn_module_stack"] = layers
    return found


def _text(text: str, key: str) -> str:
    match key:
        case "expr_str":
            return plain_size(text)
        case "in_spec" | "out_spec":
            return _plain_structure(text)
        case "as_operator":
            _check_operator(text, {})
        case _ if key in _FLOATS and text in _NOT_FINITE:
            pass
        case _ if key in _UNCHECKED or (_PATH if key in _PATHS else _NAME).fullmatch(text):
            pass
        case _:
            raise FileError(
                f"has {brief(text)} where a name should be, so it was not read; {_AGAIN}"
            )
    return text


def _check_operator(text: str, node: dict[str, Any]) -> None:
    """Raise FileError with the node's layer and line if an operator must not be called."""
    is_aten = text.startswith(_OPS) and operator_name(text.removeprefix(_OPS)) is not None
    if is_aten or any(kind.fullmatch(text) for kind in (_HIGHER, _SCALARS)):
        return
    found = _origin(node.get("metadata") or {})
    layers = [one.split(",") for one in found.get("nn_module_stack", "").split(";") if one]
    place = place_words([(name, kind) for _, name, kind in layers], found.get("stack_trace"))
    raise FileError(
        f"calls {brief(text)}{place}, and only operators of torch.ops.aten that neither read files "
        "nor print are let in, so it was not read: export the model with those"
    )


def plain_size(text: str) -> str:
    """Return the text of a symbolic size; raise FileError if it is more than small arithmetic."""
    try:
        tree = ast.parse(text, mode="eval") if len(text) <= _MAX_EXPRESSION else None
        is_small = tree is not None and _bits(tree.body) <= _MAX_BITS
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        tree, is_small = None, False
    if tree is None or not is_small:
        raise FileError(f"has {brief(text)} where a size should be, so it was not read")
    return ast.unparse(tree)


def _bits(node: ast.expr) -> int:
    """Return an upper bound on the bits of a value; raise ValueError for more than arithmetic."""
    match node:
        case ast.Constant(value=str() as name) if re.fullmatch(r"[A-Za-z_]\w*", name):
            return _SIZE_BITS
        case ast.Constant(value=bool() | int() as value):
            return int(value).bit_length()
        case ast.Constant(value=float() as value) if math.isfinite(value):
            return int(value).bit_length() + 1
        case ast.Name(id=name) if name in _FUNCTIONS or re.fullmatch(r"[a-z]+\d+", name):
            return _SIZE_BITS
        case ast.UnaryOp(operand=operand):
            return _bits(operand) + 1
        case ast.BinOp(left=left, op=op, right=right):
            is_power = isinstance(op, ast.Pow | ast.LShift)
            return _result_bits([left, right], is_power=is_power)
        case ast.Compare(left=left, comparators=others):
            return _result_bits([left, *others], is_power=False)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _FUNCTIONS:
            values = [*args, *(each.value for each in keywords)]
            return _result_bits(values, is_power=name in _POWERS)
    raise ValueError("more than arithmetic")


def _result_bits(nodes: list[ast.expr], *, is_power: bool) -> int:
    total = sum(map(_bits, nodes)) + len(nodes)
    if not is_power:
        return total
    exponent = _integer(nodes[1]) if len(nodes) > 1 else None
    if exponent is None or not abs(exponent) <= _MAX_EXPONENT:
        raise ValueError("a large power")
    times = math.ceil(abs(exponent)) + 1
    return (_bits(nodes[0]) + 1) * times


def _integer(node: ast.expr) -> float | None:
    """Return the value of an integer literal, or None."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = _integer(operand)
            return None if value is None else -value
        case ast.Call(func=ast.Name(id="Integer" | "Float"), args=[argument]):
            return _integer(argument)
        case ast.Constant(value=int() | float() as value):
            return value
    return None


def _plain_structure(text: str) -> str:
    """Return the text of a structure with classes other than tuples and lists turned into dicts.

    torch imports the classes that a structure names; their parts are all that a module needs.
    """
    version, outermost = json.loads(text)
    if version != 1:
        raise FileError(f"has a structure of version {brief(version)}, not 1; {_AGAIN}")
    return json.dumps([1, _plain_part(outermost, 0)])


def _plain_part(part: dict[str, Any], depth: int) -> dict[str, Any]:
    if depth > _MAX_NESTING:
        raise FileError(f"takes or returns what is nested more than {_MAX_NESTING} deep; {_AGAIN}")
    kind, children = part["type"], part["children_spec"]
    plain = [_plain_part(child, depth + 1) for child in children]
    if kind in _PLAIN:
        context = None if kind is None else "null"
    elif (keys := _keys(part["context"], len(children))) is not None:
        kind, context = "builtins.dict", json.dumps(keys)
    else:
        kind, context = "builtins.tuple", "null"
    return {"type": kind, "context": context, "children_spec": plain}


def _keys(context: Any, count: int) -> list[str] | None:
    """Return the keys of a dict, or the fields of a dataclass, as names; None for other classes."""
    keys = json.loads(context) if isinstance(context, str) and context.startswith("[") else None
    if not isinstance(keys, list):
        return None
    if keys and isinstance(keys[0], list):
        keys = keys[0]  # a dataclass; its fields that are None come behind
    if len(keys) != count or not all(isinstance(key, str) for key in keys):
        return None
    names = [key if _NAME.fullmatch(key) else f"key{number}" for number, key in enumerate(keys)]
    return names if len(set(names)) == count else None
