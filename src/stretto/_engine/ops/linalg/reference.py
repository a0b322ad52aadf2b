"""The factorizations of NumPy arrays, matrix by matrix, by the LAPACK that SciPy brings.

Compiled programs call the same functions, so that signs and phases, which are LAPACK's choice, are
the same eagerly and compiled; NumPy's own would compute in 64 bits. NaN where LAPACK reports
failure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import real_dtype

scipy_linalg = LazyModule("scipy.linalg")


def _each(
    function: Callable[..., tuple[Any, ...]],
    arrays: Sequence[np.ndarray],
    outs: Sequence[tuple[tuple[int, ...], Any]],
) -> tuple[np.ndarray, ...]:
    """Return the function's results for each matrix, of these shapes and dtypes.

    Its last is a report.
    """
    batch = arrays[0].shape[:-2]
    results = tuple([np.zeros((*batch, *shape), dtype) for shape, dtype in outs])
    if arrays[0].size:
        for place in np.ndindex(*batch):
            *parts, info = function(*[x[place] for x in arrays])
            for out, part in zip(results, parts, strict=True):
                out[place] = part if info == 0 else np.nan
    return results


@functools.cache
def _routine(name: str, dtype: np.dtype) -> Any:
    """Return a routine of LAPACK or BLAS for a dtype."""
    find = scipy_linalg.get_blas_funcs if name == "trsm" else scipy_linalg.get_lapack_funcs
    return find((name,), dtype=dtype)[0]


def _size(work: Any) -> int:
    """Return the size of workspace that a query returned, which float32 may have rounded down."""
    return int(np.nextafter(np.float32(np.real(work)), np.float32(np.inf)))


def trsm(a: np.ndarray, b: np.ndarray, left: bool, lower: bool, form: str, unit: bool) -> Any:
    """Return ``op(a)^-1 b`` or ``b op(a)^-1`` for a triangle of ``a``."""
    function = _routine("trsm", a.dtype)
    number = "NTC".index(form)
    return _each(
        lambda x, y: (function(1, x, y, not left, lower, number, unit) if y.size else y, 0),
        (a, b),
        [(b.shape[-2:], b.dtype)],
    )[0]


def potrf(x: np.ndarray) -> np.ndarray:
    """Return the Cholesky factor.

    Its triangle is NaN where LAPACK fails or the last element is NaN.
    """
    if x.ndim > 2:
        try:  # at once, in 64 bits
            return np.linalg.cholesky(x).astype(x.dtype, copy=False)
        except np.linalg.LinAlgError:
            pass
    function = _routine("potrf", x.dtype)
    (out,) = _each(lambda m: function(m, lower=1), (x,), [(x.shape[-2:], x.dtype)])
    out[np.isnan(out[..., -1:, -1:]).any((-2, -1))] = np.nan
    return np.tril(out)


def getrf(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return both triangles, and the row that each was exchanged with."""
    function = _routine("getrf", x.dtype)
    shape = x.shape[-2:]
    outs = [(shape, x.dtype), ((min(shape),), np.int32)]
    # A zero pivot, which getrf reports, is no failure.
    return _each(lambda m: (*function(m)[:2], 0), (x,), outs)


