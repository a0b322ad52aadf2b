"""The posterior of one network's weights: how it is fitted, and what it predicts.

Arrays of an ensemble's posteriors are stacked, and all here runs under ``Ensemble.vmap``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import lax, random, tree
from stretto._engine.api.autodiff.derivatives import jvp, linearize, vjp
from stretto._engine.api.graph import eval_shape
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.passes.formulations.members import budget
from stretto.curvature.batches import outputs_of
from stretto.curvature.curvature import ggn
from stretto.curvature.jacobians import jacobians, numbers_of
from stretto.curvature.kron import needs_roots
from stretto.curvature.likelihoods import Likelihood
from stretto.curvature.parts import Choice, Parts, parts_of
from stretto.ensemble.gaussian import Gaussian, root_of
from stretto.ensemble.linearised import widened
from stretto.ensemble.precisions import (
    DiagonalPrecision,
    Flat,
    FullPrecision,
    LowRankPrecision,
    kron_precision,
)

_AT_ONCE = 1 << 24
"""How many numbers of Jacobians are made at a time, about: 64 MB of float32."""


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Posterior:
    """What was learnt of one member's weights; of an ensemble stacked along axis 0."""

    precision: Any
    """H, in one of the shapes of ``precisions``."""
    loss: Array
    """−log p(y|θ*) of all examples; a Gaussian's with σ = 1."""
    squares: dict[str, Array]
    """‖θ*‖² of each weight, by name."""
    slope: Array
    """θ* · the gradient of ``loss``."""
    prior_precision: dict[str, Array]
    """δ of each weight, by name."""
    noise: Array
    """σ; 1 where the likelihood has none."""

    @property
    def spread(self) -> Array:
        """1/σ²."""
        return 1 / snp.square(self.noise)

    def factor(self) -> Tree:
        """Return what draws and covariances are computed from."""
        return self.precision.factor(self.prior_precision, self.spread)

    def evidence(self, targets: int | None) -> Array:
        """Return log p(y|θ*) − ½ (log|P| − Σ log δ + δ‖θ*‖²).

        ``targets`` is how many numbers a Gaussian's examples have together.
        """
        fit = -self.loss
        if targets is not None:
            constant = targets * math.log(2 * math.pi) / 2
            fit = (constant - self.loss) * self.spread - targets * snp.log(self.noise) - constant
        own = [d * s for d, s in zip(self.prior_precision.values(), self.squares.values())]
        volume = self.precision.log_determinant(self.prior_precision, self.spread)
        return fit - (volume + snp.sum(snp.stack(own))) / 2


def fit_posterior(
    model: Tree,
    x: Tree,
    y: Tree,
    key: Key | None,
    likelihood: Likelihood,
    structure: str,
    weights: Choice,
    batch_size: int,
    rank: int,
    members: int,
) -> Posterior:
    """Return the posterior of one network of ``members``, with a prior and a noise of 1."""
    parts = parts_of(model, weights, "fit_laplace")
    shapes = tuple([(n, w.shape) for n, w in parts.chosen.items()])
    size = sum([w.size for w in parts.chosen.values()])
    curvature = ggn(model, x, likelihood, y=y, weights=weights, batch_size=batch_size)
    out, root = outputs_of(curvature)
    if not snp.issubdtype(out.dtype, np.floating):
        raise TypeError(f"fit_laplace: expected real outputs of the model, got {out.dtype}")
    if likelihood.name == "categorical" and out.shape[1:2] == (1,):
        raise ValueError(
            f"fit_laplace: 'categorical' needs classes along axis 1, at least two; the outputs of "
            f"one example are {out.shape}: one logit an example is 'bernoulli'"
        )
    if structure != "kron" or needs_roots(curvature):
        refuse_size(
            2 * members * root.size * root.dtype.itemsize,
            f"fit_laplace: the root of the Hessian of {out.size:,} outputs, and its cotangents,",
            "give a Likelihood whose root has fewer columns, as one of drawn targets, or take "
            "weights='last' and structure='kron', which needs none",
        )

    def loss(chosen: dict[str, Array], x: Tree, y: Array) -> Array:
        return snp.sum(vmap(likelihood.nll)(widened(parts.apply(chosen, x)), y))

    def both(x: Tree, y: Array) -> tuple[Array, Array]:
        """Return the loss, and its derivative along θ*."""
        return jvp(lambda chosen: loss(chosen, x, y), (parts.chosen,), (parts.chosen,))

    value, slope = _sum_over_batches(both, batch_size, x, y)
    precision: Any
    if structure == "full":
        refuse_size(
            members * size**2 * value.dtype.itemsize,
            f"fit_laplace: structure='full' of {size:,} weights",
            "take structure='kron', 'diagonal' or 'low_rank', or fewer weights=, such as 'last'",
        )
        precision = FullPrecision(curvature.dense(), shapes)
    elif structure == "diagonal":
        precision = DiagonalPrecision(curvature.diagonal())
    elif structure == "kron":
        precision = kron_precision(curvature.kron())
    else:
        start = random.key(0) if key is None else key
        values, vectors = curvature.low_rank(min(rank, size), start)
        precision = LowRankPrecision(snp.maximum(values, 0), vectors, shapes)
    squares = {n: snp.sum(snp.square(w)) for n, w in parts.chosen.items()}
    one = snp.ones_like(value)
    return Posterior(precision, value, squares, slope, dict.fromkeys(squares, one), one)


