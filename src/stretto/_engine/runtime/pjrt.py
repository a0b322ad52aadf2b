"""The boundary to jaxlib: StableHLO text in, executables out, buffers both ways.

Layer 6 (runtime). This is the only module that imports jaxlib, and it does so when the first
program is compiled. It sets nothing global, so that other users of jaxlib in the process are not
disturbed. Next, read ``array``.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.errors import ConfigError, ForkedProcessError
from stretto._engine.core.forks import in_child, lock
from stretto._engine.core.types import ArrayType
from stretto._engine.runtime.options import (
    Options,
    asks_for_dumps,
    options_for,
    quick_options,
)

__all__ = [
    "Executable",
    "TESTED",
    "aval",
    "compile_text",
    "conditions",
    "cost_of_text",
    "deserialized",
    "failed",
    "from_dlpack",
    "live_executables",
    "loaded",
    "profiler",
    "quick",
    "ready",
    "runtime_of_calls",
    "serialized",
    "start_profile",
    "started",
    "tidy",
    "to_device",
    "to_dlpack",
    "to_host",
    "wait",
    "wait_for_all",
]

TESTED = ((0, 10, 2), (0, 13))
"""The first version of jaxlib that these calls were tested with, and the first that was not."""

_lock = lock()


def check_version(version: str) -> tuple[int, ...]:
    """The version's numbers; ``ImportError``, in one sentence, outside the tested range."""
    numbers = re.match(r"\d+(\.\d+){0,2}", version)  # only the numbers of 0.11.0rc1, 0.11.0.dev2
    parts = tuple(map(int, numbers[0].split("."))) if numbers else ()
    if not TESTED[0] <= parts < TESTED[1]:
        low, high = (".".join(map(str, v)) for v in TESTED)
        raise ImportError(
            f"stretto needs jaxlib >= {low} and < {high}, but jaxlib {version} is installed: "
            f"pip install 'jaxlib>={low},<{high}'"
        )
    return parts


def _processors() -> int:
    """How many processors this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


class _Runtime:
    """An XLA client, its device, and what is needed to make buffers."""

    def __init__(self) -> None:
        version = check_version(importlib.import_module("jaxlib.version").__version__)
        # Up to 0.11.0 a handler must be told not to check results; later ones never do.
        self.skip_checks = (True,) if version <= (0, 11, 0) else ()
        quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL")
        try:
            if quiet is None:
                os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
            self.jax = importlib.import_module("jaxlib._jax")
            self.xla_client = importlib.import_module("jaxlib.xla_client")
            self.client = self.xla_client.make_cpu_client(
                asynchronous=True, num_devices=config.num_cpu_devices
            )
        finally:
            if quiet is None:
                os.environ.pop("TF_CPP_MIN_LOG_LEVEL", None)
        self._lapack = False
        # As they were when the client started: its number of threads is compiled into programs.
        processors = max(_processors(), self.client.local_device_count())
        self.threads = [*map(os.environ.get, ("NPROC", "PJRT_NPROC")), processors]
        self.version = version
        self._by_id = {device.id: device for device in self.client.devices()}
        self.device = self.client.local_devices()[0]
        self.devices = self.jax.DeviceList((self.device,))
        self.sharding = self.sharding_on((self.device,))
        self.put = self.xla_client.batched_device_put
        self.copies = self.jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

    def compile_options(self, text: str, options: Options, devices: Sequence[Any] = ()) -> Any:
        """XLA's options for this text, and these; ``devices`` are several, if any."""
        chosen = self.xla_client.CompileOptions()
        chosen.env_option_overrides = options_for(text, options)
        if devices:
            ids = np.array([[device.id for device in devices]], np.int32)
            chosen.num_replicas, chosen.num_partitions = ids.shape
            chosen.device_assignment = self.xla_client.DeviceAssignment.create(ids)
            build = chosen.executable_build_options
            build.use_spmd_partitioning = build.use_shardy_partitioner = True
        return chosen

    @functools.cached_property
    def build(self) -> list[int]:
        """The sizes of jaxlib's files, by which builds of one version differ."""
        with os.scandir(os.path.dirname(self.jax.__file__ or "")) as files:
            return sorted(file.stat().st_size for file in files if file.is_file())

    def provide(self, text: str) -> None:
        """Register the functions that this text calls: SciPy's LAPACK, under jaxlib's names.

        If another user of jaxlib has registered them as well, that changes nothing.
        """
        if '"lapack_' not in text and '"tridiagonal_' not in text:
            return
        with _lock:
            if self._lapack:
                return
            functions = importlib.import_module("jaxlib.cpu._lapack")
            functions.initialize()
            for name, function in functions.registrations().items():
                if name.startswith(("lapack_", "tridiagonal_")) and name.endswith("_ffi"):
                    self.xla_client.register_custom_call_target(name, function, "cpu", 1)
            self._lapack = True

    def parse(self, text: str) -> Any:
        """The MLIR module for StableHLO text; programs with callbacks are compiled from one."""
        ir = importlib.import_module("jaxlib.mlir.ir")
        registry, context = ir.DialectRegistry(), ir.Context()
        importlib.import_module("jaxlib.mlir._mlir_libs._jax_mlir_ext").register_dialects(registry)
        for name in ("stablehlo", "chlo"):
            importlib.import_module(f"jaxlib.mlir.dialects.{name}").register_dialect(context)
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        return ir.Module.parse(text, context)

    def device_of(self, device: Any) -> Any:
        """The runtime's form of a device."""
        return self._by_id[device.id]

    def list_of(self, devices: Sequence[Any]) -> Any:
        """The runtime's list of these devices; of the default one, if there are none."""
        return self.jax.DeviceList(tuple(devices)) if devices else self.devices

    def sharding_on(self, devices: Sequence[Any], tiles: str = "{replicated}") -> Any:
        """The sharding in such tiles, as XLA writes them, with what jaxlib asks of one."""
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


