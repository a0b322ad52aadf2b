"""Arrays and devices: put arrays on a device, fetch them, list those that are alive.

Layer 7 (api). The devices themselves are in ``runtime/device``.
"""

from __future__ import annotations

import gc
from typing import Any, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.device import as_device, devices

__all__ = ["copy_to_host_async", "device_get", "device_put", "live_arrays"]

T = TypeVar("T")


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """Put the leaves of a tree on a device, as arrays.

    There is one device, so an array is returned as it is; NumPy's arrays are copied.

    Args:
        x: a tree of arrays and numbers.
        device: a ``Device``, or its name, or a tree of these that is a prefix of ``x``; None
            leaves arrays where they are.
        src: where the leaves are now, a device too.
        donate: whether their memory may be taken.
        may_alias: whether their memory may be shared.

    Returns:
        The tree with its leaves as arrays.

    Raises:
        TypeError: a leaf is not an array or a number.
        ValueError: a device is not there.

    >>> import numpy as np, stretto as st
    >>> st.device_put({"w": np.ones(2), "n": 1}, st.devices()[0])
    {'w': Array([1., 1.], dtype=float32), 'n': Array(1, dtype=int32, weak_type=True)}
    """
    caller = "device_put"
    with boundary:
        for where, argument in ((device, "device"), (src, "src")):
            for one in tree.prefix_leaves(where, x, caller, argument):
                as_device(one, caller, argument)
        leaves, structure = tree.flatten(x)
        return tree.unflatten(
            structure,
            [
                leaf if isinstance(leaf, Value) else as_value(leaf, caller, tree.paths(x, "x")[i])
                for i, leaf in enumerate(leaves)
            ],
        )


def device_get(x: Any) -> Any:
    """Fetch the arrays of a tree as NumPy's.

    Args:
        x: a tree.

    Returns:
        The tree with its arrays as NumPy's, which cannot be written; other leaves as they are.

    Raises:
        TypeError: an array is traced.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.device_get({"w": snp.ones(2), "n": 1})
    {'w': array([1., 1.], dtype=float32), 'n': 1}
    """
    with boundary:
        return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Value) else leaf, x)


def copy_to_host_async(x: T) -> T:
    """Begin to copy the arrays of a tree to where NumPy can read them.

    Args:
        x: a tree.

    Returns:
        ``x`` itself.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.copy_to_host_async([snp.ones(2)])
    [Array([1., 1.], dtype=float32)]
    """
    for leaf in tree.leaves(x):
        if leaf.__class__ is Array:
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """List the arrays that are alive and not deleted, the package's own included.

    The list comes from Python's garbage collector, so that creating arrays costs nothing extra;
    asking it takes some milliseconds.

    Args:
        platform: the name of a platform; None for the default.

    Returns:
        The arrays, in no particular order.

    Raises:
        RuntimeError: the platform is not there.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.ones(3)
    >>> any(y is x for y in st.live_arrays())
    True
    """
    devices(platform)
    return [x for x in gc.get_objects() if x.__class__ is Array and not x.is_deleted()]
