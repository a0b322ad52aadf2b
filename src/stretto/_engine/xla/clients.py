"""XLA's clients: the threads and devices of this process, and what makes buffers for them.

Only this module and ``pjrt`` import jaxlib, when the first program is compiled. Arrays that were
not put anywhere, and programs for one device, have one client; programs that call Python have
others, since they need threads of their own; while several processes work together, what is put on
their devices has one that knows them all; and GPUs have one, made when they are first asked for.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import os
import re
import weakref
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any, NoReturn, TypeVar

import numpy as np

from stretto._engine import xla
from stretto._engine.core.config import config
from stretto._engine.core.errors import ForkedProcessError
from stretto._engine.core.machine import cores
from stretto._engine.core.threads import in_child, lock
from stretto._engine.kernels import IN_PARTS, LAPACK, extension, kernels
from stretto._engine.lowering.text import Facts
from stretto._engine.xla import memory
from stretto._engine.xla.options import (
    EFFORTS,
    EXTRAS,
    Options,
    options_for,
    set_effort,
    with_extras,
)

TESTED = ((0, 10, 2), (0, 13))
"""The first version of jaxlib that these calls were tested with, and the first that was not."""

_KERNELS = "stretto_"
"""The names of our own functions in C begin so."""

_lock = lock()

R = TypeVar("R", bound="Runtime")


def check_version(version: str) -> tuple[int, ...]:
    """Return the version's numbers; ``ImportError``, in one sentence, outside the tested range."""
    numbers = re.match(r"\d+(\.\d+){0,2}", version)  # only the numbers of 0.11.0rc1, 0.11.0.dev2
    parts = tuple(map(int, numbers[0].split("."))) if numbers else ()
    if not TESTED[0] <= parts < TESTED[1]:
        low, high = (".".join(map(str, v)) for v in TESTED)
        raise ImportError(
            f"stretto needs jaxlib >= {low} and < {high}, but jaxlib {version} is installed: "
            f"pip install 'jaxlib>={low},<{high}'"
        )
    return parts


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Have jaxlib log errors alone, unless the environment says otherwise."""
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL")
    try:
        if level is None:
            os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
        yield
    finally:
        if level is None:
            os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)


def load_jaxlib() -> tuple[tuple[int, ...], Any]:
    """Return the version of jaxlib, and its main module."""
    version = check_version(importlib.import_module("jaxlib.version").__version__)
    with _quiet():
        return version, importlib.import_module("jaxlib._jax")


def pytree() -> Any:
    """Return jaxlib's module of trees."""
    return load_jaxlib()[1].pytree


def mlir() -> tuple[Any, Any]:
    """Return jaxlib's bindings of MLIR, and a context of theirs with the dialects of programs."""
    load_jaxlib()  # first, since the part of jaxlib that is loaded first decides what is logged
    ir = importlib.import_module("jaxlib.mlir.ir")
    registry, context = ir.DialectRegistry(), ir.Context()
    importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
    for name in ("stablehlo", "chlo"):
        importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    return ir, context


class Job:
    """Processes that work together: which of them this one is, and how many devices each has.

    Devices, and so meshes and shardings, are of a job: those of another time are not equal to those
    of today, even where they have the same numbers.
    """

    __slots__ = ("counts", "index")

    def __init__(self, index: int, counts: tuple[int, ...]) -> None:
        self.index = index
        self.counts = counts


ALONE = Job(0, ())
"""This process alone, with as many devices as the setting says."""

_now = ALONE


def job_of_now() -> Job:
    """Return the job that this process takes part in."""
    return _now


def enter(job: Job) -> None:
    """Take part in this job from now on."""
    global _now  # noqa: PLW0603
    _now = job


