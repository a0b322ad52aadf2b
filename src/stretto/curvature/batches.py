"""Sums over examples in batches, with the root of each example; one loop, whatever is summed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.graph import eval_shape
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.typing import Array, DTypeLike, Key, Tree
from stretto._engine.higher_order.scan import scan
from stretto._engine.passes.formulations.members import budget
from stretto.random import fold_in, split

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature

T = TypeVar("T")

_BATCH = 256
"""How many examples are run at a time, at most, where the user does not say."""
_ELEMENTS = 1 << 24
"""How many numbers the Jacobians of a batch may have, where the user does not say."""


def root_of(curvature: Curvature, f: Array, y: Tree, key: Key | None) -> Array:
    """Return the root of one example with these outputs, (*outputs, rank)."""
    likelihood = curvature.likelihood
    if curvature.kind in ("ggn", "exact"):
        return likelihood.root(f, y)
    slope = grad(likelihood.nll)
    if curvature.kind == "empirical":
        return slope(f, y)[..., None]
    assert likelihood.sample is not None and key is not None
    draw, samples = likelihood.sample, curvature.samples
    # E[∇log p ∇log pᵀ] over y ~ p is the Fisher information
    slopes = vmap(lambda k: slope(f, draw(k, f)))(split(key, samples))
    return snp.moveaxis(slopes, 0, -1) / math.sqrt(samples)


def roots_of(curvature: Curvature, out: Array, batch: Batch) -> Array:
    """Return the roots of a batch with these outputs, (examples, outputs, rank); 0 for padding."""
    if out.shape[:1] != batch.here.shape:
        raise ValueError(
            f"the model's outputs must have the examples along axis 0: of {batch.here.shape[0]} it "
            f"gives {out.shape}"
        )

    def one(f: Array, y: Tree, number: Array, here: Array) -> Array:
        key = None if curvature.key is None else fold_in(curvature.key, number)
        root = root_of(curvature, f, y, key)
        return snp.where(here, root, 0).reshape(-1, root.shape[-1])

    return vmap(one)(out, batch.y, batch.numbers, batch.here)


def knows_split(curvature: Curvature) -> bool:
    """Say whether the matrix of the outputs is known as diagonal and factor, without its root."""
    return (
        curvature.kind in ("ggn", "exact") and curvature.likelihood.diagonal_and_factor is not None
    )


def splits_of(curvature: Curvature, out: Array, batch: Batch) -> tuple[Array, Array | None]:
    """Return diagonals (examples, outputs) and factors (examples, outputs, k); 0 for padding."""
    of = curvature.likelihood.diagonal_and_factor
    assert of is not None

    def one(f: Array, y: Tree, here: Array) -> tuple[Array, Array | None]:
        diagonal, factor = of(f, y)
        diagonal = snp.where(here, diagonal, 0).reshape(-1)
        if factor is None:
            return diagonal, None
        return diagonal, snp.where(here, factor, 0).reshape(-1, factor.shape[-1])

    return vmap(one)(out, batch.y, batch.here)


class Batch(NamedTuple):
    """Some examples."""

    x: Tree
    """Inputs, (examples, ...)."""
    y: Tree
    """Targets, (examples, ...), or None."""
    numbers: Array
    """Their numbers, (examples,)."""
    here: Array
    """Whether each is one, and not padding, (examples,)."""


def take_batch(curvature: Curvature, numbers: Array) -> Batch:
    """Return the examples of these numbers; those behind the last are padding."""
    last = curvature.examples - 1
    at = snp.minimum(numbers, last)
    x, y = tree.map(lambda a: a[at], (curvature.x, curvature.y))
    return Batch(x, y, at, numbers <= last)


def sum_over_batches(curvature: Curvature, size: int, one: Callable[[Batch], T]) -> T:
    """Return the sum of ``one(batch)`` over the data, in batches of at most this size."""
    examples = curvature.examples
    steps = -(-examples // max(1, min(size, examples)))
    size = -(-examples // steps)
    numbers = snp.arange(steps * size, dtype=np.int32).reshape(steps, size)
    if steps == 1:
        return one(take_batch(curvature, numbers[0]))
    types = eval_shape(lambda c: one(take_batch(c, numbers[0])), curvature)
    zeros = tree.map(lambda t: snp.zeros(t.shape, t.dtype), types)

    def step(total: T, numbers: Array) -> tuple[T, None]:
        return tree.map(lambda a, b: a + b, total, one(take_batch(curvature, numbers))), None

    return scan(step, zeros, numbers)[0]


def batch_of(curvature: Curvature, each: int) -> int:
    """Return the size of batches whose examples take so many numbers each."""
    most = _BATCH if curvature.batch_size is None else curvature.batch_size
    return max(1, min(most, _ELEMENTS // max(each, 1)))


_SMALLER = (
    "choose fewer weights=, or a smaller structure, such as .kron(), .diagonal() or .low_rank()"
)


def need_room(caller: str, elements: int, dtype: DTypeLike, what: str, way: str = _SMALLER) -> None:
    """Raise ``MemoryError`` where so many numbers do not fit, before they are made."""
    needed, most = elements * np.dtype(dtype).itemsize, budget()
    if needed > most:
        raise MemoryError(
            f"{caller}: {what} takes {needed / 1e9:,.1f} GB, and {most / 1e9:,.1f} GB may be used "
            f"(config.memory_budget, or half of the free memory): {way}"
        )


def outputs_of(curvature: Curvature) -> tuple[Any, Any]:
    """Return the types of the outputs of one example, and of its root (outputs, rank)."""

    def one(curvature: Curvature) -> tuple[Array, Array]:
        apply, chosen, _ = curvature.parts
        batch = take_batch(curvature, snp.zeros(1, np.int32))
        out = apply(chosen, batch.x)
        return out, roots_of(curvature, out, batch)

    out, root = eval_shape(one, curvature)
    return out, root


def rank_of(curvature: Curvature) -> int:
    """Return the number of columns of one example's root."""
    return outputs_of(curvature)[1].shape[-1]


def dtype_of(curvature: Curvature) -> np.dtype:
    """Return the dtype of flat vectors."""
    return snp.result_type(*[x.dtype for x in curvature.parts.chosen.values()])
