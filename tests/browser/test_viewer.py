"""What markup is let into the page, tried in a bare page with a stand-in for a notebook's model."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest
from playwright.sync_api import expect

import irviz
from irviz.course.mlp import MyModuleMixture
from irviz.explorer.viewer import STATIC
from irviz.ir.function_graph import extract
from irviz.ir.loop_nest_reader import loop_nest
from irviz.view.graph.graph_figure import draw_placed, place_graph
from irviz.view.graph.overlay import Mark, Overlay
from irviz.view.node_details import loop_nest_html

MOUNT = """async ([script, style, traits, width]) => {
    const url = URL.createObjectURL(new Blob([script], {type: "text/javascript"}));
    const {default: widget} = await import(url);
    const listeners = {};
    const model = {
        sent: [],
        get: name => traits[name],
        set: (name, value) => { traits[name] = value; model.changed(name); },
        save_changes: () => {},
        send: message => model.sent.push(message),
        on: (event, listener) => (listeners[event] ??= new Set()).add(listener),
        off: (event, listener) => listeners[event]?.delete(listener),
        changed: name => listeners[`change:${name}`]?.forEach(listener => listener()),
    };
    document.head.append(Object.assign(document.createElement("style"), {textContent: style}));
    const el = document.body.appendChild(document.createElement("div"));
    el.className = "widget";
    el.style.width = `${width}px`;
    widget.render({model, el, signal: new AbortController().signal});
    window.model = model;
}"""


class Widget:
    """A widget on a page of its own."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))

    def mount(self, name: str, width: int = 600, **traits: object) -> Any:
        """Show the widget of this program with these traits; return its element."""
        script = (STATIC / f"{name}.js").read_text("utf-8")
        style = (STATIC / "viewer.css").read_text("utf-8")
        self.page.evaluate(MOUNT, [script, style, traits, width])
        return self.page.locator(".widget")

    def set(self, **traits: object) -> None:
        """Change traits, as Python does."""
        self.page.evaluate(
            "traits => Object.entries(traits).forEach(([name, value]) => model.set(name, value))",
            traits,
        )

    @property
    def sent(self) -> list[dict[str, object]]:
        """The messages that the page sent."""
        return self.page.evaluate("() => model.sent")


@pytest.fixture
def widget(window: Any) -> Widget:
    window.goto("about:blank")
    return Widget(window)


@functools.cache
def shown_traits() -> dict[str, Any]:
    """Return the traits of a viewer."""
    viewer = irviz.explore(MyModuleMixture)
    names = [name for name in viewer.keys if not name.startswith("_") and name != "layout"]
    traits = {name: getattr(viewer, name) for name in names}
    viewer.close()
    return {**traits, "forms": {}, "still": ""}


def with_picture(svg: str) -> dict[str, object]:
    """Return the traits of a viewer that shows this picture."""
    scene = shown_traits()["scene"]
    return {**shown_traits(), "scene": {**scene, "current": {**scene["current"], "svg": svg}}}


def with_code(html: str) -> dict[str, object]:
    """Return the traits of a viewer that shows this HTML as the code of the function."""
    details = {"key": shown_traits()["scene"]["key"], "node": "", "side": "current"}
    return {
        **shown_traits(),
        "selection": {"node": "", "side": "current"},
        "details": {**details, "value": "", "code": html, "history": []},
    }


def svg_of(*parts: str) -> str:
    """Return a picture with these parts, of which each is as irviz draws it but for one thing."""
    inner = "".join(parts)
    namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return f'<svg {namespaces} class="irviz" viewBox="0 0 400 300"><g>{inner}</g></svg>'


def node_of(name: str, attributes: str = "", inner: str = "", fill: str = "#ffffff") -> str:
    """Return the drawing of a node, with more attributes and elements than irviz gives it."""
    return (
        f'<g class="node call_tir" data-node="{name}" {attributes}><title>{name}</title>{inner}'
        f'<rect class="shape" x="10" y="10" width="90" height="30" fill="{fill}"/></g>'
    )


