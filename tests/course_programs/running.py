"""Run programs, each a file, one after the other; write down what each gave or how it failed.

`python running.py FOLDER` imports FOLDER/*.py by name and writes FOLDER/results.pkl: by program,
the array it left as `result`, or the traceback as text.
"""

import importlib
import pickle
import sys
import traceback
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    sys.path.insert(0, str(folder))
    results = {path.stem: result_of(path.stem) for path in sorted(folder.glob("*.py"))}
    (folder / "results.pkl").write_bytes(pickle.dumps(results))


def result_of(name: str) -> np.ndarray | str:
    try:
        result = importlib.import_module(name).result
        return np.array(result.numpy() if hasattr(result, "numpy") else result)
    except Exception:
        return traceback.format_exc()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
