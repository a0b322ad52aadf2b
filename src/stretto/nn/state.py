"""``stateful_call``: a module's output, and the module with the buffers that the call updated."""

from __future__ import annotations

from typing import Any, TypeVar

from stretto.nn.module import Module
from stretto.nn.updating import updates_of

__all__ = ["stateful_call"]

_M = TypeVar("_M", bound=Module)


def stateful_call(module: _M, /, *args: Any, **kwargs: Any) -> tuple[Any, _M]:
    """Call a module, and return its output and the module with updated buffers.

    The module returned has what the call assigns to buffers (running statistics); the one passed in
    does not change. So this works inside every transformation.

    Args:
        module: the module to call.
        *args: what the module takes.
        **kwargs: the same, by name.

    Returns:
        The module's output, and the module with its new buffers.

    Raises:
        TypeError: ``module`` is not a module.

    >>> import stretto as st
    >>> from stretto import nn
    >>> norm = nn.BatchNorm1d(2)
    >>> step = st.jit(lambda norm, x: nn.stateful_call(norm, x)[1])
    >>> after = step(norm, st.numpy.array([[1.0, 0.0], [3.0, 0.0]]))
    >>> norm.running_mean, after.running_mean
    (Array([0., 0.], dtype=float32), Array([0.2, 0. ], dtype=float32))
    """
    if not isinstance(module, Module):
        raise TypeError(f"stateful_call: expected a module, got {type(module).__name__}")
    updated = module.clone()
    with updates_of(updated.modules()):
        out = updated(*args, **kwargs)
    return out, updated
