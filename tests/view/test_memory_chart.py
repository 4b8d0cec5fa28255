"""A memory chart shows each buffer from its first to its last step, and marks the peak."""

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irviz.model.graph.graph import NodeId
from irviz.model.runs.memory_timeline import Allocation, MemoryStep, MemoryUse, Storage
from irviz.view.figure import Figure
from irviz.view.memory_chart import memory_chart

SVG = "{http://www.w3.org/2000/svg}"


def used(*sizes, name="lv", kernel="add"):
    """Return a run in which each step allocates a buffer that the next one still reads."""
    steps = tuple(MemoryStep(f"{kernel}{n}", NodeId(f"{name}{n}")) for n in range(len(sizes)))
    last = len(sizes)
    storages = tuple(Storage(f"s{n}", z, n, min(n + 2, last)) for n, z in enumerate(sizes))
    buffers = tuple(
        Allocation(f"{name}{n}", NodeId(f"{name}{n}"), one.nbytes, one.start, one.stop, n)
        for n, one in enumerate(storages)
    )
    live = tuple(sum(sizes[max(n - 1, 0) : n + 1]) for n in range(last))
    return MemoryUse("main", steps, live, storages, buffers, sum(sizes))


def parsed(use, theme="course"):
    return ElementTree.fromstring(memory_chart(use, theme).svg)


def groups(root, kind):
    return [one for one in root.iter(f"{SVG}g") if one.get("class") == kind]


def bars(root, kind="buffer"):
    """Return left, top, width and height of each bar, by the first line of its tooltip."""
    found = {}
    for group in groups(root, kind):
        rect = group.find(f"{SVG}rect")
        place = tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
        found[group.find(f"{SVG}title").text.split(":")[0]] = place
    return found


def words(root):
    return [one.text for one in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("theme", ["course", "dark"])
def test_each_buffer_and_each_storage_is_a_bar(theme):
    use = used(512, 512, 1024, 40)
    root = parsed(use, theme)
    assert list(bars(root)) == ["lv0", "lv1", "lv2", "lv3"]
    assert list(bars(root, "storage")) == ["s0", "s1", "s2", "s3"]
    assert [one.get("data-node") for one in groups(root, "buffer")] == [s.node for s in use.steps]


def test_bars_are_as_long_as_their_steps_and_as_high_as_their_bytes():
    found = bars(parsed(used(100, 100, 200, 100)))
    assert found["lv1"][0] - found["lv0"][0] == pytest.approx(found["lv0"][2] / 2, abs=0.02)
    assert found["lv3"][2] == pytest.approx(found["lv0"][2] / 2, abs=0.02)
    assert found["lv2"][3] == pytest.approx(2 * found["lv1"][3], abs=0.02)


def test_the_peak_is_marked_with_its_size_and_step():
    root = parsed(used(512, 512, 1024, 40))
    (peak,) = groups(root, "peak")
    assert peak.find(f"{SVG}text").text == "peak 1.5 KiB at step 2, add2"
    x = float(peak.find(f"{SVG}path").get("d")[1:].split(",")[0])
    left, _, width, _ = bars(root)["lv2"]
    assert left < x < left + width / 2


def test_bars_have_names_where_there_is_room_for_them():
    assert "lv0 512 B" in words(parsed(used(512, 512)))
    wide = words(parsed(used(100_000, 1)))
    assert "lv0 97.7 KiB" in wide
    assert "lv1 1 B" not in wide


@pytest.mark.parametrize("count", [5, 500])
def test_a_chart_keeps_to_a_page_with_few_steps_and_with_many(count):
    drawing = memory_chart(used(*[64] * count))
    assert drawing.width <= 1300
    assert drawing.height <= 700
    root = ElementTree.fromstring(drawing.svg)
    assert len(bars(root)) == count
    named = [text for text in words(root) if text.startswith("add")]
    assert len(named) == (count if count == 5 else 0)
    assert ("500 steps" in words(root)) is (count == 500)


@settings(max_examples=30)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=40))
def test_everything_is_on_the_paper_and_no_bars_meet(sizes):
    drawing = memory_chart(used(*sizes))
    found = list(bars(ElementTree.fromstring(drawing.svg)).values())
    assert all(x >= 0 and x + w <= drawing.width + 1 for x, _, w, _ in found)
    assert all(y >= 0 and y + h <= drawing.height + 1 for _, y, _, h in found)
    large = [one for one in found if one[3] > 1 and one[2] > 1]
    for index, (x, y, w, h) in enumerate(large):
        for a, b, c, d in large[index + 1 :]:
            assert x + w <= a + 0.1 or a + c <= x + 0.1 or y + h <= b + 0.1 or b + d <= y + 0.1


def test_names_are_text_whatever_is_in_them():
    root = parsed(used(64, 64, name="<b>&\"'\x00", kernel="</svg><script>"))
    assert not list(root.iter(f"{SVG}script"))
    assert "<b>&\"'\ufffd0 64 B" in words(root)


def test_a_function_that_runs_nothing_says_so():
    assert words(parsed(MemoryUse("main", (), (), (), (), 0))) == ["nothing runs"]


def test_steps_that_hold_nothing_are_drawn():
    root = parsed(MemoryUse("main", (MemoryStep("print"),), (0,), (), (), 0))
    assert "peak 0 B at step 0, print" in words(root)


def test_the_same_run_gives_the_same_bytes():
    assert memory_chart(used(5, 6)).svg == memory_chart(used(5, 6)).svg


def test_a_chart_shows_and_saves_itself(tmp_path):
    drawing = memory_chart(used(512, 512))
    assert isinstance(drawing, Figure)
    assert drawing.svg.endswith(drawing._repr_svg_()[-1000:])
    assert drawing.save(tmp_path / "memory.svg").read_text(encoding="utf-8") == drawing.svg


def test_an_unknown_theme_is_refused():
    with pytest.raises(ValueError, match="no theme 'paper'"):
        memory_chart(used(1), "paper")
