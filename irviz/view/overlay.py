"""What is told of a graph's nodes on top of it: a tint, a word and a warning for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irviz.model.graph import NodeId


@dataclass(frozen=True, slots=True)
class Mark:
    """What is told of a node: `share` is how strong its tint is, `text` a short word beside it.

    `is_flagged` puts a warning on it, `is_first` a larger one: where it began. Raises ValueError
    for a share that is not between 0 and 1.
    """

    share: float
    text: str
    is_flagged: bool = False
    is_first: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(
                f"the share of {self.text!r} is {self.share!r}: give a number between 0 and 1"
            )


@dataclass(frozen=True)
class Overlay:
    """The marks of nodes, and the words of their legend.

    `low` and `high` are what the shares 0 and 1 stand for, `flag` what a warning does. A node
    without a mark has no tint: it is drawn as its kind, without the colour.
    """

    title: str
    low: str
    high: str
    marks: Mapping[NodeId, Mark]
    flag: str = ""
