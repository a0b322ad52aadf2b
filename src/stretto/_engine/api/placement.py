"""Arrays and their devices: moved there, fetched from there, and which ones there are.

Layer 7 (api). The devices themselves are in ``runtime/device``.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.device import as_device, devices

__all__ = ["copy_to_host_async", "device_get", "device_put", "live_arrays"]


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """The tree ``x`` with its leaves as arrays on ``device``; None: where they are, or by default.

    Parameters: ``device`` is a ``Device``, or its name, or a tree of these that is a prefix of
    ``x``. ``src``, where the leaves are now, is a device too. ``donate`` permits to take their
    memory, ``may_alias`` to share it; there is one device, so an array on it is given back as it
    is, and NumPy's arrays are copied.

    Raises ``ValueError`` for a device that is not there; ``TypeError`` for a leaf that is no array
    or number.

    >>> import numpy as np, stretto as st
    >>> st.device_put({"w": np.ones(2), "n": 1}, st.devices()[0])
    {'w': Array([1., 1.], dtype=float32), 'n': Array(1, dtype=int32, weak_type=True)}
    """
    who = "device_put"
    with boundary:
        for where, argument in ((device, "device"), (src, "src")):
            for one in tree.prefix_leaves(where, x, who, argument):
                as_device(one, who, argument)
        leaves, structure = tree.flatten(x)
        return tree.unflatten(
            structure,
            [
                leaf if isinstance(leaf, Value) else as_value(leaf, who, tree.paths(x, "x")[i])
                for i, leaf in enumerate(leaves)
            ],
        )


def device_get(x: Any) -> Any:
    """The tree ``x`` with its arrays as NumPy's, which are not to be written; other leaves as is.

    Raises ``TypeError`` for a traced array.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.device_get({"w": snp.ones(2), "n": 1})
    {'w': array([1., 1.], dtype=float32), 'n': 1}
    """
    with boundary:
        return tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Value) else leaf, x)


def copy_to_host_async(x: Any) -> Any:
    """The tree ``x`` itself; its arrays begin to be copied to where NumPy can read them.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.copy_to_host_async([snp.ones(2)])
    [Array([1., 1.], dtype=float32)]
    """
    for leaf in tree.leaves(x):
        if leaf.__class__ is Array:
            leaf.copy_to_host_async()
    return x


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays that are alive and not deleted, those that the package keeps for itself included.

    Python's garbage collector knows them, so that nothing is noted when one is made; to ask it
    takes some milliseconds.

    Raises ``RuntimeError`` for a platform that is not there.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.ones(3)
    >>> any(y is x for y in st.live_arrays())
    True
    """
    devices(platform)
    return [x for x in gc.get_objects() if x.__class__ is Array and not x.is_deleted()]
