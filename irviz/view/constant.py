"""What is in a constant, in a few words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_FEW = 8
_MOST = 4_000_000


def summary(array: NDArray[np.generic]) -> tuple[tuple[str, str], ...]:
    """Return what can be said of an array's values: smallest, largest, mean, what is no number.

    A small array is written out. Numbers that are not finite are counted, and left out else. Of
    more than four million numbers every n-th is looked at.
    """
    if array.size <= _FEW:
        return (("values", np.array2string(array, separator=", ", precision=6)),)
    if not (np.issubdtype(array.dtype, np.number) or array.dtype == np.bool_):
        return ()
    step = -(-array.size // _MOST)
    values = array.reshape(-1)[::step].astype(np.float64)
    finite = values[np.isfinite(values)]
    facts = []
    if finite.size < values.size:
        facts.append(("not finite", f"{values.size - finite.size} of {values.size}"))
    if finite.size:
        facts.append(("values", f"{finite.min():.4g} to {finite.max():.4g}"))
        facts.append(("mean ± std", f"{finite.mean():.4g} ± {finite.std():.4g}"))
        facts.append(("zeros", f"{(finite == 0).mean():.0%}"))
    if step > 1:
        facts.append(("looked at", f"one of {step}, of {array.size:,}"))
    return tuple(facts)
