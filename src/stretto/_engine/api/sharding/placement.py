"""Arrays and devices: put arrays on a device, fetch them, list those that are alive.

The devices themselves are in ``xla/device``.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from stretto._engine import xla
from stretto._engine.api.argument_leaves import as_values
from stretto._engine.api.sharding.shardings import fit
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.interpreter import Tracer, Value, state
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.shardings import NamedSharding, Sharding, SingleDeviceSharding, can_split
from stretto._engine.eager.interpreter import EAGER, at_home
from stretto._engine.ops.sharding_constraint import ShardingConstraint, named_here
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.device import as_device, default_device, devices

T = TypeVar("T")


def device_put(
    x: Any,
    device: Any = None,
    *,
    src: Any = None,
    donate: bool = False,
    may_alias: bool | None = None,
) -> Any:
    """Put the leaves of a tree on devices, as arrays.

    What is computed from arrays that were put somewhere stays there. Arrays that are there already
    are returned as they are; NumPy's are copied.

    Args:
        x: a tree of arrays and numbers.
        device: a ``Device``, or its name; a sharding, or a ``PartitionSpec`` over the mesh in use;
            or a tree of these that is a prefix of ``x``; None leaves arrays where they are.
        src: where the leaves are now, likewise; it makes no difference.
        donate: whether their memory may be taken: arrays that move are deleted.
        may_alias: whether their memory may be shared.

    Returns:
        The tree with its leaves as arrays.

    Raises:
        TypeError: a leaf is not an array or a number.
        ValueError: a device is not there, or an axis cannot be split so.

    >>> import numpy as np, stretto as st
    >>> st.device_put({"w": np.ones(2), "n": 1}, st.devices()[0])
    {'w': Array([1., 1.], dtype=float32), 'n': Array(1, dtype=int32, weak_type=True)}
    """
    caller = "device_put"
    with boundary:
        for one in tree.prefix_leaves(src, x, caller, "src"):
            _asked(one, caller, "src")
        asked = tree.prefix_leaves(device, x, caller, "device")
        leaves, structure = tree.flatten(x)
        values = as_values(leaves, caller, lambda: tree.paths(x, "x"))
        results = []
        for i, (value, where) in enumerate(zip(values, asked, strict=True)):
            path = lambda i=i: tree.paths(x, "x")[i]
            results.append(_put(value, _asked(where, caller, "device"), caller, path, donate))
        return tree.unflatten(structure, results)


def _asked(where: Any, caller: str, argument: str) -> Sharding | None:
    """Return the sharding asked for; None for none."""
    if where is None:
        return None
    if isinstance(where, (Sharding, PartitionSpec)):
        return named_here(where, caller, argument)
    return SingleDeviceSharding(as_device(where, caller, argument))


def put_on(x: Any, device: Any, caller: str) -> Any:
    """Return the result of a function where its argument ``device`` asks for it.

    Args:
        x: an array.
        device: a ``Device``, or its name; a sharding, or a ``PartitionSpec`` over the mesh in use;
            None leaves the array where it is.
        caller: the function, for messages.

    Returns:
        The array there.

    Raises:
        TypeError: ``device`` is none of these.
        ValueError: the device is not there, or an axis cannot be split so.
    """
    return _put(x, _asked(device, caller, "device"), caller, lambda: "the result", False)


def _put(
    x: Any, sharding: Sharding | None, caller: str, path: Callable[[], str], donate: bool
) -> Any:
    """Return the value where it is asked to be."""
    if sharding is None:
        return x if state.interpreter is EAGER else at_home(x)
    if isinstance(sharding, NamedSharding) and not can_split(sharding, x.type.shape):
        fit(sharding, x.type, f"{caller}: {path()}, {x.type},")
    if isinstance(x, Tracer):
        if isinstance(sharding, NamedSharding):
            return ShardingConstraint(sharding)(x)
        return x  # a program runs where its arguments are
    if isinstance(sharding, SingleDeviceSharding) and sharding.device_list == (default_device(),):
        if x.__class__ is Array:
            return x
        moved = Array(x.to_host(), x.type)
    else:
        moved = xla.sharded.placed(x, sharding)
    if donate and moved is not x:
        x.delete()
    return moved


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
    >>> copy_to_host_async([snp.ones(2)])
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
    >>> any(y is x for y in st.debug.live_arrays())
    True
    """
    devices(platform)
    kinds = (Array, *SHARDED)
    return [x for x in gc.get_objects() if x.__class__ in kinds and not x.is_deleted()]
