"""Arrays as text, and NumPy's print options, which apply to our arrays as well."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.typing import ArrayLike
from stretto._engine.xla.printing import text_of

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]


def array_repr(
    arr: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Write an array as text that says what it is, as ``repr`` does.

    Args:
        arr: an array, or a number.
        max_line_width: the number of characters in a line; by default NumPy's setting.
        precision: the number of digits; by default NumPy's setting.
        suppress_small: whether numbers near 0 are written as 0; by default NumPy's setting.

    Returns:
        The text.

    As NumPy's ``array_repr``.

    >>> import stretto.numpy as snp
    >>> snp.array_repr(snp.array([1.0, 1 / 3]), precision=2)
    'Array([1.  , 0.33], dtype=float32)'
    """
    x = as_value(arr, "array_repr", "arr")
    if isinstance(x, Tracer):
        return repr(x)
    return text_of(x.to_host(), x.type, max_line_width, precision, suppress_small)


@described_like(array_repr)
def array_str(
    a: ArrayLike,
    max_line_width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
) -> str:
    """Write the elements of an array as text, as ``str`` does.

    Args:
        a: an array, or a number.

    As NumPy's ``array_str``.

    >>> import stretto.numpy as snp
    >>> snp.array_str(snp.array([1.0, 1 / 3]), precision=2)
    '[1.   0.33]'
    """
    x = as_value(a, "array_str", "a")
    if isinstance(x, Tracer):
        return str(x)
    return np.array_str(x.to_host(), max_line_width, precision, suppress_small)


def get_printoptions() -> dict[str, Any]:
    """Give NumPy's settings for printing.

    Returns:
        A dictionary of them.

    As NumPy's ``get_printoptions``.

    >>> import stretto.numpy as snp
    >>> snp.get_printoptions()["threshold"]
    1000
    """
    return dict(np.get_printoptions())


def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Change NumPy's settings for printing, for its arrays and those here.

    Args:
        *args: those of NumPy's ``set_printoptions``.
        **kwargs: those of NumPy's ``set_printoptions``.

    As NumPy's ``set_printoptions``.

    >>> import stretto.numpy as snp
    >>> snp.set_printoptions(threshold=1000)
    """
    np.set_printoptions(*args, **kwargs)


def printoptions(*args: Any, **kwargs: Any) -> AbstractContextManager[Any]:
    """Change NumPy's settings for printing within a ``with`` block.

    Args:
        *args: those of NumPy's ``printoptions``.
        **kwargs: those of NumPy's ``printoptions``.

    Returns:
        A context manager.

    As NumPy's ``printoptions``.

    >>> import stretto.numpy as snp
    >>> with snp.printoptions(precision=2):
    ...     print(snp.array([1 / 3]))
    [0.33]
    """
    return np.printoptions(*args, **kwargs)
