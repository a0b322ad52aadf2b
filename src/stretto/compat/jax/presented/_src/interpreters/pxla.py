"""``jax._src.interpreters.pxla``: tables that clients add to, and which nothing here reads."""

from typing import Any

__all__ = ["global_result_handlers"]

global_result_handlers: dict[Any, Any] = {}
