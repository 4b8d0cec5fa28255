"""Read the inputs of a run from a file: arrays, an image, or a folder of images."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tvm import ir, relax, tirx

from irviz.errors import InputError
from irviz.ir.symbolic_shapes import evaluate_dim, parameter_types, type_dims
from irviz.ir.type_and_expression_labels import dim_label
from irviz.loaders.file_limits import (
    MAX_BYTES,
    ZIP_STARTS,
    FileError,
    file_errors,
    named,
    one_line,
    read_file,
    read_in_worker,
)
from irviz.loaders.param_files import ParamsError, load_params, native_array, read_npy

if TYPE_CHECKING:
    from PIL.Image import Image

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
            if content.startswith(np.lib.format.MAGIC_PREFIX):
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


# --- Convert images to arrays of the shape that a model takes ------------------------------------


MAX_PIXELS = 1 << 26
"""The largest image that is read, in pixels: a small file can declare any size."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# No decoder of these starts a program.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
_CHANNELS = {1: "L", 3: "RGB", 4: "RGBA"}
_ROW, _PLANE, _CHANNELS_FIRST, _CHANNELS_LAST = "row", "HW", "CHW", "HWC"


class ImageLayout(NamedTuple):
    """How an image is laid out as an array: order and size of the axes, and dtype.

    `batch` is the size of the batch axis, None if there is none. `height` and `width` are None if
    the image's own size is used.
    """

    batch: int | None
    channels: int
    order: str
    height: int | None
    width: int | None
    dtype: np.dtype[Any] = np.dtype("float32")


def image_layout(name: str, shape: tuple[int | None, ...] | None, dtype: str | None) -> ImageLayout:
    """Return the layout of images for an input; a None in its shape stands for any size.

    The shape is (1, channels, h, w) or (1, h, w, channels), the same without the 1, (h, w) for grey
    images, or a row of n * n numbers, three times as many for colour images. Raises FileError for
    another shape or dtype.
    """
    takes = "any shape" if shape is None else str(shape).replace("None", "?")
    layout = _layout(shape or ())
    sizes = () if layout is None else (layout.batch, layout.height, layout.width)
    if layout is None or any(size is not None and size < 1 for size in sizes):
        raise FileError(
            f"is an image, and {name!r} takes {takes}, which is not the shape of an image: give "
            "arrays as .npy or .npz"
        )
    if (layout.height or 1) * (layout.width or 1) > MAX_PIXELS:
        raise FileError(
            f"is an image, and {name!r} takes {takes}, which are more than {MAX_PIXELS:,} "
            "pixels: give smaller sizes"
        )
    return layout._replace(dtype=_dtype(name, dtype))


def open_image(content: bytes) -> Image:
    """Return the image in a file, upright; raise FileError if it is damaged or too large."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    damaged = "is an image that is damaged or cut short"
    with file_errors(damaged, "save it again, as .png"), warnings.catch_warnings():
        # about sizes, which are checked here, and about odd metadata
        warnings.simplefilter("ignore")
        try:
            image: Image.Image = Image.open(BytesIO(content), formats=_FORMATS)
            if image.width * image.height > MAX_PIXELS:
                raise FileError(_too_large(f"{image.width} by {image.height}"))
            image.load()
            return ImageOps.exif_transpose(image)
        except UnidentifiedImageError as failure:
            raise FileError(
                f"begins with {content[:8]!r} and is neither an array nor a whole image: give an "
                ".npy, an .npz, or an image as .png, .jpg or .bmp"
            ) from failure
        except Image.DecompressionBombError as failure:
            raise FileError(_too_large("far too many")) from failure


def image_array(image: Image, layout: ImageLayout) -> NDArray[Any]:
    """Return the array of one image, converted to the layout's channels, size and dtype.

    Floats are from 0, black, to 1; integers from 0 to 255. Transparent parts become white.
    """
    from PIL import Image

    levels = _byte_image(image, layout.channels)
    size = (layout.width or levels.width, layout.height or levels.height)
    if size != levels.size:
        levels = levels.resize(size, Image.Resampling.BILINEAR)
    array: NDArray[Any] = np.asarray(levels)
    if layout.dtype.kind not in "iu":
        array = array.astype(np.float32) / np.float32(255)
    array = array.reshape(size[1], size[0], layout.channels).astype(layout.dtype)
    if layout.order == _PLANE:
        return array[:, :, 0]
    if layout.order == _CHANNELS_LAST:
        return array
    planes = np.ascontiguousarray(array.transpose(2, 0, 1))
    return planes.reshape(-1) if layout.order == _ROW else planes


def _layout(shape: Sequence[int | None]) -> ImageLayout | None:
    """Return the layout of images in an array, or None if there cannot be images in it."""
    match shape:
        case (int(channels), height, width) if channels in _CHANNELS:
            return ImageLayout(None, channels, _CHANNELS_FIRST, height, width)
        case (height, width, int(channels)) if channels in _CHANNELS:
            return ImageLayout(None, channels, _CHANNELS_LAST, height, width)
        case (count, height, width):
            return ImageLayout(1 if count is None else count, 1, _PLANE, height, width)
        case (count, _, _, _):
            found = _layout(shape[1:])
            if found is not None and found.batch is None:
                return found._replace(batch=1 if count is None else count)
        case (1 | None, pixels):
            return _row_layout(1, pixels)
        case (height, width):
            return ImageLayout(None, 1, _PLANE, height, width)
        case (pixels,):
            return _row_layout(None, pixels)
    return None


def _row_layout(batch: int | None, pixels: int | None) -> ImageLayout | None:
    """Return the layout of a square image in a row of numbers, or None for another number."""
    if pixels is None:
        return ImageLayout(batch, 1, _ROW, None, None)
    for channels in (1, 3):
        side = math.isqrt(max(pixels, 0) // channels)
        if side > 1 and channels * side**2 == pixels:
            return ImageLayout(batch, channels, _ROW, side, side)
    return None


def _dtype(name: str, dtype: str | None) -> np.dtype[Any]:
    try:
        found = np.dtype(dtype or "float32")
    except TypeError:
        found = np.dtype(object)
    is_float = str(found).startswith(("float", "bfloat"))
    if not is_float and not (found.kind in "iu" and np.iinfo(found).max >= 255):
        raise FileError(
            f"is an image, and {name!r} takes {dtype}, which cannot hold 0 to 255: give arrays "
            "as .npy or .npz"
        )
    return found


def _byte_image(image: Image, channels: int) -> Image:
    from PIL import Image

    if image.mode == "F":
        raise FileError("is an image of floats with an unknown range: give the array, as .npy")
    if image.mode.startswith("I"):  # 16-bit grey, which Pillow would clip instead of scale
        deep = np.clip(np.asarray(image, np.float64) / 257, 0, 255)
        image = Image.fromarray(np.rint(deep).astype(np.uint8))
    if channels < 4 and image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image.convert("RGBA"))
    return image.convert(_CHANNELS[channels])


def _too_large(pixels: str) -> str:
    return f"has {pixels} pixels, and at most {MAX_PIXELS:,} are read: give a smaller image"
