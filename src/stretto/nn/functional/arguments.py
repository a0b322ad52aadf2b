"""What functions of images and signals share: one number per axis, and inputs without a batch.

Read ``convolution`` and ``pooling`` next.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import as_inexact
from stretto._engine.ops.layout import reshape

__all__ = ["as_float", "batched", "numbers", "per_axis", "unbatched"]


def numbers(value: object, caller: str, name: str) -> tuple[int, ...]:
    """One integer or a sequence of them, as a tuple."""
    values = value if isinstance(value, (tuple, list)) else (value,)
    return integers(values, caller, name)


def per_axis(value: object, n: int, caller: str, name: str, least: int = 1) -> tuple[int, ...]:
    """``n`` integers, of one that stands for all or of one for each; none below ``least``."""
    try:
        values = numbers(value, caller, name)
    except TypeError:
        values = ()
    if len(values) == 1:
        values *= n
    if len(values) != n or min(values, default=least) < least:
        raise ValueError(
            f"{caller}: {name} must be an integer of at least {least}, or {n} of them; got "
            f"{value!r}"
        )
    return values


def batched(x: ArrayLike, n: int, caller: str) -> tuple[Array, bool]:
    """``x`` as (batch, channels, and ``n`` spatial axes), and whether it had no batch.

    Raises ``ValueError`` for another rank.
    """
    value = as_value(x, caller, "input")
    if value.ndim == n + 2:
        return value, False
    if value.ndim == n + 1:
        return reshape(value, (1, *value.shape)), True
    raise ValueError(
        f"{caller}: input must have {n + 2} axes (batch, channels, {n} spatial) or {n + 1} "
        "(without "
        f"the batch), got {value.type}"
    )


def unbatched(x: Array, single: bool) -> Array:
    """``x`` without the batch axis that ``batched`` added."""
    return reshape(x, x.shape[1:]) if single else x


def as_float(x: ArrayLike, caller: str, name: str = "input") -> Array:
    """The value, with integers as the default float."""
    value: Any = as_inexact(x, caller, name)
    return value
