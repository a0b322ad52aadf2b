"""Calibrate by scaling logits (temperature, vector scaling, Platt's), isotonically or by bins.

``fit_…(logits, labels)``, on held-out examples, gives a calibrator: a tree of its parameters that,
called with logits, gives calibrated probabilities. Fits and calls work under ``jit`` and ``vmap``.
Leading axes of the logits, such as one of members, have each their own parameters. To calibrate an
ensemble as a whole, which is better than to calibrate its members (Rahaman and Thiery, 2021), pool
first: ``fit_temperature(log_mean(logits), labels)``. The parameters have the least value of a
convex function, which Newton's method finds.

Isotonic regression and histogram binning have no formula, and take probabilities: ``probs`` are
(examples,) of class 1 with labels 0 and 1, or (examples, classes): then each class is calibrated
against the rest, and the results are divided by their sum (Zadrozny and Elkan, 2002). Calls work
under ``jit`` and ``vmap``. Read ``conformal`` for sets with a guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.functions import described_like
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.score_arguments import (
    at_least,
    at_least_float32,
    check_binning,
    check_labels,
    concrete,
    one_hot_like,
    to_sum_one,
)
from stretto.ensemble.scores import Binning, nll_from_logits
from stretto.nn.functional.activations import indicator, sigmoid
from stretto.numpy.normalized import softmax, softplus

__all__ = ["HistogramBinning", "Isotonic", "Platt", "Temperature", "VectorScaling",
           "fit_histogram_binning", "fit_isotonic", "fit_platt", "fit_temperature",
           "fit_vector_scaling"]  # fmt: skip

_NEWTON_STEPS, _HALVINGS, _INNER = 100, 30, 50
_INEXACT = 1e-4  # what may be left of the squared residual of a step


def minimize(loss: Callable[[Array], Array], start: Array) -> Array:
    """Return the vector at which the convex, twice differentiable ``loss`` is least.

    Each step solves H d = −g with the Hessian H by conjugate gradients, which take H only as
    products, and halves d until the loss falls by enough (truncated Newton; Nocedal and Wright,
    2006, sections 3.1 and 7.1). It ends when a step would gain no more than rounding, or after 100
    steps, as where the loss falls for ever. NaN where the loss is.
    """
    slope = grad(loss)
    eps = float(np.finfo(start.dtype).eps)

    def direction(x: Array, g: Array) -> Array:
        product = lambda v: jvp(slope, (x,), (v,))[1]
        size = g @ g

        def unfinished(carry: Tree) -> Array:
            _, _, _, left, i = carry
            return (left > _INEXACT * size) & (i < _INNER)

        def improve(carry: Tree) -> Tree:
            d, residual, p, left, i = carry
            hp = product(p)
            curvature = p @ hp
            flat = curvature <= eps * (p @ p)  # what is left lies where H is 0
            step = snp.where(flat, 0, left / snp.where(flat, 1, curvature))
            d, residual = d + step * p, residual - step * hp
            now = snp.where(flat, 0, residual @ residual)
            return d, residual, residual + now / left * p, now, i + 1

        carry = (snp.zeros_like(g), -g, -g, size, snp.int32(0))
        d = lax.while_loop(unfinished, improve, carry)[0]
        return snp.where(snp.any(snp.not_equal(d, 0)), d, -g)

    def unfinished(carry: Tree) -> Array:
        _, value, _, gain, i = carry
        return (gain > 4 * eps * snp.maximum(snp.abs(value), eps)) & (i < _NEWTON_STEPS)

    def step(carry: Tree) -> Tree:
        x, value, g, _, i = carry
        d = direction(x, g)
        expected = -(g @ d)  # twice what the quadratic model promises

        def too_long(trial: tuple[Array, Array]) -> Array:
            length, height = trial
            # Not ``found > …``: what is NaN or infinite is too long as well.
            enough = height <= value - 1e-4 * length * expected + 4 * eps * snp.abs(value)
            return ~enough & (length > 2.0**-_HALVINGS)

        def halve(trial: tuple[Array, Array]) -> tuple[Array, Array]:
            length = trial[0] / 2
            return length, loss(x + length * d)

        length, height = lax.while_loop(too_long, halve, (snp.ones_like(value), loss(x + d)))
        new = x + length * d
        return new, height, slope(new), length * expected, i + 1

    value = loss(start)
    carry = (start, value, slope(start), snp.full_like(value, np.inf), snp.int32(0))
    x, value, *_ = lax.while_loop(unfinished, step, carry)
    return snp.where(snp.isnan(value), np.nan, x)


R = TypeVar("R")

_LEAST, _GREATEST = 1e-3, 1e3  # of temperatures
_STEPS = 100


@register_dataclass
@dataclass(frozen=True)
class Temperature:
    """Logits divided by a temperature: softmax(z / T). The predicted class stays."""

    temperature: Array
    """(...): T, one for each of the leading axes of the logits that it was fitted to."""

    def __call__(self, logits: ArrayLike) -> Array:
        """Return calibrated probabilities of logits (..., examples, classes), of the same shape."""
        z = at_least_float32(logits, "Temperature", "logits")
        return softmax(z / _before(self.temperature, 2), axis=-1)


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> Temperature:
    """Fit the temperature with the least NLL (Guo et al., 2017, section 4.2).

    The NLL is convex in 1 / T, and its derivative there is mean over examples of
    E[z under softmax(z / T)] − z[label], whose zero is found by Newton's method, kept inside a
    bracket that halving narrows. T is kept between 0.001, as where all examples are right whatever
    T, and 1000, as where logits say nothing or worse.

    Args:
        logits: (..., examples, classes), of examples that the model was not trained on; −inf where
            a class is ruled out.
        labels: (examples,), integers.

    Returns:
        ``Temperature``, whose temperatures are (...), NaN where a logit is. They are differentiable
        by the logits, by the implicit function theorem.

    Raises:
        ValueError: shapes do not match, no examples, or a label is out of range.
        TypeError: labels are not integers.

    >>> logits = snp.array([[2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    >>> calibrated = fit_temperature(logits, snp.array([0, 0, 0, 1]))  # right in 3 of 4 cases
    >>> round(float(calibrated.temperature), 4)  # 2 / log 3
    1.8205
    >>> calibrated(logits[0]).round(3)
    Array([0.75, 0.25], dtype=float32)
    """
    z, y = check_labels("fit_temperature", logits, labels, "logits")
    at_least(1, z.shape[-2], "fit_temperature", "example")
    of_label = one_hot_like(z, y) > 0
    log_z = snp.where(snp.equal(z, -np.inf), 0, z)  # has probability 0 at any temperature

    def moments(inverse: Array) -> tuple[Array, Array]:
        """Return the first and second derivative of the NLL by 1 / T."""
        p = softmax(z * inverse[..., None, None], axis=-1)
        mean = snp.sum(p * log_z, axis=-1, keepdims=True)
        spread = snp.sum(p * snp.square(log_z - mean), axis=-1)
        chosen = snp.sum(snp.where(of_label, log_z, 0), axis=-1)
        return snp.mean(mean[..., 0] - chosen, axis=-1), snp.mean(spread, axis=-1)

    low = snp.full(z.shape[:-2], 1 / _GREATEST, z.dtype)
    high = snp.full(z.shape[:-2], 1 / _LEAST, z.dtype)

    def slope(inverse: Array) -> Array:
        """Its zero is the optimum, which is an end of the range if there is none inside."""
        beyond = snp.where(moments(low)[0] >= 0, low, high)
        inside = (moments(low)[0] < 0) & (moments(high)[0] > 0)
        return snp.where(inside, moments(inverse)[0], inverse - beyond)

    def solve(_: Callable[[Array], Array], start: Array) -> Array:
        return _root(moments, low, start, high)

    def tangent_solve(linear: Callable[[Array], Array], y: Array) -> Array:
        return y / linear(snp.ones_like(y))  # each temperature has its own equation

    inverse = lax.custom_root(slope, snp.ones_like(low), solve, tangent_solve)
    missing = snp.any(snp.isnan(z), axis=(-2, -1))
    return Temperature(snp.where(missing, np.nan, 1 / inverse))


def _root(
    moments: Callable[[Array], tuple[Array, Array]], low: Array, start: Array, high: Array
) -> Array:
    """Return where the first of ``moments``, which rises, is 0; its derivative is the second.

    Newton's step, unless it leaves the bracket or is not half as long as the last: then the
    geometric middle.
    """
    tolerance = 4 * float(np.finfo(low.dtype).eps)

    def unfinished(carry: Tree) -> Array:
        _, x, _, moved, i = carry
        return snp.any(moved > tolerance * x) & (i < _STEPS)

    def step(carry: Tree) -> Tree:
        low, x, high, moved, i = carry
        value, rise = moments(x)
        low, high = snp.where(value < 0, x, low), snp.where(value > 0, x, high)
        newton = x - value / snp.where(rise > 0, rise, 1)
        good = (rise > 0) & (newton > low) & (newton < high) & (snp.abs(newton - x) < moved / 2)
        new = snp.where(good, newton, snp.sqrt(low) * snp.sqrt(high))
        new = snp.where(snp.equal(value, 0), x, new)
        return low, new, high, snp.abs(new - x), i + 1

    carry = (low, start, high, snp.full_like(start, np.inf), snp.int32(0))
    x = lax.while_loop(unfinished, step, carry)[1]
    at_low, at_high = moments(low)[0] >= 0, moments(high)[0] <= 0
    return snp.where(at_low, low, snp.where(at_high, high, x))


@register_dataclass
@dataclass(frozen=True)
class VectorScaling:
    """Logits scaled and shifted class by class: softmax(a ⊙ z + b)."""

    scale: Array
    """(..., classes): a."""
    shift: Array
    """(..., classes): b."""

    def __call__(self, logits: ArrayLike) -> Array:
        """Return calibrated probabilities of logits (..., examples, classes), of the same shape."""
        z = at_least_float32(logits, "VectorScaling", "logits")
        return softmax(_over_examples(self.scale) * z + _over_examples(self.shift), axis=-1)


@described_like(fit_temperature)
def fit_vector_scaling(logits: ArrayLike, labels: ArrayLike) -> VectorScaling:
    """Fit a scale and a shift for each class with the least NLL (Guo et al., 2017, section 4.2).

    Args:
        logits: (..., examples, classes), finite, of examples that the model was not trained on.

    Returns:
        ``VectorScaling`` of scale and shift, each (..., classes), NaN where a logit is; shifts, of
        which a common part has no effect, add up to 0. Where some scale and shift get every example
        right there is no optimum, and the scale is what a hundred steps make it. Not differentiable
        in reverse: it is found by a loop whose number of steps is unknown.

    >>> logits = snp.array([[2.0, 0.0], [2.0, 0.0], [0.0, 2.0], [0.0, 2.0]])
    >>> calibrated = fit_vector_scaling(logits, snp.array([0, 1, 1, 1]))
    >>> calibrated(logits[0]).round(3)  # right in 1 of 2 cases
    Array([0.5, 0.5], dtype=float32)
    """

    def fit(z: Array, y: Array) -> VectorScaling:
        classes = z.shape[-1]

        def loss(x: Array) -> Array:
            factor, shift = of_rank(x[:classes], z.ndim), of_rank(x[classes:], z.ndim)
            return nll_from_logits(factor * z + shift, y)

        start = snp.concatenate([snp.ones(classes, z.dtype), snp.zeros(classes, z.dtype)])
        x = minimize(loss, start)
        shift = x[classes:]
        return VectorScaling(x[:classes], shift - snp.mean(shift))

    z, y = check_labels("fit_vector_scaling", logits, labels, "logits")
    at_least(1, z.shape[-2], "fit_vector_scaling", "example")
    return _each(fit, z, y, 2)


@register_dataclass
@dataclass(frozen=True)
class Platt:
    """A number scaled and shifted, for two classes: sigmoid(a z + b)."""

    scale: Array
    """(...): a."""
    shift: Array
    """(...): b."""

    def __call__(self, logits: ArrayLike) -> Array:
        """Return probabilities of class 1, of the shape of the logits (..., examples)."""
        z = at_least_float32(logits, "Platt", "logits")
        return sigmoid(_before(self.scale, 1) * z + _before(self.shift, 1))


def fit_platt(logits: ArrayLike, labels: ArrayLike) -> Platt:
    """Fit a scale and a shift of a score of two classes (Platt, 1999).

    They have the least cross entropy with targets (n₁ + 1) / (n₁ + 2) and 1 / (n₀ + 2) instead of 1
    and 0, as Platt has it, so that there is an optimum even where scores tell the classes apart;
    found by Newton's method, as Lin et al. (2007) advise.

    Args:
        logits: (..., examples), greater for class 1: any score, such as a difference of two logits.
        labels: (examples,), 0 or 1.

    Returns:
        ``Platt`` of scale and shift, each (...), NaN where a logit is. Not differentiable in
        reverse: it is found by a loop whose number of steps is unknown.

    Raises:
        ValueError: shapes do not match, no examples, or a label is neither 0 nor 1.
        TypeError: labels are not integers.

    >>> calibrated = fit_platt(snp.array([-1.0, -1.0, 1.0, 1.0]), snp.array([0, 0, 1, 1]))
    >>> calibrated(snp.array([-1.0, 1.0])).round(3)
    Array([0.25, 0.75], dtype=float32)
    """

    def fit(z: Array, y: Array) -> Platt:
        ones = snp.sum(y > 0)
        count = lambda n: n.astype(z.dtype)
        high, low = (count(ones) + 1) / (count(ones) + 2), 1 / (count(y.size - ones) + 2)
        target = snp.where(y > 0, high, low)
        prior = snp.log((count(ones) + 1) / (count(y.size - ones) + 1))

        def loss(x: Array) -> Array:
            scaled = x[0] * z + x[1]
            return snp.mean(softplus(scaled) - target * scaled)

        x = minimize(loss, snp.stack([snp.zeros_like(prior), prior]))
        return Platt(x[0], x[1])

    z, y = check_labels("fit_platt", logits, labels, "logits", "examples")
    at_least(1, z.shape[-1], "fit_platt", "example")
    return _each(fit, z, y, 1)


def _each(fit: Callable[[Array, Array], R], z: Array, y: Array, rank: int) -> R:
    """Return the fit of each of the leading axes of predictions of ``rank`` axes."""
    leading = z.ndim - rank
    for i in range(leading):  # the innermost first
        own = y.ndim - 1 > i
        fit = vmap(fit, (0, 0 if own else None))
    return fit(z, y)


def _before(parameters: Array, axes: int) -> Array:
    """Add so many axes of size 1 at the end, unless there is only one number."""
    return parameters.reshape(*parameters.shape, *[1] * axes) if parameters.ndim else parameters


def _over_examples(parameters: Array) -> Array:
    """Give (..., classes) an axis of examples, unless there are no leading axes."""
    return parameters[..., None, :] if parameters.ndim > 1 else parameters


optimize = LazyModule("scipy.optimize")


@register_dataclass
@dataclass(frozen=True)
class Isotonic:
    """Probabilities mapped by a rising function, linear between places, constant beyond them."""

    places: Array
    """(n,), or (classes, n) for a function of each class: rising, not always strictly."""
    values: Array
    """The function there, of the same shape."""

    def __call__(self, probs: ArrayLike) -> Array:
        """Return calibrated probabilities: of the shape of ``probs``, (...) or (..., classes)."""
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
        """Return calibrated probabilities: of the shape of ``probs``, (...) or (..., classes)."""
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
    """Return (examples, classes): the probability of each class, and 1 where it is the label.

    Of (examples,) one class, class 1.
    """
    rank = at_least_float32(probs, caller, "probs").ndim
    axes = "examples" if rank == 1 else "examples, classes"
    p, y = check_labels(caller, probs, labels, axes=axes)
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
    """Return the distinct places, rising, and the values of the best rising function there."""
    places, group, count = np.unique(x, return_inverse=True, return_counts=True)
    mean = np.bincount(group, weights=happened) / count
    values = optimize.isotonic_regression(mean, weights=count).x
    return places, values.astype(x.dtype)


def _interpolated(x: Array, places: Array, values: Array) -> Array:
    """Return the function that is linear between places, and constant beyond them."""
    last = places.shape[0] - 1
    above = snp.clip(snp.searchsorted(places, x), 0, last)
    below = snp.maximum(above - 1, 0)
    low, high = snp.take(places, below), snp.take(places, above)
    wide = high > low
    part = snp.clip(snp.where(wide, (x - low) / snp.where(wide, high - low, 1), 1), 0, 1)
    start, end = snp.take(values, below), snp.take(values, above)
    return start + part * (end - start)


def _bin_of(p: Array, edges: Array) -> Array:
    """Return the bin of each element; the last axis of edges is that between bins."""
    return snp.sum(p[..., None] > of_rank(edges, p.ndim + 1), axis=-1)
