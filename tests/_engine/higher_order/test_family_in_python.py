"""Branches and loops under ``disable_jit``: functions are called with the values of each step."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax


@pytest.fixture(autouse=True)
def disabled():
    with st.disable_jit():
        yield


def test_only_the_branch_that_is_taken_is_called():
    called = []

    def branch(name, factor):
        return lambda x: (called.append((name, float(x))), x * factor)[1]

    branches = [branch(str(i), i) for i in range(3)]
    assert float(lax.cond(True, branches[1], branches[2], 3.0)) == 3.0
    assert float(lax.cond(snp.array(0), branches[1], branches[2], 3.0)) == 6.0
    assert float(lax.switch(7, branches, 3.0)) == 6.0
    assert float(lax.switch(-1, branches, operand=3.0)) == 0.0
    assert float(lax.cond(False, 1.0, branches[1], 5.0, branches[2])) == 10.0
    assert called == [("1", 3.0), ("2", 3.0), ("2", 3.0), ("0", 3.0), ("2", 5.0)]


def test_loops_call_their_functions_at_each_step():
    seen = []

    def note(x):
        seen.append(float(x))
        return x

    assert int(lax.while_loop(lambda i: i < 3, lambda i: note(i) + 1, 0)) == 3
    assert float(lax.fori_loop(0, 3, lambda i, x: x + note(i), 0.5)) == 3.5
    np.testing.assert_array_equal(lax.map(lambda x: note(x) * 2, snp.arange(3.0)), [0, 2, 4])
    assert seen == [0, 1, 2] * 3
    seen.clear()
    total, ys = lax.scan(lambda c, x: (c + x, note(c)), 1.0, snp.array([1, 2, 4]), reverse=True)
    assert float(total) == 8.0 and seen == [1, 5, 7]
    np.testing.assert_array_equal(ys, [7, 5, 1])


def test_combinations_are_of_values():
    sizes = []

    def combine(x, y):
        sizes.append(float(x.sum() + y.sum()))
        return x + y

    np.testing.assert_array_equal(lax.associative_scan(combine, snp.arange(5)), [0, 1, 3, 6, 10])
    assert sizes


def test_results_are_those_of_the_recorded_loops():
    xs = {"a": snp.arange(6.0).reshape(3, 2), "b": snp.arange(3)}

    def step(carry, x):
        return {"s": carry["s"] + x["a"].sum() * x["b"]}, (x["a"] * carry["s"], None)

    def run():
        looped = lax.scan(step, {"s": 2.0}, xs)
        mapped = lax.map(lambda x: (x["a"] + 1, x["b"]), xs)
        along = lax.map(lambda x: x * 2, xs["a"], in_axes=1, out_axes=-1)
        empty = lax.scan(lambda c, x: (c, x), 0.0, snp.zeros((0, 2)))
        carried = lax.scan(lambda c, _: (c + 1, c), 0, length=4)
        batched = lax.map(lambda x: x.sum(), xs["a"], batch_size=2)
        return looped, mapped, along, empty, carried, batched

    ours = run()
    with st.disable_jit(False):
        theirs = run()
    assert st.tree.structure(ours) == st.tree.structure(theirs)
    for one, other in zip(st.tree.leaves(ours), st.tree.leaves(theirs), strict=True):
        assert one.type == other.type
        np.testing.assert_array_equal(one, other)


def cubed(x):
    return lax.fori_loop(0, 2, lambda _, y: y * x, x)


def to_a_power(x):
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, 1.0))[1]


def by_sign(x):
    return lax.cond(x > 0, lambda x: x**3, lambda x: -x, x)


def summed(x):
    return lax.scan(lambda c, y: (c + y * x**2, None), 0.0, snp.array([0.25, 0.75]) * x)[0]


@pytest.mark.parametrize("f", [cubed, to_a_power, by_sign, summed])
def test_transformations(f):
    x = snp.array([1.0, 2.0])
    np.testing.assert_allclose([f(v) for v in x], [1, 8])
    np.testing.assert_allclose(st.jit(st.vmap(f))(x), [1, 8], rtol=1e-6)
    np.testing.assert_allclose(st.grad(f)(2.0), 12.0, rtol=1e-6)
    np.testing.assert_allclose(st.grad(st.grad(f))(2.0), 12.0, rtol=1e-6)
    np.testing.assert_allclose(st.vmap(st.grad(f))(x), [3, 12], rtol=1e-6)
    np.testing.assert_allclose(st.jvp(f, (2.0,), (1.0,))[1], 12.0, rtol=1e-6)


def test_what_is_mapped_is_recorded():
    x = snp.array([-1.0, 0.5, 2.0])
    branch = lambda x: lax.cond(x > 0, lambda x: x, lambda x: -x, x)
    np.testing.assert_array_equal(st.vmap(branch)(x), [1.0, 0.5, 2.0])
    count = lambda x: lax.while_loop(lambda s: s < 3, lambda s: s + 1, x)
    np.testing.assert_array_equal(st.vmap(count)(x), [3.0, 3.5, 3.0])
    chosen = lambda i: lax.switch(i, [lambda: 1.0, lambda: 2.0])
    np.testing.assert_array_equal(st.vmap(chosen)(snp.array([1, 0])), [2.0, 1.0])


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: lax.while_loop(lambda i: i < 3, lambda i: (i + 1,), 0),
            "while_loop: the carry returned must have the structure of the one given",
        ),
        (
            lambda: lax.scan(lambda c, x: ((c, x), x), 0.0, snp.ones(2)),
            "scan: the carry returned must have the structure of the one given",
        ),
        (lambda: lax.scan(lambda c, x: c, 0.0, snp.ones(2)), r"must return a pair \(carry, y\)"),
        (lambda: lax.cond(True, lambda: "text", lambda: 1.0), "must be an array or a number"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(TypeError, match=message):
        call()
