"""Calls in Relax that PyTorch or ONNX computes: operators, and arguments that are not tensors.

A call such as `R.call_dps_packed("torch.aten.topk.default", (x, R.str("x0, 3, largest=False")), …)`
passes its tensors and sizes, and a text that says where among the operator's arguments they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tvm import relax

PREFIX: Final = "torch."
ONNX_PREFIX: Final = "onnx."
EVALUATOR: Final = "ONNX's reference evaluator"
CANNOT: Final = "cannot compute"
"""What an error says between the framework and the call."""
_OPERATOR: Final = re.compile(
    r"aten\.(?P<name>__(?:and|or|xor|lshift|rshift)__|_?[a-z]\w*)\.(?P<overload>[A-Za-z]\w*)"
)
_FORBIDDEN: Final = re.compile(r"aten\.(from_file|save|load|_print|_dir|name)\.")
"""Operators that read files or print, and attributes that are not operators."""
_ONNX: Final = re.compile(r"onnx\.(?!(?:If|Loop|Scan|SequenceMap)$)[A-Z][A-Za-z0-9]*")
"""Operators of ONNX's own domain, but for those whose arguments are graphs."""


class OperatorName(NamedTuple):
    """The name of an operator of ATen, such as `topk`, and of its overload, such as `default`."""

    name: str
    overload: str


def operator_name(text: str) -> OperatorName | None:
    """Return the operator that a text such as "aten.topk.default" names.

    None for what is not ATen's, and for operators that read files or print.
    """
    found = _OPERATOR.fullmatch(text)
    return None if found is None or _FORBIDDEN.match(text) else OperatorName(**found.groupdict())


def called_operator(callee: str) -> OperatorName | None:
    """Return the operator that a callee such as "torch.aten.topk.default" stands for."""
    is_torch = callee.startswith(PREFIX)
    return operator_name(callee.removeprefix(PREFIX)) if is_torch else None


def computed_by(callee: str) -> str:
    """Return the framework that computes calls of a callee, "" if none does."""
    if called_operator(callee) is not None:
        return "torch"
    return EVALUATOR if _ONNX.fullmatch(callee) else ""


REAL, COMPLEX = "x", "z"
"""The letters of operands; torch gets those with the second one as complex numbers."""


def written_arguments(
    args: Sequence[object], kwargs: Mapping[str, object], name_of: Callable[[object], str]
) -> str:
    """Write arguments as Python does; `name_of` gives operands their names, "" to all others.

    Raises ValueError for an argument that is neither an operand nor plain data.
    """

    def text(value: object) -> str:
        if name := name_of(value):
            return name
        if isinstance(value, list | tuple):
            return f"[{', '.join(map(text, value))}]"
        if isinstance(value, bytes):
            return repr(value.decode())
        if value is None or isinstance(value, bool | int | float | complex | str):
            return repr(value)
        if (known := str(value)).startswith("torch."):  # such as a dtype
            return known
        if type(value).__name__ == "device":
            return repr(known)
        raise ValueError(f"an argument is a {type(value).__name__}")

    return ", ".join([*map(text, args), *(f"{key}={text(value)}" for key, value in kwargs.items())])


def read_arguments(
    text: str, operand: Callable[[str, int], Any], constants: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments that a text describes, running nothing in it; raise ValueError.

    Args:
        text: What `written_arguments` wrote.
        operand: Returns an operand, given the letter and the number of its name.
        constants: The constants that may be named, such as "torch.float32".
    """

    def value(node: ast.expr) -> Any:
        match node:
            case ast.List(elts=elements):
                return [value(each) for each in elements]
            case ast.Attribute() if (name := ast.unparse(node)) in constants:
                return constants[name]
            case ast.Name(id="inf" | "nan" as name):
                return float(name)
            case ast.Name(id=name) if re.fullmatch(rf"[{REAL}{COMPLEX}]\d{{1,4}}", name):
                return operand(name[0], int(name[1:]))
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name(id="inf")):
                return float("-inf")
        return ast.literal_eval(node)

    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"{text[:80]!r} is not a list of arguments")
    named = {str(each.arg): value(each.value) for each in call.keywords}
    return [value(each) for each in call.args], named


def emitted_call(
    builder: relax.BlockBuilder,
    name: str,
    operands: Sequence[relax.Expr],
    types: relax.TensorType | list[relax.TensorType],
    *,
    has_new_sizes: bool,
) -> relax.Expr:
    """Emit a call of a function by its name; return its result, a tuple for several types.

    With `has_new_sizes` the types have symbols that are new, or no shape, and the function makes
    its results.
    """
    if not has_new_sizes:
        return builder.emit(relax.call_dps_packed(name, operands, types))
    several = types if isinstance(types, list) else [types]
    loose = [relax.TensorType(dtype=one.dtype, ndim=one.ndim) for one in several]
    type_ = loose[0] if len(loose) == 1 else relax.TupleType(loose)
    made = builder.emit(relax.op.call_pure_packed(name, *operands, ty_args=[type_]))
    if len(loose) == 1:
        parts = [made]
    else:
        parts = [builder.emit(relax.TupleGetItem(made, at)) for at in range(len(loose))]
    cast = [
        part if one.shape is None else builder.match_cast(part, one)
        for part, one in zip(parts, several, strict=True)
    ]
    return builder.emit(relax.Tuple(cast)) if isinstance(types, list) else cast[0]
