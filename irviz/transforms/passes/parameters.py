"""The parameters of a pass, read from its signature, and the arguments for them.

A checked argument is a plain value: text stands for targets, and names for functions and variables.
"""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import json
import numbers
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import tvm
from tvm import ir, relax, tirx

from irviz.errors import TransformError
from irviz.ir.module_functions import relax_function, relax_functions
from irviz.transforms.bind_params import bind_params
from irviz.transforms.export_python import (
    PythonScript,
    UnwritableError,
    define_function,
    import_statement,
    is_literal,
)
from irviz.units import beginning

_SECTION = re.compile(
    r"^Parameters *\n-{3,}\s*\n(.*?)(?=^\S[^\n]*\n-{3,}[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_PARAMETER = re.compile(r"^(\w+)\s*:.*\n((?:[ \t].*\n|\n)*)", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<!i\.e)(?<!e\.g)[.:!?](?=\s|$)")


class ParameterKind(enum.Enum):
    """What a parameter takes, as plain values that a form can give."""

    BOOL = "true or false"
    INT = "a whole number of 64 bits"
    FLOAT = "a number"
    STR = "text"
    CHOICE = "one of a few values"
    LIST = "a list of text or of whole numbers"
    TARGET = "a target, such as 'llvm'"
    DEVICE = "a virtual device, such as 'llvm' or 'cuda:0'"
    FUNCTION = "the name of a Relax function"
    FUNCTIONS = "a list of names of functions"
    NAMES = "a list of names of a function's parameters"
    VARS = "parameters of the function, by name"
    PARAMS = "arrays by name"
    DIMS = "sizes by the name of a symbolic variable"
    LAYOUTS = "layouts by the name of an operator"
    PATTERNS = "the prefix of names of registered patterns, such as 'cublas'"
    CODE = "a value that only code can give"


TARGET_KINDS = ("llvm", "c", "cuda", "rocm", "metal", "vulkan", "opencl", "webgpu", "hexagon")
"""The kinds of targets that are suggested."""


@dataclass(frozen=True)
class PassParameter:
    """A parameter of a pass.

    Attributes:
        first: The initial value in a form if there is no default.
        item: The type of a LIST's items, or the enum whose member names are the choices.
        also: Another kind that code may pass instead.
    """

    name: str
    kind: ParameterKind
    default: object = None
    is_required: bool = False
    choices: tuple[object, ...] = ()
    summary: str = ""
    first: object = None
    item: type = str
    also: ParameterKind | None = None

    @property
    def begins_with(self) -> object:
        """The initial value in a form."""
        return self.first if self.is_required or self.default is None else self.default


@dataclass(frozen=True)
class ParameterHint:
    """What the signature does not say about a parameter."""

    kind: ParameterKind | None = None
    choices: tuple[object, ...] = ()
    first: object = None


_BY_NAME: Mapping[str, ParameterHint] = {
    "func_name": ParameterHint(ParameterKind.FUNCTION),
    "entry_functions": ParameterHint(ParameterKind.FUNCTIONS),
    "work_dir": ParameterHint(first="tuning_logs"),
    "target": ParameterHint(first="llvm"),
}
"""Hints for parameter names that mean the same in every pass."""


def read_parameters(
    make: Callable[..., object], hints: Mapping[str, ParameterHint] | None = None
) -> tuple[PassParameter, ...]:
    """Return the parameters of a function or class that creates a pass, in order."""
    sentences = parameter_sentences(make) or parameter_sentences(make.__init__)
    try:
        signature = inspect.signature(make, eval_str=True)
    except Exception:  # an annotation may name what is imported under TYPE_CHECKING only
        signature = inspect.signature(make)
    found = []
    for given in signature.parameters.values():
        if given.kind in (given.VAR_POSITIONAL, given.VAR_KEYWORD):
            continue
        hint = (hints or {}).get(given.name) or _BY_NAME.get(given.name) or ParameterHint()
        is_required = given.default is given.empty
        default = None if is_required else given.default
        if hint.choices:
            takes = PassParameter(given.name, ParameterKind.CHOICE, choices=hint.choices)
        elif hint.kind is not None:
            takes = PassParameter(given.name, hint.kind)
        else:
            annotated = given.annotation is not given.empty
            takes = _read(given.name, given.annotation if annotated else type(default))
        found.append(
            replace(
                takes,
                default=default.name if isinstance(default, enum.Enum) else default,
                is_required=is_required,
                summary=sentences.get(given.name, ""),
                first=hint.first,
            )
        )
    return tuple(found)