class Runtime:
    """An XLA client, its device, and what is needed to make buffers.

    ``job`` are the processes that the client works with, by way of ``coordination``, a connected
    client of the coordination service; ``address`` is this machine's, for the others.
    """

    def __init__(self, job: Job = ALONE, coordination: Any = None, address: str = "") -> None:
        version, self.jax = load_jaxlib()
        self.jaxlib = ".".join(map(str, version))
        # Up to 0.11.0 a handler must be told not to check results; later ones never do.
        self.skip_checks = (True,) if version <= (0, 11, 0) else ()
        self.breaks_on_huge = version >= (0, 12, 0)  # see ``memory.HUGE``
        memory.reuse_blocks()
        with _quiet():
            self.xla_client = importlib.import_module("jaxlib.xla_client")
            self.client = self._connected(job, coordination, address)
        self._provided = False
        self.unknown: set[tuple[str, Any]] = set()
        """Options of ours, by name and value, that this build of jaxlib refused."""
        # As they were when the client started: its number of threads is compiled into programs.
        processors = max(cores(), self.client.local_device_count())
        self.threads = [*map(os.environ.get, ("NPROC", "PJRT_NPROC")), processors]
        self.version = version
        self._job = job
        # Numbered through, as ``device`` does; XLA leaves gaps between the processes.
        self._in_order = sorted(self.client.devices(), key=lambda d: (d.process_index, d.id))
        self.device = self.client.local_devices()[0]
        self.devices = self.jax.DeviceList((self.device,))
        self.sharding = self.sharding_on((self.device,))
        self.put = self.xla_client.batched_device_put
        self.copies = self.jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

    def _connected(self, job: Job, coordination: Any, address: str) -> Any:
        """Start XLA's client."""
        together: dict[str, Any] = {}
        if coordination is not None:
            collectives = self.jax.make_gloo_tcp_collectives(coordination, hostname=address)
            together = {"distributed_client": coordination, "collectives": collectives}
            together |= {"node_id": job.index, "num_nodes": len(job.counts)}
            together |= {"get_global_topology_timeout_minutes": 1}  # all have come already
        return self.xla_client.make_cpu_client(
            asynchronous=True, num_devices=config.num_cpu_devices, **together
        )

    def conditions(self) -> str:
        """Return what the machine and this runtime contribute to what a text is compiled to."""
        return f"{self.version} {self.build} {self.threads}"

    def options_for(self, facts: Facts, options: Options) -> list[tuple[str, Any]]:
        """Return XLA's options for this program by name: the platform's, and these."""
        return options_for(facts, options)

    def compile_options(self, facts: Facts, options: Options, devices: Sequence[Any] = ()) -> Any:
        """Return XLA's options for this program, and these; ``devices`` are several, if any."""
        chosen = self.xla_client.CompileOptions()
        flags = dict(self.options_for(facts, options))
        for name in EFFORTS & flags.keys():
            set_effort(chosen.executable_build_options, name, flags.pop(name))
        extras = {name: flags.pop(name) for name in EXTRAS & flags.keys()}
        chosen.env_option_overrides = list(flags.items())
        if devices:
            ids = np.array([[device.id for device in devices]], np.int32)
            chosen.num_replicas, chosen.num_partitions = ids.shape
            chosen.device_assignment = self.xla_client.DeviceAssignment.create(ids)
            build = chosen.executable_build_options
            build.use_spmd_partitioning = build.use_shardy_partitioner = True
        return with_extras(chosen, extras) if extras else chosen

    @functools.cached_property
    def build(self) -> list[int]:
        """The sizes of jaxlib's files, by which builds of one version differ."""
        with os.scandir(os.path.dirname(self.jax.__file__ or "")) as files:
            return sorted(file.stat().st_size for file in files if file.is_file())

    def provide(self, facts: Facts) -> None:
        """Register the functions that this program calls: SciPy's LAPACK, under jaxlib's names.

        If another user of jaxlib has registered them as well, that changes nothing. Where the
        extension is there, programs call them through it, under names of ours.
        """
        if any([name.startswith(_KERNELS) for name in facts.targets]):
            self._provide_kernels()
        if not any([name.startswith(LAPACK) for name in facts.targets]):
            return
        with _lock:
            if self._provided:
                return
            functions = importlib.import_module("jaxlib.cpu._lapack")
            # It imports a module in this package. Were that the first of it, while another thread
            # imports the package, each would wait for the other, and one get a _DeadlockError.
            importlib.import_module("scipy.linalg")
            functions.initialize()
            for name, function in functions.registrations().items():
                if name.startswith(LAPACK) and name.endswith("_ffi"):
                    self._register(name, function)
                    if extension is not None:
                        self._register(name + IN_PARTS, extension.in_parts(function))
            self._provided = True

    def _register(self, name: str, function: Any) -> None:
        """Register a function that is called part by part where a batch is split over devices."""
        self.xla_client.register_custom_call_target(name, function, "cpu", 1)
        self.jax.register_custom_call_as_batch_partitionable(name)

    def _provide_kernels(self) -> None:
        """Register our kernels."""
        with _lock:
            if not Runtime._kernels_known:
                for name, function in kernels.handlers().items():
                    self.xla_client.register_custom_call_target(name, function, "cpu", 1)
                Runtime._kernels_known = True

    _kernels_known = False

    def parse(self, text: str) -> Any:
        """Return the MLIR module for StableHLO text.

        Programs with callbacks are compiled from one.
        """
        ir, context = mlir()
        return ir.Module.parse(text, context)

    def device_of(self, device: Any) -> Any:
        """Return the runtime's form of a device."""
        return self._in_order[device.id - self._first()]

    def _first(self) -> int:
        """Return the number of the first device that this client knows."""
        now = job_of_now()
        return sum(now.counts[: now.index]) if self._job is ALONE else 0

    def list_of(self, devices: Sequence[Any]) -> Any:
        """Return the runtime's list of these devices; of the default one, if there are none."""
        return self.jax.DeviceList(tuple(devices)) if devices else self.devices

    def sharding_on(self, devices: Sequence[Any], tiles: str = "{replicated}") -> Any:
        """Return the sharding in such tiles, as XLA writes them, with what jaxlib asks of one."""
        written = self.xla_client.HloSharding.from_string(tiles)
        alone = len(devices) == 1
        base = self.jax.SingleDeviceSharding if alone else self.jax.GSPMDSharding
        here = self.client.process_index()

        class Placed(base):
            memory_kind = None
            device_set = frozenset(devices)
            is_fully_addressable = all([d.process_index == here for d in devices])
            is_fully_replicated = tiles == "{replicated}"
            _device_assignment = tuple(devices)

            def _to_xla_hlo_sharding(self, ndim: int) -> Any:
                return written

        return Placed(devices[0]) if alone else Placed(self.jax.DeviceList(tuple(devices)), written)


