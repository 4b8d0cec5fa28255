"""What stands between the two pictures of a diff."""

import itertools
import re
from xml.etree import ElementTree

import pytest

from irviz.view.module_diff import draw_fat_arrow
from irviz.view.svg_primitives import Point


def corners(outline: str) -> list[Point]:
    """Return the corners of a closed outline of straight lines."""
    x, y = 0.0, 0.0
    found = []
    for command, rest in re.findall(r"([MLhv])([^A-Za-z]*)", outline):
        numbers = [float(one) for one in rest.split(",")]
        match command:
            case "h":
                x += numbers[0]
            case "v":
                y += numbers[0]
            case _:
                x, y = numbers
        found.append((x, y))
    return found


@pytest.mark.parametrize(("towards", "along"), [("right", 0), ("below", 1)])
def test_an_arrow_is_even_and_has_its_one_tip_at_the_end_it_points_to(towards, along):
    group, centre = ElementTree.Element("g"), (100.0, 60.0)
    draw_fat_arrow(group, centre, "black", towards)
    points = corners(group[0].get("d"))
    across = 1 - along
    tip = max(points, key=lambda point: point[along])
    assert tip[across] == centre[across]
    assert tip[along] > centre[along] > min(point[along] for point in points)
    behind = [point[along] for point in points if point != tip]
    assert len(behind) == len(points) - 1
    mirrored = {(point[along], round(2 * centre[across] - point[across], 6)) for point in points}
    assert mirrored == {(point[along], round(point[across], 6)) for point in points}
    for one, other in itertools.pairwise([*points, points[0]]):
        assert one != other
