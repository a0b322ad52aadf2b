"""The incomplete gamma functions, and how a gamma variate moves with its parameter."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import NOT_BROADCAST, binary
from stretto._engine.ops.exponential import log
from stretto._engine.ops.special.gamma import digamma, refused_partial
from stretto._engine.ops.special.incomplete_formulas import (
    gamma_density_formula,
    incomplete_gamma_formula,
    random_gamma_grad_formula,
)
from stretto._engine.ops.written import Number, Written

special = LazyModule("scipy.special")


def _log_slope(a: Any, x: Any) -> Any:
    """Return the derivative of the logarithm of the density in x: (a - 1) / x - 1."""
    one = full_like(a, 1)
    return (a - one) / x - one


def _exact(name: str) -> Any:
    """Return the method ``exact``: SciPy's; the formula from a = 200, where that is exacter."""

    def exact(self: Written, a: np.ndarray, x: np.ndarray) -> np.ndarray:
        out = np.asarray(getattr(special, name)(a, x))
        large = a >= 200
        if np.any(large):
            out[large] = self.formula(a[large], x[large])
        return out

    exact.__doc__ = f"SciPy's ``{name}``; for large parameters, where it errs, the formula."
    return exact


class GammaDensity(Written):
    """The density of the gamma distribution, ∂P(a, x)/∂x."""

    formula = staticmethod(gamma_density_formula)
    partials = (
        lambda da, out, a, x: da * (out * (log(x) - digamma(a))),
        lambda dx, out, a, x: dx * (out * _log_slope(a, x)),
    )


class IgammaGradA(Written):
    """The derivative of the lower incomplete gamma function in its parameter."""

    partials = (
        refused_partial(
            "igamma_grad_a has no derivative in a: second derivatives of igamma in its parameter "
            "are not implemented"
        ),
        lambda dx, out, a, x: dx * (DENSITY(a, x) * (log(x) - digamma(a))),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Return ``random_gamma_grad``, times the density."""
        return -random_gamma_grad_formula(a, x)[1]


class RandomGammaGrad(Written):
    """Say how a gamma variate moves with its parameter, at a constant distribution function."""

    partials = (
        refused_partial("random_gamma_grad has no derivative in a: it is not implemented"),
        # r = -P_a / p: r_x = -(p_a / p) - r (p_x / p)
        lambda dx, out, a, x: dx * (digamma(a) - log(x) - out * _log_slope(a, x)),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Write it so that nothing underflows where the density does."""
        return random_gamma_grad_formula(a, x)[0]


class Igamma(Written):
    """The regularized lower incomplete gamma function P(a, x)."""

    exact = _exact("gammainc")
    partials = (
        lambda da, out, a, x: da * IGAMMA_GRAD_A(a, x),
        lambda dx, out, a, x: dx * DENSITY(a, x),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Return the first of the two."""
        return incomplete_gamma_formula(a, x)[0]


class Igammac(Written):
    """The regularized upper incomplete gamma function Q(a, x)."""

    exact = _exact("gammaincc")
    partials = (
        lambda da, out, a, x: -(da * IGAMMA_GRAD_A(a, x)),
        lambda dx, out, a, x: -(dx * DENSITY(a, x)),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Return the second of the two."""
        return incomplete_gamma_formula(a, x)[1]


DENSITY, IGAMMA_GRAD_A, RANDOM_GAMMA_GRAD = GammaDensity(), IgammaGradA(), RandomGammaGrad()
IGAMMA, IGAMMAC = Igamma(), Igammac()

_incomplete = described(
    {
        "a": "the parameters, positive floats.",
        "x": "the points, promoted and broadcast with ``a``.",
    },
    "The values, from 0 to 1; NaN where an argument is negative.",
    NOT_BROADCAST,
)


@_incomplete
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function P(a, x).

    Derivatives exist with respect to both arguments.

    Source: DLMF 8.2.4.

    >>> import stretto as st
    >>> st.lax.igamma(1.0, st.numpy.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return binary(IGAMMA, a, x)


@_incomplete
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute ``1 - igamma(a, x)``, exact in the tail.

    Source: DLMF 8.2.4.

    >>> import stretto as st
    >>> st.lax.igammac(1.0, st.numpy.array([0.0, 50.0]))
    Array([1.0000000e+00, 1.9287499e-22], dtype=float32)
    """
    return binary(IGAMMAC, a, x)


@_incomplete
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of ``igamma(a, x)`` with respect to ``a``.

    It has a derivative with respect to ``x`` alone; one in ``a`` raises ``MissingRuleError``.

    Returns:
        The derivatives, of the promoted dtype.

    >>> import stretto as st
    >>> st.lax.igamma_grad_a(1.0, st.numpy.array([0.0, 1.0]))
    Array([-0.       , -0.4317297], dtype=float32)
    """
    return binary(IGAMMA_GRAD_A, a, x)


def random_gamma_grad(a: ArrayLike, sample: ArrayLike) -> Array:
    """Compute how a variate of the gamma distribution moves with its parameter.

    ``igamma(a, sample)`` stays the same along it, which makes samples differentiable.

    Args:
        a: the parameters, positive floats.
        sample: the variates, promoted and broadcast with ``a``.

    Returns:
        The derivatives with respect to ``a``, of the promoted dtype.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018.

    >>> import stretto as st
    >>> st.lax.random_gamma_grad(st.numpy.array([1.0, 1e6]), st.numpy.array([1.0, 1e6]))
    Array([1.173563 , 1.0000001], dtype=float32)
    """
    return binary(RANDOM_GAMMA_GRAD, a, sample)