def _read(name: str, annotation: object) -> PassParameter:  # noqa: C901 - one case a kind
    """Return a parameter of the kind that an annotation denotes."""
    parameter = functools.partial(PassParameter, name)
    members = _members(annotation)
    if tvm.target.Target in members:
        return parameter(ParameterKind.TARGET)
    if set(members) == {bool, list[str]}:  # all functions, or these: LiftTransformParams
        return parameter(ParameterKind.BOOL, also=ParameterKind.FUNCTIONS)
    if ir.Var in members or set(members) == {list[ir.Var]}:
        return parameter(ParameterKind.VARS)
    if len(members) > 1:
        return parameter(ParameterKind.CODE)
    annotation = members[0]
    if annotation in _PLAIN:
        return parameter(_PLAIN[annotation])
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        names = tuple(member.name for member in annotation)
        return parameter(ParameterKind.CHOICE, choices=names, item=annotation)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return parameter(ParameterKind.CHOICE, choices=arguments)
    if origin in (list, Sequence):
        if arguments and arguments[0] in (str, int):
            return parameter(ParameterKind.LIST, item=arguments[0])
        if relax.transform.FusionPattern in _members((*arguments, None)[0]):
            return parameter(ParameterKind.PATTERNS)
    if origin in (dict, Mapping) and len(arguments) == 2 and str in _members(arguments[0]):
        values = _members(arguments[1])
        if tvm.runtime.Tensor in values or np.ndarray in values:
            return parameter(ParameterKind.PARAMS)
        return parameter(_BY_VALUE.get(values, ParameterKind.CODE))
    return parameter(ParameterKind.CODE)


_PLAIN: Mapping[object, ParameterKind] = {
    bool: ParameterKind.BOOL,
    int: ParameterKind.INT,
    float: ParameterKind.FLOAT,
    str: ParameterKind.STR,
    relax.VDevice: ParameterKind.DEVICE,
}
_BY_VALUE: Mapping[tuple[object, ...], ParameterKind] = {
    (list[str],): ParameterKind.LAYOUTS,
    (ir.Expr,): ParameterKind.DIMS,
    (int,): ParameterKind.DIMS,
}
"""The kinds of mappings, by the type of their values."""


def _members(annotation: object) -> tuple[object, ...]:
    """Return the members of a union without None; the annotation itself if it is not a union."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(a for a in typing.get_args(annotation) if a is not type(None))
    return (annotation,)


def first_sentence(value: object) -> str:
    """Return the first sentence of an object's docstring, which may span several lines."""
    return _sentence((inspect.getdoc(value) or "").strip())


def parameter_sentences(value: object) -> dict[str, str]:
    """Return the first sentence about each parameter of a NumPy-style docstring."""
    section = _SECTION.search(f"{inspect.getdoc(value) or ''}\n")
    return {
        name: _sentence(inspect.cleandoc(text))
        for name, text in _PARAMETER.findall(section[1] if section else "")
    }


def _sentence(text: str) -> str:
    """Return the first sentence of a text, joined into one line."""
    paragraph = text.partition("\n\n")[0]
    first, _, rest = paragraph.partition("\n")
    words = [first.strip()]
    for line in rest.splitlines():
        if words[-1].endswith((".", ":", "!", "?")) and not words[-1].endswith(("i.e.", "e.g.")):
            break
        end = _SENTENCE_END.search(line)
        words.append((line[: end.end()] if end else line).strip())
    return " ".join(word for word in words if word)


# --- Check arguments, look them up in a module, and write them as Python -------------------------


_MOST_CHARACTERS = 40

PATTERN_MODULES: Mapping[str, str] = {
    "cublas": "tvm.relax.backend.cuda.cublas",
    "cudnn": "tvm.relax.backend.cuda.cudnn",
    "cutlass": "tvm.relax.backend.cuda.cutlass",
    "hipblas": "tvm.relax.backend.rocm.hipblas",
    "tensorrt": "tvm.relax.backend.contrib.tensorrt",
    "nnapi": "tvm.relax.backend.contrib.nnapi",
    "coreml": "tvm.relax.backend.metal.coreml",
    "openclml": "tvm.relax.backend.adreno.clml",
    "example_npu": "tvm.relax.backend.contrib.example_npu",
}
"""The modules that register the patterns of a backend when they are imported."""


class NameScope(NamedTuple):
    """Where names are looked up: a module, and the function that a call applies to, if any."""

    mod: ir.IRModule
    function: str | None = None


class _MisfitError(Exception):
    """The value is not of the parameter's kind."""


