"""Functions with rules of their own, at rest and transformed."""

import functools

import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.custom_functions import custom_jvp, custom_vjp


def tripled():
    f = custom_jvp(lambda x: x)
    f.defjvp(lambda primals, tangents: (f(*primals), 3 * tangents[0]))
    return f


def scaled():
    g = functools.partial(custom_vjp, nondiff_argnums=(1,))(lambda x, n: x)
    g.defvjp(lambda x, n: (g(x, n), None), lambda n, _, c: (n * c,))
    return g


def test_numbers_stay_numbers_at_rest():
    f, g = tripled(), scaled()
    assert f(1) == g(1, 2) == 1
    assert type(f(1)) is type(g(1, n=2)) is int
    assert type(f(2.0)) is type(g(2.0, 3)) is float
    anything = object()
    assert custom_jvp.__call__(f, anything) is anything


def test_the_rules_are_used_when_transformed():
    f, g = tripled(), scaled()
    assert (st.grad(f)(2.0), st.jit(st.grad(f))(2.0)) == (3, 3)
    assert (st.grad(g)(2.0, 5), st.grad(lambda x: g(x, n=7))(2.0)) == (5, 7)
    assert isinstance(st.jit(f)(1), st.Array)
    assert st.vmap(st.grad(f))(snp.ones(2)).tolist() == [3, 3]


def test_without_a_rule():
    with pytest.raises(AttributeError, match="custom_jvp: function has no rule"):
        custom_jvp(lambda x: x)(1.0)
    with pytest.raises(AttributeError, match="custom_vjp: function has no rules"):
        custom_vjp(lambda x: x)(1.0)
