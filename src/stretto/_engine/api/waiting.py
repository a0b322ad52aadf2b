"""Wait for results that are still being computed.

Layer 7 (api). Compiled programs run asynchronously; ``runtime/array`` waits when elements are read.
"""

from __future__ import annotations

from typing import TypeVar

from stretto._engine.core import tree
from stretto._engine.runtime.array import wait_for_all

__all__ = ["block_until_ready"]

T = TypeVar("T")


def block_until_ready(x: T) -> T:
    """Wait until all arrays of a tree are computed; their errors are raised here.

    Args:
        x: a tree of arrays.

    Returns:
        ``x`` itself.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.block_until_ready({"x": snp.ones(2)})
    {'x': Array([1., 1.], dtype=float32)}
    """
    wait_for_all(tree.leaves(x))
    return x