def plain_argument(parameter: PassParameter, value: object, owner: str) -> object:
    """Return an argument as a plain value; `owner` is the label of the pass, for errors.

    Raises TransformError for a value that the parameter does not take.
    """
    if value is None and not parameter.is_required and parameter.default is None:
        return None
    for kind in (parameter.kind, parameter.also):
        try:
            if kind is not None:
                return _plain(parameter, kind, value)
        except _MisfitError:  # noqa: PERF203 - there are two kinds at most
            continue
    takes, example = parameter.kind.value, _KINDS[parameter.kind].example
    if parameter.choices:
        takes, example = f"one of {', '.join(map(repr, parameter.choices))}", "one of these"
    elif parameter.kind is ParameterKind.LIST:
        example = "[1, 2]" if parameter.item is int else "['relax.add']"
    raise TransformError(
        f"{parameter.name} of {owner} is {value!r}, and takes {takes}: give {example}"
    )


def resolve_argument(parameter: PassParameter, value: object, scope: NameScope) -> object:
    """Return a checked argument in the form that TVM takes.

    Raises TransformError or NoFunctionError for a name that the module does not have.
    """
    if value is None:
        return None
    if _is_enum(parameter):
        return parameter.item[str(value)]  # type: ignore[index]
    is_also = parameter.kind is ParameterKind.BOOL and isinstance(value, tuple)
    return _KINDS[ParameterKind.FUNCTIONS if is_also else parameter.kind].resolve(value, scope)


def argument_source(
    parameter: PassParameter, value: object, script: PythonScript, function: str | None
) -> str:
    """Return the expression for a checked argument, and write the statements it needs before.

    `function` is the one that the call applies to. Raises UnwritableError for a value that
    cannot be written as an expression.
    """
    if value is None:
        return "None"
    if _is_enum(parameter):
        script.add(needs=(import_statement(parameter.item.__name__, parameter.item, "the pass"),))
        return f"{parameter.item.__name__}[{value!r}]"
    if parameter.kind is ParameterKind.VARS:
        assert isinstance(value, tuple), "plain_argument checked it"
        script.add(
            f"params = {{param.name: param for param in mod[{function or 'main'!r}].params}}"
        )
        return f"[{', '.join(f'params[{name!r}]' for name in value)}]"
    return _KINDS[parameter.kind].source(value, script)


def argument_label(value: object) -> str:
    """Return an argument for a label: arrays by their names, long values cut."""
    return beginning(_label(value), _MOST_CHARACTERS)


def make_target(text: str) -> tvm.target.Target:
    """Create a target; raise TransformError with TVM's message when that fails."""
    try:
        return tvm.target.Target(text)
    except Exception as failure:  # TVM raises what its C++ side threw, of any class
        said = (str(failure).strip().splitlines() or [repr(failure)])[-1].strip(" '")
        raise TransformError(
            f"{text!r} is not a target: {said}; give a kind such "
            "as 'llvm' or 'cuda', or a dict such as {'kind': 'llvm', 'num-cores': 4}"
        ) from failure


def target_source(text: str, host: str = "") -> str:
    """Return the expression for a target, with a host if one is given."""
    return f"tvm.target.Target({text!r}, host={host!r})" if host else f"tvm.target.Target({text!r})"


def symbolic_names(mod: ir.IRModule, function: str | None = None) -> tuple[str, ...]:
    """Return the names of the symbolic variables of a Relax function, or of all of them."""
    chosen = relax_functions(mod).values() if function is None else [relax_function(mod, function)]
    found = [
        variable.name for one in chosen for variable in relax.analysis.defined_symbolic_vars(one)
    ]
    return tuple(dict.fromkeys(found))


def _label(value: object) -> str:
    match value:
        case Mapping() if any(isinstance(one, tvm.runtime.Tensor) for one in value.values()):
            return f"{{{', '.join(map(str, value))}}}"
        case Mapping():
            return f"{{{', '.join(f'{key!r}: {_label(one)}' for key, one in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_label, value))}]"
    return str(getattr(value, "__name__", type(value).__name__)) if callable(value) else repr(value)


def _is_enum(parameter: PassParameter) -> bool:
    return parameter.kind is ParameterKind.CHOICE and issubclass(parameter.item, enum.Enum)


# checking: each returns the plain value, or raises _MisfitError


def _plain(parameter: PassParameter, kind: ParameterKind, value: object) -> object:
    if kind is ParameterKind.CHOICE:
        name = value.name if isinstance(value, enum.Enum) else value
        _require(any(type(name) is type(one) and name == one for one in parameter.choices))
        return name
    if kind is ParameterKind.LIST:
        return tuple(map(_whole if parameter.item is int else _text, _items(value)))
    return _KINDS[kind].check(value)


