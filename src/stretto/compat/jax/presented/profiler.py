"""``jax.profiler``."""

from __future__ import annotations

from typing import Any

from stretto.compat.jax.naming import names_of
from stretto.compat.jax.refused import RefusedName
from stretto.profiler import TraceAnnotation

__all__ = ["StepTraceAnnotation", "device_memory_profile", "save_device_memory_profile"]

_MEMORY = "memory is told by device.memory_stats(), and by st.explain(f)(...) for a function"
device_memory_profile = RefusedName("jax.profiler.device_memory_profile", _MEMORY)
save_device_memory_profile = RefusedName("jax.profiler.save_device_memory_profile", _MEMORY)
_SERVER = "traces are written by jax.profiler.trace(folder)"
start_server = RefusedName("jax.profiler.start_server", _SERVER)
stop_server = RefusedName("jax.profiler.stop_server", _SERVER)

__getattr__, __dir__ = names_of("stretto.profiler")


class StepTraceAnnotation(TraceAnnotation):
    """A name in traces for a step, with its number.

    Args:
        name: the name.
        **kwargs: ``step_num``, and what else is to be said.
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)
