"""The least value of a convex function of a few hundred numbers, by Newton's method.

Private: ``calibration`` fits its parameters with it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.autodiff.derivatives import grad, jvp
from stretto._engine.core.typing import Array, Tree

__all__ = ["minimize"]

_STEPS, _HALVINGS, _INNER = 100, 30, 50
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
        return (gain > 4 * eps * snp.maximum(snp.abs(value), eps)) & (i < _STEPS)

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
