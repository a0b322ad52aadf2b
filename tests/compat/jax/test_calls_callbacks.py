"""Python called from programs, by JAX's conventions."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax import calls

SCALAR = st.ShapeDtypeStruct((), np.float32)


class Own(Exception):
    """An error of a library's own."""


def failing(x):
    raise Own("too large")


@pytest.mark.parametrize("way", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_errors_are_of_the_runtime(way):
    pure = way(lambda x: calls.pure_callback(failing, SCALAR, x))
    io = way(lambda x: calls.io_callback(failing, None, x))
    look = way(lambda x: calls.debug_callback(failing, x))
    for f in (pure, io, look):
        with pytest.raises(RuntimeError, match=r"test_calls_callbacks.Own: too large") as caught:
            f(snp.ones(()))
        assert not isinstance(caught.value, Own)


@pytest.mark.parametrize("way", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_no_array_is_weak(way):
    seen = []

    def look(x, *, n):
        seen.append((x.weak_type, n.weak_type, x.tolist()))
        return x

    out = way(lambda x: calls.pure_callback(look, SCALAR, x, n=3))(2.0)
    assert seen == [(False, False, 2.0)] and out == 2


def test_prints_do_not_say_which_traced_values_were_weak(capsys):
    show = lambda x: calls.debug_print("{x} {n!r} {word}", x=[x], n=x, word="text")
    st.jit(lambda: show(snp.asarray(2.0)))()
    st.jit(show)(2.0)
    show(snp.asarray(2.0))
    assert capsys.readouterr().out.splitlines() == [
        *["[Array(2., dtype=float32)] Array(2., dtype=float32) text"] * 2,
        "[Array(2., dtype=float32, weak_type=True)] Array(2., dtype=float32, weak_type=True) text",
    ]


def test_examples():
    doubled = st.vmap(lambda x: calls.pure_callback(lambda x: 2 * x, SCALAR, x, vectorized=False))
    assert doubled(snp.arange(2.0)).tolist() == [0, 2]


def test_what_is_no_function():
    with pytest.raises(TypeError, match="callback must be a function"):
        calls.pure_callback(3, SCALAR, 1.0)
