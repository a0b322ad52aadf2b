"""How the members' inputs lie in one array: one member's batch after the other, or along an axis.

Tiled, an input is (members × batch, ...), and ordinary layers in between, such as batch
normalization and pooling, take it as one batch; split, it is (members, batch, ...).
"""

from __future__ import annotations

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.layout import reshape
from stretto.nn.inputs import positive, refuse
from stretto.nn.module import Module

__all__ = ["repeat_members", "split_members"]


def repeat_members(x: ArrayLike, num_estimators: int) -> Array:
    """Tile a batch, so that each member gets the same.

    Args:
        x: (batch, ...).
        num_estimators: how many members.

    Returns:
        (num_estimators × batch, ...).

    Raises:
        ValueError: ``x`` has no axis of a batch, or ``num_estimators`` is less than 1.

    >>> import stretto.numpy as snp
    >>> from stretto.ensemble.layers import repeat_members
    >>> repeat_members(snp.array([[1.0], [2.0]]), 2)[:, 0]
    Array([1., 2., 1., 2.], dtype=float32)
    """
    positive("repeat_members", num_estimators=num_estimators)
    values = as_value(x, "repeat_members")
    if not values.ndim:
        raise ValueError(f"repeat_members: x must have a batch axis, got {values.type}")
    return merged(broadcast_to(values, (num_estimators, *values.shape)))


def split_members(x: ArrayLike, num_estimators: int) -> Array:
    """Put the members along an axis of their own.

    Args:
        x: (num_estimators × batch, ...).
        num_estimators: how many members.

    Returns:
        (num_estimators, batch, ...).

    Raises:
        ValueError: axis 0 does not hold equally many for each member.

    >>> import stretto.numpy as snp
    >>> from stretto.ensemble.layers import split_members
    >>> split_members(snp.arange(6.0), 2)
    Array([[0., 1., 2.],
           [3., 4., 5.]], dtype=float32)
    """
    positive("split_members", num_estimators=num_estimators)
    values = as_value(x, "split_members")
    if not values.ndim or values.shape[0] % num_estimators:
        raise ValueError(
            f"split_members: axis 0 must hold a batch for each of {num_estimators} members, got "
            f"{values.type}"
        )
    return reshape(values, (num_estimators, values.shape[0] // num_estimators, *values.shape[1:]))


def merged(x: Array) -> Array:
    """Split to tiled."""
    return reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def by_member(layer: Module, x: ArrayLike, num_estimators: int, tiled: int) -> tuple[Array, bool]:
    """The input split, and whether it came tiled, which is to have ``tiled`` axes.

    Raises ``ValueError`` that names the layer.
    """
    values = as_value(x, type(layer).__name__, "input")
    if values.ndim == tiled and values.shape[0] % num_estimators == 0:
        return split_members(values, num_estimators), True
    if values.ndim <= tiled or values.shape[0] != num_estimators:
        refuse(
            layer,
            f"({num_estimators} members × batch, ...) of {tiled} axes, or ({num_estimators} "
            f"members, batch, ...) of more (repeat_members gives each member the same batch)",
            values,
        )
    return values, False


def spread(values: Array, ndim: int, place: int) -> Array:
    """(members, channels) as an array of ``ndim`` axes, channels along ``place``."""
    shape = [values.shape[0], *[1] * (ndim - 1)]
    shape[place] = values.shape[1]
    return reshape(values, tuple(shape))
