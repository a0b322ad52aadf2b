"""Several processes, on one machine or several, that compute as one.

Each runs the same script, calls ``initialize`` first, and has some of the devices. Arrays that are
split over the devices of all are computed with by all: each process must run the same operations on
them, in the same order. ``stretto launch -n 4 script.py`` starts processes on one machine.
``process_allgather``, ``broadcast_one_to_all`` and ``sync_global_devices`` are for values that are
not arrays over the devices of all: each process calls the same one at the same point, and a process
alone gets what it gave.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from stretto._engine import api
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.typing import Tree
from stretto._engine.xla import clients, processes
from stretto._engine.xla.array import Array
from stretto._engine.xla.device import (
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)

__all__ = ["broadcast_one_to_all", "initialize", "is_initialized", "local_device_count",
           "local_devices", "process_allgather", "process_count", "process_index",
           "process_indices", "shutdown", "sync_global_devices"]  # fmt: skip

_AXIS = "processes"
_DIGEST, _SHOWN = 32, 96


class _Place(NamedTuple):
    """Holds what an environment says of a job; None for what it does not say."""

    address: str | None
    count: int | None
    index: int | None


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    *,
    initialization_timeout: float = 300,
    heartbeat_timeout: float = 10,
    coordinator_bind_address: str | None = None,
) -> None:
    """Join the other processes of a job; returns when all have come.

    What is not given is read from the environment, as ``stretto launch``, Slurm, Open MPI and
    ``torchrun`` set it. Call it before anything is compiled or put on a device. Afterwards
    ``stretto.devices()`` are those of all processes, in order, and ``local_devices()``
    this one's. Arrays that are not put anywhere stay in this process, on the first of its devices.

    A process that ends is noticed at once, one that stands still after ``heartbeat_timeout``:
    operations on arrays over several processes then raise ``errors.LostProcessError``, which names
    it, and what is in this process alone goes on. The others may ``shutdown``, and ``initialize``
    again with new numbers.

    Whoever takes part proves that it knows the secret of the job, which is the variable
    ``STRETTO_JOB_SECRET``, or what the file ``STRETTO_JOB_SECRET_FILE`` has; ``stretto launch``
    makes one. Where process 0 listens on this machine alone it may be left out, and is the user's
    own. ``docs/devices.md`` says what it does not protect.

    Args:
        coordinator_address: where process 0 can be reached by the others, ``"host:port"``, with
            a port that is free there.
        num_processes: how many processes there are.
        process_id: which of them this is, from 0.
        initialization_timeout: how many seconds to wait for the others.
        heartbeat_timeout: after how many seconds without a sign of life a process counts as lost.
        coordinator_bind_address: where process 0 listens, ``"host:port"``, if that is another
            address than the one by which the others reach it.

    Raises:
        RuntimeError: a program was compiled already, the process takes part in a job, the others
            do not come, or there is no secret, and process 0 can be reached from other machines.
        TypeError: a number is not an integer.
        ValueError: an argument is missing, or makes no sense.

    As ``jax.distributed.initialize``.

    >>> import stretto as st
    >>> try:
    ...     st.distributed.initialize("localhost:1234", num_processes=2, process_id=2)
    ... except ValueError as error:
    ...     print(error)
    distributed.initialize: process_id must be from 0 to 1, for 2 processes; got 2
    """
    caller = "distributed.initialize"
    with boundary:
        place = _from_environment(os.environ)
        host, port = _address(coordinator_address or place.address, caller)
        bound = coordinator_bind_address
        there = None if bound is None else _address(bound, caller, "coordinator_bind_address")
        count = num_processes if num_processes is not None else place.count
        index = process_id if process_id is not None else place.index
        if count is None or index is None:
            raise ValueError(
                f"{caller}: {'num_processes' if count is None else 'process_id'} must be given: no "
                f"environment that is known says it (stretto launch, Slurm, Open MPI, torchrun)"
            )
        count = integer(count, caller, "num_processes")
        index = integer(index, caller, "process_id")
        if count < 1:
            raise ValueError(f"{caller}: num_processes must be 1 or more; got {count}")
        if not 0 <= index < count:
            raise ValueError(
                f"{caller}: process_id must be from 0 to {count - 1}, for {count} processes; got "
                f"{index}"
            )
        if min(initialization_timeout, heartbeat_timeout) <= 0:
            raise ValueError(
                f"{caller}: initialization_timeout and heartbeat_timeout must be seconds, more "
                f"than 0; got {initialization_timeout!r} and {heartbeat_timeout!r}"
            )
        if processes.takes_part():
            raise RuntimeError(
                f"{caller}: this process takes part in a job; call distributed.shutdown() first"
            )
        if clients.has_runtime() and not processes.took_part():
            raise RuntimeError(
                f"{caller} comes too late: a program was compiled already, for the devices of this "
                f"process alone; call it before anything is compiled or put on a device"
            )
        processes.join(host, port, count, index, initialization_timeout, heartbeat_timeout, there)
        atexit.unregister(_at_exit)
        atexit.register(_at_exit)


def shutdown() -> None:
    """Leave the job, if the process takes part in one; it is called when the process exits.

    Afterwards ``stretto.devices()`` are those of this process alone. Arrays that were put on
    devices of the job can still be read here as far as they are here, and not computed with.

    As ``jax.distributed.shutdown``.

    >>> import stretto as st
    >>> st.distributed.shutdown()
    """
    with boundary:
        processes.leave()


def _at_exit() -> None:
    processes.leave()
    processes.freeze()


def is_initialized() -> bool:
    """Say whether this process takes part in a job.

    Returns:
        A Python boolean.

    As ``jax.distributed.is_initialized``.

    >>> import stretto as st
    >>> st.distributed.is_initialized()
    False
    """
    return processes.takes_part()


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
    >>> st.distributed.process_allgather({"loss": snp.ones(2)})
    {'loss': array([[1., 1.]], dtype=float32)}
    """
    caller = "distributed.process_allgather"
    with boundary:
        leaves, structure = tree.flatten(x)
        values = [as_value(leaf, caller, path) for leaf, path in zip(leaves, tree.paths(x, "x"))]
        for value in values:
            if tiled and not value.ndim:
                raise ValueError(f"{caller}: tiled joins along the first axis; got {value.type}")
        _agree(f"{caller} of {structure} with {[str(value.type) for value in values]}")
        return tree.unflatten(structure, [_gather(value, tiled) for value in values])


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
    >>> st.distributed.broadcast_one_to_all({"seed": np.int32(3)})
    {'seed': array(3, dtype=int32)}
    """
    caller = "distributed.broadcast_one_to_all"
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
    >>> st.distributed.sync_global_devices("checkpoint written")
    """
    with boundary:
        _agree(f"distributed.sync_global_devices of {name!r}")


