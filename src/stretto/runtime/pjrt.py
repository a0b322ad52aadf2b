"""The boundary to jaxlib: StableHLO text in, executables out, buffers both ways.

Layer 6 (runtime). The only module that imports jaxlib; it sets nothing global, so that other users
of jaxlib in the process go undisturbed. jaxlib is loaded when the first program is compiled.
Next, read ``array``.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.types import ArrayType

__all__ = ["Executable", "TESTED", "compile_text", "to_device", "to_host", "wait"]

TESTED = ((0, 10, 2), (0, 13))
"""The first version of jaxlib that these calls were tested with, and the first that was not."""

_lock = threading.RLock()


def check_version(version: str) -> tuple[int, ...]:
    """The version's numbers; ``ImportError``, in one sentence, outside the tested range."""
    numbers = re.match(r"\d+(\.\d+){0,2}", version)  # of 0.11.0rc1 and 0.11.0.dev2 the numbers
    parts = tuple(map(int, numbers[0].split("."))) if numbers else ()
    if not TESTED[0] <= parts < TESTED[1]:
        low, high = (".".join(map(str, v)) for v in TESTED)
        raise ImportError(
            f"stretto needs jaxlib >= {low} and < {high}; installed is jaxlib {version}: "
            f"pip install 'jaxlib>={low},<{high}'"
        )
    return parts


class _Runtime:
    """The client, its first device, and what buffers are made with."""

    def __init__(self) -> None:
        version = check_version(importlib.import_module("jaxlib.version").__version__)
        # Up to 0.11.0 a handler must be told that results need no checks; later it never checks.
        self.skip_checks = (True,) if version <= (0, 11, 0) else ()
        quiet = os.environ.get("TF_CPP_MIN_LOG_LEVEL")
        if quiet is None:
            os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
        try:
            self.jax = importlib.import_module("jaxlib._jax")
            self.xla_client = importlib.import_module("jaxlib.xla_client")
            self.client = self.xla_client.make_cpu_client(asynchronous=True)
        finally:
            if quiet is None:
                del os.environ["TF_CPP_MIN_LOG_LEVEL"]
        self.device = self.client.local_devices()[0]
        self.devices = self.jax.DeviceList((self.device,))
        self.sharding = self._make_sharding()
        self.options = self.xla_client.CompileOptions()
        self.put = self.xla_client.batched_device_put
        self.copies = self.jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL

    def _make_sharding(self) -> Any:
        replicated = self.xla_client.HloSharding.replicate()
        device = self.device

        class OneDevice(self.jax.SingleDeviceSharding):  # type: ignore[name-defined]
            """The questions jaxlib asks of a sharding, for all data on one device."""

            memory_kind = None
            device_set = frozenset((device,))
            _device_assignment = (device,)

            def _to_xla_hlo_sharding(self, ndim: int) -> Any:
                return replicated

        return OneDevice(device)


_runtime: _Runtime | None = None


def runtime() -> _Runtime:
    """The one runtime of the process, made when first asked for."""
    global _runtime  # noqa: PLW0603
    if _runtime is None:
        with _lock:
            if _runtime is None:
                _runtime = _Runtime()
    return _runtime


class _Aval:
    """What jaxlib asks of an abstract value."""

    __slots__ = ("dtype", "ndim", "shape", "weak_type")

    def __init__(self, type: ArrayType) -> None:
        self.shape, self.dtype, self.ndim, self.weak_type = type.shape, type.dtype, type.ndim, False


@functools.lru_cache(4096)
def _aval(type: ArrayType) -> _Aval:
    return _Aval(type)


@functools.lru_cache(4096)
def _handler(type: ArrayType) -> Any:
    at = runtime()
    return at.jax.array_result_handler(_aval(type), at.sharding, True, *at.skip_checks)


def to_device(array: np.ndarray, type: ArrayType, own: bool) -> Any:
    """A device buffer with the contents of a NumPy array.

    ``own`` promises that nobody will write the array any more: then it is used where it lies, if it
    is aligned.
    """
    at = _runtime or runtime()
    if not array.flags.c_contiguous:
        array, own = np.ascontiguousarray(array).reshape(array.shape), True
    if own:
        return at.put(_aval(type), at.sharding, [array], [at.device], True, enable_x64=True)
    return at.put(
        _aval(type),
        at.sharding,
        [array],
        [at.device],
        True,
        host_buffer_semantics=at.copies,
        enable_x64=True,
    )


def to_host(buffer: Any) -> np.ndarray:
    """A read-only NumPy view of a buffer, once it is computed."""
    return buffer._single_device_array_to_np_array_did_copy()[0]


def wait(buffer: Any) -> None:
    """Return when the buffer is computed; errors of the computation are raised here."""
    buffer.block_until_ready()


class Executable:
    """A compiled program: ``run(buffers).consume_with_handlers(handlers)`` is the call."""

    __slots__ = ("handlers", "loaded", "run", "text")

    def __init__(self, loaded: Any, out_types: Sequence[ArrayType], text: str) -> None:
        self.loaded = loaded
        self.text = text
        self.run = loaded.execute_sharded
        self.handlers = [_handler(t) for t in out_types]

    def __call__(self, buffers: Sequence[Any]) -> list[Any]:
        """Run on these buffers; buffers for the outputs."""
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


def compile_text(text: str, out_types: Sequence[ArrayType]) -> Executable:
    """Compile StableHLO text."""
    at = runtime()
    loaded = at.client.compile_and_load(text, at.devices, at.options)
    return Executable(loaded, out_types, text)