class Accelerator(Runtime):
    """XLA's client for the GPUs of this machine, through a plugin.

    Raises ``RuntimeError`` if there is no plugin, or it finds no GPU.
    """

    def _connected(self, job: Job, coordination: Any, address: str) -> Any:
        """Start the client, which takes memory as it is needed."""
        self._registered: set[str] = set()
        self.plugin = xla.plugins.find()
        if self.plugin is None:
            raise RuntimeError(
                f"there is no backend 'gpu': it needs an NVIDIA GPU with its driver, and XLA's "
                f"plugin: pip install 'jax-cuda13-plugin[with-cuda]=={self.jaxlib}'"
            )
        self._handle = xla.plugins.load(self.plugin, self.xla_client)
        try:
            return self.xla_client.make_c_api_client(xla.plugins.NAME, {"preallocate": False}, None)
        except self.jax.JaxRuntimeError as error:
            raise RuntimeError(
                f"there is no backend 'gpu': XLA's plugin {self.plugin.library} finds none: {error}"
            ) from None

    def conditions(self) -> str:
        """Return what the machine and this runtime contribute to what a text is compiled to."""
        return f"{super().conditions()} {self.client.platform_version} {self.kinds()}"

    def options_for(self, facts: Facts, options: Options) -> list[tuple[str, Any]]:
        """Return the options given, and where CUDA's compiler is; ours are for CPUs."""
        assert self.plugin is not None
        where = {"xla_gpu_cuda_data_dir": self.plugin.toolkit} if self.plugin.toolkit else {}
        return list({**where, **dict(options)}.items())

    @functools.cached_property
    def build(self) -> list[int]:
        """The sizes of the files that compile, by which builds of one version differ."""
        assert self.plugin is not None
        return [*super().build, os.path.getsize(self.plugin.library)]

    def provide(self, facts: Facts) -> None:
        """Register what this program calls: cuSOLVER's functions, and that which calls Python."""
        for begin in xla.plugins.REGISTERED:
            is_called = any([name.startswith(begin) for name in facts.targets])
            if is_called and begin not in self._registered:
                with _lock:
                    if begin not in self._registered:
                        assert self.plugin is not None
                        xla.plugins.register(begin, self.plugin, self._handle)
                        self._registered.add(begin)

    def device_of(self, device: Any) -> Any:
        """Return the runtime's form of a device."""
        return self._in_order[device.id]

    def kinds(self) -> list[str]:
        """Return the model of each device."""
        return [device.device_kind for device in self._in_order]


def coordination_service(address: str, count: int, heartbeat: float) -> Any:
    """Start the service by which the runtimes of so many processes find each other."""
    start = load_jaxlib()[1].get_distributed_runtime_service
    # Recoverable: else the loss of one process would end all others.
    return start(address, count, heartbeat_timeout=ceil(heartbeat), recoverable=True)


def coordination_client(address: str, index: int, patience: float, heartbeat: float) -> Any:
    """Connect process ``index`` to the service; raises ``RuntimeError`` if that fails."""
    client = load_jaxlib()[1].get_distributed_runtime_client(
        address,
        index,
        init_timeout=ceil(patience),
        heartbeat_timeout=ceil(heartbeat),
        shutdown_on_destruction=False,
    )
    client.connect()
    return client


_runtime: Runtime | None = None
_others: dict[int, Runtime] = {}
_accelerators: list[Accelerator] = []
"""The runtime of the GPUs, once it was asked for."""
_of_job: dict[Job, Runtime] = {}
"""The runtime of the processes that work together, while they do."""
_starting = False
"""Says whether a runtime is being made, so that some of its threads may exist already."""
left_behind: list[Any] = []
"""The runtimes of the parent of a forked process, which do not work in the child. Empty in
other processes."""
_clients: list[weakref.ref[Any]] = []
"""All clients that were made, some of which are gone."""


