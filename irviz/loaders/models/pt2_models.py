"""Load .pt2 files, and run their programs for comparison with the imported modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from irviz.errors import LoadError
from irviz.loaders.loaded_model import Loaded, Missing, detach_weights
from irviz.loaders.models.origin_file import OriginFile
from irviz.loaders.models.pt2_sanitizer import plain_archive
from irviz.loaders.models.torch_evaluator import ProgramOrigin
from irviz.loaders.models.torch_importer import ImportedProgram
from irviz.loaders.models.torch_models import imported_program, load_errors, notes_of, quiet
from irviz.model.runs.origin import Origin, OriginRun
from irviz.model.runs.trace import Array

if TYPE_CHECKING:
    import torch

NEEDED = "it needs PyTorch: install irviz[torch], as in pip install 'irviz[torch]'"


def from_pt2(content: bytes, path: Path | None = None, missing: Missing = "error") -> Loaded:
    """Return the program in a .pt2 file, running nothing in it; raise LoadError for other files.

    Parts that torch would run are removed first, or the file is refused. Runs in the worker.
    """
    imported, written = imported_program(_read_pt2(content), missing)
    mod, params = detach_weights(imported.module)
    origin = None if imported.opaque else Pt2Origin(OriginFile.of(content, path))
    notes, layers = notes_of(imported, written), {"main": imported.layers}
    return Loaded(mod, params, notes=notes, origin=origin, layers=layers)


def program_of_pt2(content: bytes) -> ImportedProgram:
    """Return the program in a .pt2 file as TVM imports it; raise LoadError."""
    return imported_program(_read_pt2(content), "error")[0]


@dataclass(frozen=True, eq=False)
class Pt2Origin(Origin):
    """The program in a .pt2 file, which the worker reads again and runs."""

    file: OriginFile
    name = "torch"
    is_isolated = True

    def run(self, arguments: Mapping[str, Array], budget: int) -> OriginRun:
        """Read the file and run its program; raise RunError if it has been changed."""
        return ProgramOrigin(program_of_pt2(self.file.read())).run(arguments, budget)


def _read_pt2(content: bytes) -> torch.export.ExportedProgram:
    archive = plain_archive(content)
    try:
        import torch
    except ImportError:
        raise LoadError(NEEDED) from None
    with quiet(), load_errors(f"it is damaged, or not from torch {torch.__version__}"):
        return torch.export.load(BytesIO(archive))
