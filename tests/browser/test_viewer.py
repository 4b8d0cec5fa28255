"""The widgets' bundles in a bare page, with a stand-in for the model that a notebook gives them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from irviz.course.mlp import MyModuleMixture
from irviz.explorer.viewer import STATIC
from irviz.ir.function_graph import extract
from irviz.ir.tir.loop_nest_reader import loop_nest
from irviz.model.loops import walk
from irviz.view.graph.graph_figure import draw_graph
from irviz.view.graph.overlay import Mark, Overlay
from irviz.view.text.loop_nest_html import loop_nest_html

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
        """Show the widget of this name with these traits; return its element."""
        script, style = ((STATIC / f"{name}{end}").read_text("utf-8") for end in (".js", ".css"))
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


@pytest.fixture(scope="module")
def page(chromium: Any) -> Iterator[Any]:
    opened = chromium.new_page()
    opened.set_default_timeout(60_000)
    yield opened
    opened.close()


@pytest.fixture
def widget(page: Any) -> Widget:
    page.goto("about:blank")
    return Widget(page)


CANVAS: dict[str, object] = {
    "svg": "",
    "selected": "",
    "dark": False,
    "label": "graph of main",
    "highlighted": [],
    "dimmed": [],
    "height": 480,
    "viewport": [],
}
LOOPS: dict[str, object] = {"html": "", "label": "", "chosen": [], "marked": [], "many": False}


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
LEFT = """() => [...document.querySelectorAll(".irviz-canvas svg, .irviz-canvas svg *")]
    .map(part => ({
    name: part.localName,
    space: part.namespaceURI,
    attributes: Object.fromEntries([...part.attributes].map(one => [one.name, one.value])),
}))"""


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("place", ["alone", "among others"])
def test_what_could_act_is_not_let_into_the_page(widget: Widget, kind: str, place: str) -> None:
    others = [node_of(f"n{index}") for index in range(40)]
    parts = [HOSTILE[kind]] if place == "alone" else [*others[:20], HOSTILE[kind], *others[20:]]
    element = widget.mount("canvas", **{**CANVAS, "svg": svg_of(*parts)})
    assert element.locator(".node").count() == len(parts)
    element.locator(".node[data-node='a']").click(force=True)
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
    drawn = draw_graph(graph, openable=ids[::2], overlay=overlay, dimmed=ids[::3]).svg
    widget.mount("canvas", **{**CANVAS, "svg": drawn})
    before = widget.page.evaluate(
        """text => [...new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("*")]
            .map(part => [part.localName, ...[...part.attributes]
                .map(one => `${one.name}=${one.value}`).sort()])""",
        drawn,
    )
    after = [
        [part["name"], *sorted(f"{name}={value}" for name, value in part["attributes"].items())]
        for part in widget.page.evaluate(LEFT)
    ]
    changed = ("viewBox=", "style=--enlarged")  # on the root, by the canvas
    root = [one for one in after[0] if not one.startswith(changed)]
    assert len(before) > 300
    assert root == [one for one in before[0] if not one.startswith(changed)]
    pale = [[re.sub(" pale$", "", one) for one in part] for part in after[1:]]
    assert pale == before[1:]


@pytest.mark.parametrize(
    "svg", ["<svg", "<p>no picture</p>", "<svg xmlns='http://www.w3.org/2000/svg'/>"]
)
def test_what_is_no_picture_is_said_to_be_none(widget: Widget, svg: str) -> None:
    element = widget.mount("canvas", **{**CANVAS, "svg": svg})
    assert "Cannot draw this graph" in element.get_by_role("alert").inner_text()
    assert element.locator("svg").count() == 0


def test_nothing_is_taken_out_of_a_loop_nest(widget: Widget) -> None:
    nest = loop_nest(MyModuleMixture["linear0"], "linear0")
    html = loop_nest_html(nest, [node.id for node in walk(nest)])
    widget.mount("loops", **{**LOOPS, "html": html})
    written = """text => {
        const box = document.createElement("div");
        box.innerHTML = text;
        return box.innerHTML;
    }"""
    own = r' (tabindex|role|aria-pressed|data-lm-suppress-shortcuts)="[^"]*"'
    shown = widget.page.locator(".irviz-nest").inner_html()
    assert "data-choice" in shown
    assert re.sub(own, "", shown) == widget.page.evaluate(written, html)


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
    widget.mount("loops", **{**LOOPS, "html": html})
    shown = widget.page.locator(".irviz-nest").inner_html()
    known = r'<div class="irviz-loops">(<b>b</b>|a|b)?<code data-node="n">x</code></div>'
    assert re.fullmatch(known, shown)
    assert widget.page.evaluate("() => window.hurt") is None
    assert widget.requests == [url for url in widget.requests if url.startswith("blob:")]


# --- the canvas ---------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [320, 380, 700])
def test_no_sign_lies_under_the_buttons(widget: Widget, width: int) -> None:
    sign = '<g class="toggle" data-toggle="c"><circle class="sign" cx="399" cy="4" r="8"/></g>'
    picture = svg_of(node_of("a"), f'<g class="title">{sign}</g>')
    element = widget.mount("canvas", width=width, **{**CANVAS, "svg": picture, "height": 300})
    element.locator(".toggle").click()
    assert widget.sent == [{"action": "Toggle", "container": "c"}]


def test_a_viewport_of_python_is_shown_and_none_fits_the_graph(widget: Widget) -> None:
    element = widget.mount("canvas", **{**CANVAS, "svg": svg_of(node_of("a"))})
    svg = element.locator("svg")
    fitted = svg.get_attribute("viewBox")
    widget.set(viewport=[100, 100, 4])
    assert svg.get_attribute("viewBox") != fitted
    widget.set(viewport=[])
    assert svg.get_attribute("viewBox") == fitted


# --- the tree of stages -------------------------------------------------------------------------


def row(name: str, depth: int = 0, *headings: str, **more: object) -> dict[str, object]:
    """Return a row of the tree."""
    first = depth - len(headings)
    return {
        "id": name,
        "label": f"stage {name}",
        "parent": "",
        "depth": depth,
        "isBranch": False,
        "badge": "<small>1 ms</small>",
        "title": "",
        "isShown": False,
        "isSame": False,
        "headings": [{"name": one, "depth": first + at} for at, one in enumerate(headings)],
        **more,
    }


ROWS = [
    *(row("0", isShown=True), row("1", 2, "pipeline", "inner"), row("2", 2), row("3", 1)),
    row("4"),
]
STAGES: dict[str, object] = {"rows": ROWS, "undoable": False, "redoable": False}


def lines(element: Any) -> list[str]:
    return [text.split()[0] for text in element.get_by_role("treeitem").all_inner_texts()]


def heading(element: Any, name: str) -> Any:
    return element.get_by_role("treeitem", name=name)


def test_the_heading_of_a_pipeline_folds_with_a_click(widget: Widget) -> None:
    element = widget.mount("stages", width=200, **STAGES)
    assert lines(element) == ["0", "pipeline", "inner", "1", "2", "3", "4"]
    assert heading(element, "pipeline").get_attribute("aria-expanded") == "true"
    heading(element, "inner").click()
    assert heading(element, "inner").get_attribute("aria-expanded") == "false"
    assert lines(element) == ["0", "pipeline", "inner", "3", "4"]
    heading(element, "pipeline").click()
    assert lines(element) == ["0", "pipeline", "4"]
    assert "3" in heading(element, "pipeline").inner_text()  # so many are hidden
    heading(element, "pipeline").click()
    assert lines(element) == ["0", "pipeline", "inner", "3", "4"]
    assert widget.sent == []


def test_the_heading_of_a_pipeline_folds_with_the_keyboard(widget: Widget) -> None:
    element = widget.mount("stages", width=200, **STAGES)
    press = widget.page.keyboard.press
    element.get_by_role("treeitem", name="stage 0").focus()
    press("ArrowDown")
    assert heading(element, "pipeline").evaluate("one => one === document.activeElement")
    for key, is_open in [
        *(("Enter", False), ("Space", True), ("ArrowLeft", False), ("ArrowRight", True)),
        ("ArrowLeft", False),
    ]:
        press(key)
        assert heading(element, "pipeline").get_attribute("aria-expanded") == str(is_open).lower()
        assert heading(element, "pipeline").evaluate("one => one === document.activeElement")
    assert widget.sent == []
    press("ArrowDown")
    assert widget.sent == [{"action": "Checkout", "stage": "4"}]


def test_what_is_folded_stays_so_when_the_rows_come_again(widget: Widget) -> None:
    element = widget.mount("stages", width=200, **STAGES)
    heading(element, "pipeline").click()
    widget.set(rows=[{**one, "badge": "<b>equal</b>"} for one in ROWS])
    assert lines(element) == ["0", "pipeline", "4"]
    assert element.locator("b", has_text="equal").count() == 2


def test_a_label_is_edited_while_badges_change(widget: Widget) -> None:
    element = widget.mount("stages", width=200, **STAGES)
    element.get_by_role("treeitem", name="stage 4").dblclick()
    field = element.get_by_label("label of stage 4")
    field.fill("half a la")
    widget.set(rows=[{**one, "badge": "<b>equal</b>"} for one in ROWS])
    assert element.locator("b", has_text="equal").count() == len(ROWS)
    assert lines(element) == ["0", "pipeline", "inner", "1", "2", "3"]  # and the field
    widget.page.keyboard.type("bel")
    assert field.input_value() == "half a label"
    widget.page.keyboard.press("Enter")
    assert widget.sent[-1] == {"action": "Rename", "stage": "4", "label": "half a label"}
    assert field.count() == 0


def test_a_stage_that_is_shown_is_unfolded(widget: Widget) -> None:
    element = widget.mount("stages", width=200, **STAGES)
    heading(element, "inner").click()
    heading(element, "pipeline").click()
    widget.set(rows=[{**one, "isShown": one["id"] == "3"} for one in ROWS])
    assert lines(element) == ["0", "pipeline", "inner", "3", "4"]


def test_a_branch_is_joined_to_the_stage_that_it_was_made_from(widget: Widget) -> None:
    """0 → 1 → 2, 0 → 3 and 0 → 4: the lines lead from below 0 to 1, 3 and 4."""
    rows = [
        *(row("0"), row("1", 1, isBranch=True, parent="0"), row("2", 1, parent="1")),
        *(row("3", 1, isBranch=True, parent="0"), row("4", 1, isBranch=True, parent="0")),
    ]
    element = widget.mount("stages", width=200, **{**STAGES, "rows": rows})
    guides = [
        line.locator(".irviz-guides i").evaluate_all("all => all.map(one => one.className)")
        for line in element.locator(".irviz-stage").all()
    ]
    assert guides == [[], ["branch"], ["line"], ["branch"], ["end"]]
    lefts = [one.bounding_box()["x"] for one in buttons(element)]
    assert lefts[0] < lefts[1] == lefts[2] == lefts[3] == lefts[4]
    titles = [one.get_attribute("title") for one in buttons(element)]
    assert [title.partition("made from ")[2] for title in titles] == [
        *("", "stage 0", "stage 1", "stage 0", "stage 0"),
    ]


def buttons(element: Any) -> list[Any]:
    return element.locator(".irviz-stage > button").all()
