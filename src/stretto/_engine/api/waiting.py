"""Wait for results that are still being computed.

Compiled programs run asynchronously; ``xla/array`` waits when elements are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.core import tree
from stretto._engine.native import native
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import SHARDED, Absent, Array, wait_for_all

T = TypeVar("T")

_DEEPEST = 64


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
    buffers = unfinished(x)
    if buffers is not None:
        try:
            if buffers:
                pjrt.wait_for_all(buffers)
            return x
        except RuntimeError as error:
            if not pjrt.failed(error):
                raise
            # Of several errors, that of the first leaf is to be raised, as below.
    wait_for_all(tree.leaves(x))
    return x


def _unfinished(x: Any) -> list[Any] | None:
    """Return the device faces that must be waited for in a tree of arrays in plain containers.

    None if the tree has other leaves, other nodes, or arrays whose buffer is absent. Nothing is
    sorted, so that the order differs from that of the leaves.
    """
    buffers: list[Any] = []
    return buffers if _gathered(x, (Array, *SHARDED), buffers, 0) else None


def _gathered(x: Any, arrays: Sequence[type], buffers: list[Any], depth: int) -> bool:
    cls = x.__class__
    if cls in arrays:
        if x._host is None:
            buffer = x._buffer
            if isinstance(buffer, Absent):
                return False
            buffers.append(buffer)
        return True
    if depth > _DEEPEST:
        return False
    if cls is dict:
        children = [*x.values()]
    elif cls is tuple or cls is list:
        children = [*x]
    else:
        return x is None
    return all(_gathered(child, arrays, buffers, depth + 1) for child in children)


unfinished: Callable[[Any], list[Any] | None]
unfinished = _unfinished if native is None else native.unfinished