# --- what is let into the page ------------------------------------------------------------------

ELSEWHERE = "http://irviz.invalid/x"
HOSTILE = {
    "a script": node_of("a", inner="<script>window.hurt = 1</script>"),
    "a handler": node_of("a", 'onload="window.hurt = 1" onclick="window.hurt = 1"'),
    "HTML": node_of("a", inner="<foreignObject><img xmlns='http://www.w3.org/1999/xhtml' src='x' "
                    "onerror='window.hurt = 1'/></foreignObject>"),
    "HTML without a frame": node_of("a", inner="<iframe xmlns='http://www.w3.org/1999/xhtml' "
                                    "srcdoc='&lt;script>parent.hurt = 1&lt;/script>'/>"),
    "an animation": node_of("a", inner="<animate attributeName='x' onbegin='window.hurt = 1'/>"),
    "a link": node_of("a", inner="<a xlink:href='javascript:window.hurt = 1'><text>b</text></a>"),
    "a use": node_of("a", inner=f"<use href='{ELSEWHERE}#a'/>"),
    "an image": node_of("a", inner=f"<image href='{ELSEWHERE}' width='9' height='9'/>"),
    "a style sheet": node_of("a", inner=f"<style>@import '{ELSEWHERE}'; * {{ fill: red }}</style>"),
    "an address in a style": node_of("a", f'style="filter: url({ELSEWHERE}#a)"'),
    "an escaped address": node_of("a", f'style="filter: \\75rl({ELSEWHERE}#a)"'),
    "an address as a fill": node_of("a", fill=f"url({ELSEWHERE}#a)"),
    "a command of JupyterLab": node_of("a", 'data-commandlinker-command="terminal:create-new"'),
    "a processing instruction": node_of("a", inner=f"<?xml-stylesheet href='{ELSEWHERE}'?>"),
}  # fmt: skip
KNOWN = ["svg", "g", "title", "path", "rect", "circle", "ellipse", "polygon", "text"]
LEFT = """() => [...document.querySelectorAll(
    ".irviz-canvas-layer > svg:not(.irviz-marks), .irviz-canvas-layer > svg:not(.irviz-marks) *, " +
    ".signs, .signs *")]  // which are above the marks
    .filter(part => !part.closest(".irviz-reach"))  // which the viewer adds
    .map(part => ({
    name: part.localName,
    space: part.namespaceURI,
    attributes: Object.fromEntries([...part.attributes].map(one => [one.name, one.value])
        .filter(([name]) => name !== "transform" || !part.matches(".signs"))),
}))"""


@pytest.mark.parametrize("kind", [*HOSTILE, "all of these among others"])
def test_what_could_act_is_not_let_into_the_page(widget: Widget, kind: str) -> None:
    others = [node_of(f"n{index}") for index in range(40)]
    parts = [HOSTILE[kind]] if kind in HOSTILE else [*others[:20], *HOSTILE.values(), *others[20:]]
    element = widget.mount("viewer", width=1200, **with_picture(svg_of(*parts)))
    drawn = element.locator(".irviz-canvas svg.irviz:not(.irviz-marks)")
    expect(drawn.locator(".node")).to_have_count(len(parts))
    for node in drawn.locator(".node[data-node='a']").all():
        node.click(force=True)
    left = widget.page.evaluate(LEFT)
    assert {part["space"] for part in left} == {"http://www.w3.org/2000/svg"}
    assert {part["name"] for part in left} <= set(KNOWN)
    names = {name for part in left for name in part["attributes"]}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert {name for name in names if name.startswith("data-")} == {"data-node"}
    values = [value for part in left for value in part["attributes"].values()]
    assert not [value for value in values if "irviz.invalid" in value or "javascript" in value]
    assert widget.page.evaluate("() => window.hurt") is None
    assert not [url for url in widget.requests if "irviz.invalid" in url]


