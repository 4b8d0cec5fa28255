"""How each kind of node looks, and the colours of each theme."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from typing import Any, Literal

from irviz.errors import DrawError
from irviz.model.graph.graph import Node, NodeKind, Resolution


class NodeShape(Enum):
    """A shape that identifies a kind of node without its colour."""

    CIRCLE = "circle"
    BOX = "box"
    BARRED_BOX = "barred_box"
    ROUND_BOX = "round_box"
    CUT_BOX = "cut_box"
    SLANTED_BOX = "slanted_box"
    STACK = "stack"
    DRUM = "drum"


@dataclass(frozen=True, slots=True)
class NodeStyle:
    """A shape, the name of its pair of colours in a theme, and the name of the kind of node."""

    shape: NodeShape
    colour: str
    name: str = field(default="", compare=False)


STYLES: dict[NodeKind, NodeStyle] = {
    NodeKind.PARAM: NodeStyle(NodeShape.CIRCLE, "param", "parameter"),
    NodeKind.CONSTANT: NodeStyle(NodeShape.CUT_BOX, "constant", "constant"),
    NodeKind.CALL_TIR: NodeStyle(NodeShape.BOX, "call", "call_tir of a PrimFunc"),
    NodeKind.CALL_DPS_PACKED: NodeStyle(NodeShape.BOX, "call", "call_dps_packed"),
    NodeKind.CALL_PACKED: NodeStyle(NodeShape.BOX, "call", "call of a packed function"),
    NodeKind.OPERATOR: NodeStyle(NodeShape.ROUND_BOX, "operator", "operator"),
    NodeKind.CALL_FUNCTION: NodeStyle(NodeShape.BOX, "call", "call of a function"),
    NodeKind.TUPLE: NodeStyle(NodeShape.ROUND_BOX, "quiet", "tuple"),
    NodeKind.TUPLE_GET_ITEM: NodeStyle(NodeShape.ROUND_BOX, "quiet", "item of a tuple"),
    NodeKind.MATCH_CAST: NodeStyle(NodeShape.ROUND_BOX, "quiet", "match_cast"),
    NodeKind.IF: NodeStyle(NodeShape.SLANTED_BOX, "control", "if, with two branches"),
    NodeKind.FUNCTION: NodeStyle(NodeShape.SLANTED_BOX, "control", "function defined in another"),
    NodeKind.VALUE: NodeStyle(NodeShape.ROUND_BOX, "quiet", "value written as it is"),
    NodeKind.OTHER: NodeStyle(NodeShape.ROUND_BOX, "quiet", "other expression"),
    NodeKind.BLOCK: NodeStyle(NodeShape.BOX, "call", "block of a PrimFunc"),
    NodeKind.ALLOC: NodeStyle(NodeShape.DRUM, "memory", "buffer"),
    NodeKind.GROUP: NodeStyle(NodeShape.STACK, "group", "group"),
}
assert STYLES.keys() == set(NodeKind), "every kind of node has a style and a name"

_LIBRARY = NodeStyle(NodeShape.BARRED_BOX, "library")
_UNKNOWN = NodeStyle(NodeShape.BARRED_BOX, "unknown")
_CALL_WITH_BUFFERS = NodeStyle(NodeShape.STACK, "call", "call with its buffers")


def node_style(node: Node) -> NodeStyle:
    """Return how a node looks: it depends on its kind, and on what its callee is."""
    if node.resolution is Resolution.LIBRARY:
        return _LIBRARY
    if node.resolution is Resolution.UNKNOWN:
        return _UNKNOWN
    return _CALL_WITH_BUFFERS if node.kind is NodeKind.GROUP and node.callee else STYLES[node.kind]


_LIGHT_CODE = {
    "keyword": "#7b1fa2",
    "string": "#9c3c00",
    "number": "#06594a",
    "comment": "#5c5c5c",
    "decorator": "#7b1fa2",
    "definition": "#0b4fb3",
}
_DARK_CODE = {
    "keyword": "#d7a6f0",
    "string": "#f3b48b",
    "number": "#8fdcc4",
    "comment": "#aab2ba",
    "decorator": "#d7a6f0",
    "definition": "#9cc4ff",
}


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture.

    Attributes:
        line: Edges and buttons.
        block_fill: The inside of clusters.
        block_line: The frames of clusters.
        colours: The fill and the outline of each style of nodes.
        tints: The colours of the shares 0 and 1 in an overlay.
        flag: The warnings of an overlay.
        changes: The colours of what became of something, for lines and text: "added", "removed",
            "changed", "fused" (also split and inlined) and "moved" (also reordered).
        outline: The width of the outlines of nodes, in px.
        code: The colours of the parts of TVMScript and Python: "keyword", "string", "number",
            "comment", "decorator" and "definition".
    """

    background: str
    line: str
    text: str
    quiet_text: str
    block_fill: str
    block_line: str
    colours: dict[str, tuple[str, str]]
    tints: tuple[str, str]
    flag: str
    changes: dict[str, str]
    outline: float = 1.4
    code: dict[str, str] = field(default_factory=lambda: _LIGHT_CODE)


