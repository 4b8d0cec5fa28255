"""The README's moving picture, the stages of a layer of the MLP; `figures.toml` declares it."""

from __future__ import annotations

from html import escape

import numpy as np

import irviz
from irviz.course.digits import digits, mlp_params
from irviz.course.graph_rewrites import linear_relu
from irviz.course.mlp_high_level import MyModuleHighLevel
from irviz.view.figure import Figure

STAGES = {
    "1": ("BindParams", "the weights are constants"),
    "2": ("LegalizeOps", "each operator is a call of a PrimFunc"),
    "4": ("FuseOps", "one call in the place of three"),
}
SECONDS = 3
ROUNDS = 5
HEADER = 44
SHARE = 100 // len(STAGES)

# The last stage is what stays: after the last round, and where the reader wants no motion.
STYLE = f"""
.stage {{ opacity: 0; animation: show {SECONDS * len(STAGES)}s backwards {ROUNDS} }}
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
    """Return an SVG that shows one stage after the other."""
    session = fused_layer()
    figures = session.draw_stages(*STAGES)
    width, height = figures[0].width, figures[0].height + HEADER
    frames = "".join(
        f'<g class="stage" style="animation-delay: {SECONDS * number}s">'
        f'<rect width="{width}" height="{height}" fill="#ffffff" />'
        f"{_header(number, session.compare(stage, '0').verdict.value)}"
        f'<g transform="translate(0 {HEADER})">{figure.svg}</g></g>'
        for number, (stage, figure) in enumerate(zip(STAGES, figures, strict=True))
    )
    title = "A layer of the MLP from stage to stage: " + ", ".join(
        name for name, _ in STAGES.values()
    )
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="irviz" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="Arial, sans-serif" '
        f'font-size="15"><title>{escape(title)}</title><style>{STYLE}</style>{frames}</svg>\n'
    )
    return Figure(svg, width, height)


def _header(number: int, verdict: str) -> str:
    """Return the name of a stage, what it did, and whether its results are those of the first."""
    name, what = list(STAGES.values())[number]
    return (
        f'<text x="16" y="24" fill="#111111"><tspan font-weight="bold">{name}</tspan>: {what}'
        f'</text><text x="16" y="42" font-size="13" fill="#06594a">results: {verdict}</text>'
    )
