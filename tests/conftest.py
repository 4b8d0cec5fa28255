"""What the tests of several rooms share."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def modules() -> ModuleType:
    """Return tests/modules.py, the small IRModules; the tests are no package to import it from."""
    path = Path(__file__).with_name("modules.py")
    spec = importlib.util.spec_from_file_location("irviz_test_modules", path)
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded  # where TVMScript looks for the source
    spec.loader.exec_module(loaded)
    return loaded