_runtime: _Runtime | None = None
_others: dict[int, _Runtime] = {}
_starting = False
"""Whether a runtime is being made, so that some of its threads may exist already."""
_left_behind: list[Any] = []
"""In a forked child, the runtimes of the parent process, which do not work in the child. Empty in
other processes."""


def runtime() -> _Runtime:
    """The runtime of the process, made when first asked for.

    Raises ``ForkedProcessError`` if the process was forked from one that had a runtime.
    """
    global _runtime  # noqa: PLW0603
    if _runtime is None:
        with _lock:
            if _runtime is None:
                _runtime = _start()
    return _runtime


def _start() -> _Runtime:
    global _starting  # noqa: PLW0603
    if _left_behind:
        _refuse_fork()
    try:
        _starting = True
        return _Runtime()
    finally:
        _starting = False


def started() -> bool:
    """Whether the process has a runtime."""
    return _runtime is not None or bool(_others) or _starting


def _refuse_fork() -> NoReturn:
    raise ForkedProcessError(
        "this process was forked from one that had used XLA, whose threads are not copied by a "
        "fork: a compiled program would wait for them for ever. Start processes with "
        "multiprocessing.get_context('spawn') or 'forkserver' instead of 'fork', as in "
        "ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn')); or fork before "
        "anything is compiled. What runs in NumPy alone still works in this process"
    )


def _forked() -> None:
    """In a forked child: put the parent's runtime aside, if there was one."""
    global _runtime, _starting
    if started():
        _left_behind.extend([_runtime, *_others.values()])
        # Never to be freed: destroying a client waits for its threads, too.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(_left_behind))
        _runtime, _starting = None, False
        _others.clear()
        config.eager_compiled = False


in_child(_forked)


def runtime_of_calls(depth: int) -> _Runtime:
    """The runtime for programs that call Python functions, at this depth of nesting.

    It has its own threads; see ``callbacks``.
    """
    with _lock:
        if depth not in _others:
            _others[depth] = _start()
        return _others[depth]


class _Aval:
    """What jaxlib needs to know about an abstract value."""

    __slots__ = ("dtype", "ndim", "shape", "weak_type")

    def __init__(self, type: ArrayType) -> None:
        self.shape, self.dtype, self.ndim, self.weak_type = type.shape, type.dtype, type.ndim, False