def _address(
    address: str | None, caller: str, name: str = "coordinator_address"
) -> tuple[str, int]:
    """Return the host and the port."""
    if address is None:
        raise ValueError(
            f"{caller}: coordinator_address must be given, 'host:port' where process 0 can be "
            f"reached: no environment that is known says it (stretto launch, Slurm, Open MPI, "
            f"torchrun)"
        )
    match = re.fullmatch(r"\[?(.+?)\]?:(\d+)", address)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        raise ValueError(f"{caller}: {name} must be 'host:port'; got {address!r}")
    return match[1], int(match[2])


def _from_environment(environ: Mapping[str, str]) -> _Place:
    """Return what the first of the known launchers says that has set anything."""

    def number(name: str) -> int | None:
        return int(environ[name]) if environ.get(name, "").isdigit() else None

    if "STRETTO_COORDINATOR" in environ:
        count, index = number("STRETTO_NUM_PROCESSES"), number("STRETTO_PROCESS_ID")
        return _Place(environ["STRETTO_COORDINATOR"], count, index)
    if "OMPI_COMM_WORLD_SIZE" in environ:
        count, index = number("OMPI_COMM_WORLD_SIZE"), number("OMPI_COMM_WORLD_RANK")
        # "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911": of the process that has started all.
        uri = re.match(r"(\d+)\.\d+;tcp6?://([^,:]+)", environ.get("OMPI_MCA_orte_hnp_uri", ""))
        return _Place(f"{uri[2]}:{_port(int(uri[1]))}" if uri else None, count, index)
    if "SLURM_JOB_ID" in environ and "SLURM_PROCID" in environ:
        nodes = environ.get("SLURM_STEP_NODELIST", "")
        address = f"{_first_node(nodes)}:{_port(number('SLURM_JOB_ID') or 0)}" if nodes else None
        return _Place(address, number("SLURM_NTASKS"), number("SLURM_PROCID"))
    if "MASTER_ADDR" in environ and "RANK" in environ:
        port = number("MASTER_PORT")
        if port is not None and environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
            port += 1  # torchrun itself listens at its port
        address = f"{environ['MASTER_ADDR']}:{port}" if port else None
        return _Place(address, number("WORLD_SIZE"), number("RANK"))
    return _Place(None, None, None)


def _port(job: int) -> int:
    """Return a port that all processes of a job find, and those of other jobs hardly."""
    return (1 << 16) - (1 << 12) + job % (1 << 12)


def _first_node(nodes: str) -> str:
    """Return the first of Slurm's nodes, of a list such as ``gpu[03-05,07],login``."""
    match = re.match(r"([^,\[]+)(?:\[(\w+))?", nodes)
    return "" if match is None else match[1] + (match[2] or "")


def _mesh() -> Mesh:
    """Return the first device of each process."""
    first: dict[int, Any] = {}
    for device in devices():
        first.setdefault(device.process_index, device)
    return Mesh(np.array([first[index] for index in sorted(first)], object), (_AXIS,))


def _rows(host: np.ndarray) -> Array:
    """Return the array of which each process has a row, this one the given one."""
    every = np.broadcast_to(host, (process_count(), *host.shape))
    return api.sharding.placement.device_put(every, NamedSharding(_mesh(), PartitionSpec(_AXIS)))


def _whole(x: Array) -> np.ndarray:
    """Return the elements of an array that is split over processes."""
    where = x.sharding
    assert isinstance(where, NamedSharding)
    everywhere = NamedSharding(where.mesh, PartitionSpec())
    return np.array(api.sharding.placement.device_put(x, everywhere))


def _gather(value: Array, tiled: bool) -> np.ndarray:
    if not value.is_fully_addressable:
        return np.array(value) if value.is_fully_replicated else _whole(value)
    rows = _whole(_rows(np.asarray(value)))
    return rows.reshape(-1, *rows.shape[2:]) if tiled else rows


def _row(value: Array, source: int) -> np.ndarray:
    """Return the value of one process."""
    return _gather(value, False)[source, ...]


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
    rows = _gather(as_value(message, "distributed", "message"), False)
    if (rows[:, :_DIGEST] != rows[0, :_DIGEST]).any():
        texts = [bytes(row[_DIGEST:-1]).rstrip(b"\0").decode(errors="replace") for row in rows]
        listed = "; ".join(f"process {i}: {text}" for i, text in enumerate(texts))
        caller, _, _ = text.partition(" of ")
        raise ValueError(f"{caller}: processes are not at the same point: {listed}")
    return rows[:, -1]


exports(__name__)