ThemeName = Literal["course", "dark"]
PageTheme = Literal["page"]
"""The theme whose colours are custom properties of the page, as in `page_css`."""

THEMES: dict[str, Theme] = {
    "course": Theme(
        background="#ffffff",
        line="#444444",
        text="#111111",
        quiet_text="#5c5c5c",
        block_fill="#f7f8fa",
        block_line="#9aa3ad",
        colours={
            "param": ("#cfe8c9", "#3f7d3a"),
            "constant": ("#e4e4ea", "#5d5d78"),
            "call": ("#ffffff", "#222222"),
            "library": ("#fdebd0", "#a35400"),
            "unknown": ("#ffffff", "#b3261e"),
            "operator": ("#e8f1fb", "#2f6299"),
            "quiet": ("#ffffff", "#8a8a8a"),
            "control": ("#f3e8f7", "#7a4a8c"),
            "group": ("#f1f3f5", "#444444"),
            "memory": ("#d9f2ef", "#1b7268"),
        },
        tints=("#fff5cc", "#dd6a2a"),
        flag="#b3261e",
        changes={
            "added": "#06594a",
            "removed": "#941a08",
            "changed": "#0d57f2",
            "fused": "#8d09b0",
            "moved": "#7a6f10",
        },
    ),
    "dark": Theme(
        background="#14171a",
        line="#a9b1b9",
        text="#f0f2f4",
        quiet_text="#aab2ba",
        block_fill="#1c2126",
        block_line="#5b6670",
        colours={
            "param": ("#1f4a2a", "#7fc98a"),
            "constant": ("#33334a", "#a5a5cf"),
            "call": ("#22272d", "#d8dde2"),
            "library": ("#4b3210", "#f0a95a"),
            "unknown": ("#22272d", "#ff8a80"),
            "operator": ("#1b344f", "#7fb3e8"),
            "quiet": ("#1a1e22", "#8b949d"),
            "control": ("#38233f", "#cf9ae0"),
            "group": ("#2a3036", "#d8dde2"),
            "memory": ("#123f3b", "#6fcabd"),
        },
        tints=("#332a1f", "#b5491a"),
        flag="#ff8a80",
        changes={
            "added": "#68f5df",
            "removed": "#faa47d",
            "changed": "#9fbdfb",
            "fused": "#e452f2",
            "moved": "#ece233",
        },
        code=_DARK_CODE,
    ),
}

_BLACK = "#000000"
SLIDE_THEMES: dict[str, Theme] = {
    "course": replace(
        THEMES["course"],
        line=_BLACK,
        colours=THEMES["course"].colours
        | {"call": ("#ffffff", _BLACK), "operator": ("#ffffff", _BLACK)},
        outline=2.2,
    ),
    "light": THEMES["course"],
    "dark": THEMES["dark"],
    "print": replace(
        THEMES["course"],
        line=_BLACK,
        text=_BLACK,
        quiet_text="#333333",
        block_fill="#ffffff",
        block_line="#666666",
        colours={
            name: ("#e6e6e6" if name in ("param", "constant", "memory") else "#ffffff", _BLACK)
            for name in THEMES["course"].colours
        },
        tints=("#f2f2f2", "#8c8c8c"),
        flag=_BLACK,
        changes=dict.fromkeys(THEMES["course"].changes, _BLACK),
        outline=1.8,
        code=dict.fromkeys(_LIGHT_CODE, _BLACK) | {"comment": "#333333"},
    ),
}
"""The themes of the figures of a lecture: "course" has thick black outlines,
"print" has no colours."""


def slide_theme(name: str) -> Theme:
    """Return the theme of a lecture's figures; raise DrawError for an unknown name."""
    if name not in SLIDE_THEMES:
        raise DrawError(f"there is no theme {name!r}; choose one of {', '.join(SLIDE_THEMES)}")
    return SLIDE_THEMES[name]


_PLAIN = ("background", "line", "text", "quiet_text", "block_fill", "block_line")


def _properties(theme: Theme) -> dict[str, str]:
    """Return the colours of a theme by the names of the page's custom properties."""
    low, high = theme.tints
    plain = {name.replace("_", "-"): getattr(theme, name) for name in _PLAIN}
    plain |= {"tint-low": low, "tint-high": high, "flag": theme.flag}
    fills = {f"{name}-fill": fill for name, (fill, _) in theme.colours.items()}
    lines = {f"{name}-line": line for name, (_, line) in theme.colours.items()}
    return {**plain, **fills, **lines, **{f"{one}-change": c for one, c in theme.changes.items()}}


