"""Running combinations: the loop's values at any size, derivatives, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.laws import b1, bf16, c64, check, f32, f64, i32
from tests.any_size import holds

associative_scan = st.lax.associative_scan
RUNS = pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])


def affine(x, y):
    """(a, b) then (c, d): a c z + b c + d. Associative, and not commutative."""
    return {"a": x["a"] * y["a"], "b": x["b"] * y["a"] + y["b"]}


def pairs(a, b, **options):
    return associative_scan(affine, {"a": a, "b": b}, **options)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
@RUNS
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
def test_it_is_the_loop(run, n, reverse):
    a, b = np.random.default_rng(n).uniform(-1, 1, (2, n, 2)).astype(np.float32)
    got = run(lambda a, b: pairs(a, b, reverse=reverse))(a, b)
    order = range(n)[:: -1 if reverse else 1]
    want = {"a": np.zeros((n, 2)), "b": np.zeros((n, 2))}
    total = {"a": np.ones(2), "b": np.zeros(2)}
    for k in order:
        total = affine(total, {"a": a[k], "b": b[k]})
        want["a"][k], want["b"][k] = total["a"], total["b"]
    for name, x in want.items():
        np.testing.assert_allclose(got[name], x, rtol=1e-5, atol=1e-6)


def test_laws():
    check(pairs, [(f64(5, 2), f64(5, 2)), (f32(4), f32(4)), (c64(3), c64(3)), (f32(0), f32(0))])
    check(lambda a, b: pairs(a, b, axis=-1, reverse=True), [(f64(2, 6), f64(2, 6))])
    check(lambda x: associative_scan(st.lax.max, x, axis=1), [f32(2, 5), i32(2, 3), bf16(1, 4)])
    check(lambda x: associative_scan(st.lax.bitwise_xor, x), [b1(7), i32(4)])


@RUNS
def test_products_of_matrices(run):
    with st.config(enable_x64=True):
        x = snp.array(np.random.default_rng(0).normal(size=(5, 2, 2)))
        scanned = run(lambda x: associative_scan(snp.matmul, x))(x)
        total = np.eye(2)
        for k in range(5):
            total = total @ np.asarray(x[k])
            np.testing.assert_allclose(scanned[k], total, rtol=1e-12)
        loss = lambda x: snp.sum(associative_scan(snp.matmul, x) ** 2)

        def loop(x):
            step = lambda c, y: (c @ y, c @ y)
            return snp.sum(st.lax.scan(step, snp.eye(2), x)[1] ** 2)

        np.testing.assert_allclose(run(st.grad(loss))(x), st.grad(loop)(x), rtol=1e-9)
        np.testing.assert_allclose(run(st.hessian(loss))(x), st.hessian(loop)(x), rtol=1e-8)
        many = snp.stack([x, 2 * x])
        np.testing.assert_allclose(
            run(st.vmap(st.grad(loss)))(many), st.vmap(st.grad(loop))(many), rtol=1e-9
        )


def test_how_often_it_calls_grows_with_the_logarithm():
    calls = []

    def add(x, y):
        calls.append(x.shape)
        return x + y

    associative_scan(add, snp.ones(1024))
    # Twice for each halving, but once for the last.
    assert len(calls) == 19
    assert sum(shape[0] for shape in calls) < 2 * 1024


def test_of_nothing_and_of_one():
    refuse = lambda x, y: 1 / 0
    assert associative_scan(refuse, ()) == ()
    assert associative_scan(refuse, snp.ones(1)).tolist() == [1]
    assert associative_scan(refuse, {"x": snp.ones((3, 0))}, axis=1)["x"].shape == (3, 0)


def test_errors_name_what_does_not_fit():
    x = snp.ones((3, 2))
    with pytest.raises(TypeError, match="fn must be a function of two trees, got int"):
        associative_scan(3, x)
    with pytest.raises(ValueError, match=r"sizes along axis 0 must agree; elems\['u'\] has 3, .*2"):
        associative_scan(affine, {"u": x, "v": x[:2]})
    with pytest.raises(ValueError, match=r"elems\[1\] must have an axis 1, got float32\[2\]"):
        associative_scan(affine, (x, x[0]), axis=1)
    with pytest.raises(ValueError, match="axis 2 is out of bounds"):
        associative_scan(snp.add, x, axis=2)
    with pytest.raises(TypeError, match="fn must return a tree like those it takes; they part at"):
        associative_scan(lambda u, v: (u, v), x)
    with pytest.raises(TypeError, match=r"elems is float32\[1,2\], got bool\[1,2\]"):
        associative_scan(st.lax.gt, x)
    with pytest.raises(TypeError, match=r"elems is float32\[1,2\], got float32\[1\]"):
        associative_scan(lambda u, v: snp.sum(u + v, 1), x)


@pytest.mark.parametrize("reverse", [False, True])
def test_any_size(reverse):
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for axis in (0, 1):
        running = lambda x, axis=axis: st.lax.associative_scan(snp.add, x, reverse, axis)
        holds(running, [x], {(0, axis): 0}, tolerance=10)