@functools.lru_cache(4096)
def aval(type: ArrayType) -> _Aval:
    """What jaxlib needs to know about values of this type."""
    return _Aval(type)


@functools.lru_cache(4096)
def _handler(type: ArrayType, at: _Runtime) -> Any:
    return at.jax.array_result_handler(aval(type), at.sharding, True, *at.skip_checks)


def to_device(array: np.ndarray, type: ArrayType, own: bool, at: _Runtime | None = None) -> Any:
    """A device buffer with the contents of a NumPy array.

    ``own`` promises that nobody will write to the array any more: then its memory is used without a
    copy, if it is aligned.
    """
    at = at or _runtime or runtime()
    if not array.flags.c_contiguous:
        array, own = np.ascontiguousarray(array).reshape(array.shape), True
    if own:
        return at.put(aval(type), at.sharding, [array], [at.device], True, enable_x64=True)
    return at.put(
        aval(type),
        at.sharding,
        [array],
        [at.device],
        True,
        host_buffer_semantics=at.copies,
        enable_x64=True,
    )


def to_host(buffer: Any) -> np.ndarray:
    """A read-only NumPy view of a buffer, once it is computed.

    It uses Python's buffer protocol: jaxlib's own method tries to import jax at each call, which
    takes some 50 µs if that is not installed.
    """
    if _left_behind and not buffer.is_ready():
        _refuse_fork()
    try:
        return np.asarray(memoryview(buffer))
    except BufferError:  # the protocol has no code for bfloat16 and the like
        return buffer._single_device_array_to_np_array_did_copy()[0]


def to_dlpack(buffer: Any) -> Any:
    """A DLPack capsule of a buffer's memory, to which its consumer may write."""
    return runtime().jax.buffer_to_dlpack_managed_tensor(buffer)


def from_dlpack(capsule: Any) -> np.ndarray:
    """A read-only NumPy view of the memory in a DLPack capsule, of any dtype that XLA has."""
    at = runtime()
    return to_host(at.jax.dlpack_managed_tensor_to_buffer(capsule, at.device, None))


def wait(buffer: Any) -> None:
    """Wait until the buffer is computed; raise the errors of the computation."""
    if _left_behind and not buffer.is_ready():
        _refuse_fork()
    buffer.block_until_ready()


def wait_for_all(buffers: Sequence[Any]) -> None:
    """Wait for several buffers; the first error is raised."""
    if _left_behind:
        for buffer in buffers:
            wait(buffer)
        return
    runtime().jax.batched_block_until_ready([*buffers])


def failed(error: RuntimeError) -> bool:
    """Whether the error is a computation's, or the runtime's, and no signal handler's."""
    return isinstance(error, runtime().jax.JaxRuntimeError)


def tidy() -> None:
    """Free what the runtime keeps about past calls: it notes where each was made.

    Otherwise every call and every wait would keep some 90 bytes; the ``jax`` package has Python's
    garbage collector free them.
    """
    runtime().jax.collect_garbage()


def ready(buffer: Any) -> bool:
    """Whether the buffer is computed."""
    return buffer.is_ready()


