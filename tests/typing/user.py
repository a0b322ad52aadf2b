"""What a user's script tells a type checker: read by ``test_typing``, and run by it.

``assert_type`` has the expected types; a comment that ignores an error where there is none is an
error itself, so that the lines in ``refused`` are known to be refused.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, assert_type

import numpy as np

import stretto as st
from stretto.typing import Array, ArrayLike

if TYPE_CHECKING:
    from stretto.stages import Compiled, Lowered


class Params(NamedTuple):
    w: Array
    b: Array


@st.jit
def affine(params: Params, x: Array) -> Array:
    return params.w @ x + params.b


@st.jit(static_argnums=1)
def power(x: Array, n: int) -> Array:
    return x**n


def loss(params: Params, x: Array) -> Array:
    return (affine(params, x) ** 2).sum()


class Model:
    @st.jit
    def scaled(self, x: Array, by: float = 2.0) -> Array:
        return by * x

    @functools.partial(st.jit, static_argnames="n")
    def again(self, x: Array, n: int) -> Array:
        return x * n


@st.custom_jvp
def sine(x: Array) -> Array:
    return x


@sine.defjvp
def sine_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return sine(*primals), tangents[0]


@st.custom_vjp
def halved(x: Array, by: int) -> Array:
    return x / by


@st.config(enable_x64=True)
def wide(x: Array, n: int = 1) -> Array:
    return x * n


def arrays(x: Array, like: ArrayLike) -> None:
    assert_type(x.sum().reshape(1, 1) @ x.reshape(1, -1), Array)
    assert_type(x.mean(axis=(0,), keepdims=True).astype("float32"), Array)
    assert_type(x.at[0].set(1.0).at[...].add(x), Array)
    assert_type(x[1:, None] * x[x > 0].max(), Array)
    assert_type(2 - x, Array)
    assert_type(-abs(x) // 2, Array)
    assert_type(x == like, Array)
    assert_type(divmod(x, 2), tuple[Array, Array])
    assert_type(list(x), list[Array])
    assert_type(x.T.shape, tuple[int, ...])
    assert_type(x.nonzero(), tuple[Array, ...])
    assert_type(x.block_until_ready(), Array)
    assert_type(x.device, st.Device)
    assert_type(float(x.sum()), float)
    assert_type(len(x), int)
    assert_type(np.asarray(x).ndim, int)


def jitted(params: Params, x: Array) -> None:
    assert_type(affine(params, x), Array)
    assert_type(affine(params, x=x), Array)
    assert_type(power(x, 2), Array)
    assert_type(Model().scaled(x), Array)
    assert_type(Model().scaled(x, by=3.0), Array)
    lowered = affine.lower(params, x)
    compiled = lowered.compile()
    if TYPE_CHECKING:
        assert_type(lowered, Lowered[Array])
        assert_type(compiled, Compiled[Array])
    assert_type(compiled(params, x), Array)
    assert_type(affine.trace(params, x).lower().as_text(), str)


def derivatives(params: Params, x: Array) -> None:
    def cubed(x: float) -> float:
        return x**3

    def with_aux(params: Params, x: Array) -> tuple[Array, int]:
        return loss(params, x), 1

    def tree(params: Any, x: Array) -> Array:
        return loss(params, x)

    assert_type(st.grad(loss)(params, x), Params)
    assert_type(st.grad(loss)(params, x=x), Params)
    assert_type(st.value_and_grad(loss)(params, x), tuple[Array, Params])
    assert_type(st.jit(st.value_and_grad(loss))(params, x), tuple[Array, Params])
    assert_type(st.grad(cubed)(2.0), Array)
    # mypy does not choose between overloads by an Any, and takes the result for untyped.
    assert_type(st.grad(tree)(params, x).w, Any)  # type: ignore[no-untyped-call]
    assert_type(st.grad(with_aux, has_aux=True)(params, x), tuple[Params, int])
    value, slope = st.jvp(sine, (x,), (x,))
    assert_type(value, Array)
    assert_type(slope, Array)
    value, back = st.vjp(loss, params, x)
    assert_type(value, Array)
    assert_type(back(value), tuple[Any, ...])
    value, forward = st.linearize(sine, x)
    assert_type(forward(x), Array)
    st.jacrev(sine)(x)
    st.hessian(loss)(params, x)


def others(params: Params, x: Array) -> None:
    assert_type(st.vmap(loss, in_axes=(None, 0))(params, x[None]), Array)
    assert_type(st.checkpoint(loss)(params, x), Array)
    assert_type(st.named_call(loss, name="loss")(params, x=x), Array)
    assert_type(sine(x), Array)
    assert_type(wide(x, n=2), Array)
    assert_type(st.block_until_ready(params), Params)
    kept: Callable[[Array, int], Array] = wide
    assert_type(kept(x, 2), Array)


def refused(params: Params, x: Array) -> None:
    affine(params, x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    affine(params)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    affine(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    power(x, "2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Model().scaled(x, 1.0, 2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    st.grad(loss)(params, x, x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    st.vmap(loss)(params)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    st.checkpoint(loss)(x, x)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    wide(x, m=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    halved(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    x.sum(axes=0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    x.total()  # type: ignore[attr-defined]  # pyright: ignore
    x[0] = 1.0  # type: ignore[index]  # pyright: ignore[reportIndexIssue]
    x + "1"  # type: ignore[operator]  # pyright: ignore
