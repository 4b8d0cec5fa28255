"""Tests of the command line open files that are no one's recent files."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what irviz writes about the user out of the user's folders; processes inherit it."""
    folder = str(tmp_path_factory.mktemp("user"))
    patch = pytest.MonkeyPatch()
    for name in ("XDG_STATE_HOME", "XDG_DATA_HOME"):
        patch.setenv(name, folder)
