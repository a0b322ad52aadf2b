"""Small modules of the runtime: events, profiles, processes, backends, compilation, tracebacks.

``jax.monitoring`` gives the events that clients record to the listeners that are registered.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import stretto
from stretto._engine.xla.device import default_backend
from stretto.compat.jax.calls import Backend
from stretto.compat.jax.modules import RefusedName
from stretto.numpy import asarray
from stretto.profiler import TraceAnnotation

_listeners: dict[str, list[Callable[..., None]]] = {}


def _recorder(kind: str) -> Callable[..., None]:
    def record(event: str, *values: Any, **kwargs: Any) -> None:
        for listener in _listeners.get(kind, ()):
            listener(event, *values, **kwargs)

    return record


def _remover(kind: str) -> Callable[[Callable[..., None]], None]:
    def unregister(callback: Callable[..., None]) -> None:
        listeners = _listeners.get(kind, [])
        if callback not in listeners:
            raise ValueError(f"jax.monitoring: {callback!r} is not registered for this kind")
        listeners.remove(callback)

    return unregister


def _registrar(kind: str) -> Callable[[Callable[..., None]], None]:
    def register(callback: Callable[..., None]) -> None:
        _listeners.setdefault(kind, []).append(callback)

    return register


record_event, register_event_listener = _recorder("event"), _registrar("event")
record_event_duration_secs = _recorder("duration")
register_event_duration_secs_listener = _registrar("duration")
record_event_time_span = _recorder("span")
register_event_time_span_listener = _registrar("span")
record_scalar, register_scalar_listener = _recorder("scalar"), _registrar("scalar")
unregister_event_listener, unregister_scalar_listener = _remover("event"), _remover("scalar")
unregister_event_duration_listener = _remover("duration")
unregister_event_time_span_listener = _remover("span")


def clear_event_listeners() -> None:
    """Forget all listeners."""
    _listeners.clear()


_MEMORY = "memory is told by device.memory_stats(), and by st.explain(f)(...) for a function"
device_memory_profile = RefusedName("jax.profiler.device_memory_profile", _MEMORY)
save_device_memory_profile = RefusedName("jax.profiler.save_device_memory_profile", _MEMORY)
_SERVER = "traces are written by jax.profiler.trace(folder)"
start_server = RefusedName("jax.profiler.start_server", _SERVER)
stop_server = RefusedName("jax.profiler.stop_server", _SERVER)


class StepTraceAnnotation(TraceAnnotation):
    """A name in traces for a step, with its number.

    Args:
        name: the name.
        **kwargs: ``step_num``, and what else is to be said.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def get_backend(platform: str | None = None) -> Backend:
    """Return the kind of devices of this name, or the default."""
    return Backend(platform or default_backend())


def backends() -> dict[str, Backend]:
    """Return all kinds of devices, by name."""
    return {default_backend(): get_backend()}


class _State:
    """Says which process of several this is."""

    client = None

    @property
    def process_id(self) -> int:
        return stretto.distributed.process_index()

    @property
    def num_processes(self) -> int:
        return stretto.distributed.process_count()


global_state = _State()


_WHY = "compiling is inside of stretto.jit"
backend_compile_and_load = RefusedName("jax._src.compiler.backend_compile_and_load", _WHY)
compile_or_get_cached = RefusedName("jax._src.compiler.compile_or_get_cached", _WHY)


define_prng_impl = RefusedName(
    "jax.extend.random.define_prng_impl", "the implementations of keys are those of st.random"
)


canonicalize_dtype_handlers: dict[type, Any] = {np.ndarray: asarray}
"""The functions, by class, that make an array of one.

Kept for libraries that add classes; Stretto's functions take whatever has ``__array__``.
"""


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive."""
    return prim.bind(*args, **params)


global_result_handlers: dict[Any, Any] = {}


_exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Note a file whose frames are of no interest to users."""
    _exclude_paths.append(path)


def include_frame(frame: FrameType) -> bool:
    """Say whether a frame is of interest to users."""
    return not any(frame.f_code.co_filename.startswith(path) for path in _exclude_paths)


def api_boundary(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the function itself: Stretto's own functions trim tracebacks."""
    del options
    return fun
