"""Functions with the user's own derivatives, which at rest get and give what JAX's do.

``stretto``'s make arrays of numbers; here a number stays what it is until something is transformed.
"""

from __future__ import annotations

from typing import Any

import stretto
from stretto._engine.core.interpreter import state

__all__ = ["custom_jvp", "custom_vjp"]


class custom_jvp(stretto.custom_jvp[..., Any]):
    """``stretto.custom_jvp``; at rest its function is called with the arguments as they are."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value."""
        return _called(self, super().__call__, args, kwargs)


class custom_vjp(stretto.custom_vjp[..., Any]):
    """``stretto.custom_vjp``; at rest its function is called with the arguments as they are."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value."""
        return _called(self, super().__call__, args, kwargs)


def _called(function: Any, transformed: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not state.interpreter.at_rest:
        return transformed(*args, **kwargs)
    function.check_rules()
    return function.fun(*args, **kwargs)
