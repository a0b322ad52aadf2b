"""Likelihoods: the loss of one example, a root of its Hessian in the outputs, and draws of targets.

All are of one example, without an axis of examples: ``vmap`` gives the rest. Sums over an
example's outputs, constants included, so that evidence computed from them is that of the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.autodiff.jacobians import jacfwd
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto.nn.functional import log_softmax, one_hot, sigmoid, softmax, softplus
from stretto.random import bernoulli, categorical, normal

__all__ = ["Likelihood", "LikelihoodLike", "likelihood_of"]

Name: TypeAlias = Literal["categorical", "bernoulli", "gaussian", "heteroscedastic"]


@dataclass(frozen=True)
class Likelihood:
    """What targets are given a model's outputs, for one example.

    Args:
        name: the name, for messages.
        nll: ``nll(f, y)``, from the outputs of one example and its target to a scalar: the whole
            negative log likelihood, constants included.
        root: ``root(f, y)`` of shape (*outputs, rank): S with S Sᵀ the Hessian of ``nll`` in
            ``f``, or its Fisher information where the Hessian is not positive.
        sample: ``sample(key, f)``, a target drawn given the outputs; None where no distribution is
            known.
        diagonal_and_factor: ``diagonal_and_factor(f, y)``, what S Sᵀ is without a root: its
            diagonal, of the shape of the outputs, and V, (*outputs, k), with −V Vᵀ beside the
            diagonal, or None where nothing is there. With it factors of a last layer take neither
            the root nor a pass for each of its columns. None where it is not known.

    >>> import stretto as st, stretto.numpy as snp
    >>> gaussian = st.curvature.likelihood_of("gaussian")
    >>> gaussian.root(snp.zeros(2), None)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    name: str
    nll: Callable[..., Array]
    root: Callable[..., Array]
    sample: Callable[[Key, Array], Array] | None = None
    diagonal_and_factor: Callable[..., tuple[Array, Array | None]] | None = None


LikelihoodLike: TypeAlias = Name | Likelihood | Callable[..., Array]
"""A likelihood, its name, or ``nll(f, y)`` of one example."""


def likelihood_of(likelihood: LikelihoodLike) -> Likelihood:
    """Return the likelihood of this name, or that of a function ``nll(f, y)`` of one example.

    - ``"categorical"``: logits (classes, ...), the class axis first as ``cross_entropy`` of one
      example takes it, and integers of that shape without it; one that is no class is an error, or
      a loss of NaN where it is traced. The root is Cholesky's of diag(p) − ppᵀ, of a column less
      than there are classes (Tanabe and Sagae, 1992).
    - ``"bernoulli"``: one logit for each target, which is 0 or 1. The root is diag(√(p(1 − p))).
    - ``"gaussian"``: means, and targets of the same shape; variance 1. The root is the identity.
    - ``"heteroscedastic"``: (..., 2), means and logarithms of variances, and targets (...). The
      Hessian is not positive everywhere: the root is that of the Fisher information,
      diag(1/σ, 1/√2).
    - a function: the root is that of its Hessian, by eigenvalues. One that is negative beyond
      rounding makes it NaN where values are traced; ``ggn`` refuses it where they are not.

    Args:
        likelihood: a name, a ``Likelihood``, or a function.

    Returns:
        The likelihood.

    Raises:
        ValueError: there is none of this name.
        TypeError: it is none of these.

    Source: Martens, New insights and perspectives on the natural gradient method, 2020
    (arXiv:1412.1193).

    >>> import stretto as st, stretto.numpy as snp
    >>> categorical = st.curvature.likelihood_of("categorical")
    >>> categorical.nll(snp.zeros(4), 2).round(4)
    Array(1.3863, dtype=float32)
    """
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str):
        if likelihood not in _BY_NAME:
            raise ValueError(
                f"likelihood must be one of {', '.join(map(repr, _BY_NAME))}, or a function "
                f"nll(f, y) of one example; got {likelihood!r}"
            )
        return _BY_NAME[likelihood]
    if callable(likelihood):
        name = getattr(likelihood, "__name__", type(likelihood).__name__)
        return Likelihood(name, likelihood, HessianRoot(likelihood))
    raise TypeError(
        f"likelihood must be a name, a Likelihood, or a function nll(f, y) of one example; got "
        f"{type(likelihood).__name__}"
    )


