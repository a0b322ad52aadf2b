"""Arguments that say how a result is to be split over devices, where they take None alone.

Layer 2 (ops). ``sharding_constraint`` has the operation that says it of any value.
"""

from __future__ import annotations

from typing import Any

__all__ = ["refuse_sharding"]


def refuse_sharding(caller: str, **arguments: Any) -> None:
    """Raise ``NotImplementedError`` unless the argument, passed by its name, is None."""
    for name, value in arguments.items():
        if value is not None:
            raise NotImplementedError(
                f"{caller}: {name} must be None: constrain the result instead, "
                f"stretto.lax.with_sharding_constraint(result, {value!r})"
            )
