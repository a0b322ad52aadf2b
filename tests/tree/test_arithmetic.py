"""Trees as vectors."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def same(one, other, rtol=1e-5):
    assert st.tree.structure(one) == st.tree.structure(other)
    for a, b in zip(st.tree.leaves(one), st.tree.leaves(other), strict=True):
        np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=1e-5
        )


def test_arithmetic():
    x, y = {"w": snp.array([1.0, 2.0]), "b": 3.0}, {"w": snp.array([5.0, 6.0]), "b": 7.0}
    same(st.tree.lerp(x, y, 0.25), {"w": np.array([2.0, 3.0]), "b": 4.0})
    same(st.tree.axpy(2.0, x, y), {"w": np.array([7.0, 10.0]), "b": 13.0})
    np.testing.assert_allclose(st.tree.norm({"a": snp.array([3.0 + 4.0j]), "b": 12}), 13)
    np.testing.assert_allclose(st.tree.norm({"a": snp.full((4,), 200.0, snp.float16)}), 400)
    assert st.tree.norm({"a": snp.full((4,), 200.0, snp.float16)}).dtype == snp.float32
    assert float(st.tree.norm({"a": snp.zeros((0, 3))})) == 0
    cast = st.tree.cast({"w": snp.ones(1), "n": 1, "t": True}, snp.bfloat16)
    assert [v.dtype.name for v in st.tree.leaves(cast)] == ["int32", "bool", "bfloat16"]
    np.testing.assert_allclose(
        st.grad(lambda w: st.tree.norm(st.tree.lerp(x, y, w)))(0.0), 4 * 6 / np.sqrt(14), rtol=1e-6
    )


def test_the_norm_has_a_derivative_of_zero_at_zero():
    x = {"a": snp.zeros(2), "b": snp.zeros((), complex)}
    for f in (st.grad(st.tree.norm), st.jit(st.grad(st.tree.norm))):
        assert [np.asarray(v).tolist() for v in st.tree.leaves(f(x))] == [[0, 0], 0]
    same(
        st.grad(st.tree.norm)({"a": snp.array([3.0, 4.0]), "b": 0.0}),
        {"a": np.array([0.6, 0.8]), "b": 0.0},
    )


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "complex64"])
def test_dot_and_norm_are_numpy_s(dtype):
    rng = np.random.default_rng(0)
    x, y = (
        {"a": (9 * rng.normal(size=(70_000,))).astype(dtype), "b": rng.normal(size=(2, 3))}
        for _ in range(2)
    )
    if dtype == "complex64":
        x["a"] = x["a"] * np.complex64(1 + 2j)
    flat = [np.concatenate([t["a"].astype("c16"), t["b"].ravel()]) for t in (x, y)]
    scale = np.linalg.norm(flat[0]) * np.linalg.norm(flat[1])
    for f in (st.tree.dot, st.jit(st.tree.dot)):
        np.testing.assert_allclose(f(x, y), np.vdot(*flat), atol=1e-6 * scale)
    for f in (st.tree.norm, st.jit(st.tree.norm)):
        np.testing.assert_allclose(f(x), np.linalg.norm(flat[0]), rtol=1e-6)
    assert st.tree.dot(x, y).type is st.jit(st.tree.dot)(x, y).type


def test_dot_is_exact_enough_for_many_elements():
    ones = {"w": snp.full(1 << 22, 0.1)}
    want = (1 << 22) * float(np.float32(0.1)) ** 2
    # In one float32 sum from left to right it would be wrong by some thousandths.
    np.testing.assert_allclose(st.tree.dot(ones, ones), want, rtol=5e-6)


def test_dot_under_transformations():
    x, y = {"w": snp.arange(3.0), "b": snp.float32(2)}, {"w": snp.ones(3), "b": snp.float32(5)}
    same(st.grad(st.tree.dot)(x, y), y)
    same(st.jit(st.grad(st.tree.dot, argnums=1))(x, y), x)
    stacked = st.stack([x, y])
    np.testing.assert_allclose(st.vmap(st.tree.dot, (0, None))(stacked, y), [13, 28])


def test_slerp_moves_along_the_arc():
    rng = np.random.default_rng(0)
    x, y = ({"a": rng.normal(size=(4, 3)), "b": rng.normal(size=5)} for _ in range(2))
    flat = [np.concatenate([t["a"].ravel(), t["b"]]) for t in (x, y)]
    angle = np.arccos(flat[0] @ flat[1] / np.linalg.norm(flat[0]) / np.linalg.norm(flat[1]))
    for t in (0.0, 0.3, 1.0):
        want = (np.sin((1 - t) * angle) * flat[0] + np.sin(t * angle) * flat[1]) / np.sin(angle)
        for f in (st.tree.slerp, st.jit(st.tree.slerp)):
            got = f(x, y, t)
            got = np.concatenate([np.ravel(got["a"]), got["b"]])
            np.testing.assert_allclose(got, want, atol=2e-6)
    each = st.tree.slerp(x, y, 0.3, by_leaf=True)
    same(each["b"], st.tree.slerp(x["b"], y["b"], 0.3))
    one = st.tree.map(lambda x: x / np.linalg.norm(x), x)
    other = st.tree.map(lambda x: x / np.linalg.norm(x), y)
    middle = st.tree.slerp(one, other, 0.5, by_leaf=True)
    np.testing.assert_allclose(np.linalg.norm(middle["a"]), 1, rtol=1e-6)


@pytest.mark.parametrize("by_leaf", [False, True], ids=["whole", "by leaf"])
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 0.0], [1.0, 0.0]),
        ([1.0, 0.0], [3.0, 0.0]),
        ([1.0, 0.0], [-1.0, 0.0]),
        ([0.0, 0.0], [1.0, 2.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([1.0, 1e-5], [1.0, 0.0]),
    ],
    ids=["equal", "parallel", "opposite", "zero", "zeros", "close"],
)
def test_slerp_without_an_arc_is_lerp(x, y, by_leaf):
    x, y = {"w": snp.array(x)}, {"w": snp.array(y)}
    f = lambda x, y, t: st.tree.slerp(x, y, t, by_leaf=by_leaf)
    for g in (f, st.jit(f)):
        np.testing.assert_allclose(g(x, y, 0.25)["w"], st.tree.lerp(x, y, 0.25)["w"], atol=1e-7)
    slopes = st.grad(lambda x, y, t: f(x, y, t)["w"].sum(), argnums=(0, 1, 2))(x, y, 0.25)
    assert all(np.isfinite(s).all() for s in st.tree.leaves(slopes))


def test_slerp_of_other_dtypes_and_mapped():
    half = st.tree.slerp({"w": snp.ones(2, snp.bfloat16)}, {"w": snp.zeros(2, snp.bfloat16)}, 0.5)
    assert half["w"].dtype == snp.bfloat16 and half["w"].tolist() == [0.5, 0.5]
    x, y = {"w": snp.array([1.0, 0.0])}, {"w": snp.array([0.0, 2.0])}
    path = st.vmap(lambda t: st.tree.slerp(x, y, t))(snp.linspace(0, 1, 3))
    np.testing.assert_allclose(path["w"], [[1, 0], [0.5**0.5, 2**0.5], [0, 2]], atol=1e-6)
    assert st.tree.slerp((), (), 0.5) == ()


ONES = {"a": [np.ones(2, np.float32)], "b": 1.0}


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: st.tree.norm({}), ValueError, "norm: expected a tree with arrays"),
        (
            lambda: st.tree.dot(ONES, {"a": [np.ones(3)], "b": 1.0}),
            ValueError,
            r"dot: member 1 differs from member 0 at member\['a'\]\[0\]",
        ),
        (lambda: st.tree.dot({}, {}), ValueError, "dot: expected a tree with arrays"),
        (lambda: st.tree.slerp(ONES, [], 0.5), ValueError, "slerp: member 1 differs in structure"),
        (lambda: st.tree.slerp(ONES, ONES, np.ones(2)), ValueError, "weight must be a scalar"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_norms_of_large_numbers_do_not_overflow_between():
    norm = st.tree.norm
    for f in (norm, st.jit(norm)):
        np.testing.assert_allclose(f({"a": snp.array([2e25, 1e25]), "b": 2e25}), 3e25, rtol=1e-6)
        np.testing.assert_allclose(f({"a": snp.array([3.0, 4.0])}), 5.0)
        assert f({"a": snp.array([np.inf, 1.0])}) == np.inf
        assert np.isnan(f({"a": snp.array([np.nan, 1e25])}))
    slope = st.grad(lambda a: norm({"a": a}))
    np.testing.assert_allclose(slope(snp.array([3e25, 4e25])), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_array_equal(slope(snp.zeros(2)), [0, 0])
