"""Values from process to process: for what is not an array over the devices of all of them.

All processes of a job (``stretto.distributed``) must call the same function at the same point. A
process alone gets what it gave.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from stretto._engine.api.sharding.placement import device_put
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.typing import Tree
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import devices, process_count, process_index

__all__ = ["broadcast_one_to_all", "process_allgather", "sync_global_devices"]

_AXIS = "processes"
_DIGEST, _SHOWN = 32, 96


def process_allgather(x: Tree, tiled: bool = False) -> Tree:
    """Gather the values of all processes, in every process.

    Args:
        x: a tree of arrays, with the same shapes and dtypes in all processes. Those that are split
            over devices of several processes are put together.
        tiled: whether to join the values of the processes along their first axis, rather than to
            stack them along a new one.

    Returns:
        The tree, with NumPy arrays.

    Raises:
        LostProcessError: another process has ended, or does not answer.
        ValueError: other processes call something else, or with other types; or ``tiled`` is set,
            and an array has no axis.

    As JAX's ``multihost_utils.process_allgather``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.multihost.process_allgather({"loss": snp.ones(2)})
    {'loss': array([[1., 1.]], dtype=float32)}
    """
    caller = "multihost.process_allgather"
    with boundary:
        leaves, structure = tree.flatten(x)
        values = [as_value(leaf, caller, path) for leaf, path in zip(leaves, tree.paths(x, "x"))]
        for value in values:
            if tiled and not value.ndim:
                raise ValueError(f"{caller}: tiled joins along the first axis; got {value.type}")
        _agree(f"{caller} of {structure} with {[str(value.type) for value in values]}")
        return tree.unflatten(structure, [_gathered(value, tiled) for value in values])


def broadcast_one_to_all(x: Tree, is_source: bool | None = None) -> Tree:
    """Give all processes the values of one of them.

    Args:
        x: a tree of arrays, with the same shapes and dtypes in all processes.
        is_source: whether this process's values are the ones; exactly one process says so. By
            default it is process 0.

    Returns:
        The tree, with NumPy arrays.

    Raises:
        LostProcessError: another process has ended, or does not answer.
        ValueError: other processes call something else, or with other types; an array is split
            over several processes; or not exactly one is the source.

    As JAX's ``multihost_utils.broadcast_one_to_all``.

    >>> import numpy as np, stretto as st
    >>> st.multihost.broadcast_one_to_all({"seed": np.int32(3)})
    {'seed': array(3, dtype=int32)}
    """
    caller = "multihost.broadcast_one_to_all"
    with boundary:
        leaves, structure = tree.flatten(x)
        values = [as_value(leaf, caller, path) for leaf, path in zip(leaves, tree.paths(x, "x"))]
        for value in values:
            if not value.is_fully_addressable:
                raise ValueError(f"{caller}: {value.type} is on devices of several processes")
        mine = process_index() == 0 if is_source is None else bool(is_source)
        said = f"{caller} of {structure} with {[str(value.type) for value in values]}"
        sources = np.flatnonzero(_agree(said, mine))
        if len(sources) != 1:
            raise ValueError(
                f"{caller}: exactly one process must say is_source=True; "
                f"{', '.join(map(str, sources)) or 'none'} did"
            )
        return tree.unflatten(structure, [_row(value, int(sources[0])) for value in values])


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come to this point.

    Args:
        name: what the point is called; it must be the same in all processes.

    Raises:
        LostProcessError: another process has ended, or does not answer.
        ValueError: other processes are at another point.

    As JAX's ``multihost_utils.sync_global_devices``.

    >>> import stretto as st
    >>> st.multihost.sync_global_devices("checkpoint written")
    """
    with boundary:
        _agree(f"multihost.sync_global_devices of {name!r}")


def _mesh() -> Mesh:
    """The first device of each process."""
    first: dict[int, Any] = {}
    for device in devices():
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[index] for index in sorted(first)], object), (_AXIS,))


def _rows(host: np.ndarray) -> Array:
    """The array of which each process has a row, this one the given one."""
    every = np.broadcast_to(host, (process_count(), *host.shape))
    return device_put(every, NamedSharding(_mesh(), PartitionSpec(_AXIS)))


def _whole(x: Array) -> np.ndarray:
    """The elements of an array that is split over processes."""
    where = x.sharding
    assert isinstance(where, NamedSharding)
    everywhere = NamedSharding(where.mesh, PartitionSpec())
    return np.array(device_put(x, everywhere))


def _gathered(value: Array, tiled: bool) -> np.ndarray:
    if not value.is_fully_addressable:
        return np.array(value) if value.is_fully_replicated else _whole(value)
    rows = _whole(_rows(np.asarray(value)))
    return rows.reshape(-1, *rows.shape[2:]) if tiled else rows


def _row(value: Array, source: int) -> np.ndarray:
    """The value of one process."""
    return _gathered(value, False)[source, ...]


def _agree(text: str, flag: bool = False) -> np.ndarray:
    """Raise ``ValueError`` unless all processes say the same; return the flag of each.

    What is exchanged has always the same size, so that it is the same program everywhere.
    """
    said = text.encode()
    message = np.zeros(_DIGEST + _SHOWN + 1, np.uint8)
    message[:_DIGEST] = np.frombuffer(hashlib.sha256(said).digest(), np.uint8)
    shown = said[:_SHOWN]
    message[_DIGEST : _DIGEST + len(shown)] = np.frombuffer(shown, np.uint8)
    message[-1] = flag
    rows = _gathered(as_value(message, "multihost", "message"), False)
    if (rows[:, :_DIGEST] != rows[0, :_DIGEST]).any():
        texts = [bytes(row[_DIGEST:-1]).rstrip(b"\0").decode(errors="replace") for row in rows]
        listed = "; ".join(f"process {i}: {text}" for i, text in enumerate(texts))
        caller, _, _ = text.partition(" of ")
        raise ValueError(f"{caller}: processes are not at the same point: {listed}")
    return rows[:, -1]
