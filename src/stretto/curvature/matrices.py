"""What is computed of a ``Curvature``: products, the whole matrix, its diagonal, eigenvectors.

Each is a sum over examples, run in batches by one loop, so that memory does not grow with the data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import linearize, vjp
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.higher_order.loops import fori_loop
from stretto.curvature.batches import (
    Batch,
    batch_of,
    dtype_of,
    need_room,
    outputs_of,
    rank_of,
    roots_of,
    splits_of,
    sum_over_batches,
)
from stretto.curvature.likelihoods import rounding
from stretto.curvature.plan import Plan
from stretto.curvature.uses import arranged
from stretto.random import fold_in, normal

if TYPE_CHECKING:
    from stretto.curvature.curvature import Curvature

V = TypeVar("V", bound=Any)

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
                f"{caller} @ v: v must have an array for each weight, of its shape, "
                f"{dict(shapes)}; got {got}"
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
            dw = {n: v[n].astype(w.dtype) for n, w in chosen.items()}
            df = push(dw).reshape(len(out), -1)
            # Λ df = S Sᵀ df
            inner = snp.einsum("nor,no->nr", roots, df)
            ct = snp.einsum("nor,nr->no", roots, inner).reshape(out.shape)
            return pull(ct.astype(out.dtype))[0]

        return vmap(column, in_axes=-1, out_axes=-1)(columns)

    out, root = outputs_of(curvature)
    need_room("Curvature @ v", root.size, out.dtype, f"the root of an example, {root.shape[1:]},")
    each = root.size + out.size * next(iter(columns.values())).shape[-1]
    return sum_over_batches(curvature, batch_of(curvature, each), one)


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
    plan = Plan(curvature)
    if plan.is_last_layer:
        return _dense_of_last_layer(curvature, plan)
    rank, size = rank_of(curvature), curvature.size
    what = f"the Jacobians of one example, {rank:,} × {size:,},"
    need_room("Curvature.dense", rank * size, dtype_of(curvature), what)

    def one(batch: Batch) -> Array:
        parts = _jacobians(curvature, batch)
        rows = [x.reshape(x.shape[0] * x.shape[1], -1) for x in parts.values()]
        whole = snp.concatenate(rows, 1)
        return whole.T @ whole

    return sum_over_batches(curvature, batch_of(curvature, rank * size), one)


def _dense_of_last_layer(curvature: Curvature, plan: Plan) -> Array:
    """Compute Σ Λ ⊗ a aᵀ, for a the inputs of the layer, and 1 for what is added.

    With Λ = D − V Vᵀ beside its diagonal D, that is −X Xᵀ of X = V ⊗ a, where rows are of two
    outputs, and Σ D a aᵀ where they are of one.
    """
    output, inputs = _rows_of_last_layer(plan)
    known = plan.knows_split

    def one(batch: Batch) -> tuple[Array, Array | None]:
        _, seen, out = plan.sum_over_columns(curvature, batch, lambda taps, exact: None)
        ones = snp.ones((len(out), 1), out.dtype)
        others = [plan.other(n, seen) for n in range(len(plan.listed))]
        a = snp.concatenate([ones if x is None else x[0] for x in others], 1)
        diagonal, factor = splits_of(curvature, out, batch) if known else (None, None)
        if not known:
            factor = roots_of(curvature, out, batch).astype(out.dtype)
        beside = snp.zeros((), out.dtype)
        if factor is not None:
            x = factor[:, output] * a[:, inputs, None]
            x = snp.moveaxis(x, -1, 0).reshape(-1, len(output))
            beside = x.T @ x
        if diagonal is None:
            return beside, None
        weighted = (diagonal[:, :, None] * a[:, None]).reshape(len(out), -1)
        return beside, (weighted.T @ a).reshape(-1, a.shape[1], a.shape[1])

    beside, own = sum_over_batches(curvature, batch_of(curvature, 2 * len(output)), one)
    if own is None:
        return beside
    same = output[:, None] == output
    return snp.where(same, own[output[:, None], inputs[:, None], inputs], -beside)


def _rows_of_last_layer(plan: Plan) -> tuple[Array, Array]:
    """Return for each row of the matrix the output, and the number among inputs of all weights."""
    outputs: list[Array] = []
    inputs: list[Array] = []
    before = 0
    for n, use in enumerate(plan.listed):
        layout = plan.layouts[use.weight]
        outs, ins = layout.size("out"), layout.size("in")
        numbers = snp.arange(outs, dtype=np.int32).reshape(use.tap_shape)
        order = arranged(numbers, plan.axes_of_g(n), "out").reshape(outs, 1)
        every = snp.arange(before, before + ins, dtype=np.int32)
        for found, rows in ((outputs, order), (inputs, every)):
            whole = snp.broadcast_to(rows, (1, outs, ins))
            found.append(layout.weight(whole).reshape(-1))
        before += ins
    return snp.concatenate(outputs), snp.concatenate(inputs)


@jit
def diagonal(curvature: Curvature) -> dict[str, Array]:
    """Compute the diagonal, by weight.

    A weight that enters once has gradients g aᵀ, whose squares are products of squares; of others
    the gradients of each example are made.
    """
    names = curvature.names
    plan = Plan(curvature, once=True)
    plan.need_room("Curvature.diagonal", plan.elements)
    layouts = plan.layouts

    def one(batch: Batch) -> dict[str, Array]:
        taps, exact, seen = plan.cotangents(curvature, batch)
        found = {}
        for i, n in enumerate(names):
            if i in exact:
                found[n] = (exact[i] ** 2).sum(axis=(0, 1))
                continue
            (number,) = [k for k, use in enumerate(plan.listed) if use.weight == i]
            g, a = plan.operands(number, taps, seen)
            # Σ over columns of g², for each example; the square of a once
            squares = (g**2).reshape(g.shape[0], len(batch.here), -1, g.shape[-1]).sum(axis=2)
            inner = snp.ones((1, len(batch.here), 1), g.dtype) if a is None else a**2
            found[n] = layouts[i].weight(snp.swapaxes(squares, 1, 2) @ inner)
        return found

    return sum_over_batches(curvature, batch_of(curvature, plan.elements), one)


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
