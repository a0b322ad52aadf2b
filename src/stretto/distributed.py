"""Several processes, on one machine or several, that compute as one.

Each runs the same script, calls ``initialize`` first, and has some of the devices. Arrays that are
split over the devices of all are computed with by all: each process must run the same operations on
them, in the same order. ``stretto launch -n 4 script.py`` starts processes on one machine.
``stretto.multihost`` has what goes between processes apart from arrays on devices.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from stretto._engine.core.boundary import boundary
from stretto._engine.core.integers import integer
from stretto._engine.xla import clients, processes

__all__ = ["initialize", "is_initialized", "shutdown"]


class _Place(NamedTuple):
    """What an environment says of a job; None for what it does not say."""

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
    ``stretto.devices()`` are those of all processes, in order, and ``stretto.local_devices()``
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
        if processes.joined():
            raise RuntimeError(
                f"{caller}: this process takes part in a job; call distributed.shutdown() first"
            )
        if clients.started() and not processes.left():
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
    return processes.joined()


def _address(
    address: str | None, caller: str, name: str = "coordinator_address"
) -> tuple[str, int]:
    """The host and the port."""
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
    """What the first of the known launchers says that has set anything."""

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
    """A port that all processes of a job find, and those of other jobs hardly."""
    return (1 << 16) - (1 << 12) + job % (1 << 12)


def _first_node(nodes: str) -> str:
    """The first of Slurm's nodes, of a list such as ``gpu[03-05,07],login``."""
    match = re.match(r"([^,\[]+)(?:\[(\w+))?", nodes)
    return "" if match is None else match[1] + (match[2] or "")
