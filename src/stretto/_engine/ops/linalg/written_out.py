"""Factorizations written out as loops over columns, for programs that cannot call LAPACK.

Each takes the builder that writes the program, and operands. A step treats one column of all
matrices: what it reads and writes there is chosen by masks, so that it is the same for each step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import array_type, is_complex
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.comparison import (
    eq,
    full,
    full_like,
    ge,
    gt,
    lt,
    select,
    zeros_like,
)
from stretto._engine.ops.complex_parts import conj, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    diagonal_of,
    identity,
    matrix_transpose,
)
from stretto._engine.ops.reducing.reduce import Argmax
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort

_INT32 = np.dtype(np.int32)


def _loop(
    b: Any, count: int, step: Callable[..., Sequence[Any]], state: Sequence[Any]
) -> list[Any]:
    """Write ``state = step(k, *state)`` for k from 0 to ``count``, not included."""

    def going(k: Any, *_: Any) -> list[Any]:
        return [b.compare("LT", k, b.scalar(count, _INT32))]

    def body(k: Any, *state: Any) -> list[Any]:
        new = b.inline_many(step, k, *state)
        return [b.emit("add", k, b.scalar(1, _INT32), out=k.type), *new]

    return b.while_loop(going, body, (b.scalar(0, _INT32), *state))[1:]


def _index(x: Any, axis: int) -> Any:
    """Return the index of each element along one of the last two axes: -2 or -1."""
    return broadcasted_iota(_INT32, x.shape, x.ndim + axis)


def _like(k: Any, x: Any) -> Any:
    return broadcast_in_dim(k, x.shape, tuple(range(k.ndim)))


def _row(x: Any, k: Any) -> Any:
    """Return row ``k`` of each matrix, repeated in all rows; ``k`` is one, or one a matrix."""
    here = select(eq(_index(x, -2), _like(k, x)), x, zeros_like(x))
    return _down(reduce_sum(here, (x.ndim - 2,)), x)


def _column(x: Any, k: Any) -> Any:
    """Return column ``k`` of each matrix, repeated in all columns."""
    here = select(eq(_index(x, -1), _like(k, x)), x, zeros_like(x))
    return _across(reduce_sum(here, (x.ndim - 1,)), x)


def _down(v: Any, x: Any) -> Any:
    """Return vectors as rows of matrices like ``x``."""
    return broadcast_in_dim(v, x.shape, (*range(x.ndim - 2), x.ndim - 1))


def _across(v: Any, x: Any) -> Any:
    """Return vectors as columns of matrices like ``x``."""
    return broadcast_in_dim(v, x.shape, tuple(range(x.ndim - 1)))


def _diagonal_element(x: Any, k: Any) -> Any:
    """Return the element of row and column ``k``, repeated everywhere."""
    return _row(_column(x, k), k)


def lu(b: Any, x: Any) -> list[Any]:
    """Return ``l`` below and ``u`` above the diagonal, and for each row the one exchanged with it.

    Partial pivoting: the greatest element of a column that is left comes first.
    """
    *batch, m, n = x.type.shape
    count = min(m, n)

    def step(k: Any, x: Any, pivots: Any) -> list[Any]:
        rows, columns = _index(x, -2), _index(x, -1)
        line = _column(x, k)
        # As LAPACK compares complex numbers: by the sum of the parts' sizes.
        parts = [real(line), imag(line)] if is_complex(x.dtype) else [line]
        size = absolute(parts[0])
        for part in parts[1:]:
            size = size + absolute(part)
        size = select(lt(rows, _like(k, x)), full_like(size, -1), size)
        size = reduce_sum(
            select(eq(columns, zeros_like(columns)), size, zeros_like(size)), (x.ndim - 1,)
        )
        p = Argmax(size.ndim - 1, _INT32)(size)
        here, there = eq(rows, _like(k, x)), eq(rows, _like(p, x))
        first, second = _row(x, k), _row(x, p)
        x = select(here, second, select(there, first, x))
        pivot = _diagonal_element(x, k)
        below, right = gt(rows, _like(k, x)), gt(columns, _like(k, x))
        is_zero = eq(pivot, zeros_like(pivot))
        # Below a pivot of zero, which is the greatest there, is nothing but zeros.
        factor = _column(x, k) / select(is_zero, full_like(pivot, 1), pivot)
        x = select(below & right, x - factor * _row(x, k), x)
        x = select(below & eq(columns, _like(k, x)), factor, x)
        at = eq(broadcasted_iota(_INT32, pivots.shape, pivots.ndim - 1), _like(k, pivots))
        spread = broadcast_in_dim(p, pivots.shape, tuple(range(p.ndim)))
        return [x, select(at, spread, pivots)]

    pivots = b.splat(0, array_type((*batch, count), _INT32))
    return _loop(b, count, step, (x, pivots))


def cholesky(b: Any, x: Any) -> Any:
    """Return the lower triangle ``l`` with ``l l^H`` the matrix, whose lower part alone is read."""
    n = x.type.shape[-1]

    def step(k: Any, x: Any, out: Any) -> list[Any]:
        rows, columns = _index(x, -2), _index(x, -1)
        pivot = _diagonal_element(x, k)
        size = real(pivot) if is_complex(x.dtype) else pivot
        root = sqrt(select(gt(size, zeros_like(size)), size, full_like(size, np.nan)))
        line = _column(x, k) / convert(root, x.dtype)
        line = select(ge(rows, _like(k, x)), line, zeros_like(line))
        here = eq(rows, _like(k, x))
        line = select(here, convert(root, x.dtype), line)
        x = x - line * adjoint(line)
        return [x, select(eq(columns, _like(k, x)), line, out)]

    return _loop(b, n, step, (x, b.splat(0, x.type)))[1]


def triangular(
    b: Any, a: Any, y: Any, left: bool, lower: bool, unit_diagonal: bool, form: str
) -> Any:
    """Solve ``op(a) x = y``, or ``x op(a) = y`` unless ``left``, by substitution."""
    if form != "N":
        a = b.inline(adjoint if form == "C" else matrix_transpose, a)
        lower = not lower
    if not left:
        a, y = b.inline(matrix_transpose, a), b.inline(matrix_transpose, y)
        lower = not lower
    n = a.type.shape[-1]

    def step(k: Any, a: Any, y: Any) -> list[Any]:
        k = k if lower else full_like(k, n - 1) - k
        line = _row(y, k)
        if not unit_diagonal:
            diagonal = reduce_sum(
                select(
                    eq(_index(a, -2), _like(k, a)) & eq(_index(a, -1), _like(k, a)),
                    a,
                    zeros_like(a),
                ),
                (a.ndim - 2, a.ndim - 1),
            )
            line = line / _like(diagonal, line)
        rows = _index(y, -2)
        rest = gt(rows, _like(k, y)) if lower else lt(rows, _like(k, y))
        column = reduce_sum(select(eq(_index(a, -1), _like(k, a)), a, zeros_like(a)), (a.ndim - 1,))
        y = select(rest, y - _across(column, y) * line, y)
        return [a, select(eq(rows, _like(k, y)), line, y)]

    out = _loop(b, n, step, (a, y))[1]
    return out if left else b.inline(matrix_transpose, out)


def reflections(b: Any, x: Any) -> list[Any]:
    """Return ``r`` with Householder's vectors below its diagonal, and their factors, as ``geqrf``.

    Source: LAPACK's ``larfg`` for the signs.
    """
    *batch, m, n = x.type.shape
    count = min(m, n)

    def step(k: Any, x: Any, taus: Any) -> list[Any]:
        rows, columns = _index(x, -2), _index(x, -1)
        at, below = eq(rows, _like(k, x)), gt(rows, _like(k, x))
        line = _column(x, k)
        alpha = _row(line, k)
        tail = reduce_sum(square(absolute(select(below, line, zeros_like(line)))), (x.ndim - 2,))
        tail = _down(tail, x)
        a = real(alpha) if is_complex(x.dtype) else alpha
        norm = sqrt(square(absolute(alpha)) + tail)
        beta = select(gt(a, zeros_like(a)), -norm, norm)
        plain = eq(tail, zeros_like(tail))
        if is_complex(x.dtype):
            plain = plain & eq(alpha, convert(a, x.dtype))
        wide = convert(select(plain, full_like(beta, 1), beta), x.dtype)
        tau = select(plain, zeros_like(alpha), (wide - alpha) / wide)
        scale = alpha - wide
        scale = select(plain | eq(scale, zeros_like(scale)), full_like(scale, 1), scale)
        v = select(below, line / scale, select(at, full_like(line, 1), zeros_like(line)))
        v = select(plain & below, zeros_like(v), v)
        # x - conj(tau) v (v^H x), for the columns that are left
        product = _down(reduce_sum(conj(v) * x, (x.ndim - 2,)), x)
        left = select(gt(columns, _like(k, x)), x - conj(tau) * v * product, x)
        first = select(at, select(plain, alpha, wide), select(below, v, line))
        x = select(eq(columns, _like(k, x)), first, left)
        here = eq(broadcasted_iota(_INT32, taus.shape, taus.ndim - 1), _like(k, taus))
        one = reduce_sum(
            select(eq(rows, zeros_like(rows)) & eq(columns, zeros_like(columns)), tau,
                   zeros_like(tau)),
            (x.ndim - 2, x.ndim - 1),
        )  # fmt: skip
        return [x, select(here, _like(one, taus), taus)]

    taus = b.splat(0, array_type((*batch, count), x.type.dtype))
    return _loop(b, count, step, (x, taus))


def apply_reflections(b: Any, x: Any, taus: Any, c: Any, adjoint_of: bool) -> Any:
    """Return ``q c``, or ``q^H c``, for the product ``q`` of the reflections in ``x``."""
    count = taus.type.shape[-1]

    def step(k: Any, x: Any, taus: Any, c: Any) -> list[Any]:
        k = k if adjoint_of else full_like(k, count - 1) - k
        rows = _index(x, -2)
        line = _column(x, k)
        v = select(gt(rows, _like(k, x)), line, zeros_like(line))
        v = select(eq(rows, _like(k, x)), full_like(v, 1), v)
        last = v.ndim - 1
        index = broadcasted_iota(_INT32, v.shape, last)
        v = reduce_sum(select(eq(index, zeros_like(index)), v, zeros_like(v)), (last,))
        here = eq(broadcasted_iota(_INT32, taus.shape, taus.ndim - 1), _like(k, taus))
        tau = reduce_sum(select(here, taus, zeros_like(taus)), (taus.ndim - 1,))
        tau = _like(conj(tau) if adjoint_of else tau, c)
        wide = _across(v, c)
        product = _down(reduce_sum(conj(wide) * c, (c.ndim - 2,)), c)
        return [x, taus, c - tau * wide * product]

    return _loop(b, count, step, (x, taus, c))[2]


def product_of_reflections(b: Any, x: Any, taus: Any) -> Any:
    """Return the first columns of the product of the reflections in ``x``."""
    start = b.inline(lambda x: identity(x.shape, x.dtype), x)
    return apply_reflections(b, x, taus, start, False)


def _element(x: Any, i: Any, j: Any) -> Any:
    """Return the element of row ``i`` and column ``j`` of each matrix."""
    here = eq(_index(x, -2), _like(i, x)) & eq(_index(x, -1), _like(j, x))
    return reduce_sum(select(here, x, zeros_like(x)), (x.ndim - 2, x.ndim - 1))


def _turned(x: Any, p: Any, q: Any, c: Any, s: Any) -> Any:
    """Return the matrices with columns ``q`` and ``p`` as c q - s p, and conj(s) q + c p."""
    first, second = _column(x, q), _column(x, p)
    columns = _index(x, -1)
    at_q, at_p = eq(columns, _like(q, x)), eq(columns, _like(p, x))
    c, s = _like(c, x), _like(s, x)
    back = conj(s) if is_complex(x.dtype) else s
    return select(at_q, c * first - s * second, select(at_p, back * first + c * second, x))


def _rotation(a: Any, d: Any, w: Any) -> tuple[Any, Any]:
    """Return ``c`` and ``s`` that make (a, conj w; w, d) diagonal, for the lesser angle."""
    size = absolute(w)
    zero = eq(size, zeros_like(size))
    safe = select(zero, full_like(size, 1), size)
    theta = (d - a) / (safe + safe)
    sign = select(lt(theta, zeros_like(theta)), full_like(theta, -1), full_like(theta, 1))
    t = sign / (absolute(theta) + sqrt(square(theta) + full_like(theta, 1)))
    t = select(zero, zeros_like(t), t)
    c = full_like(t, 1) / sqrt(square(t) + full_like(t, 1))
    phase = w / convert(safe, w.dtype)
    return convert(c, w.dtype), convert(t * c, w.dtype) * phase


def _real(x: Any) -> Any:
    return real(x) if is_complex(x.dtype) else x


def _ascending(values: Any, vectors: Any, falling: bool = False) -> tuple[Any, Any]:
    """Return values in order, and the columns of the vectors with them."""
    order = argsort(-values if falling else values)
    place = broadcast_in_dim(order, vectors.shape, (*range(vectors.ndim - 2), vectors.ndim - 1))
    last = vectors.ndim - 1
    return (
        take_along_axis(values, order, values.ndim - 1, "promise_in_bounds", wrap_negative=False),
        take_along_axis(vectors, place, last, "promise_in_bounds", wrap_negative=False),
    )


_SWEEPS = 12
"""How often each pair of columns is turned: Jacobi's methods converge quadratically at the end, and
six to ten sweeps reach the last bit for matrices of up to some hundred columns."""


def _pairs(n: int) -> np.ndarray:
    """Return all pairs of columns (p, q) with p > q."""
    return np.array([(p, q) for p in range(n) for q in range(p)], np.int32).reshape(-1, 2)


def _sweeps(
    b: Any, n: int, turn: Callable[..., Sequence[Any]], state: Sequence[Any]
) -> Sequence[Any]:
    """Turn each pair of columns in order, some times over."""
    if n < 2:
        return state
    pairs = _pairs(n)
    table = b.array(pairs)

    def step(k: Any, table: Any, *state: Any) -> list[Any]:
        k = k - k // full_like(k, len(pairs)) * full_like(k, len(pairs))
        p, q = [_entry(table, k, j) for j in (0, 1)]
        return [table, *turn(p, q, *state)]

    return _loop(b, _SWEEPS * len(pairs), step, (table, *state))[1:]


def _entry(table: Any, k: Any, column: int) -> Any:
    here = eq(_index(table, -2), _like(k, table)) & eq(_index(table, -1), full_like(table, column))
    return reduce_sum(select(here, table, zeros_like(table)), (0, 1))


def eigh(b: Any, x: Any) -> list[Any]:
    """Return eigenvectors and eigenvalues of the lower triangle, by Jacobi's rotations."""
    x = b.inline(_hermitian, x)

    def turn(p: Any, q: Any, x: Any, v: Any) -> list[Any]:
        a, d, w = _real(_element(x, q, q)), _real(_element(x, p, p)), _element(x, p, q)
        c, s = _rotation(a, d, w)
        half = _turned(x, p, q, c, s)
        return [adjoint(_turned(adjoint(half), p, q, c, s)), _turned(v, p, q, c, s)]

    start = b.inline(lambda x: identity(x.shape, x.dtype), x)
    x, v = _sweeps(b, x.type.shape[-1], turn, (x, start))

    def ordered(x: Any, v: Any) -> list[Any]:
        values, vectors = _ascending(_real(diagonal_of(x)), v)
        return [vectors, values]

    return b.inline_many(ordered, x, v)


