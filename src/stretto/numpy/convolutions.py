"""Convolution and correlation of sequences.

Those of arrays of any rank are in ``scipy/signal``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import exceeds, greater, is_size, lesser
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.eager.twins import NUMERIC, eager
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.general import conv_general_dilated
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import rev

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

MODES = ("full", "same", "valid")


def checked_mode(caller: str, mode: str) -> str:
    """The mode; raises ``ValueError`` for any other."""
    if mode not in MODES:
        raise ValueError(f"{caller}: mode must be 'full', 'same' or 'valid'; got {mode!r}")
    return mode


def part_of_convolution(
    x: Array, y: Array, starts: Sequence[int], sizes: Sequence[int], *options: Any
) -> Array:
    """The part of the full convolution that begins at ``starts`` and has these ``sizes``.

    Along an axis of n and m elements the full one has n + m - 1: element k is the sum of
    x[i] y[k - i]. The arrays have one dtype and one rank; booleans are combined by "and" and "or".
    ``options`` are the precision and the preferred dtype of ``conv_general_dilated``.
    """
    boolean = x.dtype == np.dtype(bool)
    if boolean:
        x, y = (convert(v, np.dtype(np.int32)) for v in (x, y))
    pads = []
    for n, m, start, size in zip(x.shape, y.shape, starts, sizes, strict=True):
        low = m - 1 - start
        pads.append((low, size - 1 - (n + low - m)))
    lhs, rhs = (reshape(v, (1, 1, *v.shape)) for v in (x, rev(y, tuple(range(y.ndim)))))
    precision, preferred = options or (None, None)
    out = conv_general_dilated(
        lhs, rhs, (1,) * len(pads), pads, precision=precision, preferred_element_type=preferred
    )
    out = reshape(out, out.shape[2:])
    return convert(out, np.dtype(bool)) if boolean else out


def _sequences(caller: str, a: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    x, y = as_value(a, caller, "a"), as_value(v, caller, "v")
    of_rank_1 = x.ndim == y.ndim == 1
    if not of_rank_1 or any([without_elements(n, caller) for n in (x.size, y.size)]):
        raise ValueError(
            f"{caller}: expected non-empty arrays of rank 1, got {x.type} and {y.type}"
            + ("" if x.ndim == y.ndim == 1 else "; stretto.scipy.signal takes any rank")
        )
    return promote_dtypes(caller, x, y)


def _part(x: Array, y: Array, mode: str, middle: int, *options: Any) -> Array:
    """The part of the convolution that ``mode`` names; ``"same"`` begins at ``middle``."""
    n, m = x.shape[0], y.shape[0]
    least, most = lesser(n, m), greater(n, m)
    start, size = {
        "full": (0, least + most - 1),
        "same": (middle, most),
        "valid": (least - 1, most - least + 1),
    }[mode]
    if not exceeds(n - m, -1) and (is_size(m) or not is_size(n)):
        x, y = y, x
    return part_of_convolution(x, y, (start,), (size,), *options)


def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve two sequences: element k is the sum of ``a[i] v[k - i]``.

    Takes n m products: for long sequences ``stretto.scipy.signal.fftconvolve`` is faster.

    Args:
        a: an array of rank 1 and n elements.
        v: an array of rank 1 and m elements.
        mode: ``"full"``: all n + m - 1 elements. ``"same"``: the middle ones, as many as the longer
            sequence has. ``"valid"``: those where the sequences overlap entirely.
        precision: the precision of the products, as for ``lax.conv``.
        preferred_element_type: the dtype of the sums, as for ``lax.conv``.

    Returns:
        The convolution, of rank 1 and the promoted dtype.

    Raises:
        ValueError: an argument is not of rank 1, or is empty; or there is no such mode.
        TypeError: an argument is not an array.

    As NumPy's ``convolve``.

    >>> import stretto.numpy as snp
    >>> snp.convolve(snp.array([1, 2, 3]), snp.array([0, 1, 2]))
    Array([0, 1, 4, 7, 6], dtype=int32)
    """
    mode = checked_mode("convolve", mode)
    x, y = _sequences("convolve", a, v)
    if precision is preferred_element_type is None:
        return _convolve(x, y, mode=mode)
    return _convolution(x, y, mode, precision, preferred_element_type)


@eager(np.convolve, NUMERIC)
def _convolve(x: Array, y: Array, *, mode: str) -> Array:
    return _convolution(x, y, mode)


def _convolution(x: Array, y: Array, mode: str, *options: Any) -> Array:
    return _part(x, y, mode, (lesser(x.shape[0], y.shape[0]) - 1) // 2, *options)


@described_like(convolve)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Correlate two sequences: element k is the sum of ``a[i + k] conj(v[i])``.

    k begins below 0, where the sequences first overlap.

    Args:
        a: an array of rank 1.
        v: an array of rank 1.
        mode: as for ``convolve``.

    Returns:
        The correlation, of rank 1 and the promoted dtype.

    As NumPy's ``correlate``.

    >>> import stretto.numpy as snp
    >>> snp.correlate(snp.array([1, 2, 3]), snp.array([0, 1, 2]), "full")
    Array([2, 5, 8, 3, 0], dtype=int32)
    """
    mode = checked_mode("correlate", mode)
    x, y = _sequences("correlate", a, v)
    if precision is preferred_element_type is None:
        return _correlate(x, y, mode=mode)
    return _correlation(x, y, mode, precision, preferred_element_type)


@eager(np.correlate, NUMERIC)
def _correlate(x: Array, y: Array, *, mode: str) -> Array:
    return _correlation(x, y, mode)


def _correlation(x: Array, y: Array, mode: str, *options: Any) -> Array:
    n, m = x.shape[0], y.shape[0]
    middle = 0
    if mode == "same":
        middle = (m - 1) // 2 if n >= m else n // 2
    return _part(x, rev(conj(y), (0,)), mode, middle, *options)