class Executable:
    """A compiled program: ``run(buffers).consume_with_handlers(handlers)`` is the call."""

    __slots__ = ("from_disk", "handlers", "loaded", "run", "text")

    def __init__(
        self, loaded: Any, out_types: Sequence[ArrayType], text: str, at: _Runtime | None = None
    ) -> None:
        self.loaded = loaded
        self.text = text
        self.from_disk = False
        self.run = loaded.execute_sharded
        self.handlers = [_handler(t, at or runtime()) for t in out_types]

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on these buffers; return the buffers of the outputs."""
        tidy()
        return self.run(buffers).consume_with_handlers(self.handlers)

    def as_text(self) -> str:
        """The optimised HLO."""
        return "\n\n".join(m.to_string() for m in self.loaded.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """XLA's estimate: ``flops``, ``bytes accessed`` and more."""
        return dict(self.loaded.cost_analysis())

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, outputs, temporaries and code."""
        return self.loaded.get_compiled_memory_stats()


_PROBLEM = re.compile(r"No such compile option: '.*?'|While setting option .*? value")


def compile_text(
    text: str,
    out_types: Sequence[ArrayType],
    options: Options = (),
    callbacks: Sequence[Callable[..., Any]] = (),
    at: _Runtime | None = None,
) -> Executable:
    """Compile StableHLO text, which calls ``callbacks`` by number with NumPy arrays.

    Raises ``ConfigError`` for an option that XLA does not have, or a value that it does not take.
    """
    at = at or runtime()
    return Executable(loaded(at, text, options, callbacks), out_types, text, at)


def loaded(
    at: _Runtime,
    text: str,
    options: Options,
    callbacks: Sequence[Callable[..., Any]] = (),
    devices: Sequence[Any] = (),
) -> Any:
    """The runtime's form of the compiled text, for these devices; see ``compile_text``."""
    at.provide(text)
    chosen = at.compile_options(text, options, devices)
    places = at.list_of(devices)
    try:
        if callbacks:
            return at.client.compile_and_load(at.parse(text), places, chosen, callbacks)
        return at.client.compile_and_load(text, places, chosen)
    except at.jax.JaxRuntimeError as error:
        problem = _PROBLEM.search(str(error)) if options else None
        if problem is None:
            raise
        raise ConfigError(
            f"compiler_options: {problem[0]}; they are XLA's flags by name, such as "
            f"{{'xla_cpu_enable_fast_math': True}}"
        ) from None


def quick() -> Options:
    """The options with which the runtime compiles quickly, to slower programs."""
    return quick_options(runtime().version)


def conditions(text: str, options: Options, devices: Sequence[Any] = ()) -> bytes | None:
    """Everything besides text and processor that decides what the text is compiled to.

    That is: the devices, if they are several; XLA's options, including those it took from
    ``XLA_FLAGS``; the version and build of the runtime; and its number of threads. ``None`` if XLA
    is asked to dump what it compiles, since then it has to compile.
    """
    at = runtime()
    chosen = at.compile_options(text, options, devices)
    flags = chosen.executable_build_options.debug_options
    if asks_for_dumps(flags, options):
        return None
    return f"{at.version} {at.build} {at.threads}\n".encode() + chosen.SerializeAsString()


def serialized(executable: Executable) -> bytes | None:
    """A compiled program as bytes; ``None`` if the runtime cannot serialize it."""
    try:
        return executable.loaded.serialize()
    except runtime().jax.JaxRuntimeError:
        return None


def deserialized(
    content: bytes, text: str, options: Options, devices: Sequence[Any] = ()
) -> Any | None:
    """The loaded program for ``serialized`` bytes; ``None`` if the runtime refuses them.

    They are native code that will be run, so nobody else must have been able to write them.
    """
    at = runtime()
    at.provide(text)
    chosen = at.compile_options(text, options, devices)
    try:
        return at.client.deserialize_executable(content, at.list_of(devices), chosen)
    except at.jax.JaxRuntimeError:
        return None


def cost_of_text(text: str) -> dict[str, float]:
    """XLA's estimate of the cost of StableHLO text before it is optimised."""
    at = runtime()
    computation = at.jax.mlir.mlir_module_to_xla_computation(text, False, False)
    return dict(at.jax.hlo_module_cost_analysis(at.client, computation.get_hlo_module()))


def profiler() -> Any:
    """jaxlib's profiler: a module."""
    runtime()  # first, since the part of jaxlib that is loaded first decides what is logged
    return importlib.import_module("jaxlib._profiler")


def start_profile(name: str) -> Any:
    """Start profiling; return the session.

    Its ``stop_and_export(folder)`` ends it, and writes to ``plugins/profile/name``.
    """
    options = profiler().ProfileOptions()
    options.python_tracer_level = 0
    options.session_id = name
    return profiler().ProfilerSession(options)


def live_executables() -> list[Any]:
    """All compiled programs that exist, as the runtime has them."""
    clients = [at.client for at in (runtime(), *_others.values())]
    return [loaded for client in clients for loaded in client.live_executables()]
