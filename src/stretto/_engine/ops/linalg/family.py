"""Hold what factorizations of matrices share: types, failure as NaN, and calls of LAPACK.

Programs call the LAPACK that SciPy brings, as the reference rules do. Where LAPACK reports failure
for a matrix, both give NaN for that matrix alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import NOT_LINEAR, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, is_inexact
from stretto._engine.kernels import extension, in_parts
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import eq, full_like, le, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INEXACT
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import move_to_front
from stretto._engine.ops.linalg.matrix_parts import diagonal_of, identity
from stretto._engine.ops.reducing.reduce import reduce_max
from stretto._engine.ops.thresholds import MATRICES, MATRICES_OF

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_INT32 = np.dtype(np.int32)


def check_matrix(caller: str, x: ArrayType, square: bool = False) -> tuple[int, ...]:
    """Return the shape of an array of matrices that LAPACK takes.

    Raises ``TypeError`` for a dtype other than float32, float64, complex64 and complex128,
    ``ValueError`` for a rank below 2, or with ``square`` for matrices that are not square.
    """
    if x.dtype.name not in _PREFIX:
        raise TypeError(
            f"{caller}: expected float32, float64, complex64 or complex128, got {x}; convert it "
            f"with .astype(...)"
        )
    if x.ndim < 2:
        raise ValueError(f"{caller}: expected an array of rank 2 or more, got {x}")
    if square and x.shape[-1] != x.shape[-2]:
        raise ValueError(
            f"{caller}: expected square matrices in the last two axes, got {x.shape[-2]} rows and "
            f"{x.shape[-1]} columns of {x}"
        )
    return x.shape


def as_matrices(caller: str, x: Any, square: bool = False) -> Any:
    """Give the value for an array of matrices, of no weak type; raises as ``check_matrix`` does."""
    x = as_value(x, caller)
    check_matrix(caller, x.type, square)
    return convert(x, x.dtype)


def result_types(x: ArrayType, *parts: tuple[tuple[int, ...], np.dtype]) -> tuple[ArrayType, ...]:
    """Return the types of results of these shapes and dtypes, for each matrix of ``x``."""
    return tuple([array_type((*x.shape[:-2], *shape), dtype) for shape, dtype in parts])


def subset_of(caller: str, subset: tuple[int, int], size: int) -> tuple[int, int]:
    """Return the first place and the one after the last, of ``size`` values in order."""
    bounds = integers(subset, caller, "subset_by_index")
    if len(bounds) != 2 or not 0 <= bounds[0] <= bounds[1] <= size:
        raise ValueError(
            f"{caller}: subset_by_index must be (start, end) with 0 <= start <= end <= {size}, got "
            f"{subset}"
        )
    return bounds[0], bounds[1]


def dependent_columns(r: Any, size: int) -> Any:
    """Say whether each column of square triangles ``r`` depends on those before it.

    The diagonal of such a column is 0 up to rounding: for matrices of ``size`` rows or columns, at
    most ``10 size eps`` times the largest element of the column, as in ``pinv``. Rules that divide
    by the diagonal leave these columns out, so that they do not depend on the rounding.
    """
    magnitudes = absolute(r)
    largest = reduce_max(magnitudes, (r.ndim - 2,))
    eps = float(ml_dtypes.finfo(largest.dtype).eps)
    return le(diagonal_of(magnitudes), largest * (10 * size * eps))


def without_columns(x: Any, columns: Any) -> Any:
    """Return the matrices with zeros in the columns that the mask selects."""
    return select(_mask_columns(columns, x), zeros_like(x), x)


def with_unit_columns(x: Any, columns: Any) -> Any:
    """Return the square matrices with columns of the identity where the mask selects them."""
    return select(_mask_columns(columns, x), identity(x.shape, x.dtype), x)


def _mask_columns(columns: Any, x: Any) -> Any:
    """Return a mask of columns as a mask of the elements of ``x``."""
    dims = tuple(d for d in range(x.ndim) if d != x.ndim - 2)
    return broadcast_in_dim(columns, x.shape, dims)


class MatrixOperation(Primitive, abstract=True):
    """An operation on each matrix of the last two axes; further axes come before these."""

    accepts: ClassVar[frozenset[str]] = INEXACT
    transpose = NOT_LINEAR
    rank: ClassVar[int] = 2
    """The number of axes of one matrix, or vector, in the first operand."""
    in_blocks: ClassVar[bool] = False
    """Say whether the result for a block of a block-diagonal matrix is a block of the result."""
    with_zeros: ClassVar[bool] = False
    """Say whether, of a matrix with zeros beside and below it, the result begins with its own."""
    not_padded: ClassVar[str] = (
        "put them on the diagonal of larger ones of a fixed size, beside the identity"
    )
    """Advise what to do with matrices whose size varies, where there is no such rule."""

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for very many small matrices, where Python's loop takes longer than the work."""
        *_, m, n = (1, 1, *types[0].shape)
        return 0 < m * n <= MATRICES_OF and types[0].size >= MATRICES * m * n

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values = [
            broadcast_to(x, (size, *x.shape)) if a is None else move_to_front(x, a)
            for x, a in zip(args, axes, strict=True)
        ]
        out = self(*values)
        return (out, (0,) * len(out)) if self.multiple else (out, 0)

    def padded(self, at: Any, *args: Any) -> Any:
        """Treat each matrix by itself; those of varying size with something ``beside`` them."""
        outer = at.types[0].ndim - self.rank
        if any([is_size(n) for t in (*at.types, *at.outs) for n in t.shape[outer:]]):
            args = self.beside(at, args)
        return at.static(self)(*args)

    def beside(self, at: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return the operands with what leaves the result in its place: the identity, or zeros."""
        type, pairs = at.types[0], list(zip(args, at.types, strict=True))
        square = not is_inexact(type.dtype) or type.shape[-1] == type.shape[-2]
        if self.with_zeros:
            return tuple([at.filled(x, t, 0) for x, t in pairs])
        if not (self.in_blocks and square):
            raise MissingRuleError(
                f"{self.name} takes no matrices of a size that varies, {type}: {self.not_padded}"
            )
        return tuple([_beside(at, x, t) for x, t in pairs])


def _beside(at: Any, x: Any, type: ArrayType) -> Any:
    """Return an operand with the identity beside square matrices, 0 behind others."""
    axes = range(max(0, type.ndim - 2), type.ndim)
    mask = at.inside(type.shape, axes)
    if mask is None:
        return x
    if not is_inexact(type.dtype):  # which rows were exchanged
        last = x.ndim - 1
        mask = at.inside(type.shape, (last,))
        return x if mask is None else select(mask, x, broadcasted_iota(x.dtype, x.shape, last))
    square = type.ndim > 1 and type.shape[-1] == type.shape[-2]
    return select(mask, x, identity(x.shape, x.dtype) if square else zeros_like(x))


# In StableHLO


def lapack(
    b: Any,
    routine: str,
    operands: Sequence[Any],
    outs: Sequence[ArrayType],
    config: Mapping[str, str | bool | int] | None = None,
    aliases: Mapping[int, int] | None = None,
    *,
    target: str = "",
) -> list[Any]:
    """Give a LAPACK routine, applied to each matrix of the operands, which are laid out by columns.

    ``config`` holds LAPACK's letters, such as ``uplo="L"``, and numbers; ``aliases`` are those of
    ``Builder.custom_call``. ``target`` names a routine of XLA's package instead.
    """
    outer = max(x.type.ndim for x in operands) - 2
    target = target or f"lapack_{_PREFIX[operands[0].type.dtype.name]}{routine}_ffi"
    if b.platform == "gpu":
        target, config = _on_gpu(routine or target, config)
    elif b.plans:  # not in a file
        target = in_parts(target)
    attributes = {name: _attribute(value) for name, value in (config or {}).items()}

    def call(operands: Sequence[Any], outs: Sequence[ArrayType], outer: int) -> list[Any]:
        layouts = (
            [_by_columns(x.type, outer) for x in operands],
            [_by_columns(t, outer) for t in outs],
        )
        return b.custom_call(
            target, operands, outs, attributes, layouts, aliases or {}, batch_axes=outer
        )

    if extension is None and outer and b.plans and b.platform == "cpu" and not b.partitioned:
        return _one_by_one(b, call, operands, outs, outer)
    return call(operands, outs, outer)


def _by_columns(type: ArrayType, outer: int) -> list[int]:
    """Return the axes, the fastest first, of matrices by columns along so many outer axes."""
    order = list(range(type.ndim))[::-1]
    if type.ndim - outer == 2:
        order[:2] = order[1], order[0]
    return order


def _one_by_one(
    b: Any,
    call: Callable[[Sequence[Any], Sequence[ArrayType], int], list[Any]],
    operands: Sequence[Any],
    outs: Sequence[ArrayType],
    outer: int,
) -> list[Any]:
    """Write a loop of calls for the matrices along so many outer axes.

    Given several, jaxlib's functions wait for threads that may not come, and there is no extension
    that would call them otherwise (``kernels/lapack.c``).
    """
    count, read = math.prod(operands[0].type.shape[:outer]), len(operands)
    ones = [array_type(t.shape[outer:], t.dtype) for t in outs]

    def in_a_row(type: ArrayType) -> ArrayType:
        return array_type((count, *type.shape[outer:]), type.dtype)

    def step(i: Any, *state: Any) -> list[Any]:
        results = call([b.slice_at(x, i) for x in state[:read]], ones, 0)
        written = [b.update_at(x, y, i) for x, y in zip(state[read:], results, strict=True)]
        return [b.emit("add", i, b.scalar(1, _INT32), out=i.type), *state[:read], *written]

    rows = [b.reshape(x, in_a_row(x.type)) for x in operands]
    state = [b.scalar(0, _INT32), *rows, *[b.splat(0, in_a_row(t)) for t in outs]]
    more = lambda i, *_: [b.compare("LT", i, b.scalar(count, _INT32))]
    results = b.while_loop(more, step, state)[1 + read :]
    return [b.reshape(x, t) for x, t in zip(results, outs, strict=True)]


_CUSOLVER: dict[str, str] = {
    "gesvd": "gesvd",
    "geqrf": "geqrf",
    "getrf": "getrf",
    "heevd": "syevd",
    "orgqr": "orgqr",
    "ormqr": "ormqr",
    "syevd": "syevd",
    "ungqr": "orgqr",
    "unmqr": "ormqr",
}
"""The routines that GPUs have, by LAPACK's names: operands and results are the same."""


def _on_gpu(
    routine: str, config: Mapping[str, str | bool | int] | None
) -> tuple[str, Mapping[str, str | bool | int] | None]:
    """Return NVIDIA's name and settings for a routine; raise ``NotImplementedError`` for others."""
    if routine not in _CUSOLVER:
        raise NotImplementedError(
            f"LAPACK's {routine} has no counterpart on GPUs: compute it on a CPU, with the arrays "
            f"put there, stretto.device_put(x, 'cpu')"
        )
    name = _CUSOLVER[routine]
    if name == "syevd":  # 0: the routine chooses the algorithm
        config = {"lower": True, "algorithm": chr(0)}
    return f"cusolver_{name}_ffi", config


def _attribute(value: str | bool | int) -> str:
    if isinstance(value, str):
        return f"{ord(value)} : ui8"
    return str(value).lower() if isinstance(value, bool) else f"{value} : i32"


def info_type(x: ArrayType) -> ArrayType:
    """Return the type of LAPACK's report for each matrix: 0 where all is well."""
    return array_type(x.shape[:-2], _INT32)


def nan_where(b: Any, info: Any, x: Any) -> Any:
    """Put NaN in all elements of the matrices of ``x`` for which LAPACK reports failure."""

    def poison(x: Any, info: Any) -> Any:
        valid = broadcast_in_dim(eq(info, zeros_like(info)), x.shape, tuple(range(info.ndim)))
        return select(valid, x, full_like(x, np.nan))

    return b.inline(poison, x, info)


def _square(vector: Any) -> tuple[Any, Any]:
    """Return matrices of ``vector[i]`` and of ``vector[j]`` in row i and column j."""
    shape, last = (*vector.shape, vector.shape[-1]), vector.ndim
    row = broadcast_in_dim(vector, shape, tuple(range(last)))
    return row, broadcast_in_dim(vector, shape, (*range(last - 1), last))


def quotients(w: Any, h: Any, slope: Any) -> Any:
    """Return ``(h[j] - h[i]) / (w[j] - w[i])``; the mean slope where values are (nearly) equal.

    Nearly equal are values that differ by the square root of the precision, relative to the larger,
    or by less than their own errors: there the difference of rounded ``h`` says less than the
    slopes. Where ``h`` changes by more than the slopes say, it is no function of values alone that
    is smooth there, and the quotient, or NaN, is right.
    """
    eps = float(ml_dtypes.finfo(w.dtype).eps)
    wi, wj = _square(w)
    hi, hj = _square(h)
    si, sj = _square(slope)
    dw, dh = wj - wi, hj - hi
    greatest = reduce_max(absolute(w), (w.ndim - 1,))
    noise = broadcast_in_dim(greatest, dw.shape, range(greatest.ndim)) * (eps * w.shape[-1])
    near = absolute(dw) <= maximum(maximum(absolute(wi), absolute(wj)) * eps**0.5, noise)
    steepest = maximum(absolute(si), absolute(sj))
    size = maximum(absolute(hi), absolute(hj))
    smooth = le(absolute(dh), steepest * absolute(dw) * 2 + size * (8 * eps))
    near = near & smooth
    quotient = dh / select(near, full_like(dw, 1), dw)
    return select(near, (si + sj) * 0.5, quotient)
