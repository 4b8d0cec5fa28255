"""Let a call call something else: what computes the same is offered, the rest has its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape

import ipywidgets as widgets

from irviz.app.reference import offer
from irviz.app.session import Session
from irviz.app.stepwise import Stepwise
from irviz.ir.identity import relax_function
from irviz.model.graph import Node, NodeId, NodeKind
from irviz.transforms.kernels.attempts import Verdict
from irviz.transforms.kernels.library import defined, kernels
from irviz.transforms.kernels.match import Candidate, tries
from irviz.transforms.kernels.replacements import calls

Act = Callable[[Callable[[Session], Session]], None]

_SWAPPED = (NodeKind.CALL_TIR, NodeKind.CALL_DPS_PACKED)


class SwapPanel:
    """Offer what computes the same as what the selected call calls, and swap it."""

    def __init__(self, act: Act) -> None:
        self._node: NodeId | None = None
        self._callee = ""
        self._found: dict[str, Candidate] = {}
        self._chosen, self._is_known = "", False
        self._tries = Stepwise(self._offer)
        # a layout each: to hide one widget is not to hide another
        self._to = widgets.Dropdown(layout=widgets.Layout(width="auto"))
        self._to.add_class("irviz-swap-to")
        self._to.observe(lambda _: self._describe(), "value")
        self._about = widgets.HTML()
        self._everywhere = widgets.Checkbox(
            value=False, indent=False, layout=widgets.Layout(width="auto")
        )
        self._button = widgets.Button(
            description="Swap",
            tooltip="Let the call call this instead",
            icon="exchange",
            layout=widgets.Layout(width="auto"),
        )
        self._button.on_click(lambda _: act(self._swap))
        self._count, self._reasons = widgets.HTML(), widgets.HTML()
        controls = [self._to, self._about, self._everywhere, self._button]
        self._controls = widgets.VBox(controls)
        heading = widgets.HTML("<h4>Call something else</h4>")
        # what changes its height as it is tried stands below what is clicked meanwhile
        self.widget = widgets.VBox([heading, self._controls, self._count, self._reasons])
        self.widget.layout.display = "none"

    def show(self, session: Session, selected: str) -> None:
        """Say of the selected call what could be called instead, first as signatures tell.

        Then it is tried, which takes a moment when a call is looked at for the first time.
        """
        node = _call(session, selected)
        if node is None:
            self._tries.leave()
            self.widget.layout.display = "none"
            return
        is_other = (node.id, node.callee) != (self._node, self._callee)
        self._is_known = not is_other
        if is_other:
            self._controls.layout.display = "none"  # they are of the call before
        self._node, self._callee = node.id, node.callee
        function = relax_function(session.shown.module, session.function)
        count = sum(each.callee == node.callee for each in calls(function).values())
        self._everywhere.description = f"all {count} calls of {node.callee}"
        self._everywhere.value = self._everywhere.value and not is_other
        self._everywhere.layout.display = "" if count > 1 else "none"
        self._chosen = "" if is_other else str(self._to.value)
        self.widget.layout.display = ""
        self._tries.follow(tries(session.shown.module, session.function, node.id))

    def _offer(self, found: tuple[Candidate, ...]) -> None:
        if self._is_known and any(each.is_pending for each in found):
            return  # what was found before stays meanwhile, for whoever is about to click
        self._found = {each.name: each for each in found}
        same = [each.name for each in found if each.computes_the_same]
        if same:
            offer(self._to, same, self._chosen if self._chosen in same else same[0])
        self._controls.layout.display = "" if same else "none"
        self._count.value = f"<p>{escape(_counted(found))}</p>"
        self._reasons.value = _reasons_html(found)

    def _describe(self) -> None:
        self._chosen = str(self._to.value)
        found = self._found.get(self._chosen)
        words = "" if found is None else f"{found.kind.value}, {found.reason}. {_summary(found)}"
        self._about.value = f"<p class='irviz-hint'>{escape(words)}</p>" if words else ""

    def _swap(self, session: Session) -> Session:
        node = None if self._everywhere.value else self._node
        return session.swap(self._callee, str(self._to.value), node=node)


def _call(session: Session, selected: str) -> Node | None:
    graph = session.graph()
    index = graph.index.get(NodeId(selected))
    node = None if index is None else graph.nodes[index]
    return node if node is not None and node.kind in _SWAPPED else None


def _counted(found: tuple[Candidate, ...]) -> str:
    same = sum(each.computes_the_same for each in found)
    fitting = sum(each.verdict is not Verdict.MISFIT for each in found)
    if any(each.is_pending for each in found):
        return f"trying what fits: {same} of {fitting} compute the same so far"
    verb = "computes" if same == 1 else "compute"
    return f"{same} of the {fitting} that fit {verb} the same"


def _reasons_html(found: tuple[Candidate, ...]) -> str:
    others = [each for each in found if not (each.computes_the_same or each.is_pending)]
    misfits = [each for each in others if each.verdict is Verdict.MISFIT]
    tried = [each for each in others if each.verdict is not Verdict.MISFIT]
    return _details(f"{len(tried)} fit and are not offered", tried) + _details(
        f"{len(misfits)} do not fit", misfits
    )


def _details(summary: str, found: Iterable[Candidate]) -> str:
    """Return a list that opens, one item for each reason."""
    names: dict[str, list[str]] = {}
    for each in found:
        names.setdefault(each.reason, []).append(each.name)
    items = [
        f"<li><b>{escape(', '.join(those))}</b>: {escape(reason)}</li>"
        for reason, those in names.items()
    ]
    if not items:
        return ""
    return f"<details><summary>{escape(summary)}</summary><ul>{''.join(items)}</ul></details>"


def _summary(found: Candidate) -> str:
    known = kernels().get(found.name) or defined().get(found.name)
    return known.summary if known is not None else ""
