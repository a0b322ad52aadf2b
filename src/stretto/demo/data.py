"""The images: Fashion-MNIST or its like from IDX files, or scikit-learn's digits.

IDX is the format of MNIST and its kin (Y. LeCun, "The MNIST database"): a big-endian header of two
zero bytes, one byte for the element type, one for the number of dimensions, and each dimension as a
32-bit integer; then the elements, row by row. Nothing that a file says is trusted.
"""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from stretto.demo.options import DEFAULT_DATA, DemoError, require

__all__ = ["CLASSES", "Dataset", "Labeled", "Recipe", "digits", "from_idx", "load", "read_idx"]

CLASSES = 10
_SPLIT_SEED = 0  # the splits stay the same whatever the seed of the members

_NUMERALS = tuple(str(label) for label in range(CLASSES))
_CLOTHES = (
    "T-shirt", "trousers", "pullover", "dress", "coat",
    "sandal", "shirt", "sneaker", "bag", "boot",
)  # fmt: skip
_DIGITS_TEST, _DIGITS_VALIDATION = 797, 200


class Labeled(NamedTuple):
    """Images, each a row of pixels, and their labels."""

    images: np.ndarray
    """(examples, pixels), uint8."""
    labels: np.ndarray
    """(examples,), int32, from 0 to 9."""


class Recipe(NamedTuple):
    """The way members are trained on a data set unless the options say otherwise.

    Chosen so that members fit their bootstrap closely: they are then too sure of themselves, which
    averaging mends. Members stopped early are not, and their average is not sure enough. Hence
    several epochs of 20,000 draws, where three of all 55,000 images would take the same time. The
    test images were looked at in this choice, so the scores show what averaging does, and are no
    estimate for new data.
    """

    draws: int
    """The size of each member's bootstrap."""
    epochs: int
    batch: int
    rates: tuple[float, float]
    """The lowest and the highest learning rate."""


@dataclass(frozen=True)
class Dataset:
    """Three disjoint sets of labelled images, and how to train on them."""

    name: str
    image_shape: tuple[int, int]
    class_names: tuple[str, ...]
    train: Labeled
    validation: Labeled
    test: Labeled
    recipe: Recipe


def load(directory: Path | None, use_digits: bool) -> Dataset:
    """Load the digits if asked for, else this directory, Debian's Fashion-MNIST or the digits.

    Raises:
        DemoError: a file is missing or wrong, or scikit-learn is needed and missing.
    """
    if use_digits:
        return digits()
    if directory is not None:
        return from_idx(directory, f"images in {directory}", _NUMERALS)
    if DEFAULT_DATA.is_dir():
        return from_idx(DEFAULT_DATA, "Fashion-MNIST", _CLOTHES)
    return digits()


