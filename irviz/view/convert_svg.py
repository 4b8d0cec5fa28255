"""SVG as PDF and PNG, by Typst, which keeps lines and texts as they are."""

from __future__ import annotations

_PAGE = b"""#set page(width: auto, height: auto, margin: 0pt)
#image(bytes(sys.inputs.svg), format: "svg", width: float(sys.inputs.width) * 1pt)
"""
_POINTS_PER_PIXEL = 0.75
_PIXELS_PER_INCH = 192.0
"""Two pixels for each unit of the SVG."""


def svg_to_pdf(svg: str, width: float) -> bytes:
    """Return a picture of this width in px as a page of its size, with its fonts."""
    import typst  # which is large, and seldom needed

    return typst.compile(_PAGE, sys_inputs=_inputs(svg, width), format="pdf")


def svg_to_png(svg: str, width: float) -> bytes:
    """Return a picture of this width in px with two pixels for each of these."""
    import typst

    inputs = _inputs(svg, width)
    return typst.compile(_PAGE, sys_inputs=inputs, format="png", ppi=_PIXELS_PER_INCH)


def _inputs(svg: str, width: float) -> dict[str, str]:
    return {"svg": svg, "width": str(width * _POINTS_PER_PIXEL)}
