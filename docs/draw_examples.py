"""Run the examples of the gallery and save what they show: `python docs/draw_examples.py FOLDER`.

An example is a file in `docs/gallery`. It may define a `figure`, a `session`, which is saved as an
explorer, and a `text`. The session of the front page is saved too, with the results of its runs.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from assets.moving_stages import fused_mlp

EXAMPLES = sorted(Path(__file__).parent.glob("gallery/*.py"))


def draw_example(path: Path, folder: Path) -> None:
    """Run an example and write its picture, its explorer and its text."""
    made = runpy.run_path(str(path), run_name=path.stem)
    if "figure" in made:
        (folder / f"{path.stem}.svg").write_text(made["figure"].svg, encoding="utf-8")
    if "session" in made:
        made["session"].save_html(folder / f"{path.stem}.html")
    if "text" in made:
        (folder / f"{path.stem}.txt").write_text(made["text"], encoding="utf-8")


def main(folder: Path) -> None:
    """Write what the gallery and the front page show to a folder."""
    fused_mlp().save_html(folder / "explorer.html", run=True)
    for path in EXAMPLES:
        draw_example(path, folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
