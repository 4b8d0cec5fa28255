"""The README's moving picture, the stages of a layer of the MLP; `figures.toml` declares it."""

from __future__ import annotations

from html import escape
from itertools import pairwise

import numpy as np

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.graph_rewrites import linear_relu
from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.figures import Declaration, draw_declaration
from irviz.view.figure import Figure

STAGES = {
    "0": ("", ""),
    "1": ("BindParams", "the weights become constants"),
    "2": ("LegalizeOps", "each operator becomes a call of a PrimFunc"),
    "4": ("FuseOps", "three calls become one"),
}
STEPS = list(pairwise(STAGES))
SECONDS = 3
ROUNDS = 5
SHARE = 100 // len(STEPS)

# The last step is what stays: after the last round, and where the reader wants no motion.
STYLE = f"""
.stage {{ opacity: 0; animation: show {SECONDS * len(STEPS)}s backwards {ROUNDS} }}
.stage:last-child {{ opacity: 1 }}
@keyframes show {{
  0% {{ opacity: 0 }} 2%, {SHARE + 1}% {{ opacity: 1 }} {SHARE + 3}%, 100% {{ opacity: 0 }}
}}
@media (prefers-reduced-motion: reduce) {{ .stage {{ animation: none }} }}
"""


def fused_mlp() -> irviz.Session:
    """Return the stages of the MLP up to FuseOps."""
    session = irviz.Session(MyModuleHighLevel, params=mlp_params(), inputs=digits().images[:20])
    session = session.bind()
    for name in ("LegalizeOps", "FoldConstant", "AnnotateTIROpPattern", "FuseOps"):
        session = session.apply(name)
    return session


def fused_layer() -> irviz.Session:
    """Return the stages of the first layer of the MLP up to FuseOps."""
    weights = mlp_params()
    params = {"w": np.ascontiguousarray(weights["w0"].T), "b": weights["b0"]}
    session = irviz.Session(linear_relu(), params=params, inputs=digits().images[:1]).bind()
    for name in ("LegalizeOps", "AnnotateTIROpPattern", "FuseOps"):
        session = session.apply(name)
    return session


def moving_picture() -> Figure:
    """Return an SVG that shows one step after the other, each with the stages around it."""
    session = fused_layer()
    figures = [_step(session, before, after) for before, after in STEPS]
    width, height = max(one.width for one in figures), max(one.height for one in figures)
    frames = "".join(
        f'<g class="stage" style="animation-delay: {SECONDS * number}s">'
        f'<rect width="{width}" height="{height}" fill="#ffffff" />'
        f'<g transform="translate({(width - one.width) / 2} {(height - one.height) / 2})">'
        f"{one.svg}</g></g>"
        for number, one in enumerate(figures)
    )
    title = "A layer of the MLP from stage to stage: " + ", ".join(
        name for name, _ in STAGES.values() if name
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="irviz" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">'
        f"<title>{escape(title)}</title><style>{STYLE}</style>{frames}</svg>\n"
    )
    return Figure(svg, width, height)


def _step(session: irviz.Session, before: str, after: str) -> Figure:
    """Return two stages, below what was done and whether the results are those of the first."""
    name, what = STAGES[after]
    verdict = session.compare(after, "0").verdict.value
    declaration = Declaration(
        "step",
        session,
        kind="stages",
        stages=[before, after],
        hide=["with R.dataflow("],
        title=f"{name}: {what}; results: {verdict}",
    )
    return draw_declaration(declaration)["step"]
