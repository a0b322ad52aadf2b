"""Arrays as text, and NumPy's settings for that, which hold for arrays here as well."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.runtime.array import text_of

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]


def array_repr(
    arr: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array that says what it is, as ``repr``: so wide, with so many digits.

    >>> import stretto.numpy as snp
    >>> snp.array_repr(snp.array([1.0, 1 / 3]), precision=2)
    'Array([1.  , 0.33], dtype=float32)'
    """
    x = as_value(arr, "array_repr", "arr")
    if isinstance(x, Tracer):
        return repr(x)
    return text_of(x.to_host(), x.type, max_line_width, precision, suppress_small)


def array_str(
    a: Any,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """The text of an array's elements, as ``str``: so wide, with so many digits.

    >>> import stretto.numpy as snp
    >>> snp.array_str(snp.array([1.0, 1 / 3]), precision=2)
    '[1.   0.33]'
    """
    x = as_value(a, "array_str", "a")
    if isinstance(x, Tracer):
        return str(x)
    return np.array_str(x.to_host(), max_line_width, precision, suppress_small)


def get_printoptions() -> dict[str, Any]:
    """NumPy's settings for printing.

    >>> import stretto.numpy as snp
    >>> snp.get_printoptions()["threshold"]
    1000
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Change NumPy's settings for printing, for its arrays and those here.

    >>> import stretto.numpy as snp
    >>> snp.set_printoptions(threshold=1000)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Settings for printing within a ``with`` block.

    >>> import stretto.numpy as snp
    >>> with snp.printoptions(precision=2):
    ...     print(snp.array([1 / 3]))
    [0.33]
    """
    return np.printoptions(*args, **kwargs)
