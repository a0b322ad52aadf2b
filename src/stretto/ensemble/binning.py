"""Calibration of probabilities without a formula: isotonic regression and histogram binning.

As in ``calibration``, ``fit_…(probs, labels)``, on held-out examples, gives a calibrator: a tree
that, called with probabilities, gives calibrated ones. ``probs`` are (examples,) of class 1 with
labels 0 and 1, or (examples, classes): then each class is calibrated against the rest, and the
results are divided by their sum (Zadrozny and Elkan, 2002). Calls work under ``jit`` and ``vmap``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.calibration_error import Binning
from stretto.ensemble.score_arguments import (
    at_least_float32,
    check_binning,
    concrete,
    labeled,
    one_hot_like,
    to_sum_one,
)
from stretto.nn.functional.activations import indicator

__all__ = ["HistogramBinning", "Isotonic", "fit_histogram_binning", "fit_isotonic"]

optimize = LazyModule("scipy.optimize")


@register_dataclass
@dataclass(frozen=True)
class Isotonic:
    """Probabilities mapped by a rising function, linear between places, constant beyond them."""

    places: Array
    """(n,), or (classes, n) for a function of each class: rising, not always strictly."""
    values: Array
    """Of the same shape: the function there."""

    def __call__(self, probs: ArrayLike) -> Array:
        """Calibrated probabilities: of the shape of ``probs``, (...) or (..., classes)."""
        p = at_least_float32(probs, "Isotonic", "probs")
        if self.places.ndim == 1:
            return _interpolated(p, self.places, self.values)
        each = vmap(_interpolated, in_axes=(-1, 0, 0), out_axes=-1)
        return to_sum_one(each(p, self.places, self.values))


def fit_isotonic(probs: ArrayLike, labels: ArrayLike) -> Isotonic:
    """Fit the rising function with the least squared error (Zadrozny and Elkan, 2002).

    Found by SciPy's pool-adjacent-violators algorithm, on the host; equal probabilities are one
    place. Between places it is linear, as in scikit-learn's ``IsotonicRegression``. It needs some
    hundred examples a class: with few, it overfits.

    Args:
        probs: (examples,) of class 1, any rising score; or (examples, classes).
        labels: (examples,), integers.

    Returns:
        ``Isotonic`` of places and values.

    Raises:
        ValueError: shapes do not match, no examples, a label is out of range, a probability is NaN.
        TypeError: labels are not integers; or the arguments are traced, since the number of places
            depends on their values: fit outside ``jit`` and ``vmap``.

    >>> calibrated = fit_isotonic(snp.array([0.2, 0.6, 0.7, 0.9]), snp.array([0, 1, 0, 1]))
    >>> calibrated(snp.array([0.1, 0.4, 0.65, 0.9])).round(3)
    Array([0.  , 0.25, 0.5 , 1.  ], dtype=float32)
    """
    p, happened = _each_class("fit_isotonic", probs, labels)
    hosts = concrete(p), concrete(happened)
    if hosts[0] is None or hosts[1] is None:
        raise TracedValueError(
            "fit_isotonic: the number of places depends on the values of probs and labels, which "
            "are traced here. Fit outside jit, grad and vmap, and pass the result in; "
            "fit_histogram_binning and fit_temperature can be traced."
        )
    if np.isnan(hosts[0]).any():
        raise ValueError("fit_isotonic: probs hold a NaN, which has no place in their order")
    pairs = [_isotonic(*columns) for columns in zip(hosts[0].T, hosts[1].T)]
    # Classes may have different numbers of places: the last one is repeated.
    most = max(len(x) for x, _ in pairs)
    places, values = (
        snp.asarray(np.stack([np.pad(c, (0, most - len(c)), "edge") for c in columns]))
        for columns in zip(*pairs)
    )
    if at_least_float32(probs, "fit_isotonic", "probs").ndim == 1:
        return Isotonic(places[0], values[0])
    return Isotonic(places, values)


@register_dataclass
@dataclass(frozen=True)
class HistogramBinning:
    """Probabilities replaced by the frequency of the class in their bin."""

    edges: Array
    """(bins − 1,) or (classes, bins − 1): between the bins; an edge is in the lower one."""
    values: Array
    """(bins,) or (classes, bins)."""

    def __call__(self, probs: ArrayLike) -> Array:
        """Calibrated probabilities: of the shape of ``probs``, (...) or (..., classes)."""
        p = at_least_float32(probs, "HistogramBinning", "probs")
        in_bin = indicator(_bin_of(p, self.edges), self.values.shape[-1], p.dtype)
        value = snp.where(snp.isnan(p), np.nan, snp.sum(in_bin * self.values, axis=-1))
        return value if self.values.ndim == 1 else to_sum_one(value)


def fit_histogram_binning(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "mass"
) -> HistogramBinning:
    """Fit the frequency of the class in each of some bins (Zadrozny and Elkan, 2001).

    Args:
        probs: (examples,) of class 1; or (examples, classes).
        labels: (examples,), integers.
        bins: how many bins.
        binning: ``"mass"``: edges are quantiles of the probabilities, so that bins hold equally
            many examples, as nearly as ties let them; ``"width"``: bins divide 0 to 1 equally.

    Returns:
        ``HistogramBinning`` of edges and values. A bin without examples has its middle as value.

    Raises:
        ValueError: shapes do not match, no examples, a label is out of range, no bins, an unknown
            binning.
        TypeError: labels are not integers.

    >>> probs, labels = snp.array([0.2, 0.3, 0.7, 0.9]), snp.array([0, 1, 1, 1])
    >>> fit_histogram_binning(probs, labels, bins=2)(probs).tolist()
    [0.5, 0.5, 1.0, 1.0]
    """
    check_binning("fit_histogram_binning", bins, binning)
    p, happened = _each_class("fit_histogram_binning", probs, labels)
    inner = snp.arange(1, bins, dtype=p.dtype) / bins
    if binning == "mass":
        edges = snp.quantile(p, inner, axis=0).T  # (classes, bins − 1)
    else:
        edges = snp.broadcast_to(inner, (p.shape[1], bins - 1))
    in_bin = indicator(_bin_of(p, edges), bins, p.dtype)  # (examples, classes, bins)
    count = snp.sum(in_bin, axis=0)
    ends = snp.pad(edges, [(0, 0), (1, 0)]), snp.pad(edges, [(0, 0), (0, 1)], constant_values=1)
    frequency = snp.sum(in_bin * happened[..., None], axis=0) / snp.where(count > 0, count, 1)
    values = snp.where(count > 0, frequency, (ends[0] + ends[1]) / 2)
    if at_least_float32(probs, "fit_histogram_binning", "probs").ndim == 1:
        return HistogramBinning(edges[0], values[0])
    return HistogramBinning(edges, values)


def _each_class(caller: str, probs: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """(examples, classes): the probability of each class, and 1 where it is the label.

    Of (examples,) one class, class 1.
    """
    rank = at_least_float32(probs, caller, "probs").ndim
    axes = "examples" if rank == 1 else "examples, classes"
    p, y = labeled(caller, probs, labels, axes=axes)
    if rank > 2 or y.ndim > 1 or not p.size:
        raise ValueError(
            f"{caller}: expected probs of shape (examples,) or (examples, classes), of at least "
            "one "
            f"example, and labels of shape (examples,); got {p.shape} and {y.shape}"
        )
    if rank == 1:
        return p[:, None], y[:, None].astype(p.dtype)
    return p, one_hot_like(p, y)


def _isotonic(x: np.ndarray, happened: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct places, rising, and the values of the best rising function there."""
    places, group, count = np.unique(x, return_inverse=True, return_counts=True)
    mean = np.bincount(group, weights=happened) / count
    values = optimize.isotonic_regression(mean, weights=count).x
    return places, values.astype(x.dtype)


def _interpolated(x: Array, places: Array, values: Array) -> Array:
    """The function that is linear between places, and constant beyond them."""
    last = places.shape[0] - 1
    above = snp.clip(snp.searchsorted(places, x), 0, last)
    below = snp.maximum(above - 1, 0)
    low, high = snp.take(places, below), snp.take(places, above)
    wide = high > low
    part = snp.clip(snp.where(wide, (x - low) / snp.where(wide, high - low, 1), 1), 0, 1)
    start, end = snp.take(values, below), snp.take(values, above)
    return start + part * (end - start)


def _bin_of(p: Array, edges: Array) -> Array:
    """The bin of each element; the last axis of edges is that between bins."""
    return snp.sum(p[..., None] > of_rank(edges, p.ndim + 1), axis=-1)
