"""The images: Fashion-MNIST or its like from IDX files, or scikit-learn's digits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stretto.demo.errors import DemoError
from stretto.demo.extras import require
from stretto.demo.idx import read_idx
from stretto.demo.options import DEFAULT_DATA

__all__ = ["CLASSES", "Dataset", "Labeled", "Recipe", "digits", "from_idx", "load"]

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
    """So many examples at random, and the others."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(data.labels))
    chosen, others = order[:first], order[first:]
    return (
        Labeled(data.images[chosen], data.labels[chosen]),
        Labeled(data.images[others], data.labels[others]),
    )


def _read_pair(directory: Path, prefix: str) -> tuple[Labeled, tuple[int, int]]:
    """Images with their labels, and the shape of an image."""
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
