"""Transformations of derivatives, with JAX's parameter ``reduce_axes``, which has to be empty."""

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


def _with_axes(derivative: Callable[..., Any]) -> Callable[..., Any]:
    """``stretto.grad`` or ``value_and_grad`` with JAX's parameters."""
    name = derivative.__name__

    def transformed(
        fun: Callable[..., Any],
        argnums: int | Sequence[int] = 0,
        has_aux: bool = False,
        holomorphic: bool = False,
        allow_int: bool = False,
        reduce_axes: Sequence[Any] = (),
    ) -> Callable[..., Any]:
        _refuse(reduce_axes, name)
        return derivative(fun, argnums, has_aux, holomorphic, allow_int)

    transformed.__name__ = transformed.__qualname__ = name
    transformed.__doc__ = f"``stretto.{name}`` with JAX's parameters."
    return transformed


grad, value_and_grad = _with_axes(stretto.grad), _with_axes(stretto.value_and_grad)


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
