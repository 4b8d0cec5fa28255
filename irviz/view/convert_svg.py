"""SVG as PDF and PNG, by Typst, which keeps lines and texts as they are."""

from __future__ import annotations

import warnings

from irviz.view.svg_primitives import WIDE_FONTS, is_wide

_PAGE = b"""#set document(date: none)
#set page(width: auto, height: auto, margin: 0pt)
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
    _warn_of_missing_letters(svg)
    return {"svg": svg, "width": str(width * _POINTS_PER_PIXEL)}


def _warn_of_missing_letters(svg: str) -> None:
    """Warn where a picture has Chinese or Korean letters and no font of this machine has them."""
    import typst

    if any(is_wide(char) for char in svg if not char.isascii()):
        families = typst.Fonts().families()
        if not any(name in families for name in WIDE_FONTS):
            warnings.warn(
                "the picture has Chinese or Korean letters, and this machine has none of the fonts "
                f"{', '.join(WIDE_FONTS)}: install one, such as Debian's fonts-noto-cjk, or use "
                "the SVG, whose letters the reader's machine draws",
                stacklevel=4,
            )
