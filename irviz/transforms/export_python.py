"""The Python script that reproduces a path of stages with TVM and the user's functions."""

from __future__ import annotations

import ast
import base64
import builtins
import importlib
import inspect
import sys
import textwrap
import types
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, tirx
from tvm_ffi import structural_equal

from irviz.errors import IrvizError
from irviz.ir.parameter_values import is_equal_array
from irviz.ir.tvmscript import tvmscript
from irviz.loaders.tvmscript.admission import admit
from irviz.loaders.tvmscript.read_modules import parse_admitted

_DECODING = ("import base64", "import zlib")
_WIDTH = 96
INLINE = 64
"""Arrays with more elements than this are written in base 64."""


class UnwritableError(IrvizError):
    """A step cannot be written as Python; the message says why."""


@dataclass(eq=False)
class PythonScript:
    """Collects statements in order, with the imports, definitions and arrays that they need.

    The module is always named `mod`. The `arrays`, by name, are written into the script or to a
    file. `names` has the values of globals that users' functions use, to detect clashes.
    """

    names: dict[str, object] = field(default_factory=dict)
    arrays: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    _lines: list[str] = field(default_factory=list)
    _imports: dict[str, None] = field(default_factory=lambda: {"import tvm": None})
    _definitions: dict[str, None] = field(default_factory=dict)
    _scheduled: str = ""

    def add(self, *lines: str, needs: tuple[str, ...] = ()) -> None:
        """Add statements, and the import statements they need."""
        self._close_schedule()
        self._imports |= dict.fromkeys(needs)
        self._lines += lines

    def comment(self, words: str) -> None:
        """Add a comment."""
        self._lines += [f"# {line}" for line in words.splitlines()]

    def define(self, source: str, needs: tuple[str, ...] = ()) -> None:
        """Add the definition of a function, and the import statements it needs."""
        self._imports |= dict.fromkeys(needs)
        self._definitions[source.rstrip()] = None

    def array(self, name: str, value: NDArray[np.generic]) -> str:
        """Add an array and return the expression for it; raise UnwritableError for other dtypes."""
        if value.dtype.kind not in "biufc":
            raise UnwritableError(f"{name!r} is of dtype {value.dtype}, which NumPy cannot save")
        name = f"{name}_" if name in ("file", "allow_pickle") else name  # parameters of np.savez
        key, count = name, 1
        while key in self.arrays and not is_equal_array(self.arrays[key], value):
            count += 1
            key = f"{name}_{count}"
        self.arrays[key] = value
        return f"arrays[{key!r}]"

    def schedule(self, function: str, *lines: str) -> None:
        """Add steps of one PrimFunc's schedule, `sch`, which consecutive calls share."""
        if self._scheduled != function:
            self._close_schedule()
            self._imports["from tvm import s_tir"] = None
            self._lines += ["sch = s_tir.Schedule(mod)", f"sch.work_on({function!r})"]
            self._scheduled = function
        self._lines += lines

    def embed(self, mod: ir.IRModule, why: str) -> None:
        """Add the module itself instead of statements that would make it."""
        self.comment(why)
        self.add(f"mod = {self.embedded(mod)}")

    def embedded(self, value: object) -> str:
        """Return the expression that reads a TVM object from text in base 64."""
        self.add(needs=_DECODING)
        return f"tvm.ir.load_json({_packed(tvm.ir.save_json(value).encode(), 9)}.decode())"

    def begin(self, mod: ir.IRModule) -> None:
        """Add the first module, as TVMScript where that is lossless."""
        source = tvmscript_source(mod)
        if source is None:
            self.embed(mod, "the first module; TVMScript would lose a part of it")
        else:
            self.add(f"mod = {source}")

    def text(self, arrays_file: str = "") -> str:
        """Return the script; with `arrays_file` it loads its arrays from that file."""
        self._close_schedule()
        imports = set(self._imports)
        if self.arrays:
            imports.add("import numpy as np")
            if not arrays_file and any(value.size > INLINE for value in self.arrays.values()):
                imports.update(_DECODING)
        parts = ["\n".join(sorted(imports, key=lambda line: (line.startswith("from"), line)))]
        if arrays_file:
            parts.append(f"arrays = np.load({arrays_file!r})")
        elif self.arrays:
            items = [f"    {key!r}: {_array_source(value)}," for key, value in self.arrays.items()]
            parts.append("\n".join(["arrays = {", *items, "}"]))
        parts += [f"\n{source}\n" for source in self._definitions]
        return "\n\n".join([*parts, "\n".join(self._lines)]) + "\n"

    def _close_schedule(self) -> None:
        if self._scheduled:
            self._lines.append("mod = sch.mod")
            self._scheduled = ""


def source_of(function: Callable[..., object]) -> str:
    """Return the source of a function; raise UnwritableError when it cannot be found."""
    try:
        return textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as failure:
        name = getattr(function, "__name__", function)
        raise UnwritableError(f"the source of {name} cannot be found") from failure


def tvmscript_source(value: ir.IRModule | tirx.PrimFunc) -> str | None:
    """Return the expression that parses TVMScript, None if that does not give an equal object."""
    if isinstance(value, tirx.PrimFunc):
        names = [str(value.attrs["global_symbol"])]
    else:
        names = [gvar.name_hint for gvar in value.functions]
    if not all(name.isidentifier() for name in names):
        return None  # TVM prints such a name unescaped, so it could contain code
    try:
        text = tvmscript(value, show_meta=False)
        if "'''" in text:
            return None
        # names come from the module, which may come from an untrusted file
        is_same = structural_equal(parse_admitted(admit(text).text), value)
    except Exception:  # refused, or TVM cannot print or parse it: the caller embeds it instead
        return None
    body = "\n".join(line for line in text.splitlines() if not line.startswith("# from "))
    return f"tvm.script.from_source(r'''\n{body.strip()}\n''')" if is_same else None


