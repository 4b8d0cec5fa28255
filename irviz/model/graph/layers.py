"""The named layers of a model that nodes come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from string import digits
from typing import NamedTuple


class LayerPart(NamedTuple):
    """A layer inside of another: its name there, such as `h.3`, and its class, "" if unknown."""

    name: str
    kind: str = ""


Layer = tuple[LayerPart, ...]
"""A layer, from the model's outermost one to itself; () is the model."""

_TENSOR = re.compile(
    r"[._](weight|bias|scale|gamma|beta|kernel|embedding|running_(mean|var)|moving_\w+)$"
)
_NUMBERED = re.compile(r"(.+?[._]\d+)[._]")


def layer_name(layer: Sequence[LayerPart]) -> str:
    """Return the full name of a layer, such as `transformer.h.3.attn`."""
    return ".".join(part.name for part in layer)


def common_layer(layers: Iterable[Layer]) -> Layer:
    """Return the innermost layer around all of these."""
    found: Layer | None = None
    for layer in layers:
        if found is None or layer[: len(found)] == found:
            found = layer if found is None else found
            continue
        shared = 0
        while shared < min(len(found), len(layer)) and found[shared] == layer[shared]:
            shared += 1
        found = found[:shared]
    return found or ()


def previous_layer(layer: Layer) -> Layer:
    """Return the layer with the number before: `h.2` for `h.3`, () for a layer without a number."""
    part = layer[-1]
    name = part.name.rstrip(digits)
    number = int(part.name[len(name) :] or 0)
    return (*layer[:-1], part._replace(name=f"{name}{number - 1}")) if number else ()


def layer_of_modules(modules: Iterable[tuple[str, str]]) -> Layer:
    """Return a layer from the full names and classes of the modules around it."""
    parts: list[LayerPart] = []
    around = ""
    for name, kind in modules:
        if not name or name == around:
            continue
        own = name.removeprefix(f"{around}.") if around else name
        parts.append(LayerPart(own, kind.rpartition(".")[2]))
        around = name
    return tuple(parts)


def layer_of_parameter(name: str) -> Layer | None:
    """Return the layer in a parameter's name, such as `layers.0.attn.q.weight`, or None.

    A number belongs to the list before it: the parts of that name are `layers.0`, `attn` and `q`.
    """
    tensor = _TENSOR.search(name)
    if tensor is None:
        return None
    rest = name[: tensor.start()].removeprefix("p_")
    parts = []
    while numbered := _NUMBERED.match(f"{rest}."):
        parts.append(numbered[1].replace("_", "."))
        rest = rest[numbered.end() :]
    parts += [one for one in rest.split(".") if one]
    return tuple(map(LayerPart, parts))
