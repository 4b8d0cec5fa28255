"""Convert SVG to PDF and PNG with Typst, which keeps lines and text as vectors."""

from __future__ import annotations

import warnings

from irviz.view.svg_primitives import WIDE_FONTS, is_wide

_PAGE = b"""#set document(date: none)
#set page(width: auto, height: auto, margin: 0pt)
#image(
  bytes(sys.inputs.svg), format: "svg", fit: "stretch",
  width: float(sys.inputs.width) * 1pt, height: float(sys.inputs.height) * 1pt,
)
"""
_POINTS_PER_PIXEL = 0.75
_PIXELS_PER_INCH = 192.0
"""This gives two pixels for each unit of the SVG."""


def svg_to_pdf(svg: str, width: float, height: float) -> bytes:
    """Return a picture of this size in px as a one-page PDF with embedded fonts."""
    import typst  # which is large, and seldom needed

    return typst.compile(_PAGE, sys_inputs=_inputs(svg, width, height), format="pdf")


def svg_to_png(svg: str, width: float, height: float) -> bytes:
    """Return a picture of this size in px as a PNG at twice the resolution.

    The size is rounded, because for a fractional size Typst drops a row of pixels in the middle.
    """
    import typst

    inputs = _inputs(svg, round(width), round(height))
    return typst.compile(_PAGE, sys_inputs=inputs, format="png", ppi=_PIXELS_PER_INCH)


def _inputs(svg: str, width: float, height: float) -> dict[str, str]:
    _warn_of_missing_letters(svg)
    size = {"width": width, "height": height}
    return {"svg": svg, **{side: str(px * _POINTS_PER_PIXEL) for side, px in size.items()}}


def _warn_of_missing_letters(svg: str) -> None:
    """Warn if a picture has Chinese or Korean letters that no font on this machine has."""
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