@dataclass(frozen=True)
class HessianRoot:
    """Compute a root of the Hessian of ``nll`` in the outputs; equal ones are of one function."""

    nll: Callable[..., Array]

    def hessian(self, f: Array, y: Tree) -> Array:
        """Return the Hessian, of shape (outputs, outputs)."""
        by_outputs = jacfwd(grad(lambda flat: self.nll(flat.reshape(f.shape), y)))
        return by_outputs(f.reshape(-1))

    def __call__(self, f: Array, y: Tree) -> Array:
        values, vectors = snp.linalg.eigh(self.hessian(f, y))
        values = snp.where(values < -rounding(values), snp.nan, snp.maximum(values, 0))
        return (vectors * snp.sqrt(values)).reshape((*f.shape, -1))


def rounding(values: Array) -> Array:
    """Return how far below zero an eigenvalue may be by rounding, for the eigenvalues (..., n)."""
    eps = float(np.finfo(values.dtype).eps)
    return 100 * eps * (snp.abs(values).max(axis=-1, keepdims=True) + eps)


def _like(f: Array, y: ArrayLike, shape: tuple[int, ...], name: str) -> Array:
    """Return the targets, which must have this shape."""
    target = as_value(y, name, "y")
    if target.shape != shape:
        raise ValueError(
            f"{name}: targets of one example must have shape {shape}, since its outputs have "
            f"{f.shape}; got {target.shape}"
        )
    return target


def _block_diagonal(root: Array, shape: tuple[int, ...]) -> Array:
    """Return the root (*shape, rank · m) of roots (n, rank, m), one at each of m positions."""
    _, rank, m = root.shape
    if m == 1:
        return root.reshape((*shape, rank))
    spread = root.transpose(0, 2, 1)[..., None] * snp.eye(m, dtype=root.dtype)[:, None, :]
    return spread.reshape((*shape, rank * m))


def _categorical_nll(f: Array, y: ArrayLike) -> Array:
    target = _like(f, y, f.shape[1:], "categorical")
    if is_inexact(target.dtype):
        raise TypeError(
            f"categorical: targets must be integers, the classes' numbers; got {target.dtype}"
        )
    logs = log_softmax(f, 0)
    there = (target >= 0) & (target < f.shape[0])
    picked = (logs * snp.moveaxis(one_hot(target, f.shape[0]), -1, 0)).sum(axis=0)
    return -snp.where(there, picked, snp.nan).sum()


def _categorical_root(f: Array, y: object) -> Array:
    del y
    if not f.ndim:
        raise ValueError(
            "categorical: expected logits (classes, ...) for an example, got one number; with one "
            'logit an example the likelihood is "bernoulli"'
        )
    p = softmax(f.reshape(f.shape[0], -1), 0)
    # Cholesky's root of diag(p) − p pᵀ, which has a column less than there are classes: with q_k
    # the sum of p behind k, √(p_k q_k / q_{k−1}) at k and −p_i √(p_k / (q_{k−1} q_k)) below.
    here = snp.cumsum(p[::-1], 0)[::-1]
    behind = snp.concatenate([here[1:], snp.zeros_like(p[:1])], 0)
    some = behind > 0  # otherwise nothing is left of p either
    safe = snp.where(some, behind, 1)
    scale = snp.where(some, snp.sqrt(p / (here * safe)), 0)
    n, rank = len(p), max(len(p) - 1, 1)
    below = snp.tril(snp.ones((n, rank), bool), -1)[..., None]
    whole = snp.where(below, -p[:, None] * scale[:rank], 0)
    own = snp.eye(n, rank, dtype=bool)[..., None]
    return _block_diagonal(snp.where(own, (behind * scale)[:rank], whole), f.shape)


