"""``stretto.scipy.cluster.vq``: vectors replaced by the nearest one of a book."""

from __future__ import annotations

from typing import Any

import stretto.numpy as snp
from stretto._engine.core.types import inexact_dtype
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.convert import convert

__all__ = ["vq"]


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Any, Any]:
    """For each observation the place of the nearest code, and its distance.

    ``obs`` is ``[m, d]``, ``code_book`` ``[k, d]``, or both of rank 1, with d = 1; the results are
    ``[m]``. Of equally near codes it is the first. NaN is not looked for, whatever ``check_finite``
    says. The derivative of a distance of 0 is 0. Raises ``ValueError`` for other shapes. Source:
    SciPy, ``scipy.cluster.vq.vq``.

    >>> import stretto as st
    >>> book = st.numpy.array([[0.0, 0.0], [3.0, 4.0]])
    >>> st.scipy.cluster.vq.vq(st.numpy.array([[0.0, 1.0], [3.0, 4.0]]), book)
    (Array([0, 1], dtype=int32), Array([1., 0.], dtype=float32))
    """
    del check_finite
    x, book = promote_dtypes("vq", obs, code_book)
    x, book = (convert(v, inexact_dtype(v.dtype)) for v in (x, book))
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
    far = nearest > 0
    return code, snp.where(far, snp.sqrt(snp.where(far, nearest, 1)), 0)
