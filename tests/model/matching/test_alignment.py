"""An alignment composes like a relation, and lays both versions out in one order."""

from collections import Counter
from itertools import chain, product

from hypothesis import given
from hypothesis import strategies as st

from irviz.model.matching.alignment import Alignment, align_lists, longest_increasing

NUMBERS = st.integers(0, 5)
RELATIONS = st.frozensets(st.tuples(NUMBERS, NUMBERS), max_size=12)
LISTS = st.lists(st.sampled_from("abcdefg"), max_size=12)


def alignment(pairs):
    return Alignment(dict.fromkeys(pairs, "shown"))


@given(RELATIONS, RELATIONS)
def test_two_steps_relate_what_any_element_between_relates(first, second):
    composed = alignment(first).compose(alignment(second), lambda one, two: f"{one}, {two}")
    joined = {(a, d) for (a, b), (c, d) in product(first, second) if b == c}
    assert composed.pairs == dict.fromkeys(joined, "shown, shown")


@given(RELATIONS)
def test_components_are_disjoint_and_hold_all_pairs(pairs):
    found = list(alignment(pairs).components(range(6)))
    mine, theirs = ([one for each in found for one in each[side]] for side in (0, 1))
    assert sorted(mine) == sorted({one for one, _ in pairs})
    assert sorted(theirs) == sorted({two for _, two in pairs})
    for one, two in pairs:
        assert [one in mine for mine, _ in found] == [two in theirs for _, theirs in found]


@given(LISTS, LISTS)
def test_the_union_has_each_element_once_in_order_and_only_partners_together(mine, theirs):
    numbers = range(len(mine)), range(len(theirs))
    found = align_lists(mine, theirs)
    stretches = list(found.union(*numbers))
    assert list(chain.from_iterable(one.before for one in stretches)) == list(numbers[0])
    assert list(chain.from_iterable(one.after for one in stretches)) == list(numbers[1])
    for each in stretches:
        assert each.before or each.after
        if each.is_common:
            assert [mine[at] for at in each.before] == [theirs[at] for at in each.after]
            assert all(map(found.pairs.__contains__, zip(each.before, each.after, strict=True)))


@given(st.permutations(range(7)))
def test_as_many_as_keep_their_order_are_together(order):
    stretches = align_lists(range(7), order).union(range(7), range(7))
    together = sum(len(each.before) for each in stretches if each.is_common)
    assert together == max(
        len(kept)
        for chosen in product((False, True), repeat=7)
        for kept in [[one for one, is_chosen in zip(order, chosen, strict=True) if is_chosen]]
        if kept == sorted(kept)
    )


def test_what_occurs_once_corresponds_wherever_it_is():
    assert set(align_lists("axb", "xab").pairs) == {(0, 1), (1, 0), (2, 2)}
    assert set(align_lists("xax", "xx").pairs) == {(0, 0), (2, 1)}


@given(LISTS, LISTS)
def test_nothing_equal_is_without_a_partner(mine, theirs):
    assert_all_paired(mine, theirs)


def test_in_long_lists_nothing_that_occurs_often_is_without_a_partner():
    assert_all_paired(
        "x" * 300 + "y" * 300, "x" * 150 + "a" + "x" * 150 + "y" * 150 + "b" + "y" * 150
    )


def assert_all_paired(mine, theirs):
    pairs = align_lists(mine, theirs).pairs
    assert all(mine[one] == theirs[two] for one, two in pairs)
    assert len(pairs) == (Counter(mine) & Counter(theirs)).total()


def test_what_is_left_between_stretches_in_common_was_replaced():
    found = align_lists("a12bcd3e", "axybce", replaced=True)
    assert {pair for pair, is_same in found.pairs.items() if not is_same} == {(1, 1), (2, 2)}
    assert len(align_lists("a12bcd3e", "axybce").pairs) == 4


def test_those_that_may_move_make_room_for_the_others():
    swapped = alignment({(0, 1), (1, 0)})
    for moved, stays in ((0, 1), (1, 0)):
        stretches = list(swapped.union([0, 1], [0, 1], {moved}))
        assert [list(each.before) for each in stretches if each.is_common] == [[stays]]


def test_what_kept_its_order():
    assert longest_increasing([0, 3, 1, 2]) == {0, 2, 3}
    assert longest_increasing([]) == frozenset()
