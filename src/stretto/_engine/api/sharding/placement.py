"""Arrays and devices: put arrays on a device, fetch them, wait for them, list those that are alive.

``make_mesh`` arranges the devices that there are. ``default_device`` is the device of what was not
put anywhere, in a block; ``config.default_device`` is that of the process. The devices themselves
are in ``xla/device``, and ``eager/interpreter`` has the interpreter that is current meanwhile.

Compiled programs run asynchronously; ``xla/array`` waits when elements are read, and
``block_until_ready`` for whole trees.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from stretto._engine import xla
from stretto._engine.api.argument_leaves import as_values
from stretto._engine.api.sharding.shardings import fit
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.config import watch
from stretto._engine.core.errors import ConfigError
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import Tracer, Value, _State, state
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import NamedSharding, Sharding, SingleDeviceSharding, can_split
from stretto._engine.eager.interpreter import EAGER, OnDevice, at_home
from stretto._engine.native import native
from stretto._engine.ops.sharding_constraint import ShardingConstraint, named_here
from stretto._engine.xla import pjrt
from stretto._engine.xla.array import SHARDED, Absent, Array, wait_for_all
from stretto._engine.xla.device import Device, as_device, devices
from stretto._engine.xla.device import default_device as first_device
from stretto._engine.xla.device import devices as all_devices

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
    if isinstance(sharding, SingleDeviceSharding) and sharding.device_list == (first_device(),):
        if x.__class__ is Array:
            return x
        moved = Array(x.to_host(), x.type)
    else:
        moved = xla.sharded.place(x, sharding)
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


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Make a mesh of devices.

    Args:
        axis_shapes: the number of devices along each axis.
        axis_names: the name of each axis.
        devices: the devices, row by row; by default as many of all devices as are needed, in the
            order of their ids.

    Returns:
        The mesh.

    Raises:
        TypeError: a size is not an integer.
        ValueError: there are not as many names as axes, or not as many devices.

    >>> import stretto as st
    >>> st.make_mesh((1, 1), ("members", "data"))
    Mesh('members': 1, 'data': 1)
    """
    with boundary:
        sizes = integers(axis_shapes, "make_mesh", "axis_shapes")
        names = tuple(axis_names) if isinstance(axis_names, (tuple, list)) else (axis_names,)
        if len(sizes) != len(names) or min(sizes, default=1) < 1:
            raise ValueError(
                f"make_mesh: axis_shapes must have a size of at least 1 for each of the names "
                f"{names!r}; got {tuple(sizes)}"
            )
        count = math.prod(sizes)
        there = all_devices() if devices is None else list(devices)
        if len(there) < count or (devices is not None and len(there) > count):
            way = (
                "; set config.num_cpu_devices, or STRETTO_NUM_CPU_DEVICES, before anything is "
                "compiled, to have more for trying things out"
            )
            raise ValueError(
                f"make_mesh: axis_shapes {tuple(sizes)} needs {count} devices, and there are "
                f"{len(there)}{way if devices is None else ''}"
            )
        array = np.empty(count, object)
        array[:] = there[:count]
        return Mesh(array.reshape(sizes), names)


@contextmanager
def default_device(device: Device | str | None) -> Iterator[None]:
    """Make arrays and compute on a device, in a block of this thread or a decorated function.

    Arrays that are made in the block are put on the device, and so are those that operations and
    jitted functions take, if they were not put anywhere: as by ``device_put``, so that what is
    computed from them later stays there, too. Arrays that were put somewhere, and functions that
    say where they run, by shardings or a mesh, go by that. Inside a trace it has no effect: a
    program runs where its arguments are.

    Args:
        device: the device, or its name; None for that of ``config.default_device``.

    Returns:
        A context manager, which is a decorator as well.

    Raises:
        ValueError: the device is not there.

    As ``jax.default_device``, whose arrays do not stay, though.

    >>> import stretto as st, stretto.numpy as snp
    >>> with st.default_device(st.devices()[-1]):
    ...     x = snp.ones(2) + 1
    >>> x.device == st.devices()[-1]
    True
    """
    around, outermost = state.interpreter, state.interpreter is _State.interpreter
    inside = _State.interpreter
    if device is not None:
        inside = _interpreter(as_device(device, "default_device"))
    if not around.at_rest:
        yield
        return
    state.interpreter = inside
    watch.follow(False)
    try:
        yield
    finally:
        state.interpreter = _State.interpreter if outermost else around


def follow_default_device(name: str | None) -> None:
    """Put ``config.default_device`` into force, in this thread and in those that begin later.

    Args:
        name: the device's name; None for the first.

    Raises:
        ConfigError: the device is not there, or something is being traced.
    """
    here = state.interpreter
    if not here.at_rest:
        raise ConfigError(
            f"config.default_device = {name!r} was set while a function was traced: set it outside"
        )
    before = _State.interpreter
    try:
        _State.interpreter = _interpreter(as_device(name, "config", "default_device"))
    except ValueError as error:
        raise ConfigError(str(error)) from None
    if here is before:  # not in a block of this thread
        state.interpreter = _State.interpreter
    watch.follow(True)


def _interpreter(device: Device) -> Any:
    """Return the one that computes on a device what was not put anywhere."""
    at_home = device == first_device()
    return EAGER if at_home else OnDevice(SingleDeviceSharding(device))


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
            if not pjrt.is_failure(error):
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
