"""Calibrate by scaling logits: temperature, vector scaling, Platt's.

``fit_…(logits, labels)``, on held-out examples, gives a calibrator: a tree of its parameters that,
called with logits, gives calibrated probabilities. Fits and calls work under ``jit`` and ``vmap``.
Leading axes of the logits, such as one of members, have each their own parameters. To calibrate an
ensemble as a whole, which is better than to calibrate its members (Rahaman and Thiery, 2021), pool
first: ``fit_temperature(log_mean(logits), labels)``. Read ``binning`` for calibrators of
probabilities, ``conformal`` for sets with a guarantee.

The least value of a convex function of a few hundred numbers, by Newton's method.

Private: ``calibration`` fits its parameters with it.
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
from stretto._engine.core.functions import described_like
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.score_arguments import at_least, at_least_float32, labeled, one_hot_like
from stretto.ensemble.scores import nll_from_logits
from stretto.nn.functional.activations import sigmoid
from stretto.numpy.normalized import softmax, softplus

__all__ = [
    "Platt",
    "Temperature",
    "VectorScaling",
    "fit_platt",
    "fit_temperature",
    "fit_vector_scaling",
]

_NEWTON_STEPS, _HALVINGS, _INNER = 100, 30, 50
_INEXACT = 1e-4  # what may be left of the squared residual of a step


def minimize(loss: Callable[[Array], Array], start: Array) -> Array:
    """The vector at which the convex, twice differentiable ``loss`` is least.

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
        """Calibrated probabilities of logits (..., examples, classes), of the same shape."""
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
    z, y = labeled("fit_temperature", logits, labels, "logits")
    at_least(1, z.shape[-2], "fit_temperature", "example")
    of_label = one_hot_like(z, y) > 0
    log_z = snp.where(snp.equal(z, -np.inf), 0, z)  # has probability 0 at any temperature

    def moments(inverse: Array) -> tuple[Array, Array]:
        """First and second derivative of the NLL by 1 / T."""
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
    """Where the first of ``moments``, which rises, is 0; its derivative is the second.

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
        """Calibrated probabilities of logits (..., examples, classes), of the same shape."""
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

    z, y = labeled("fit_vector_scaling", logits, labels, "logits")
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
        """Probabilities of class 1, of the shape of the logits (..., examples)."""
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

    z, y = labeled("fit_platt", logits, labels, "logits", "examples")
    at_least(1, z.shape[-1], "fit_platt", "example")
    return _each(fit, z, y, 1)


def _each(fit: Callable[[Array, Array], R], z: Array, y: Array, rank: int) -> R:
    """The fit of each of the leading axes of predictions of ``rank`` axes."""
    leading = z.ndim - rank
    for i in range(leading):  # the innermost first
        own = y.ndim - 1 > i
        fit = vmap(fit, (0, 0 if own else None))
    return fit(z, y)


def _before(parameters: Array, axes: int) -> Array:
    """With so many axes of size 1 at the end, unless there is only one number."""
    return parameters.reshape(*parameters.shape, *[1] * axes) if parameters.ndim else parameters


def _over_examples(parameters: Array) -> Array:
    """(..., classes) with an axis of examples, unless there are no leading axes."""
    return parameters[..., None, :] if parameters.ndim > 1 else parameters
