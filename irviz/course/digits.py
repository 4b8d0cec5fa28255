"""Real digits to run the course's MLP on, and the weights of an MLP trained to read them.

The lecture classifies FashionMNIST clothes. These are handwritten digits instead: the UCI
"Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998), 8 by 8 pixels,
scaled up to the lecture's 28 by 28. ``assets/train_mlp.py`` writes the files read here.
"""

from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

class_names: Final[tuple[str, ...]] = tuple("0123456789")


class Digits(NamedTuple):
    """UCI handwritten digits that the shipped MLP was not trained on.

    ``images`` is (n, 784) float32 in [0, 1], each row a 28 by 28 picture read line by line, bright
    ink on dark paper; ``labels`` is (n,) int64 in 0 to 9, an index into ``class_names``.
    """

    images: NDArray[np.float32]
    labels: NDArray[np.int64]


def digits() -> Digits:
    """Read the shipped held-out digits."""
    arrays = _read("digits.npz")
    enlarge = arrays["enlarge"].astype(np.float64)  # splines are linear in the 8 by 8 pixels
    large = np.clip(enlarge @ arrays["images"].astype(np.float64) @ enlarge.T / 16, 0, 1)
    # the MLP was trained and measured on exactly these bytes over 255
    images = np.rint(large * 255).reshape(-1, 784).astype(np.float32) / np.float32(255)
    return Digits(images, arrays["labels"].astype(np.int64))


def mlp_params() -> dict[str, NDArray[np.float32]]:
    """Read the shipped float32 weights of the lecture's MLP, by the parameters of its ``main``.

    ``w0`` (128, 784), ``b0`` (128,), ``w1`` (10, 128), ``b1`` (10,). A row of images goes through
    as ``np.maximum(x @ w0.T + b0, 0) @ w1.T + b1``; the largest of the ten scores is the digit.
    """
    return {name: array.astype(np.float32) for name, array in _read("mlp_params.npz").items()}


def _read(name: str) -> dict[str, NDArray[np.generic]]:
    path = files("irviz.course") / "data" / name
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)