def _hermitian(x: Any) -> Any:
    """Return the matrix whose lower triangle is that of ``x``, real on the diagonal."""
    lower = gt(_index(x, -2), _index(x, -1))
    upper = lt(_index(x, -2), _index(x, -1))
    on = convert(_real(x), x.dtype)
    return select(lower, x, select(upper, adjoint(x), on))


def svd(b: Any, x: Any, square_factors: bool) -> list[Any]:
    """Return ``u``, singular values and ``v^H``, by one-sided rotations of columns (Hestenes).

    Columns of ``u`` for singular values of zero complete the others by reflections.
    """
    *_, m, n = x.type.shape
    if m < n:
        v, s, uh = svd(b, b.inline(adjoint, x), square_factors)
        return [b.inline(adjoint, uh), s, b.inline(adjoint, v)]

    def turn(p: Any, q: Any, x: Any, v: Any) -> list[Any]:
        first, second = _column(x, q), _column(x, p)
        at = eq(_index(x, -1), zeros_like(_index(x, -1)))
        total = lambda z: reduce_sum(select(at, z, zeros_like(z)), (x.ndim - 2, x.ndim - 1))
        a, d = total(square(absolute(first))), total(square(absolute(second)))
        back = conj(second) if is_complex(x.dtype) else second
        c, s = _rotation(a, d, total(back * first))
        return [_turned(x, p, q, c, s), _turned(v, p, q, c, s)]

    start = b.inline(
        lambda x: broadcast_in_dim(
            identity((n, n), x.dtype), (*x.shape[:-2], n, n), (x.ndim - 2, x.ndim - 1)
        ),
        x,
    )
    x, v = _sweeps(b, n, turn, (x, start))

    def ordered(x: Any, v: Any) -> list[Any]:
        norms = sqrt(reduce_sum(square(absolute(x)), (x.ndim - 2,)))
        both = concatenate([x, v], x.ndim - 2)
        values, both = _ascending(norms, both, falling=True)
        u = slice_in_dim(both, 0, m, 1, x.ndim - 2)
        v = slice_in_dim(both, m, m + n, 1, x.ndim - 2)
        size = _down(values, u)
        zero = eq(size, zeros_like(size))
        u = u / convert(select(zero, full_like(size, 1), size), u.dtype)
        return [u, values, adjoint(v)]

    u, values, vh = b.inline_many(ordered, x, v)
    both, taus = reflections(b, u)
    k = m if square_factors else n

    def begin(both: Any) -> Any:
        ndim = both.ndim
        return broadcast_in_dim(
            slice_in_dim(identity((m, m), both.dtype), 0, k, 1, 1),
            (*both.shape[:-2], m, k),
            (ndim - 2, ndim - 1),
        )

    q = apply_reflections(b, both, taus, b.inline(begin, both), False)

    def signed(q: Any, both: Any) -> Any:
        r = diagonal_of(both)
        size = absolute(r)
        there = gt(size, full_like(size, 0.5))
        unit = select(there, r, full_like(r, 1))
        if k > n:
            ones = full((*unit.shape[:-1], k - n), 1, unit.dtype)
            unit = concatenate([unit, ones], unit.ndim - 1)
        return q * _down(unit, q)

    return [b.inline(signed, q, both), values, vh]
