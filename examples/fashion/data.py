"""Fashion-MNIST in four parts that serve one purpose each, and digits, which no member has seen.

Next, read ``models``.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.ndimage

from stretto.demo.data import Labeled, digits, from_idx
from stretto.demo.options import DEFAULT_DATA

__all__ = ["Data", "Part", "load", "prepare"]


class Part(NamedTuple):
    """Images and their labels."""

    images: np.ndarray
    """(examples, 1, 28, 28), float32, scaled by mean and deviation of the training images."""
    labels: np.ndarray
    """(examples,), int32."""


class Data(NamedTuple):
    """What each decision may look at; the parts are disjoint."""

    train: Part
    """For weights and BatchNorm statistics."""
    fit: Part
    """For what is fitted to trained members: temperatures, combining weights, greedy choices."""
    judge: Part
    """For the scores that are reported, and for nothing else."""
    unknown: np.ndarray
    """Digits, (examples, 1, 28, 28), scaled as the images of clothes are."""


def load(directory: Path | None, digits_from: Path | None, on: str) -> Data:
    """The four IDX files of Fashion-MNIST; digits from such files, or scikit-learn's.

    ``on="test"`` judges by the 10,000 test images, and fits on the 5,000 that were set aside.
    ``on="validation"`` leaves the test images alone: half of the 5,000 is for fitting, the other
    half for judging. That is where options are to be chosen.
    """
    sets = from_idx(directory or DEFAULT_DATA, "Fashion-MNIST", ())
    fit, judge = sets.validation, sets.test
    if on == "validation":
        half = len(fit.labels) // 2
        fit, judge = (Labeled(fit.images[s], fit.labels[s]) for s in _halves(half))
    unknown = (
        small_digits()
        if digits_from is None
        else from_idx(digits_from, "digits", ()).test.images.reshape(-1, 28, 28)
    )
    return prepare(sets.train, fit, judge, unknown)


def _halves(half):
    return slice(half), slice(half, None)


def prepare(train: Labeled, fit: Labeled, judge: Labeled, unknown: np.ndarray) -> Data:
    """Images of 0 to 255 with mean 0 and deviation 1 over the training images."""
    mean, deviation = train.images.mean(), train.images.std()

    def scaled(images):
        return ((images.reshape(-1, 1, 28, 28) - mean) / deviation).astype(np.float32)

    parts = [Part(scaled(p.images), p.labels) for p in (train, fit, judge)]
    return Data(*parts, scaled(unknown))


def small_digits() -> np.ndarray:
    """scikit-learn's 1,797 digits of 8×8 pixels, drawn as MNIST's are: 20×20 in a frame of 4."""
    sets = digits()
    images = np.concatenate([p.images for p in (sets.train, sets.validation, sets.test)])
    large = scipy.ndimage.zoom(images.reshape(-1, 8, 8).astype(np.float32), (1, 2.5, 2.5), order=1)
    return np.pad(large, [(0, 0), (4, 4), (4, 4)])
