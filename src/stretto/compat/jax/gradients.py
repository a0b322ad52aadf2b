"""``check_grads``: derivatives held to differences of values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto
from stretto._engine.api.graph import typeof
from stretto._engine.core.types import float0, is_inexact, kind_of
from stretto.compat.jax import tree_util

STEP = 1e-4
"""The step of the differences, as JAX's."""

_TOL = {2: 5e-2, 4: 2e-3, 8: 1e-5}
"""The tolerances by the bytes of a real number: what differences of it are exact to."""


def _random_like(x: Any, rng: np.random.RandomState) -> Any:
    dtype = np.dtype(typeof(x).dtype)
    if not is_inexact(dtype):
        return np.zeros(np.shape(x), float0)
    made = rng.standard_normal(np.shape(x))
    if kind_of(dtype) == "complex":
        made = made + 1j * rng.standard_normal(np.shape(x))
    return np.asarray(made).astype(dtype)


def _move(args: Any, tangents: Any, by: float) -> Any:
    def one(x: Any, t: Any) -> Any:
        return x if t.dtype == float0 else np.asarray(x + by * np.asarray(t), t.dtype)

    return tree_util.map_(one, args, tangents)


def _dot(a: Any, b: Any) -> Any:
    total = 0.0
    for x, y in zip(tree_util.leaves(a), tree_util.leaves(b), strict=True):
        if np.asarray(y).dtype != float0 and np.asarray(x).dtype != float0:
            total = total + np.sum(np.asarray(x, np.complex128) * np.asarray(y, np.complex128))
    return np.real(total)


def _tolerance(values: Any, given: float | None) -> float:
    if given is not None:
        return given
    sizes = [np.dtype(x.dtype) for x in map(np.asarray, tree_util.leaves(values))]
    real = [d.itemsize // (2 if d.kind == "c" else 1) for d in sizes if d != float0]
    return max([_TOL.get(size, 1e-5) for size in real], default=1e-5)


def _difference(f: Callable[..., Any], args: Any, tangents: Any, eps: float) -> Any:
    above, below = f(*_move(args, tangents, eps)), f(*_move(args, tangents, -eps))
    return tree_util.map_(
        lambda a, b: (
            (np.asarray(a) - np.asarray(b)) / (2 * eps)
            if is_inexact(np.asarray(a).dtype)
            else np.zeros(np.shape(a), float0)
        ),
        above,
        below,
    )


def _close(a: Any, b: Any, atol: float, rtol: float, what: str) -> None:
    for x, y in zip(tree_util.leaves(a), tree_util.leaves(b), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        if float0 not in (x.dtype, y.dtype):
            np.testing.assert_allclose(x, y, atol=atol, rtol=rtol, err_msg=what)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = STEP,
    err_msg: str = "",
) -> None:
    """Hold forward derivatives along a random direction to differences."""
    rng = np.random.RandomState(0)
    args = tuple(args)
    tangents = tree_util.map_(lambda x: _random_like(x, rng), args)
    value, tangent = f_jvp(args, tangents)
    expected = f(*args)
    atol, rtol = _tolerance(expected, atol), _tolerance(expected, rtol)
    _close(value, expected, atol, rtol, f"{err_msg} JVP primal")
    _close(tangent, _difference(f, args, tangents, eps), atol, rtol, f"{err_msg} JVP tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = STEP,
    err_msg: str = "",
) -> None:
    """Hold reverse derivatives, multiplied by a random direction, to differences."""
    rng = np.random.RandomState(0)
    args = tuple(args)
    value, back = f_vjp(*args)
    expected = f(*args)
    atol, rtol = _tolerance(expected, atol), _tolerance(expected, rtol)
    _close(value, expected, atol, rtol, f"{err_msg} VJP primal")
    tangents = tree_util.map_(lambda x: _random_like(x, rng), args)
    moved = _difference(f, args, tangents, eps)
    cotangents = tree_util.map_(lambda x: _random_like(x, rng), expected)
    one = _dot(tangents, back(cotangents))
    np.testing.assert_allclose(
        one, _dot(moved, cotangents), atol=atol, rtol=rtol, err_msg=f"{err_msg} VJP cotangent"
    )


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Hold derivatives up to an order, forward and reverse, to differences.

    Directions are JAX's: those of derivatives of higher orders are the arguments and the value.

    Args:
        f: the function.
        args: where.
        order: up to which order.
        modes: of ``"fwd"`` and ``"rev"``.
        atol: the absolute tolerance; by default one for the dtype.
        rtol: the relative tolerance; by default one for the dtype.
        eps: the step of the differences.

    Raises:
        AssertionError: they differ.
    """
    modes = [modes] if isinstance(modes, str) else list(modes)
    step = STEP if eps is None else eps

    def check(f: Callable[..., Any], args: tuple[Any, ...], order: int, text: str) -> None:
        if "fwd" in modes:
            jvp = lambda primals, tangents: stretto.jvp(f, primals, tangents)
            check_jvp(f, jvp, args, atol, rtol, step, text)
            if order > 1:
                check(jvp, (args, args), order - 1, f"jvp of {text}")
        if "rev" in modes:
            vjp = lambda *primals: stretto.vjp(f, *primals)
            check_vjp(f, vjp, args, atol, rtol, step, text)
            if order > 1:

                def pulled(*xs: Any) -> Any:
                    value, back = stretto.vjp(f, *xs)
                    return back(value)

                check(pulled, args, order - 1, f"vjp of {text}")

    check(f, tuple(args), order, getattr(f, "__name__", "the function"))