def _array_source(value: NDArray[np.generic]) -> str:
    if value.size <= INLINE:
        return f"np.array({value.tolist()!r}, {value.dtype.name!r})".replace(
            "nan", "np.nan"
        ).replace("inf", "np.inf")
    read = _packed(np.ascontiguousarray(value).tobytes(), 6)
    return f"np.frombuffer({read}, {value.dtype.name!r}).reshape({value.shape!r})"


def _packed(content: bytes, level: int) -> str:
    """Return the expression for bytes, compressed at this level."""
    text = base64.b64encode(zlib.compress(content, level)).decode()
    lines = textwrap.wrap(text, _WIDTH)
    literal = f'"{text}"' if len(lines) < 2 else '"""\n' + "\n".join(lines) + '\n"""'
    return f"zlib.decompress(base64.b64decode({literal}))"


_IMPORTABLE = ("tvm", "tvm_ffi", "numpy")
"""The packages that a script may import, besides the standard library."""

_RESERVED = frozenset({"arrays", "function", "functions", "gvar", "mod", "params", "sch", "tvm"})
"""The names that a script uses itself."""


def define_function(function: Callable[..., object], script: PythonScript) -> str:
    """Define a user's function in a script, with the globals that it uses; return its name.

    Globals may be imports of TVM, NumPy or the standard library, literals, and functions of the
    same module. Raises UnwritableError for anything else.
    """
    if not isinstance(function, types.FunctionType) or not function.__name__.isidentifier():
        raise UnwritableError(f"{function!r} is not a function that was defined by def")
    if not _claim(function.__name__, function, script):
        return function.__name__
    if function.__code__.co_freevars:
        names = ", ".join(function.__code__.co_freevars)
        raise UnwritableError(
            f"{function.__name__} uses {names} of the function that it was defined in"
        )
    definition, source = _definition(function)
    early = _names_in(definition.args, definition.returns, *definition.decorator_list)
    used = {name for code in _codes(function.__code__) for name in code.co_names}
    for name in sorted(early | used):
        if name in function.__globals__ and not hasattr(builtins, name):
            _write_global(name, function.__globals__[name], function, name in early, script)
    script.define(source)
    return function.__name__


def _write_global(
    name: str, value: object, user: types.FunctionType, is_early: bool, script: PythonScript
) -> None:
    """Write a global of a function; `is_early` if it is needed when the function is defined."""
    if isinstance(value, types.FunctionType) and value.__module__ == user.__module__:
        if value.__name__ != name:
            raise UnwritableError(f"{user.__name__} calls {value.__name__} by another name, {name}")
        define_function(value, script)
    elif isinstance(value, types.ModuleType) or hasattr(value, "__module__"):
        script.add(needs=(import_statement(name, value, user.__name__),))
    elif is_literal(value) and not is_early:
        if _claim(name, value, script):
            script.add(f"{name} = {value!r}")
    else:
        raise UnwritableError(f"{user.__name__} uses {name}, which a script does not have")


def _claim(name: str, value: object, script: PythonScript) -> bool:
    """Reserve a name; return whether it is new. Raise UnwritableError if it is in use."""
    if name in _RESERVED or script.names.get(name, value) is not value:
        raise UnwritableError(f"the script uses the name {name} for something else")
    is_new = name not in script.names
    script.names[name] = value
    return is_new


def import_statement(name: str, value: object, user: str) -> str:
    """Return the import statement for a name; raise UnwritableError if there is none."""
    home = value.__name__ if isinstance(value, types.ModuleType) else str(value.__module__)
    root = home.partition(".")[0]
    if root not in _IMPORTABLE and root not in sys.stdlib_module_names:
        raise UnwritableError(f"{user} uses {name} of {home}, and a script has only TVM and NumPy")
    if isinstance(value, types.ModuleType):
        home, _, known_as = home.rpartition(".")
    else:
        known_as = str(getattr(value, "__name__", name))
        if getattr(importlib.import_module(home), known_as, None) is not value:
            raise UnwritableError(f"{user} uses {name}, which {home} does not have")
    statement = f"from {home} import {known_as}" if home else f"import {known_as}"
    return statement + (f" as {name}" if name != known_as else "")


def is_literal(value: object) -> bool:
    """Tell whether a value equals its repr, as text, numbers and lists of them do."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False


def _definition(function: types.FunctionType) -> tuple[ast.FunctionDef, str]:
    """Return the definition and its source, without the decorators up to the last one of irviz."""
    source = source_of(function)
    try:
        definition = ast.parse(source).body[0]
    except SyntaxError as failure:
        raise UnwritableError(f"the source of {function.__name__} cannot be found") from failure
    if not isinstance(definition, ast.FunctionDef):
        raise UnwritableError(f"{function.__name__} was not defined by def")
    above = 0
    for count, decorator in enumerate(definition.decorator_list, 1):
        for name in _names_in(decorator):
            value = function.__globals__.get(name)
            home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
            above = count if str(home).partition(".")[0] == "irviz" else above
    left = definition.decorator_list = definition.decorator_list[above:]
    first = left[0].lineno if left else definition.lineno
    return definition, "\n".join(source.splitlines()[first - 1 :])


def _names_in(*parts: ast.AST | None) -> set[str]:
    nodes = (node for part in parts if part is not None for node in ast.walk(part))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
