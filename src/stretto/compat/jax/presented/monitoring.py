"""``jax.monitoring``: events that clients record, given to the listeners that are registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "clear_event_listeners",
    "record_event",
    "record_event_duration_secs",
    "record_event_time_span",
    "record_scalar",
    "register_event_duration_secs_listener",
    "register_event_listener",
    "register_event_time_span_listener",
    "register_scalar_listener",
    "unregister_event_duration_listener",
    "unregister_event_listener",
    "unregister_event_time_span_listener",
    "unregister_scalar_listener",
]

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
