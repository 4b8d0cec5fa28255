"""Which pictures there are of a value, and how each is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irviz.model.summary import Summary
from irviz.view.cells import Array
from irviz.view.drawing import Drawing
from irviz.view.heat_map import heat_map
from irviz.view.histogram import histogram
from irviz.view.image import images_shape
from irviz.view.image_strip import image_strip

HEAT_MAP, HISTOGRAM, IMAGES = "heat map", "histogram", "images"


def pictures_of(shape: Sequence[int]) -> tuple[str, ...]:
    """Return which pictures fit an array of a shape, the most telling first; none where empty."""
    size = math.prod(shape)
    if not size:
        return ()
    images = images_shape(shape)
    fitting = [HEAT_MAP]
    if size > 1:
        fitting.append(HISTOGRAM)
    if images is not None:
        is_coloured = images[3] > 1
        fitting.insert(0 if is_coloured else len(fitting), IMAGES)
    return tuple(fitting)


def picture_of(
    kind: str,
    array: Array | None,
    summary: Summary,
    theme: str = "course",
    *,
    index: Sequence[int] = (),
    title: str = "",
) -> Drawing:
    """Draw a picture of one of the kinds of `pictures_of`, of its summary where that is enough.

    `index` is the slice of a heat map, or the number of the first image. Raises ValueError for
    another kind, and for what is needed and was not kept.
    """
    if kind == HISTOGRAM:
        return histogram(summary, theme, title=title)
    if kind not in (HEAT_MAP, IMAGES):
        raise ValueError(
            f"there is no picture {kind!r}: choose one of {HEAT_MAP}, {HISTOGRAM}, {IMAGES}"
        )
    if array is None:
        raise ValueError(
            f"the value was too large to keep: fetch it for a picture of kind {kind!r}"
        )
    if kind == IMAGES:
        return image_strip(array, theme, first=index[0] if index else 0, title=title)
    return heat_map(array, theme, index=index, title=title)