def test_nothing_is_taken_out_of_what_irviz_draws(widget: Widget, modules: Any) -> None:
    """With every kind of node, signs, words, tints, warnings and a legend."""
    graph = extract(modules.EveryKind)
    marks = {node.id: Mark(0.37, "12.3 µs", index % 2 > 0, index == 1)
             for index, node in enumerate(graph.nodes)}  # fmt: skip
    overlay = Overlay("time", "0 µs", "20 µs", marks, "slow")
    ids = [node.id for node in graph.nodes]
    placed = place_graph(graph)
    drawn = draw_placed(placed, openable=ids[::2], overlay=overlay, dimmed=ids[::3]).svg
    widget.mount("viewer", width=1200, **with_picture(drawn))
    before = widget.page.evaluate(
        """text => [...new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("*")]
            .filter(part => part.localName !== "title")  // which the viewer shows itself
            .map(part => [part.localName, ...[...part.attributes]
                .map(one => `${one.name}=${one.value}`).sort()])""",
        drawn,
    )
    after = [
        [part["name"], *sorted(f"{name}={value}" for name, value in part["attributes"].items())]
        for part in widget.page.evaluate(LEFT)
    ]
    own = re.compile("(viewBox|style|width|height|preserveAspectRatio)=")  # of the root
    assert len(before) > 300
    assert [one for one in after[0] if not own.match(one)] == [
        one for one in before[0] if not own.match(one)
    ]
    different = [pair for pair in zip(after[1:], before[1:], strict=True) if pair[0] != pair[1]]
    assert different == []


@pytest.mark.parametrize(
    "svg", ["<svg", "<p>no picture</p>", "<svg xmlns='http://www.w3.org/2000/svg'/>"]
)
def test_what_is_no_picture_is_said_to_be_none(widget: Widget, svg: str) -> None:
    element = widget.mount("viewer", width=1200, **with_picture(svg))
    assert "Cannot draw this graph" in element.locator(".irviz-canvas [role=alert]").inner_text()
    assert element.locator(".irviz-canvas svg").count() == 0


def test_nothing_is_taken_out_of_a_loop_nest(widget: Widget) -> None:
    nest = loop_nest(MyModuleMixture["linear0"], "linear0")
    html = loop_nest_html(nest)
    widget.mount("viewer", width=1200, **with_code(html))
    written = """text => {
        const box = document.createElement("div");
        box.innerHTML = text;
        return box.innerHTML;
    }"""
    shown = widget.page.locator(".irviz-section-code .irviz-facts").inner_html()
    assert "irviz-loops-block" in shown
    assert shown == widget.page.evaluate(written, html)


@pytest.mark.parametrize(
    "hostile",
    [
        *("<img src=x onerror='window.hurt = 1'>", "<script>window.hurt = 1</script>"),
        *("<b onclick='window.hurt = 1'>b</b>", f"<a href='{ELSEWHERE}'>a</a>"),
        *("<svg onload='window.hurt = 1'></svg>", f"<b style='background: url({ELSEWHERE})'>b</b>"),
        *("<iframe srcdoc='x'></iframe>", "<form><button>b</button><input name=x></form>"),
        "<b id='x' data-commandlinker-command='terminal:create-new'>b</b>",
    ],
)
def test_what_could_act_is_not_let_into_a_loop_nest(widget: Widget, hostile: str) -> None:
    html = f"<div class='irviz-loops'>{hostile}<code data-node='n'>x</code></div>"
    widget.mount("viewer", width=1200, **with_code(html))
    shown = widget.page.locator(".irviz-section-code .irviz-facts").inner_html()
    left = "<b>b</b>|<button>b</button>|<svg></svg>|a|b"
    nest = '<code data-node="n">x</code>'
    known = rf'<div class="irviz-loops">({left})?{nest}</div>'
    assert re.fullmatch(known, shown)
    assert widget.page.evaluate("() => window.hurt") is None
    assert widget.requests == [url for url in widget.requests if url.startswith("blob:")]
