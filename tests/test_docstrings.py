"""The examples in docstrings give what they say."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import irviz


def with_examples():
    """Return the names of the modules whose text has examples; no module is imported for it."""
    found = pkgutil.walk_packages(irviz.__path__, "irviz.")
    texts = {one.name: Path(one.module_finder.find_spec(one.name).origin) for one in found}
    return [name for name, path in texts.items() if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("name", with_examples())
def test_the_examples_of_a_module_give_what_they_say(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted
    assert not result.failed
