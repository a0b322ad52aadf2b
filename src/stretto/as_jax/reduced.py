"""Transformations of derivatives, with JAX's parameter ``reduce_axes``, which has to be empty.

Next, read ``presented``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto

__all__ = ["grad", "linear_transpose", "value_and_grad", "vjp"]


def _refuse(reduce_axes: Any, caller: str) -> None:
    if tuple(reduce_axes):
        raise NotImplementedError(
            f"jax.{caller}: reduce_axes={reduce_axes!r} is not in Stretto, nor in JAX any more: "
            f"sum with jax.lax.psum"
        )


def grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """``stretto.grad`` with JAX's parameters."""
    _refuse(reduce_axes, "grad")
    return stretto.grad(fun, argnums, has_aux, holomorphic, allow_int)


def value_and_grad(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """``stretto.value_and_grad`` with JAX's parameters."""
    _refuse(reduce_axes, "value_and_grad")
    return stretto.value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Any = ()
) -> Any:
    """``stretto.vjp`` with JAX's parameters."""
    _refuse(reduce_axes, "vjp")
    return stretto.vjp(fun, *primals, has_aux=has_aux)


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Any = ()) -> Any:
    """``stretto.linear_transpose`` with JAX's parameters."""
    _refuse(reduce_axes, "linear_transpose")
    return stretto.linear_transpose(fun, *primals)
