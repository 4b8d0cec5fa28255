"""Read the inputs of a run from a file: arrays, an image, or a folder of images."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.shapes.symbolic_shapes import evaluate_dim, parameter_types, type_dims
from irviz.ir.text.expression_labels import dim_label
from irviz.loaders.arrays.images import (
    SUFFIXES,
    ImageLayout,
    image_array,
    image_layout,
    open_image,
)
from irviz.loaders.arrays.npy_file import read_npy
from irviz.loaders.arrays.param_files import ParamsError, load_params
from irviz.loaders.arrays.supported_dtypes import native_array
from irviz.loaders.bounded_read import ZIP_STARTS, read_file
from irviz.loaders.file_errors import FileError, file_errors, named, one_line
from irviz.loaders.file_limits import MAX_BYTES
from irviz.loaders.read_in_worker import read_in_worker

_NPY = b"\x93NUMPY"
_KINDS = "an .npy, an .npz or an image (.png, .jpg, .bmp), or a folder of images"


class InputFileError(InputError):
    """Inputs cannot be read from a file; the message says what it should contain."""


@dataclass(frozen=True)
class InputTensor:
    """The shape and dtype of an input; None where the file determines them."""

    shape: tuple[int | None, ...] | None = None
    dtype: str | None = None


def missing_inputs(
    function: relax.Function | tirx.PrimFunc, params: Mapping[str, NDArray[Any]]
) -> dict[str, InputTensor]:
    """Return the tensor parameters of a function that `params` lacks, by name.

    Symbolic sizes are taken from `params` where possible, and are None otherwise.
    """
    dims: dict[str, int] = {}
    types = parameter_types(function)
    tensors = {name: type_ for name, type_ in types.items() if isinstance(type_, relax.TensorType)}
    for name, type_ in tensors.items():
        for size, dim in zip(np.shape(params.get(name, ())), type_dims(type_) or (), strict=False):
            if isinstance(dim, ir.Var):
                dims.setdefault(dim_label(dim), size)
    wanted = {}
    for name, type_ in tensors.items():
        if name not in params:
            sizes = type_dims(type_)
            shape = None if sizes is None else tuple(evaluate_dim(size, dims) for size in sizes)
            wanted[name] = InputTensor(shape, None if type_.dtype is None else str(type_.dtype))
    return wanted


def read_inputs(
    path: str | os.PathLike[str], wanted: Mapping[str, InputTensor]
) -> dict[str, NDArray[Any]]:
    """Read arrays for the `wanted` inputs from a file or a folder of images, running nothing in it.

    An .npz holds arrays by name, an .npy the only wanted input. An image, or each image of a folder
    in alphabetical order, is one case of the only wanted input. It is converted to that input's
    channels and size, as floats from 0 to 1 or integers from 0 to 255. The first bytes determine
    the kind of file. Raises InputFileError for anything else.
    """
    name, file = os.fspath(path), Path(path)
    try:
        with named(name, InputFileError):
            if file.is_dir():
                return _from_folder(file, wanted)
            content = _content(file)
            if content.startswith(ZIP_STARTS):
                return _by_name(load_params(file), wanted)
            if content.startswith(_NPY):
                return {_only(wanted, "one array"): _npy(content)}
            return _from_images([file], wanted)
    except ParamsError as failure:  # its message has the file's name
        raise InputFileError(str(failure)) from failure
    except OSError as failure:  # a folder that cannot be listed
        raise InputFileError(
            f"{name!r} cannot be read ({one_line(failure)}): give the path of {_KINDS}, that this "
            "user may read"
        ) from failure


def _content(path: Path) -> bytes:
    content = read_file(path, MAX_BYTES)
    if not content:
        raise FileError(f"is empty: give {_KINDS}")
    return content


def _npy(content: bytes) -> NDArray[Any]:
    advice = "write it again with numpy.save(path, array)"
    with file_errors("is damaged or not an array of numbers", advice):
        array = read_npy(BytesIO(content), len(content))
    return native_array("it", array)


def _by_name(arrays: dict[str, NDArray[Any]], wanted: Mapping[str, InputTensor]) -> dict[str, Any]:
    """Return the arrays by name; a single array is for the only wanted input."""
    if len(arrays) == len(wanted) == 1:
        return dict(zip(wanted, arrays.values(), strict=True))
    missing = [name for name in wanted if name not in arrays]
    unknown = [name for name in arrays if name not in wanted]
    if missing or unknown:
        raise FileError(
            f"holds {_listed(arrays)}, and the inputs are {_listed(wanted)}: save these by name, "
            "as in numpy.savez(path, x=...)"
        )
    return arrays


def _only(wanted: Mapping[str, InputTensor], what: str) -> str:
    if len(wanted) != 1:
        raise FileError(
            f"holds {what}, and the inputs are {_listed(wanted)}: save arrays by name, as in "
            "numpy.savez(path, x=...)"
        )
    return next(iter(wanted))


def _from_folder(folder: Path, wanted: Mapping[str, InputTensor]) -> dict[str, NDArray[Any]]:
    home = folder.resolve()
    found = sorted(
        one
        for one in folder.iterdir()
        if one.suffix.lower() in SUFFIXES and not one.name.startswith(".") and one.is_file()
    )
    for one in found:
        if not one.resolve().is_relative_to(home):
            raise FileError(
                f"holds {one.name!r}, which is a link to a file outside of it: copy that file here"
            )
    if not found:
        raise FileError(f"is a folder without images ({', '.join(SUFFIXES)}): put some in it")
    total = sum(one.stat().st_size for one in found)
    if total > MAX_BYTES:
        raise FileError(
            f"has images of {total:,} bytes, and at most {MAX_BYTES:,} are read: give fewer"
        )
    return _from_images(found, wanted, are_in_folder=True)


def _from_images(
    files: Sequence[Path], wanted: Mapping[str, InputTensor], *, are_in_folder: bool = False
) -> dict[str, NDArray[Any]]:
    """Return the only wanted input, one case per image."""
    name = _only(wanted, "an image" if len(files) == 1 else "images")
    layout = image_layout(name, wanted[name].shape, wanted[name].dtype)
    per_input = layout.batch or 1
    if len(files) % per_input:
        raise FileError(
            f"holds {len(files)} images, and {name!r} takes {per_input} at once: give a folder "
            f"with {per_input} of them, or a multiple"
        )
    stacked = read_in_worker(
        _stack_images, [one.absolute() for one in files], layout, name, are_in_folder, MAX_BYTES
    )
    batch = () if layout.batch is None else (layout.batch,)
    return {name: stacked.reshape(len(files) // per_input, *batch, *stacked.shape[1:])}


def _stack_images(
    files: Sequence[Path], layout: ImageLayout, name: str, are_in_folder: bool, most: int
) -> NDArray[Any]:
    """Return the array of each image, in the worker: a small JPEG can take hours to decode."""
    arrays: list[NDArray[Any]] = []
    for number, file in enumerate(files):
        try:
            array = image_array(open_image(_content(file)), layout)
        except FileError as failure:
            if not are_in_folder:
                raise
            raise FileError(f"holds {file.name!r}, which {failure}") from failure
        if array.nbytes * len(files) > most:
            raise FileError(
                f"would be {array.nbytes * len(files):,} bytes of inputs, and at most "
                f"{most:,} are made: give fewer images"
            )
        if number and array.shape != arrays[0].shape:
            raise FileError(
                f"holds images of different sizes, {arrays[0].shape} and {array.shape}, and "
                f"{name!r} has no size of its own: resize them"
            )
        arrays.append(array)
    return np.stack(arrays)


def _listed(names: Mapping[str, object]) -> str:
    listed = ", ".join(map(repr, list(names)[:8])) or "none"
    return f"{listed}, …" if len(names) > 8 else listed