def _sum_over_batches(f: Callable[..., Any], size: int, *arrays: Tree) -> Tree:
    """Return the sum of f over batches of at most ``size`` examples."""
    n = len(tree.leaves(arrays)[0])
    whole = n // size * size
    total = None
    if whole:
        batches = tree.map(lambda x: x[:whole].reshape(-1, size, *x.shape[1:]), arrays)
        total = tree.map(lambda x: snp.sum(x, 0), lax.map(lambda batch: f(*batch), batches))
    if whole < n:
        rest = f(*tree.map(lambda x: x[whole:], arrays))
        total = rest if total is None else tree.map(lambda x, y: x + y, total, rest)
    return total


def predictive(
    model: Tree, posterior: Posterior, x: Tree, weights: Choice, joint: bool, members: int
) -> Gaussian:
    """Return the Gaussian of one network's outputs for a batch; of one of ``members``."""
    parts = parts_of(model, weights, "Laplace")
    mean = widened(parts.apply(parts.chosen, x))
    batch, outputs = len(mean), mean.size // len(mean)
    way = "joint=False or fewer examples" if joint else "fewer examples"
    refuse_size(
        members * mean.size * outputs * (batch if joint else 1) * mean.dtype.itemsize,
        f"Laplace: the covariance of {outputs:,} outputs of {batch:,} examples",
        f"give {way}; members(), and probabilities() of fewer samples than outputs, do without",
    )
    precision, factor = posterior.precision, posterior.factor()

    def jacobian(x: Tree) -> Tree:
        flat = isinstance(precision, Flat)
        return _whole_jacobian(parts, x) if flat else jacobians(model, x, weights)

    if joint:
        matrix = precision.covariance(factor, jacobian(x), True)
    else:

        def of(x: Tree) -> Array:
            """Return the covariance of one example."""
            one = tree.map(lambda leaf: leaf[None], x)
            return precision.covariance(factor, jacobian(one), False)[0]

        first = tree.map(lambda leaf: leaf[:1], x)
        each = numbers_of(eval_shape(jacobian, first))

        matrix = lax.map(of, x, batch_size=max(1, min(batch, _AT_ONCE // each)))
    event = mean.shape if joint else mean.shape[1:]
    return Gaussian(mean, matrix.reshape(*mean.shape, *event))


def _whole_jacobian(parts: Parts, x: Tree) -> Array:
    """Return the Jacobian of each example by all weights, (examples, outputs, weights)."""

    def of(x: Tree) -> Array:
        one = tree.map(lambda leaf: leaf[None], x)
        out, back = vjp(lambda chosen: parts.apply(chosen, one)[0], parts.chosen)
        (by_name,) = vmap(back)(snp.eye(out.size, dtype=out.dtype).reshape(-1, *out.shape))
        rows = [by_name[n].reshape(out.size, -1) for n in parts.names]
        return snp.concatenate(rows, -1)

    return vmap(of)(x)


def draws_of(
    model: Tree, posterior: Posterior, x: Tree, weights: Choice, samples: int, members: int
) -> Callable[[Key], Array]:
    """Return a function that draws outputs, each example's of its Gaussian.

    From its covariance, or from the weights where there are more outputs than draws: the one takes
    a cotangent through the network for each output, the other a tangent for each draw.
    """
    parts = parts_of(model, weights, "Laplace")
    shape = eval_shape(parts.apply, parts.chosen, x).shape
    if math.prod(shape[1:]) > samples:
        middle, tangent = linearize(lambda chosen: widened(parts.apply(chosen, x)), parts.chosen)
        factor = posterior.factor()
        return lambda key: middle + tangent(posterior.precision.draw(factor, key))
    out = predictive(model, posterior, x, weights, False, members)
    root = root_of(out._matrix)

    def draw(key: Key) -> Array:
        z = random.normal(key, root.shape[:-1], root.dtype)
        return out.mean + (root @ z[..., None]).reshape(out.mean.shape)

    return draw


def refuse_size(size: int, what: str, way: str) -> None:
    """Raise ``MemoryError`` for an array that does not fit in memory, before it is made."""
    most = budget()
    if size > most:
        raise MemoryError(
            f"{what} takes {size / 1e9:,.1f} GB, and {most / 1e9:,.1f} GB may be used "
            f"(config.memory_budget, or half of the free memory); {way}"
        )
