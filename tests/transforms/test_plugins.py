"""Another package's passes and kernels are there as soon as it is installed."""

import textwrap
from pathlib import Path

import pytest

from irviz.transforms import plugins
from irviz.transforms.kernels import library
from irviz.transforms.passes.catalog import catalog


def _install(folder: Path, name: str, group: str, code: str) -> None:
    """Lay a package out as an installer would."""
    (folder / f"{name}.py").write_text(textwrap.dedent(code))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nmine = {name}\n")


@pytest.fixture
def site(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forgets_registrations: None,  # noqa: ARG001 - it undoes what they register
) -> Path:
    """Return a folder where packages are installed; what they register is forgotten."""
    monkeypatch.syspath_prepend(tmp_path)
    plugins.load_entry_points.cache_clear()
    return tmp_path


def test_a_pass_of_another_package_is_in_the_catalog(site: Path) -> None:
    _install(
        site,
        "their_passes",
        "irviz.passes",
        """
        import irviz
        from tvm import relax

        @irviz.register_pass("Their fusion")
        def fusion():
            return relax.transform.FuseOps()
        """,
    )

    assert "Their fusion" in [entry.name for entry in catalog()]


def test_a_kernel_of_another_package_can_replace_a_primfunc(site: Path) -> None:
    _install(
        site,
        "their_kernels",
        "irviz.kernels",
        """
        import irviz

        @irviz.library.register("their.relu", "(...)->(...)", definition="topi.relu")
        def relu(x, out):
            out[...] = x.clip(0)
        """,
    )

    assert "their.relu" in library.kernels()


def test_a_package_that_cannot_be_loaded_is_named_and_stops_nothing(site: Path) -> None:
    _install(site, "broken_passes", "irviz.passes", "raise ImportError('it needs something')")
    _install(
        site,
        "sound_passes",
        "irviz.passes",
        """
        import irviz

        @irviz.register_pass("Sound")
        def sound():
            return None
        """,
    )

    with pytest.warns(UserWarning, match="broken_passes.*it needs something"):
        assert "Sound" in [entry.name for entry in catalog()]