def _require(condition: object) -> None:
    if not condition:
        raise _MisfitError


def _instance(value: Any, *types: type) -> Any:
    """Return a value of one of these types; True and False are not numbers."""
    _require(isinstance(value, types) and not isinstance(value, bool))
    return value


def _flag(value: Any) -> bool:
    _require(isinstance(value, bool))
    return bool(value)


def _whole(value: Any) -> int:
    whole = int(_instance(value, numbers.Integral))
    _require(-(2**63) <= whole < 2**63)
    return whole


def _text(value: Any) -> str:
    return str(_instance(value, str))


def _items(value: Any) -> Sequence[object]:
    return _instance(value, list, tuple, ir.Array)  # type: ignore[no-any-return]


def _name(value: Any) -> str:
    if isinstance(value, ir.GlobalVar):
        return str(value.name_hint)
    return _text(value.name if isinstance(value, ir.Var) else value)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(map(_name, _items(value)))


def _variables(value: Any) -> tuple[str, ...]:
    return (_name(value),) if isinstance(value, str | ir.Var) else _names(value)


def _arrays(value: Any) -> Mapping[str, tvm.runtime.Tensor]:
    """Return tensors by name, with their values copied now."""
    given: Mapping[Any, Any] = {} if value == () else _instance(value, Mapping)
    return bind_params({_name(name): array for name, array in given.items()}).params


def _sizes(value: Any) -> dict[str, int]:
    sizes = {
        _name(name): _whole(size.value if isinstance(size, tirx.IntImm) else size)
        for name, size in _instance(value, Mapping).items()
    }
    _require(all(size >= 0 for size in sizes.values()))
    return sizes


def _prefix_or_patterns(value: Any) -> object:
    _require(isinstance(value, str | list | tuple) and value)
    return value


def _target(value: Any) -> str:
    """Return a target as text, from which every process can create it again."""
    if isinstance(value, Mapping):
        return json.dumps(dict(value))
    text = str(value) if isinstance(value, tvm.target.Target) else _text(value).strip()
    _require(text)
    return text


def _device(value: Any) -> tuple[str, int, str]:
    if isinstance(value, relax.VDevice):
        return str(value.target), int(value.vdevice_id), str(value.memory_scope)
    if isinstance(value, tuple) and len(value) == 3 and list(map(type, value)) == [str, int, str]:
        return value  # as it was read before
    text = _text(value).strip()
    kind, _, number = text.rpartition(":")
    if text.startswith("{") or not number.isdecimal():
        kind, number = text, "0"
    _require(kind)
    return kind, int(number), "global"


def _layouts(value: Any) -> dict[str, list[str]]:
    return {
        _text(name): list(map(_text, _items(given)))
        for name, given in _instance(value, Mapping).items()
    }


# resolving: each returns what TVM takes


def _as_it_is(value: object, _: NameScope) -> object:
    return list(value) if isinstance(value, tuple) else value


def _resolved_function(name: str, scope: NameScope) -> str:
    relax_function(scope.mod, name)
    return name


def _resolved_functions(names: tuple[str, ...], scope: NameScope) -> list[str]:
    there = sorted(gvar.name_hint for gvar in scope.mod.functions)
    _require_names(names, there, "the module has no function", "its functions are")
    return list(names)


def _resolved_variables(names: tuple[str, ...], scope: NameScope) -> list[ir.Var]:
    function = scope.function or "main"
    params = {param.name: param for param in relax_function(scope.mod, function).params}
    _require_names(names, params, f"{function!r} has no parameter", "its parameters are")
    return [params[name] for name in names]


def _resolved_device(parts: tuple[str, int, str], _: NameScope) -> relax.VDevice:
    kind, number, memory = parts
    return relax.VDevice(make_target(kind), number, memory)


def _resolved_sizes(sizes: Mapping[str, int], scope: NameScope) -> dict[str, tirx.IntImm]:
    where = "the module" if scope.function is None else repr(scope.function)
    _require_names(
        sizes,
        symbolic_names(scope.mod, scope.function),
        f"{where} has no symbolic variable",
        "those it has are",
        "give sizes for",
    )
    return {name: tirx.IntImm("int64", size) for name, size in sizes.items()}


def _resolved_patterns(prefix: object, _: NameScope) -> object:
    if not isinstance(prefix, str):
        return prefix
    if _pattern_module(prefix):
        importlib.import_module(_pattern_module(prefix))
    found = list(relax.backend.pattern_registry.get_patterns_with_prefix(prefix))
    if not found:
        raise TransformError(
            f"no pattern is registered whose name begins with {prefix!r}; TVM has patterns for "
            f"{', '.join(map(repr, PATTERN_MODULES))}: give one of these, or register "
            "yours with tvm.relax.backend.pattern_registry.register_patterns"
        )
    return found


