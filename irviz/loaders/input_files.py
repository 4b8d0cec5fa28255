"""Read the inputs of a run from a file: arrays, an image, or a folder of images."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.ir.sizes import evaluated, parameter_types, shape_of
from irviz.ir.type_label import dim_label
from irviz.loaders.numbers import ParamsError, plain
from irviz.loaders.params import load_params
from irviz.loaders.pictures import SUFFIXES, PictureError, as_input, layout_of, opened

MOST_BYTES = 1 << 31
"""Files, and inputs made of images, that are larger are not read."""

_NPY, _ZIP = b"\x93NUMPY", (b"PK\x03\x04", b"PK\x05\x06")
_KINDS = "an .npy, an .npz or an image (.png, .jpg, .bmp), or a folder of images"


class InputFileError(ValueError):
    """A file that inputs cannot be read from; the message says what would be right."""


@dataclass(frozen=True)
class Wanted:
    """The tensor that an input is to be; no shape or a None in it for what the file may say."""

    shape: tuple[int | None, ...] | None = None
    dtype: str | None = None


def wanted_tensors(
    function: relax.Function | tirx.PrimFunc, params: Mapping[str, NDArray[Any]]
) -> dict[str, Wanted]:
    """Return the tensors that a file is to fill: those parameters that `params` do not.

    Symbolic sizes that the params tell are known, the others may be any.
    """
    dims: dict[str, int] = {}
    types = parameter_types(function)
    tensors = {name: type_ for name, type_ in types.items() if isinstance(type_, relax.TensorType)}
    for name, type_ in tensors.items():
        for size, dim in zip(np.shape(params.get(name, ())), shape_of(type_) or (), strict=False):
            if isinstance(dim, ir.Var):
                dims.setdefault(dim_label(dim), size)
    return {name: _wanted(type_, dims) for name, type_ in tensors.items() if name not in params}


def read_inputs(
    path: str | os.PathLike[str], wanted: Mapping[str, Wanted]
) -> dict[str, NDArray[Any]]:
    """Read arrays by name for the `wanted` inputs; what the file is, its first bytes say.

    An .npz has arrays by name, an .npy the only one that is wanted. An image, or each image of a
    folder in the order of their names, is a case of the only one wanted, made to fit: in grey or
    colours, resized, as floats from 0 to 1, or as integers from 0 to 255. Nothing in a file is
    run. Raises InputFileError, in one sentence, for anything else.
    """
    name = os.fspath(path)
    try:
        place = Path(path)
        if place.is_dir():
            return _from_folder(place, wanted)
        content = _content(place)
        if content.startswith(_ZIP):
            return _named(load_params(place), wanted)
        if content.startswith(_NPY):
            return {_only(wanted, "one array"): _npy(content)}
        return _from_images([place], wanted)
    except ParamsError as failure:  # it begins with the file's name
        raise InputFileError(str(failure)) from failure
    except (InputFileError, PictureError) as failure:
        raise InputFileError(f"{name!r} {failure}") from failure
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise InputFileError(
            f"{name!r} cannot be read ({reason}): give the path of {_KINDS}, that this user may "
            "read"
        ) from failure


def _content(path: Path) -> bytes:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # a pipe or a device may never end
        raise InputFileError(f"is a device or a pipe: give {_KINDS}")
    if not status.st_size:
        raise InputFileError(f"is empty: give {_KINDS}")
    if status.st_size > MOST_BYTES:
        raise InputFileError(
            f"has {status.st_size:,} bytes, and at most {MOST_BYTES:,} are read: give a smaller one"
        )
    return path.read_bytes()


def _npy(content: bytes) -> NDArray[Any]:
    file = BytesIO(content)
    try:
        array = np.lib.format.read_array(file, allow_pickle=False)
        return plain("it", array)
    except ParamsError as failure:
        raise InputFileError(str(failure)) from failure
    except Exception as failure:  # a damaged header raises what it likes, MemoryError too
        words = " ".join(str(failure).split()) or type(failure).__name__
        raise InputFileError(
            f"holds a damaged array or none of numbers ({words}): write it again with "
            "numpy.save(path, array)"
        ) from failure


def _named(arrays: dict[str, NDArray[Any]], wanted: Mapping[str, Wanted]) -> dict[str, Any]:
    """Return the arrays by name; the only one there is, is for the only one that is wanted."""
    if len(arrays) == len(wanted) == 1:
        return dict(zip(wanted, arrays.values(), strict=True))
    missing = [name for name in wanted if name not in arrays]
    unknown = [name for name in arrays if name not in wanted]
    if missing or unknown:
        raise InputFileError(
            f"holds {_listed(arrays)}, and the inputs are {_listed(wanted)}: save these by name, "
            "as in numpy.savez(path, x=...)"
        )
    return arrays


def _only(wanted: Mapping[str, Wanted], what: str) -> str:
    if len(wanted) != 1:
        raise InputFileError(
            f"holds {what}, and the inputs are {_listed(wanted)}: save arrays by name, as in "
            "numpy.savez(path, x=...)"
        )
    return next(iter(wanted))


def _from_folder(folder: Path, wanted: Mapping[str, Wanted]) -> dict[str, NDArray[Any]]:
    found = sorted(
        one
        for one in folder.iterdir()
        if one.suffix.lower() in SUFFIXES and not one.name.startswith(".") and one.is_file()
    )
    if not found:
        raise InputFileError(
            f"is a folder without images: put some in it, of {', '.join(SUFFIXES)}"
        )
    total = sum(one.stat().st_size for one in found)
    if total > MOST_BYTES:
        raise InputFileError(
            f"has images of {total:,} bytes, and at most {MOST_BYTES:,} are read: give fewer"
        )
    return _from_images(found, wanted, are_in_folder=True)


def _from_images(
    files: Sequence[Path], wanted: Mapping[str, Wanted], *, are_in_folder: bool = False
) -> dict[str, NDArray[Any]]:
    """Return the one input that is wanted, with an image a case."""
    name = _only(wanted, "an image" if len(files) == 1 else "images")
    layout = layout_of(name, wanted[name].shape, wanted[name].dtype)
    at_once = layout.at_once
    if len(files) % at_once:
        raise InputFileError(
            f"holds {len(files)} images, and {name!r} takes {at_once} at once: give a folder "
            f"with {at_once} of them, or a multiple"
        )
    made: list[NDArray[Any]] = []
    for number, file in enumerate(files):
        try:
            array = as_input(opened(_content(file)), layout)
        except (PictureError, InputFileError) as failure:
            if not are_in_folder:
                raise
            raise InputFileError(f"holds {file.name!r}, which {failure}") from failure
        if array.nbytes * len(files) > MOST_BYTES:
            raise InputFileError(
                f"would be {array.nbytes * len(files):,} bytes of inputs, and at most "
                f"{MOST_BYTES:,} are made: give fewer images"
            )
        if number and array.shape != made[0].shape:
            raise InputFileError(
                f"holds images of different sizes, {made[0].shape} and {array.shape}, and {name!r} "
                "has no size of its own: resize them"
            )
        made.append(array)
    stacked = np.stack(made)
    return {name: stacked.reshape(len(made) // at_once, *layout.joined(stacked.shape[1:]))}


def _wanted(type_: relax.TensorType, dims: Mapping[str, int]) -> Wanted:
    sizes = shape_of(type_)
    shape = None if sizes is None else tuple(evaluated(size, dims) for size in sizes)
    return Wanted(shape, None if type_.dtype is None else str(type_.dtype))


def _listed(names: Mapping[str, object]) -> str:
    listed = ", ".join(map(repr, list(names)[:8])) or "none"
    return f"{listed}, …" if len(names) > 8 else listed
