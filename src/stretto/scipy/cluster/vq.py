"""``stretto.scipy.cluster.vq``: vector quantization, by the nearest code of a book."""

from __future__ import annotations

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import FLOAT, check_kind

__all__ = ["vq"]


@rounded_once
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Find the nearest code for each observation.

    Args:
        obs: the observations, ``[m, d]``, or ``[m]`` for ``d = 1``.
        code_book: the codes, ``[k, d]``, or ``[k]``.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        The indices of the codes, ``[m]``, the first of equally near ones, and the distances,
            ``[m]``; the derivative of a distance of 0 is 0.

    Raises:
        ValueError: the shapes do not match, or there is no code.

    As SciPy's ``vq``.

    >>> import stretto as st
    >>> book = st.numpy.array([[0.0, 0.0], [3.0, 4.0]])
    >>> st.scipy.cluster.vq.vq(st.numpy.array([[0.0, 1.0], [3.0, 4.0]]), book)
    (Array([0, 1], dtype=int32), Array([1., 0.], dtype=float32))
    """
    del check_finite
    x, book = promote_dtypes(
        "vq", as_value(obs, "vq", "obs"), as_value(code_book, "vq", "code_book")
    )
    x, book = (convert(v, inexact_dtype(v.dtype)) for v in (x, book))
    check_kind("vq", FLOAT, x.type)
    if x.ndim != book.ndim or x.ndim not in (1, 2) or x.shape[1:] != book.shape[1:]:
        raise ValueError(
            f"vq: expected obs [m, d] and code_book [k, d], or both of rank 1; got {x.type} and "
            f"{book.type}"
        )
    if not book.shape[0]:
        raise ValueError(f"vq: expected at least one code, got code_book {book.type}")
    if x.ndim == 1:
        x, book = x[:, None], book[:, None]
    squares = snp.sum(snp.square(x[:, None, :] - book[None]), -1)
    code = snp.argmin(squares, -1)
    nearest = snp.min(squares, -1)
    apart = nearest > 0
    return code, snp.where(apart, snp.sqrt(snp.where(apart, nearest, 1)), 0)


exports(__name__)
