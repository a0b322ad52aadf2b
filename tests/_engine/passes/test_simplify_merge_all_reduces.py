"""Sums over devices that are taken at once: how many there are left, and the values."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P, lax
from stretto._engine.passes.simplify import merge_all_reduces
from tests.meshes import mesh

pytestmark = pytest.mark.devices

A = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)


def mapped(f, outs):
    return st.jit(st.shard_map(f, mesh=mesh(x=2, y=4), in_specs=P("x", "y"), out_specs=outs))


def collectives(f):
    text = f.lower(A).compile().as_text()
    return re.findall(r"\b(all-reduce|all-gather|reduce-scatter|all-to-all)(?:-start)?\(", text)


def test_independent_sums_are_one():
    f = mapped(lambda a: lax.psum({"a": a, "b": a.sum(), "c": a * 2}, ("x", "y")), P())
    assert collectives(f) == ["all-reduce"]
    out = f(A)
    np.testing.assert_allclose(out["b"], A.sum(), rtol=1e-5)
    blocks = A.reshape(2, 4, 4, 2).sum((0, 2))
    np.testing.assert_allclose(out["a"], blocks, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out["c"], 2 * blocks, rtol=1e-5, atol=1e-6)


def test_a_sum_that_needs_another_comes_after_it():
    def f(a):
        mean = lax.pmean(a.mean(), ("x", "y"))
        return mean, lax.pmean(((a - mean) ** 2).mean(), ("x", "y"))

    g = mapped(f, P())
    assert collectives(g) == ["all-reduce", "all-reduce"]
    mean, variance = g(A)
    np.testing.assert_allclose(mean, A.mean(), rtol=1e-5)
    np.testing.assert_allclose(variance, A.var(), rtol=1e-5)


def test_dtypes_and_axes_are_kept_apart():
    def f(a):
        count = lax.psum((a > 0).sum(), ("x", "y"))
        return lax.psum(a, "x"), lax.psum(a, "y"), count

    g = mapped(f, (P(None, "y"), P("x"), P()))
    assert len(collectives(g)) == 3
    rows, columns, count = g(A)
    np.testing.assert_allclose(rows, A.reshape(2, 4, 8).sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(columns, A.reshape(8, 4, 2).sum(1), rtol=1e-5, atol=1e-6)
    assert count == (A > 0).sum()


def test_the_sum_of_what_all_have_is_a_multiple():
    g = mapped(lambda a: lax.psum(snp.full(3, 0.5), ("x", "y")), P())
    assert collectives(g) == []
    np.testing.assert_array_equal(g(A), [4.0, 4.0, 4.0])


def test_nothing_is_left_of_the_sums_that_were_joined():
    """Also where what is summed is made of what depends on nothing, as a device's number."""

    def f(a):
        numbered = lax.axis_index("y") * a
        return lax.psum((a, numbered), ("x", "y"))

    g = mapped(f, P())
    assert g.lower(A).as_text().count("stablehlo.all_reduce") == 1
    total, numbered = g(A)
    blocks = A.reshape(2, 4, 4, 2)
    np.testing.assert_allclose(total, blocks.sum((0, 2)), rtol=1e-5, atol=1e-6)
    weighted = blocks * np.arange(4, dtype=np.float32)[:, None]
    np.testing.assert_allclose(numbered, weighted.sum((0, 2)), rtol=1e-5, atol=1e-5)


def test_in_loops():
    def f(a):
        def body(total, row):
            sums = lax.psum((row, row * row), ("x", "y"))
            return total + sums[0].sum(), sums[1]

        return lax.scan(body, snp.zeros(()), a)

    g = mapped(f, P())
    assert collectives(g) == ["all-reduce"]
    total, squares = g(A)
    np.testing.assert_allclose(total, A.sum(), rtol=1e-4)
    np.testing.assert_allclose(squares, (A**2).reshape(2, 4, 4, 2).sum((0, 2)), rtol=1e-5)


def test_gradients_of_what_all_share_are_one():
    params = {"w": np.ones((2, 3), np.float32), "b": np.zeros(3, np.float32)}

    def loss(p, a):
        part = lambda p, a: lax.pmean((snp.tanh(a @ p["w"] + p["b"]) ** 2).mean(), "y")
        return st.shard_map(part, mesh=mesh(y=4), in_specs=(P(), P("y")), out_specs=P())(p, a)

    step = st.jit(st.value_and_grad(loss))
    a = A.reshape(32, 2)
    text = step.lower(params, a).compile().as_text()
    assert len(re.findall(r"\ball-reduce(?:-start)?\(", text)) <= 2
    value, grads = step(params, a)
    expected, want = st.value_and_grad(lambda p, a: (snp.tanh(a @ p["w"] + p["b"]) ** 2).mean())(
        params, a
    )
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for name in params:
        np.testing.assert_allclose(grads[name], want[name], rtol=1e-4, atol=1e-6)


def test_a_program_with_one_sum_stays_as_it_is():
    program = st.make_graph(mapped(lambda a: lax.psum(a, "x"), P(None, "y")))(A)
    assert merge_all_reduces(program) is program