def _categorical_split(f: Array, y: object) -> tuple[Array, Array]:
    """Return the diagonal of diag(p) − p pᵀ, at each position, and p."""
    del y
    p = softmax(f.reshape(f.shape[0], -1), 0)
    # 1 − p has lost its digits where p is near 1: there it is the sum of the others.
    others = snp.where(p > 0.5, snp.where(p > 0.5, 0, p).sum(axis=0), 1 - p)
    return (p * others).reshape(f.shape), _block_diagonal(p[:, None], f.shape)


def _bernoulli_nll(f: Array, y: ArrayLike) -> Array:
    target = _like(f, y, f.shape, "bernoulli")
    return (softplus(f) - target * f).sum()


def _diagonal(values: Array) -> Array:
    flat = values.reshape(-1)
    return snp.diag(flat).reshape((*values.shape, flat.size))


def _bernoulli_root(f: Array, y: object) -> Array:
    del y
    return _diagonal(snp.sqrt(sigmoid(f) * sigmoid(-f)))


def _bernoulli_split(f: Array, y: object) -> tuple[Array, None]:
    del y
    return sigmoid(f) * sigmoid(-f), None


def _gaussian_nll(f: Array, y: ArrayLike) -> Array:
    target = _like(f, y, f.shape, "gaussian")
    return 0.5 * ((f - target) ** 2).sum() + 0.5 * math.log(2 * math.pi) * f.size


def _gaussian_root(f: Array, y: object) -> Array:
    del y
    return snp.eye(f.size, dtype=f.dtype).reshape((*f.shape, f.size))


def _gaussian_split(f: Array, y: object) -> tuple[Array, None]:
    del y
    return snp.ones_like(f), None


def _mean_and_log_variance(f: Array) -> tuple[Array, Array]:
    if not f.ndim or f.shape[-1] != 2:
        raise ValueError(
            f"heteroscedastic: expected outputs (..., 2), mean and logarithm of the variance; got "
            f"{f.shape} for an example"
        )
    return f[..., 0], f[..., 1]


def _heteroscedastic_nll(f: Array, y: ArrayLike) -> Array:
    mean, log_variance = _mean_and_log_variance(f)
    target = _like(f, y, mean.shape, "heteroscedastic")
    squares = (mean - target) ** 2 * snp.exp(-log_variance)
    return 0.5 * (squares + log_variance + math.log(2 * math.pi)).sum()


def _heteroscedastic_root(f: Array, y: object) -> Array:
    del y
    _, log_variance = _mean_and_log_variance(f)
    half = snp.full_like(log_variance, math.sqrt(0.5))
    return _diagonal(snp.stack([snp.exp(-0.5 * log_variance), half], -1))


def _heteroscedastic_split(f: Array, y: object) -> tuple[Array, None]:
    del y
    _, log_variance = _mean_and_log_variance(f)
    half = snp.full_like(log_variance, 0.5)
    return snp.stack([snp.exp(-log_variance), half], -1), None


def _draw_heteroscedastic(key: Key, f: Array) -> Array:
    mean, log_variance = _mean_and_log_variance(f)
    return mean + snp.exp(0.5 * log_variance) * normal(key, mean.shape, mean.dtype)


_BY_NAME: dict[str, Likelihood] = {
    "categorical": Likelihood(
        "categorical",
        _categorical_nll,
        _categorical_root,
        lambda key, f: categorical(key, f, 0),
        _categorical_split,
    ),
    "bernoulli": Likelihood(
        "bernoulli",
        _bernoulli_nll,
        _bernoulli_root,
        lambda key, f: bernoulli(key, sigmoid(f)),
        _bernoulli_split,
    ),
    "gaussian": Likelihood(
        "gaussian",
        _gaussian_nll,
        _gaussian_root,
        lambda key, f: f + normal(key, f.shape, f.dtype),
        _gaussian_split,
    ),
    "heteroscedastic": Likelihood(
        "heteroscedastic",
        _heteroscedastic_nll,
        _heteroscedastic_root,
        _draw_heteroscedastic,
        _heteroscedastic_split,
    ),
}