def _rule(selector: str, theme: Theme) -> str:
    properties = _properties(theme).items()
    lines = [f"  --irviz-picture-{one}: {colour};" for one, colour in properties]
    return "\n".join([f"{selector} {{", *lines, "}"])


def page_css() -> str:
    """Return the style sheet with the colours of pictures in the theme "page"."""
    light = _rule(".irviz-viewer", THEMES["course"])
    dark = _rule('.irviz-viewer[data-theme="dark"]', THEMES["dark"])
    comment = "/* The colours of pictures; view/theme.py has them. */"
    return "\n\n".join([comment, light, dark]) + "\n"


def system_css() -> str:
    """Return the style sheet of a file in the theme "page": light or dark as the system is."""
    light, dark = (_rule(":root", THEMES[name]) for name in ("course", "dark"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


_GROUNDS = (
    *("changed-change", "library-line", "param-line", "fused-change", "memory-line"),
    *("removed-change", "moved-change"),
)


def ground_colours(theme: Theme) -> list[str]:
    """Return colours to mix grounds of lines of, of which neighbours are far from each other."""
    found = [_properties(theme)[name] for name in _GROUNDS]
    return found if len({*found}) > 1 else [found[0], ""]  # black: every other line has a ground


_COLOUR = re.compile(r'(?:fill|stroke)(="|: )(#[0-9a-f]{6})')


def dark_where_the_page_is(svg: str) -> str:
    """Return a picture in the theme "course" that is in the theme "dark" where its page is dark.

    A picture that has other colours stays as it is. The pixels of a heat map stay in any case.
    """
    used = sorted(set(_COLOUR.findall(svg)))
    if not all(_dark_counterpart(colour) for _, colour in used):
        return svg
    rules = [
        f"{_selector(attribute, sign, one)} {{ {attribute}: {_dark_counterpart(one)} !important }}"
        for sign, one in used
        for attribute in ("fill", "stroke")
    ]
    style = f"<style>@media (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    root, end, content = svg.partition(">")
    return f"{root}{end}{style}{content}"


def _selector(attribute: str, sign: str, colour: str) -> str:
    """Return what selects the elements with a colour: Matplotlib's have it in their style."""
    if sign == ": ":
        return f'.irviz-drawing [style*="{attribute}: {colour}"]'
    return f'.irviz [{attribute}="{colour}"]'


@cache
def _dark_counterpart(colour: str) -> str:
    """Return what a colour of the theme "course" is in the theme "dark", "" if it is none of it."""
    from irviz.view.mix_colours import (  # NumPy: a page is served without it
        mix_colours,
        mixed_share,
    )

    light, dark = (
        _properties(theme) | {f"code-{part}": one for part, one in theme.code.items()}
        for theme in (THEMES["course"], THEMES["dark"])
    )
    if colour == _BLACK:  # the outlines of a slide
        return dark["call-line"]
    for name, one in light.items():
        if one == colour:
            return dark[name]
    ends = [("tint-low", "tint-high")]
    ends += [("background", f"{name}-change") for name in THEMES["course"].changes]
    ends += [("background", name) for name in _GROUNDS]
    for start, end in ends:
        share = mixed_share(light[start], light[end], colour)
        if share is not None:
            return mix_colours(dark[start], dark[end], share)
    return ""


def _theme_of(names: Mapping[str, str]) -> Theme:
    """Return the theme whose colours have these names of the page's custom properties."""
    plain: dict[str, Any] = {name: names[name.replace("_", "-")] for name in _PLAIN}
    return Theme(
        **plain,
        colours={
            one: (names[f"{one}-fill"], names[f"{one}-line"]) for one in THEMES["course"].colours
        },
        tints=(names["tint-low"], names["tint-high"]),
        flag=names["flag"],
        changes={one: names[f"{one}-change"] for one in THEMES["course"].changes},
    )


_PAGE_COLOURS = {name: f"var(--irviz-picture-{name})" for name in _properties(THEMES["course"])}
_PAGE_THEME = _theme_of(_PAGE_COLOURS)
"""The theme whose colours the page chooses, as it is light or dark."""


def page_stand_ins() -> tuple[Theme, Mapping[str, str]]:
    """Return a theme of colours that stand for the page's own, and what each of them stands for.

    It is for what draws only with numbers: in its SVG they are replaced.
    """
    numbers = {name: f"#01fe{at:02x}" for at, name in enumerate(_PAGE_COLOURS)}
    return _theme_of(numbers), {numbers[name]: colour for name, colour in _PAGE_COLOURS.items()}


def get_theme(name: str) -> Theme:
    """Return the theme of a name, "page" for the page's own; raise DrawError for an unknown one."""
    if name == "page":
        return _PAGE_THEME
    if name not in THEMES:
        raise DrawError(f"there is no theme {name!r}; choose one of {', '.join(THEMES)}")
    return THEMES[name]
