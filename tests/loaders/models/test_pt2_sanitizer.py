"""Symbolic sizes in a .pt2 file are arithmetic that a moment is enough for."""

import pytest

from irviz.loaders.file_limits import FileError
from irviz.loaders.models.pt2_models import plain_size


@pytest.mark.parametrize(
    "text",
    [
        "s0",
        "2*s0 + 1",
        "Symbol('s0', positive=True, integer=True)",
        "Mul(Integer(2), Pow(Symbol('s0'), Integer(2)))",
        "Pow(Symbol('s0'), Integer(-1))",
        "s0**0.5",
        "Eq(Mod(s0, 8), 0)",
        "9223372036854775807",
    ],
)
def test_sizes_are_read(text):
    assert plain_size(text).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize(
    "text",
    [
        "9**9**9**9",
        "9**99999999",
        "(9**64)**64**64",
        "((((9**64)**64)**64)**64)**64",
        "Pow(9, Pow(9, Pow(9, 9)))",
        "Pow(Integer(9), Integer(99999999))",
        "PowByNatural(9, 10**9)",
        "1 << 10**9",
        "LShift(1, 999999999)",
        "s0**s1",
        "Pow(9, exp=99999999)",
        "Integer('9e99999999')",
        "Float('1e999999999')",
        "1e400",
        "9" * 3000,
        "().__class__",
        "[9]",
        "Symbol('s0').__class__",
    ],
)
def test_what_takes_long_or_is_more_thanplain_size_is_refused(text):
    with pytest.raises(FileError, match="where a size should be, so it was not read"):
        plain_size(text)