def geqrf(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return ``r`` with reflections below it, and their factors."""
    function, query = _routine("geqrf", x.dtype), _routine("geqrf_lwork", x.dtype)
    m, n = shape = x.shape[-2:]
    outs = [(shape, x.dtype), ((min(shape),), x.dtype)]
    if not x.size:
        return _each(function, (x,), outs)
    work = _size(query(m, n)[0])

    def factors(matrix: np.ndarray) -> tuple[Any, ...]:
        both, taus, _, info = function(matrix, lwork=work)
        return both, taus, info

    return _each(factors, (x,), outs)


def householder_product(x: np.ndarray, taus: np.ndarray) -> np.ndarray:
    """Return the first columns of the product of reflections."""
    name = "ungqr" if x.dtype.kind == "c" else "orgqr"
    function = _routine(name, x.dtype)
    work = 64 * max(1, x.shape[-1])
    out = np.zeros_like(x)
    if x.size:
        for place in np.ndindex(*x.shape[:-2]):
            out[place] = function(x[place], taus[place], lwork=work)[0]
    return out


def geqp3(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Factor as ``geqrf``, with columns in a chosen order, which comes last."""
    function = _routine("geqp3", x.dtype)
    m, n = shape = x.shape[-2:]
    outs = [(shape, x.dtype), ((min(m, n),), x.dtype), ((n,), np.int32)]
    if not x.size:
        both, taus, order = _each(function, (x,), outs)
        return both, taus, order + np.arange(n, dtype=np.int32)
    work = _size(function(np.zeros(shape, x.dtype), lwork=-1)[3][0])

    def factors(matrix: np.ndarray) -> tuple[Any, ...]:
        both, order, taus, _, info = function(matrix, lwork=work)
        return both, taus, order - 1, info

    return _each(factors, (x,), outs)


def multiply_by_reflections(
    x: np.ndarray, taus: np.ndarray, c: np.ndarray, left: bool, form: str
) -> np.ndarray:
    """Return ``op(q) c`` or ``c op(q)`` for the product ``q`` of reflections."""
    function = _routine("unmqr" if x.dtype.kind == "c" else "ormqr", x.dtype)
    if not (c.size and taus.size):
        return c
    side, count = "L" if left else "R", taus.shape[-1]
    sample = (0,) * (x.ndim - 2)
    query = function(side, form, x[sample][:, :count], taus[sample], c[sample], -1)
    work = _size(query[1][0])
    out = np.zeros_like(c)
    for place in np.ndindex(*c.shape[:-2]):
        reflections = x[place][:, :count]
        out[place] = function(side, form, reflections, taus[place], c[place], work)[0]
    return out


def gehrd(x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the Hessenberg form with reflections below it, and their factors."""
    function, query = _routine("gehrd", x.dtype), _routine("gehrd_lwork", x.dtype)
    n = x.shape[-1]
    outs = [((n, n), x.dtype), ((max(n - 1, 0),), x.dtype)]
    if not x.size:
        return _each(function, (x,), outs)
    work = _size(query(n)[0])
    return _each(lambda matrix: function(matrix, lwork=work), (x,), outs)


def sytrd(x: np.ndarray, lower: bool) -> tuple[np.ndarray, ...]:
    """Give the tridiagonal form with reflections beside it, its two diagonals, and the factors."""
    name = "hetrd" if x.dtype.kind == "c" else "sytrd"
    function, query = _routine(name, x.dtype), _routine(f"{name}_lwork", x.dtype)
    n, part = x.shape[-1], real_dtype(x.dtype)
    beside = (max(n - 1, 0),)
    outs = [((n, n), x.dtype), ((n,), part), (beside, part), (beside, x.dtype)]
    if not x.size:
        return _each(function, (x,), outs)
    work = _size(query(n, lower=int(lower))[0])
    return _each(lambda matrix: function(matrix, lower=int(lower), lwork=work), (x,), outs)


def gees(x: np.ndarray, vectors: bool) -> tuple[np.ndarray, ...]:
    """Return the Schur form, and vectors if requested."""
    function, n = _routine("gees", x.dtype), x.shape[-1]
    outs = [((n, n), x.dtype)] * (1 + vectors)
    if not x.size:
        return _each(function, (x,), outs)
    unsorted = lambda *_: None
    sample = np.zeros((n, n), x.dtype)
    work = _size(function(unsorted, sample, lwork=-1)[-2][0])

    def decompose(matrix: np.ndarray) -> tuple[Any, ...]:
        if not np.isfinite(matrix).all():  # gees may not end
            return (*[np.nan] * len(outs), 1)
        t, *_, z, _, info = function(unsorted, matrix, compute_v=int(vectors), lwork=work)
        return (*[t, z][: len(outs)], info)

    return _each(decompose, (x,), outs)


def gtsv(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the solutions of tridiagonal systems."""
    function = _routine("gtsv", b.dtype)

    def solve(b: np.ndarray, dl: np.ndarray, d: np.ndarray, du: np.ndarray) -> tuple[Any, int]:
        if len(d) == 1:
            return (b / d, 0) if d[0] else (b, 1)
        *_, x, info = function(dl[1:], d, du[:-1], b)
        return x, info

    return _each(solve, (b, dl, d, du), [(b.shape[-2:], b.dtype)])[0]


def eigh(x: np.ndarray, vectors: bool) -> tuple[np.ndarray, ...]:
    """Return eigenvectors, if requested, and values, from the lower triangle."""
    name = "heevd" if x.dtype.kind == "c" else "syevd"
    function, query = _routine(name, x.dtype), _routine(f"{name}_lwork", x.dtype)
    n = x.shape[-1]
    outs = [((n, n), x.dtype)] * vectors + [((n,), real_dtype(x.dtype))]
    if not x.size:
        return _each(function, (x,), outs)
    *sizes, _ = query(n, compute_v=vectors, lower=1)
    names = ("lwork", "liwork", "lrwork") if name == "heevd" else ("lwork", "liwork")
    work = {key: _size(s) for key, s in zip(names, sizes, strict=True)}

    def decompose(m: np.ndarray) -> tuple[Any, ...]:
        w, v, info = function(m, compute_v=vectors, lower=1, **work)
        return (v, w, info) if vectors else (w, info)

    return _each(decompose, (x,), outs)


def svd(x: np.ndarray, full: bool, vectors: bool, routine: str = "gesdd") -> tuple[np.ndarray, ...]:
    """Return ``u``, values, ``v^H``; or the values."""
    function, query = _routine(routine, x.dtype), _routine(f"{routine}_lwork", x.dtype)
    m, n = x.shape[-2:]
    k = min(m, n)
    values = [((k,), real_dtype(x.dtype))]
    sides = (m, n) if full else (k, k)
    outs = [((m, sides[0]), x.dtype), *values, ((sides[1], n), x.dtype)] if vectors else values
    if not x.size:
        empty = _each(function, (x,), outs)
        return tuple(
            [o + np.eye(*o.shape[-2:], dtype=o.dtype) if o.ndim == x.ndim else o for o in empty]
        )
    options = {"compute_uv": int(vectors), "full_matrices": int(full)}
    work = _size(query(m, n, **options)[0])

    def decompose(matrix: np.ndarray) -> tuple[Any, ...]:
        u, s, vh, info = function(matrix, lwork=work, **options)
        return (u, s, vh, info) if vectors else (s, info)

    return _each(decompose, (x,), outs)


def eig(x: np.ndarray, left: bool, right: bool) -> tuple[np.ndarray, ...]:
    """Return values, and left and right vectors if requested, all complex."""
    function, query = _routine("geev", x.dtype), _routine("geev_lwork", x.dtype)
    n, dtype = x.shape[-1], np.result_type(x.dtype, np.complex64)
    outs = [((n,), dtype)] + [((n, n), dtype)] * (left + right)
    if not x.size:
        return _each(function, (x,), outs)
    options = {"compute_vl": int(left), "compute_vr": int(right)}
    work = _size(query(n, **options)[0])

    def decompose(m: np.ndarray) -> tuple[Any, ...]:
        if not np.isfinite(m).all():  # geev may not end
            return (*[np.nan] * len(outs), 1)
        *w, vl, vr, info = function(m, lwork=work, **options)
        whole = w[0] if len(w) == 1 else w[0] + 1j * w[1]
        vectors = [vl] * left + [vr] * right
        return (whole, *[v if len(w) == 1 else _pair_conjugates(v, w[1]) for v in vectors], info)

    return _each(decompose, (x,), outs)


def _pair_conjugates(v: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Return a real matrix's vectors: LAPACK stores conjugate pairs as real and imaginary part."""
    out = v.astype(np.result_type(v.dtype, np.complex64))
    for j in np.flatnonzero(turn > 0):
        out[:, j] = v[:, j] + 1j * v[:, j + 1]
        out[:, j + 1] = out[:, j].conj()
    return out
