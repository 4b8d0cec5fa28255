"""Times of stages beside each other, as text and as a table."""

from irviz.model.measurement import Measurement, Timing
from irviz.view.times import Times

FAST, SLOW = tuple(1e-4 + n * 1e-8 for n in range(10)), tuple(2e-4 + n * 1e-8 for n in range(10))
NOISY = tuple(1e-4 * (0.5 + (n * 7 % 10) / 10) for n in range(10))


def times(**of):
    timings = tuple(Timing(stage, f"made by <{stage}>", seconds) for stage, seconds in of.items())
    return Times(Measurement(timings))


def lines(found):
    return str(found).splitlines()


def test_each_stage_has_a_row_with_its_median_and_its_interval():
    head, slow, fast = lines(times(slow=SLOW, fast=FAST))
    assert head.split("  ")[0] == "stage"
    assert "median of a call" in head
    assert slow.startswith("slow   made by <slow>  200 µs")
    assert "200 µs to 200 µs" in slow
    assert "100 µs" in fast


def test_ratios_are_to_the_first_and_say_how_many_times_as_fast():
    found = times(slow=SLOW, fast=FAST)
    assert "×" not in lines(found)[1]
    assert "2.00× (2.00 to 2.00)" in lines(found)[2]
    assert found.ratio("fast").median > 1.9
    assert found.is_clear("fast")
    assert "0.50×" in lines(times(fast=FAST, slow=SLOW))[2]


def test_a_difference_that_noise_hides_is_told_as_such():
    found = times(first=FAST, other=NOISY)
    assert not found.is_clear("other")
    assert lines(found)[2].endswith("within the noise")
    assert "within the noise" not in str(times(slow=SLOW, fast=FAST))


def test_columns_stand_below_each_other():
    head, *rows = lines(times(a=SLOW, longer_name=FAST))
    at = head.index("made by")
    assert all(row[at:].startswith("made by <") for row in rows)
    assert not any(line.endswith(" ") for line in (head, *rows))
    assert repr(times(a=SLOW)) == str(times(a=SLOW))


def test_the_table_says_the_same_and_labels_are_text():
    found = times(slow=SLOW, fast=FAST)
    html = found._repr_html_()
    assert "made by &lt;fast&gt;" in html
    assert "<fast>" not in html
    assert html.count("<tr>") == 3
    for cell in ("200 µs", "100 µs", "2.00× (2.00 to 2.00)"):
        assert f"<td>{cell}</td>" in html


def test_the_clock_of_another_machine_is_named_and_that_of_this_one_is_not():
    timings = (Timing("0", "given", FAST),)
    here, there = Times(Measurement(timings)), Times(Measurement(timings, "pi:9090"))
    assert "clock" not in str(here) + here._repr_html_()
    assert "by the clock of pi:9090" in str(there)
    assert "by the clock of pi:9090" in there._repr_html_()