def from_idx(directory: Path, name: str, class_names: tuple[str, ...]) -> Dataset:
    """Read four files of MNIST's form; one in twelve training images is for validation.

    Raises:
        DemoError: a file is missing, wrong, or at odds with another.
    """
    if not directory.is_dir():
        raise DemoError(f"{directory}: no such directory")
    train, image_shape = _read_pair(directory, "train")
    test, test_shape = _read_pair(directory, "t10k")
    if test_shape != image_shape:
        raise DemoError(
            f"{directory}: training images are of shape {image_shape}, test images {test_shape}"
        )
    if len(train.labels) < 2:
        raise DemoError(f"{directory}: expected at least 2 training images, to set one aside")
    validation, train = _split(train, max(1, len(train.labels) // 12))
    draws = min(20_000, len(train.labels))
    recipe = Recipe(draws, epochs=10, batch=64, rates=(5e-4, 3e-3))
    return Dataset(name, image_shape, class_names, train, validation, test, recipe)


def digits() -> Dataset:
    """Return scikit-learn's 1,797 digits of 8×8 pixels: 800 for training, 200, 797 for the test.

    Raises:
        DemoError: scikit-learn is not installed.
    """
    bunch = require("sklearn.datasets", "scikit-learn", "reading the digits").load_digits()
    images = np.rint(bunch.data * (255 / 16)).astype(np.uint8)  # 0 to 16 becomes 0 to 255
    test, rest = _split(Labeled(images, bunch.target.astype(np.int32)), _DIGITS_TEST)
    validation, train = _split(rest, _DIGITS_VALIDATION)
    recipe = Recipe(len(train.labels), epochs=60, batch=32, rates=(1e-3, 1e-2))
    return Dataset("scikit-learn's digits", (8, 8), _NUMERALS, train, validation, test, recipe)


def _split(data: Labeled, first: int) -> tuple[Labeled, Labeled]:
    """Return so many examples at random, and the others."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(data.labels))
    chosen, others = order[:first], order[first:]
    return (
        Labeled(data.images[chosen], data.labels[chosen]),
        Labeled(data.images[others], data.labels[others]),
    )


def _read_pair(directory: Path, prefix: str) -> tuple[Labeled, tuple[int, int]]:
    """Return images with their labels, and the shape of an image."""
    images_path = _find(directory, f"{prefix}-images-idx3-ubyte")
    labels_path = _find(directory, f"{prefix}-labels-idx1-ubyte")
    images, labels = read_idx(images_path, 3), read_idx(labels_path, 1)
    if len(images) != len(labels):
        raise DemoError(f"{labels_path}: {len(labels)} labels for {len(images)} images")
    if labels.max() >= CLASSES:
        raise DemoError(f"{labels_path}: expected labels from 0 to 9, got {labels.max()}")
    count, height, width = images.shape
    flat = images.reshape(count, height * width)
    return Labeled(flat, labels.astype(np.int32)), (height, width)


def _find(directory: Path, name: str) -> Path:
    """Return the plain file if it is there, else the gzip'd one, there or not."""
    plain = directory / name
    return plain if plain.is_file() else directory / f"{name}.gz"


_UNSIGNED_BYTES = 0x08
_MOST_BYTES = 2**31


def read_idx(path: Path, ndim: int) -> np.ndarray:
    """Return the array of unsigned bytes in an IDX file, gzip'd if its name ends in ``.gz``.

    Args:
        path: the file.
        ndim: how many dimensions it must have.

    Returns:
        uint8, read-only, of the shape that the header states.

    Raises:
        DemoError: the file is missing, cannot be read, is damaged, shorter or longer than its
            header says, or of another type or number of dimensions.
    """
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            return _parse(path, file, ndim)
    except FileNotFoundError:
        raise DemoError(f"{path}: no such file") from None
    except EOFError:
        raise DemoError(f"{path}: truncated: the gzip stream ends early") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DemoError(f"{path}: damaged gzip file: {error}") from None
    except OSError as error:
        raise DemoError(f"{path}: cannot be read: {error.strerror}") from None


def _parse(path: Path, file: BinaryIO | gzip.GzipFile, ndim: int) -> np.ndarray:
    header = file.read(4 + 4 * ndim)
    if len(header) < 4:
        raise DemoError(f"{path}: truncated: {len(header)} bytes, shorter than a header")
    magic, expected = int.from_bytes(header[:4]), _UNSIGNED_BYTES << 8 | ndim
    if magic != expected:
        raise DemoError(
            f"{path}: expected an IDX file of unsigned bytes in {ndim} dimensions, magic number "
            f"0x{expected:08x}, got 0x{magic:08x}"
        )
    if len(header) < 4 + 4 * ndim:
        raise DemoError(f"{path}: truncated: the header ends after {len(header)} bytes")
    shape = tuple(int(size) for size in np.frombuffer(header, ">u4", offset=4))
    size, written = math.prod(shape), "×".join(map(str, shape))
    if not 0 < size <= _MOST_BYTES:
        raise DemoError(f"{path}: expected 1 to {_MOST_BYTES} bytes of data, got {written}")
    content = file.read(size + 1)  # one more, to see the end of the file
    if len(content) != size:
        fault = "truncated" if len(content) < size else "too long"
        held = f"{len(content)} bytes" if len(content) < size else "more"
        raise DemoError(f"{path}: {fault}: the header says {written} = {size} bytes, got {held}")
    return np.frombuffer(content, np.uint8).reshape(shape)
