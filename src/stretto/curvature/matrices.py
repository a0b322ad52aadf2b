"""What is computed of a ``Curvature``: products, the whole matrix, its diagonal, eigenvectors.

Each is a sum over examples, run in batches by one loop, so that memory does not grow with the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import grad, linearize, vjp
from stretto._engine.api.graph import eval_shape
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, DTypeLike, Key, Tree
from stretto._engine.higher_order.loops import fori_loop, scan
from stretto._engine.passes.formulations.members import budget
from stretto.curvature.likelihoods import rounding
from stretto.random import fold_in, normal, split

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature

T = TypeVar("T")
V = TypeVar("V", bound=Any)

_BATCH = 256
"""How many examples are run at a time, at most, where the user does not say."""
_ELEMENTS = 1 << 24
"""How many numbers the Jacobians of a batch may have, where the user does not say."""


# Vectors


def flatten(parts: Mapping[str, Array], columns: int = 0) -> Array:
    """Join arrays by name along their weights' axes; the last ``columns`` axes stay."""
    rows = [x.reshape((-1, *x.shape[x.ndim - columns :])) for x in parts.values()]
    return snp.concatenate(rows, 0)


def unflatten(flat: Array, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """Split (P, ...) into arrays of these shapes, by name; axes behind the first stay."""
    parts, start = {}, 0
    for name, shape in shapes.items():
        size = math.prod(shape)
        parts[name] = flat[start : start + size].reshape((*shape, *flat.shape[1:]))
        start += size
    return parts


def multiply(
    caller: str,
    by_columns: Callable[[dict[str, Array]], dict[str, Array]],
    shapes: Mapping[str, tuple[int, ...]],
    v: V,
) -> V:
    """Multiply a dictionary by name, (P,) or (P, k), by what multiplies (*shape, k) by name."""
    if isinstance(v, Mapping):
        values = {n: as_value(x, f"{caller} @ v", n) for n, x in v.items()}
        got = {n: x.shape for n, x in values.items()}
        if got != dict(shapes):
            raise ValueError(
                f"{caller} @ v: v must have an array for each weight, of its shape, {dict(shapes)}; "
                f"got {got}"
            )
        product = by_columns({n: values[n][..., None] for n in shapes})
        return {n: product[n][..., 0] for n in shapes}  # type: ignore[return-value]
    flat = as_value(v, f"{caller} @ v", "v")
    size = sum(math.prod(shape) for shape in shapes.values())
    if flat.ndim not in (1, 2) or flat.shape[0] != size:
        raise ValueError(
            f"{caller} @ v: v must be a dictionary of arrays by name, ({size},) or ({size}, k); "
            f"got {flat.type}"
        )
    product = by_columns(unflatten(flat[:, None] if flat.ndim == 1 else flat, shapes))
    joined = flatten({n: product[n] for n in shapes}, 1)
    return joined[:, 0] if flat.ndim == 1 else joined  # type: ignore[return-value]


# Examples


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


def _batch(curvature: Curvature, numbers: Array) -> Batch:
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
        return one(_batch(curvature, numbers[0]))
    types = eval_shape(lambda c: one(_batch(c, numbers[0])), curvature)
    zeros = tree.map(lambda t: snp.zeros(t.shape, t.dtype), types)

    def step(total: T, numbers: Array) -> tuple[T, None]:
        return tree.map(lambda a, b: a + b, total, one(_batch(curvature, numbers))), None

    return scan(step, zeros, numbers)[0]


def batch_of(curvature: Curvature, each: int) -> int:
    """Return the size of batches whose examples take so many numbers each."""
    most = _BATCH if curvature.batch_size is None else curvature.batch_size
    return max(1, min(most, _ELEMENTS // max(each, 1)))


def need_room(caller: str, elements: int, dtype: DTypeLike, what: str) -> None:
    """Raise ``MemoryError`` where so many numbers do not fit, before they are made."""
    needed, most = elements * np.dtype(dtype).itemsize, budget()
    if needed > most:
        raise MemoryError(
            f"{caller}: {what} takes {needed / 1e9:,.1f} GB, and {most / 1e9:,.1f} GB may be used "
            f"(config.memory_budget, or half of the free memory): choose fewer weights=, or a "
            f"smaller structure, such as .kron(), .diagonal() or .low_rank()"
        )


def outputs_of(curvature: Curvature) -> tuple[Any, Any]:
    """Return the types of the outputs of one example, and of its root (outputs, rank)."""

    def one(curvature: Curvature) -> tuple[Array, Array]:
        apply, chosen, _ = curvature.parts
        batch = _batch(curvature, snp.zeros(1, np.int32))
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


# Matrices


@jit
def product(curvature: Curvature, columns: dict[str, Array]) -> dict[str, Array]:
    """Multiply by columns: an array for each weight, of its shape with one more axis, the last."""
    apply, chosen, _ = curvature.parts

    def one(batch: Batch) -> dict[str, Array]:
        def f(weights: dict[str, Array]) -> Array:
            return apply(weights, batch.x)

        out, push = linearize(f, chosen)
        _, pull = vjp(f, chosen)
        roots = roots_of(curvature, out, batch)

        def column(v: dict[str, Array]) -> dict[str, Array]:
            df = push(v).reshape(len(out), -1)
            # Λ df = S Sᵀ df
            inner = snp.einsum("nor,no->nr", roots, df)
            ct = snp.einsum("nor,nr->no", roots, inner).reshape(out.shape)
            return pull(ct.astype(out.dtype))[0]

        return vmap(column, in_axes=-1, out_axes=-1)(columns)

    out, _ = outputs_of(curvature)
    width = next(iter(columns.values())).shape[-1]
    return sum_over_batches(curvature, batch_of(curvature, out.size * width), one)


def _jacobians(curvature: Curvature, batch: Batch) -> dict[str, Array]:
    """Return SᵀJ of each example: for each weight (examples, rank, *shape)."""
    apply, chosen, _ = curvature.parts

    def one(x: Tree, y: Tree, number: Array, here: Array) -> dict[str, Array]:
        alone = Batch(*tree.map(lambda a: a[None], (x, y, number, here)))
        out, pull = vjp(lambda weights: apply(weights, alone.x), chosen)
        root = roots_of(curvature, out, alone)[0].astype(out.dtype)
        return vmap(lambda column: pull(column.reshape(out.shape))[0], in_axes=-1)(root)

    return vmap(one)(batch.x, batch.y, batch.numbers, batch.here)


@jit
def dense(curvature: Curvature) -> Array:
    """Compute the matrix, (P, P)."""

    def one(batch: Batch) -> Array:
        parts = _jacobians(curvature, batch)
        rows = [x.reshape(x.shape[0] * x.shape[1], -1) for x in parts.values()]
        whole = snp.concatenate(rows, 1)
        return whole.T @ whole

    size = batch_of(curvature, rank_of(curvature) * curvature.size)
    return sum_over_batches(curvature, size, one)


@jit
def diagonal(curvature: Curvature) -> dict[str, Array]:
    """Compute the diagonal, by weight."""

    def one(batch: Batch) -> dict[str, Array]:
        parts = _jacobians(curvature, batch)
        return {name: (x * x).sum(axis=(0, 1)) for name, x in parts.items()}

    size = batch_of(curvature, rank_of(curvature) * curvature.size)
    return sum_over_batches(curvature, size, one)


@jit
def least_eigenvalue(curvature: Curvature) -> Array:
    """Compute the least eigenvalue of the Hessians in the outputs; 0 where it is so by rounding."""
    apply, chosen, _ = curvature.parts
    root: Any = curvature.likelihood.root

    def one(batch: Batch) -> Array:
        hessians = vmap(root.hessian)(apply(chosen, batch.x), batch.y)
        values = snp.linalg.eigvalsh(hessians)
        return snp.where(values < -rounding(values), values, 0).min()

    out, _ = outputs_of(curvature)
    # The sum over batches of what is at most 0 is negative where one is.
    return sum_over_batches(curvature, batch_of(curvature, out.size**2), one)


@jit(static_argnums=(1, 2))
def lanczos(curvature: Curvature, rank: int, steps: int, key: Key) -> tuple[Array, Array]:
    """Compute the ``rank`` largest eigenvalues and their vectors, by so many products."""
    shapes = {n: x.shape for n, x in curvature.parts.chosen.items()}
    size, dtype = curvature.size, dtype_of(curvature)
    basis = snp.zeros((steps, size), dtype)
    starts = normal(key, (steps, size), dtype)

    def without(v: Array, basis: Array) -> Array:
        for _ in range(2):  # once leaves what rounding has put back
            v = v - (basis @ v) @ basis
        return v

    def step(i: Array, carry: Tree) -> Tree:
        basis, projected, v = carry
        basis = basis.at[i].set(v)
        image = flatten(product(curvature, unflatten(v[:, None], shapes)), 1)[:, 0]
        # T = Q G Qᵀ, which is tridiagonal but for rounding
        projected = projected.at[i].set(basis @ image)
        rest = without(image, basis)
        norm = snp.linalg.norm(rest)
        # An invariant subspace has been found: go on from another vector.
        again = norm <= 10 * np.finfo(dtype).eps * snp.linalg.norm(image)
        rest = snp.where(again, without(starts[i], basis), rest)
        return basis, projected, rest / snp.linalg.norm(rest)

    first = normal(fold_in(key, 1), (size,), dtype)
    carry = basis, snp.zeros((steps, steps), dtype), first / snp.linalg.norm(first)
    basis, projected, _ = fori_loop(0, steps, step, carry)
    lower = snp.tril(projected)
    values, vectors = snp.linalg.eigh(lower + snp.tril(projected, -1).T)
    return values[::-1][:rank], (basis.T @ vectors)[:, ::-1][:, :rank]