def _require_names(
    names: Iterable[str], there: Collection[str], lacks: str, has: str, advice: str = "give"
) -> None:
    for name in names:
        if name not in there:
            listed = ", ".join(map(repr, there)) or "none"
            raise TransformError(f"{lacks} {name!r}; {has} {listed}: {advice} some of these")


def _pattern_module(prefix: str) -> str:
    """Return the module that registers the patterns with this prefix, "" if it is unknown."""
    return PATTERN_MODULES.get(prefix.partition(".")[0], "")


# writing: each returns an expression, and adds to the script what it needs


def _literal_source(value: object, _: PythonScript) -> str:
    return repr(list(value) if isinstance(value, tuple) else value)


def _device_source(parts: tuple[str, int, str], script: PythonScript) -> str:
    kind, number, memory = parts
    script.add(needs=("from tvm import relax",))
    return f"relax.VDevice({target_source(kind)}, {number}, {memory!r})"


def _arrays_source(value: Mapping[str, tvm.runtime.Tensor], script: PythonScript) -> str:
    arrays = {name: script.array(name, tensor.numpy()) for name, tensor in value.items()}
    items = (f"{name!r}: tvm.runtime.tensor({one})" for name, one in arrays.items())
    return f"{{{', '.join(items)}}}"


def _patterns_source(value: object, script: PythonScript) -> str:
    if not isinstance(value, str):
        return _code_source(value, script)
    home = _pattern_module(value)
    script.add(needs=("from tvm import relax", *([f"import {home}"] if home else [])))
    return f"relax.backend.get_patterns_with_prefix({value!r})"


def _code_source(value: object, script: PythonScript) -> str:
    if is_literal(value):
        return repr(value)
    if isinstance(value, types.FunctionType):
        return define_function(value, script)
    if isinstance(value, ir.IRModule | tirx.PrimFunc | tirx.IndexMap):
        return script.embedded(value)
    if isinstance(value, Mapping):
        items = (f"{key!r}: {_code_source(one, script)}" for key, one in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list | tuple):
        text = ", ".join(_code_source(one, script) for one in value)
        return f"[{text}]" if isinstance(value, list) else f"({text},)"
    raise UnwritableError(f"an argument is {value!r}, which has no source")


class _Kind(NamedTuple):
    """A kind of argument: an example, and how it is checked, resolved and written."""

    example: str
    check: Callable[[Any], object] = lambda value: value
    resolve: Callable[[Any, NameScope], object] = _as_it_is
    source: Callable[[Any, PythonScript], str] = _literal_source


_KINDS: Mapping[ParameterKind, _Kind] = {
    ParameterKind.BOOL: _Kind("True", _flag),
    ParameterKind.INT: _Kind("2", _whole),
    ParameterKind.FLOAT: _Kind("0.5", lambda value: float(_instance(value, numbers.Real))),
    ParameterKind.STR: _Kind("'text'", _text),
    ParameterKind.CHOICE: _Kind("another"),
    ParameterKind.LIST: _Kind("another"),
    ParameterKind.TARGET: _Kind(
        "'llvm', or a dict as {'kind': 'llvm', 'num-cores': 4}",
        _target,
        lambda text, _: make_target(text),
        lambda text, _: target_source(text),
    ),
    ParameterKind.DEVICE: _Kind("'llvm' or 'cuda:1'", _device, _resolved_device, _device_source),
    ParameterKind.FUNCTION: _Kind("'main'", _name, _resolved_function),
    ParameterKind.FUNCTIONS: _Kind("['main']", _names, _resolved_functions),
    ParameterKind.NAMES: _Kind("['x']", _names),
    ParameterKind.VARS: _Kind("['x']", _variables, _resolved_variables),
    ParameterKind.PARAMS: _Kind("{'w0': w0}, with numpy arrays", _arrays, source=_arrays_source),
    ParameterKind.DIMS: _Kind("{'n': 128}", _sizes, _resolved_sizes),
    ParameterKind.LAYOUTS: _Kind("{'relax.nn.conv2d': ['NHWC', 'OHWI']}", _layouts),
    ParameterKind.PATTERNS: _Kind(
        "'cublas'", _prefix_or_patterns, _resolved_patterns, _patterns_source
    ),
    ParameterKind.CODE: _Kind("another", resolve=lambda value, _: value, source=_code_source),
}
