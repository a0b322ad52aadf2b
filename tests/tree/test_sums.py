"""Weighted sums of lists, stacked trees and generators; what differs is named."""

import tracemalloc

import ml_dtypes
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


def test_a_list_as_a_stacked_tree():
    """A list of as many entries as weights is a list of trees; others may be a stacked tree."""
    pair = [snp.ones((3, 2)), snp.arange(3.0)]  # one tree of two leaves, three members
    same(st.tree.weighted_sum(pair, [1.0, 2.0, 3.0]), [np.array([6.0, 6.0]), 8.0])
    two = [snp.ones((2, 2)), 2 * snp.ones((2, 2))]
    same(st.tree.weighted_sum(two, [1.0, 10.0]), np.full((2, 2), 21.0))
    same(st.tree.weighted_sum(two, [1.0, 10.0], stacked=True), [np.full(2, 11.0), np.full(2, 22.0)])


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e4m3fn"])
def test_low_precision_is_summed_in_float32(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    trees = [{"w": np.full(3, 0.25, dtype)} for _ in range(256)]
    for total in (
        st.tree.weighted_sum(trees, [1 / 64] * 256),
        st.tree.mean(trees),
        st.tree.mean(st.stack(trees)),
        st.tree.mean(t for t in trees),
    ):
        assert total["w"].dtype == dtype
    np.testing.assert_array_equal(
        np.asarray(st.tree.weighted_sum(trees, [1 / 64] * 256)["w"], "f4"), 1
    )
    np.testing.assert_array_equal(np.asarray(st.tree.mean(trees)["w"], "f4"), 0.25)


class Watched:
    """Arrays that are counted while they live."""

    alive = 0
    most = 0

    def __init__(self, number, size=3, dtype=np.float32):
        Watched.alive += 1
        Watched.most = max(Watched.most, Watched.alive)
        self.array = np.full(size, number, dtype)

    def __stretto_array__(self):
        return self.array

    def __del__(self):
        Watched.alive -= 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_one_member_of_a_generator_is_alive_at_a_time(dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    Watched.alive = Watched.most = 0

    def trees():
        for n in range(20):
            yield {"w": Watched(n, dtype=dtype), "b": [Watched(1)]}

    total = st.tree.weighted_sum(trees(), [1.0] * 20)
    assert total["w"].tolist() == [190] * 3 and total["b"][0].tolist() == [20] * 3
    assert st.tree.mean(trees())["w"].tolist() == [10 if dtype.kind == "i" else 9.5] * 3
    assert Watched.most == 2 and Watched.alive == 0  # the two leaves of one tree


def test_a_generator_takes_the_memory_of_two_members():
    size = 1 << 20  # elements: 4 MiB

    def trees():
        for n in range(6):
            yield {"w": np.full(size, n, np.float32)}

    st.tree.mean(trees())
    tracemalloc.start()
    try:
        total = st.tree.weighted_sum(trees(), [0.5] * 6)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert float(total["w"][7]) == 7.5
    assert most < 2.3 * 4 * size  # the sum, one member, and a block of products of half a MiB


def test_a_list_is_summed_without_copies():
    size = 1 << 20
    trees = [{"w": np.full(size, n, np.float32)} for n in range(6)]
    stacked = st.stack([st.tree.cast(t, snp.bfloat16) for t in trees])
    for members, bytes_of_result in ((trees, 4), (stacked, 4 + 2)):
        tracemalloc.start()
        try:
            st.tree.weighted_sum(members, [0.5] * 6)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < 1.3 * bytes_of_result * size


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int32", "complex64"])
@pytest.mark.parametrize("size", [0, 1, (1 << 17) + 3], ids=str)
def test_at_rest_and_compiled_agree(name, size):
    """The blocks that are added up in place give what the program gives."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    rng = np.random.default_rng(0)
    trees = [{"w": snp.array(rng.normal(size=size, scale=9).astype(dtype))} for _ in range(3)]
    weights = snp.array([0.5, -1.25, 2.0])
    want = st.jit(lambda t: st.tree.weighted_sum(t, weights))(trees)
    tolerance = 1e-5 if dtype.itemsize > 2 else 1e-2
    for total in (
        st.tree.weighted_sum(trees, weights),
        st.tree.weighted_sum(iter(trees), weights),
        st.tree.weighted_sum([{"w": np.asarray(t["w"])} for t in trees], weights),
        st.tree.weighted_sum(st.stack(trees), weights),
    ):
        assert total["w"].type is want["w"].type
        same(st.tree.map(snp.real, total), st.tree.map(snp.real, want), tolerance)


def test_every_half_is_widened_exactly():
    bits = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = bits[np.isfinite(bits)]
    for halves in (finite, bits):  # blocks with infinities and NaN go another way
        total = st.tree.weighted_sum([{"w": halves}, {"w": 0 * finite[:1].repeat(halves.size)}],
                                     [1.0, 1.0])["w"]  # fmt: skip
        np.testing.assert_array_equal(total, halves)
        doubled = st.tree.weighted_sum([{"w": halves[:30_000]}], [2.0])["w"]
        np.testing.assert_array_equal(doubled, halves[:30_000] * np.float16(2))


def test_members_are_not_written():
    arrays = [np.ones(4, np.float32) for _ in range(3)]
    members = [{"w": x} for x in arrays]
    first = snp.asarray(arrays[0])
    for total in (
        st.tree.weighted_sum(members, [1.0, 2.0, 3.0]),
        st.tree.weighted_sum(iter([{"w": first}] * 3), [1.0, 2.0, 3.0]),
        st.tree.mean(members[:1]),
    ):
        assert not np.shares_memory(np.asarray(total["w"]), arrays[0])
    assert all((x == 1).all() for x in arrays) and first.tolist() == [1] * 4


def test_dtypes_that_differ_among_members_promote():
    trees = [{"w": snp.ones(2, snp.float16)}, {"w": snp.ones(2)}, {"w": snp.ones(2, int)}]
    for members in (trees, iter(trees)):
        assert st.tree.weighted_sum(members, [1.0, 1.0, 1.0])["w"].tolist() == [3, 3]
    with st.enable_x64():
        wide = [{"w": snp.ones(2)}, {"w": snp.ones(2, snp.float32)}, {"w": snp.ones(2)}]
        for members in (wide, iter(wide)):
            assert st.tree.weighted_sum(members, [0.1] * 3)["w"].dtype == np.float64


@pytest.mark.parametrize("kinds", [("bfloat16", "float32"), ("float16", "bfloat16"),
                                   ("float16", "int32"), ("float64", "float16")])  # fmt: skip
def test_the_dtype_does_not_depend_on_the_order(kinds):
    with st.enable_x64("float64" in kinds):
        trees = [{"w": snp.full(3, i + 1, getattr(snp, k))} for i, k in enumerate(kinds)]
        wanted = snp.result_type(*[t["w"] for t in trees])
        for ordered, weights in ((trees, [0.5, 0.25]), (trees[::-1], [0.25, 0.5])):
            for total in (
                st.tree.weighted_sum(ordered, weights),
                st.tree.weighted_sum(iter(ordered), weights),
                st.jit(st.tree.weighted_sum)(ordered, weights),
                st.tree.mean(ordered),
                st.tree.mean(iter(ordered)),
            ):
                assert total["w"].dtype == wanted and not total["w"].weak_type
            assert st.tree.weighted_sum(ordered, weights)["w"].tolist() == [1.0] * 3


def test_transformations_of_weights_and_trees():
    trees = [{"w": snp.arange(3.0) + i} for i in range(3)]
    f = lambda ts, w: st.tree.norm(st.tree.weighted_sum(ts, w))
    weights = snp.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(st.jit(f)(trees, weights), f(trees, weights), rtol=1e-6)
    slopes = st.grad(f, argnums=(0, 1))(trees, weights)
    compiled = st.jit(st.grad(f, argnums=(0, 1)))(trees, weights)
    same(slopes, compiled)
    many = st.vmap(f, (None, 0))(trees, snp.eye(3))
    np.testing.assert_allclose(many, [st.tree.norm(t) for t in trees], rtol=1e-6)
    np.testing.assert_allclose(
        st.vmap(st.grad(f, argnums=1), (None, 0))(trees, snp.eye(3))[1],
        st.grad(f, argnums=1)(trees, snp.eye(3)[1]),
        rtol=1e-5,
    )
    through_scan = st.lax.scan(lambda c, w: (c, f(trees, w)), 0.0, snp.eye(3))[1]
    np.testing.assert_allclose(through_scan, many, rtol=1e-6)


ONES = {"a": [np.ones(2, np.float32)], "b": 1.0}


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: st.tree.weighted_sum([ONES, ONES], [1]), ValueError, "2 trees and 1 weights"),
        (
            lambda: st.tree.weighted_sum(iter([ONES, ONES]), [1]),
            ValueError,
            "expected 1 trees, one for each weight; got more",
        ),
        (
            lambda: st.tree.weighted_sum(iter([ONES]), [1, 2]),
            ValueError,
            "expected 2 trees, one for each weight; got 1",
        ),
        (
            lambda: st.tree.weighted_sum({"a": np.ones(3)}, [1, 2]),
            ValueError,
            "has 3 members.* 2 weights",
        ),
        (lambda: st.tree.weighted_sum([], []), ValueError, "at least one tree"),
        (
            lambda: st.tree.weighted_sum([ONES, ONES], np.ones((2, 1))),
            ValueError,
            "weights must be a vector",
        ),
        (
            lambda: st.tree.weighted_sum([ONES, ONES], [np.ones(2), 1]),
            ValueError,
            "each weight must be a scalar",
        ),
        (lambda: st.tree.mean([]), ValueError, "mean: expected at least one tree"),
        (lambda: st.tree.mean(iter([])), ValueError, "mean: expected at least one tree"),
        (
            lambda: st.tree.mean([ONES, {"a": [np.ones(3)], "b": 1.0}]),
            ValueError,
            "mean: member 1 differs",
        ),
        (lambda: st.tree.lerp(ONES, {"a": 1.0}, 0.5), ValueError, "part at"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_one_tree_has_a_weight_for_each_of_its_members():
    for tree, words in (
        ({"w": snp.ones((3, 2))}, "the stacked tree has 3 members, and there are 2 weights"),
        ([{"w": snp.ones((3, 2))}], "got 1 trees and 2 weights"),
        ({"w": snp.ones((2, 2)), "b": snp.ones(3)}, "leaves must share the size of axis 0"),
        ([snp.ones((2, 2)), snp.ones((3, 2))], "member 1 differs from member 0"),
    ):
        with pytest.raises(ValueError, match=words):
            st.tree.weighted_sum(tree, [1.0, 2.0])
