"""The charts of an array: which of them fit its shape, and drawing one by its name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from irviz.errors import DrawError
from irviz.model.runs.array_summary import ArraySummary
from irviz.view.figure import Figure
from irviz.view.values.heat_map import heat_map
from irviz.view.values.heat_map_cells import Array
from irviz.view.values.histogram import histogram
from irviz.view.values.image import images_shape
from irviz.view.values.image_strip import image_strip

ValuePicture = Literal["heat map", "histogram", "images"]
HEAT_MAP, HISTOGRAM, IMAGES = "heat map", "histogram", "images"


def fitting_charts(shape: Sequence[int]) -> tuple[str, ...]:
    """Return the charts that fit an array of a shape, the most useful one first."""
    size = math.prod(shape)
    if not size:
        return ()
    images = images_shape(shape)
    fitting = [HEAT_MAP]
    if size > 1:
        fitting.append(HISTOGRAM)
    if images is not None:
        is_first = images[3] > 1 or len(shape) == 4  # of which a heat map shows one slice
        fitting.insert(0 if is_first else len(fitting), IMAGES)
    return tuple(fitting)


def draw_chart(
    kind: str,
    array: Array | None,
    summary: ArraySummary,
    theme: str = "course",
    *,
    index: Sequence[int] = (),
    title: str = "",
) -> Figure:
    """Draw a chart of an array, of which only the summary may have been kept.

    Args:
        kind: One of `fitting_charts`.
        index: The slice of a heat map, or the number of the first image.

    Raises:
        DrawError: For another kind, an array that is needed and was not kept, an index that does
            not fit, or an unknown theme.
    """
    if kind == HISTOGRAM:
        return histogram(summary, theme, title=title)
    if kind not in (HEAT_MAP, IMAGES):
        raise DrawError(
            f"there is no picture {kind!r}: choose one of {HEAT_MAP}, {HISTOGRAM}, {IMAGES}"
        )
    if array is None:
        raise DrawError(f"the value was too large to keep: fetch it for a picture of kind {kind!r}")
    if kind == IMAGES:
        return image_strip(array, theme, first=index[0] if index else 0, title=title)
    return heat_map(array, theme, index=index, title=title)