def runtime() -> Runtime:
    """Return the runtime of the process, made when first asked for.

    Raises ``ForkedProcessError`` if the process was forked from one that had a runtime.
    """
    global _runtime  # noqa: PLW0603
    if _runtime is None:
        with _lock:
            if _runtime is None:
                _runtime = _start(Runtime)
    return _runtime


def _start(kind: type[R], *args: Any) -> R:
    global _starting  # noqa: PLW0603
    if left_behind:
        refuse_fork()
    try:
        _starting = True
        made = kind(*args)
        _clients.append(weakref.ref(made.client))
        xla.ending.wait_at_end()
        return made
    finally:
        _starting = False


def accelerator() -> Accelerator:
    """Return the runtime of the GPUs of this machine, made when first asked for.

    Raises ``RuntimeError`` if there are none, or XLA's plugin for them is not installed.
    """
    runtime()  # first, since the part of jaxlib that is loaded first decides what is logged
    with _lock:
        if not _accelerators:
            _accelerators.append(_start(Accelerator))
        return _accelerators[0]


def has_runtime() -> bool:
    """Say whether the process has a runtime."""
    return _runtime is not None or bool(_others) or bool(_of_job) or _starting


def in_use() -> list[Runtime]:
    """Return all runtimes that programs are compiled for."""
    return [runtime(), *_others.values(), *_of_job.values(), *_accelerators]


def keep() -> None:
    """Keep all clients until the process is gone, those of past jobs too.

    Python's last collection would destroy them, and a client's end waits for its threads, which may
    be in a loop that never ends, or wait for a process that has died.
    """
    for found in _clients:
        client = found()
        if client is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(client))


def join(job: Job, coordination: Any, address: str) -> None:
    """Make the runtime of a job, which waits for its other processes, and take part in it."""
    with _lock:
        _of_job[job] = _start(Runtime, job, coordination, address)
        enter(job)


def leave() -> None:
    """Leave the job: what was put on its devices, and programs for them, belong to the past."""
    with _lock:
        enter(ALONE)
        _of_job.clear()


def runtime_of(devices: Sequence[Any]) -> Runtime:
    """Return the runtime for these devices; for those of this process the one it always has.

    Raises ``RuntimeError`` if they are of a job that has ended, and ``ValueError`` if they are
    devices of some processes only, and not those of this process.
    """
    platforms = {device.platform for device in devices}
    if platforms == {"gpu"}:
        return accelerator()
    if len(platforms) > 1:
        raise ValueError(
            f"devices of one platform were expected, got some of each of {sorted(platforms)}"
        )
    now = job_of_now()
    if any([device.job is not now for device in devices]):
        raise RuntimeError(
            "these devices, and arrays and programs on them, are of a job of processes that has "
            "ended, or of the time before it began: read what is here, numpy.asarray(x) or "
            "x.addressable_shards, and put it on the devices that there are now, "
            "stretto.device_put(x, sharding)"
        )
    owners = {device.process_index for device in devices}
    if owners == {now.index}:
        return runtime()  # whose threads no other process can make wait
    if len(owners) < len(now.counts):
        there = ", ".join(map(str, sorted(owners)))
        raise ValueError(
            f"the devices must be those of all {len(now.counts)} processes, or those of this one, "
            f"process {now.index}; got devices of {there}"
        )
    return _of_job[now]


def refuse_fork() -> NoReturn:
    raise ForkedProcessError(
        "this process was forked from one that had used XLA, whose threads are not copied by a "
        "fork: a compiled program would wait for them for ever. Start processes with "
        "multiprocessing.get_context('spawn') or 'forkserver' instead of 'fork', as in "
        "ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')); or fork before "
        "anything is compiled. What runs in NumPy alone still works in this process"
    )


def _after_fork() -> None:
    """Put the parent's runtime aside in a forked child, which is alone, if there was one."""
    global _runtime, _starting
    enter(ALONE)
    if has_runtime():
        left_behind.extend([_runtime, *_others.values(), *_of_job.values(), *_accelerators])
        # Never to be freed: destroying a client waits for its threads, too.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(left_behind))
        _runtime, _starting = None, False
        _others.clear()
        _of_job.clear()
        _accelerators.clear()
        config.eager_compiled = False


in_child(_after_fork)


def runtime_of_calls(depth: int) -> Runtime:
    """Return the runtime for programs that call Python functions, at this depth of nesting.

    It has its own threads; see ``callbacks``.
    """
    with _lock:
        if depth not in _others:
            _others[depth] = _start(Runtime)
        return _others[depth]
