"""Pools over windows of one size: PyTorch's figures, the definition, laws, ties, messages."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "max_pool1d",
        {"input": (2, 3, 9)},
        {"kernel_size": 3, "stride": 2, "padding": 1},
        [(2, 3, 5), 1.7591, 0.13999],
    ),
    ("max_pool2d", {"input": (2, 2, 6, 7)}, {"kernel_size": 2}, [(2, 2, 3, 3), 0.15279, 0.98207]),
    (
        "max_pool2d",
        {"input": (2, 7, 6)},
        {
            "kernel_size": (3, 2),
            "stride": 2,
            "padding": (1, 0),
            "dilation": (1, 2),
            "ceil_mode": True,
        },
        [(2, 4, 3), -0.24808, 3.15032],
    ),
    (
        "max_pool3d",
        {"input": (1, 2, 4, 5, 4)},
        {"kernel_size": (2, 3, 2), "stride": (2, 1, 2)},
        [(1, 2, 2, 3, 2), -0.54015, 0.54662],
    ),
    (
        "avg_pool1d",
        {"input": (2, 3, 9)},
        {"kernel_size": 4, "stride": 3, "padding": 2, "count_include_pad": False},
        [(2, 3, 4), 0.87735, 0.31085],
    ),
    (
        "avg_pool2d",
        {"input": (2, 2, 6, 7)},
        {"kernel_size": 2, "ceil_mode": True},
        [(2, 2, 3, 4), -0.03452, 0.87323],
    ),
    (
        "avg_pool2d",
        {"input": (2, 7, 6)},
        {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        [(2, 4, 4), -0.35193, 0.17436],
    ),
    (
        "avg_pool2d",
        {"input": (1, 2, 5, 5)},
        {"kernel_size": (2, 3), "stride": (1, 2), "divisor_override": 3},
        [(1, 2, 4, 2), 0.58714, -0.16964],
    ),
    (
        "avg_pool3d",
        {"input": (1, 2, 4, 5, 4)},
        {"kernel_size": 2, "padding": 1, "ceil_mode": True, "count_include_pad": False},
        [(1, 2, 3, 3, 3), 2.51823, 1.06455],
    ),
    (
        "lp_pool1d",
        {"input": (2, 2, 7)},
        {"norm_type": 2.0, "kernel_size": 3, "ceil_mode": True},
        [(2, 2, 3), -0.75312, -4.0615],
    ),
    (
        "lp_pool2d",
        {"input": (2, 6, 5)},
        {"norm_type": 4, "kernel_size": 2, "stride": (2, 1)},
        [(2, 3, 4), -0.69615, -0.39484],
    ),
    (
        "lp_pool3d",
        {"input": (1, 2, 4, 4, 4)},
        {"norm_type": 2.0, "kernel_size": (2, 4, 2)},
        [(1, 2, 2, 1, 2), 4.18041, 0.98182],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def by_definition(x, size, stride, padding, choose):
    """``choose`` of the elements of each window that are there, row by row."""
    rows, columns = ((n + 2 * padding - size) // stride + 1 for n in x.shape)
    out = np.zeros((rows, columns))
    for r, c in itertools.product(range(rows), range(columns)):
        top, left = r * stride - padding, c * stride - padding
        part = x[max(top, 0) : top + size, max(left, 0) : left + size]
        out[r, c] = choose(part)
    return out


@pytest.mark.parametrize("size, stride, padding", [(2, 2, 0), (3, 2, 1), (2, 1, 1), (4, 3, 2)])
def test_definition(size, stride, padding):
    x = np.random.default_rng(0).normal(size=(7, 8)).astype("f")
    got = F.max_pool2d(x[None], size, stride, padding)[0]
    np.testing.assert_array_equal(got, by_definition(x, size, stride, padding, np.max))
    got = F.avg_pool2d(x[None], size, stride, padding, count_include_pad=False)[0]
    np.testing.assert_allclose(got, by_definition(x, size, stride, padding, np.mean), rtol=1e-5)
    got = F.avg_pool2d(x[None], size, stride, padding)[0]
    full = by_definition(x, size, stride, padding, lambda p: p.sum() / size**2)
    np.testing.assert_allclose(got, full, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_indices(ceil_mode):
    x = np.random.default_rng(0).integers(0, 4, (2, 3, 7, 6)).astype("f")
    settings = {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": ceil_mode}
    for run in (lambda f: f, st.jit):
        values, places = run(lambda x: F.max_pool2d(x, return_indices=True, **settings))(x)
        np.testing.assert_array_equal(values, F.max_pool2d(x, **settings))
        assert places.dtype == snp.int32
        lines = np.asarray(x).reshape(2, 3, -1)
        at = np.asarray(places).reshape(2, 3, -1)
        read = np.take_along_axis(lines, at, -1)
        np.testing.assert_array_equal(read.reshape(values.shape), values)


def test_indices_are_of_the_first_of_equals():
    _, places = F.max_pool2d(snp.zeros((1, 4, 4)), 2, return_indices=True)
    assert places.tolist() == [[[0, 2], [8, 10]]]
    _, places = F.max_pool1d(snp.full((1, 4), -snp.inf), 2, 1, 1, return_indices=True)
    assert places.tolist() == [[0, 0, 1, 2, 3]]
    values, places = F.max_pool1d(snp.array([[1.0, snp.nan, 3.0]]), 2, 1, return_indices=True)
    assert np.isnan(values).all() and places.tolist() == [[1, 1]]


def test_ties_and_padding():
    ones = snp.ones((1, 4, 4))
    slopes = st.grad(lambda x: F.max_pool2d(x, 2).sum())(ones)
    np.testing.assert_array_equal(slopes[0], [[1, 0, 1, 0], [0] * 4, [1, 0, 1, 0], [0] * 4])
    assert F.max_pool1d(-snp.ones((1, 2)), 2, padding=1).tolist() == [[-1, -1]]  # never padding
    both = st.grad(lambda x: F.max_pool2d(x, 2, return_indices=True)[0].sum())(ones)
    np.testing.assert_array_equal(both, slopes)


def test_integers():
    x = snp.array([[1, 7, -3, 2]])
    assert F.max_pool1d(x, 2).tolist() == [[7, 2]] and F.max_pool1d(x, 2).dtype == snp.int32
    assert F.avg_pool1d(x, 2).dtype == snp.float32


def test_narrow_sums():
    x = snp.ones((1, 2, 1024), snp.bfloat16)
    assert F.avg_pool1d(x, 1024).ravel().tolist() == [1, 1]
    assert F.avg_pool1d(x, 1024).dtype == snp.bfloat16


def test_laws():
    laws.check(lambda x: F.max_pool2d(x, 2, 1, 1), [f32(1, 2, 3, 4)])
    laws.check(lambda x: F.max_pool1d(x, 2, ceil_mode=True, return_indices=True)[0], [f32(2, 5)])
    laws.check(lambda x: F.avg_pool2d(x, (2, 3), padding=1, ceil_mode=True), [f32(1, 2, 4, 5)])
    laws.check(lambda x: F.avg_pool1d(x, 2, 1, 1, count_include_pad=False), [f32(2, 4)])
    laws.check(lambda x: F.lp_pool1d(x, 3.0, 2), [f32(2, 4).within(0.5, 2)])


@pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])
def test_derivatives_of_windows_of_zeros(run):
    # As after a relu that lets nothing pass: a norm's is 0 there, as in PyTorch; a sum's is 1.
    x = snp.array([[3.0, 4.0, 0.0, 0.0]])
    for p, want in ((2.0, [0.6, 0.8, 0, 0]), (1.0, [1, 1, 1, 1])):
        slope = run(st.grad(lambda x, p=p: F.lp_pool1d(x, p, 2).sum()))(x)
        np.testing.assert_allclose(slope, [want], rtol=1e-6)
    zeros = snp.zeros((1, 2, 2))
    for p in (2.0, 3.0):
        slope = run(st.grad(lambda x, p=p: F.lp_pool2d(x, p, 2).sum()))(zeros)
        np.testing.assert_array_equal(slope, zeros)


def test_compiles_to_one_window_reduction():
    x = snp.ones((2, 3, 8, 8))
    for f in (F.max_pool2d, F.avg_pool2d):
        text = st.jit(lambda x, f=f: f(x, 2)).lower(x).as_text()
        assert text.count("stablehlo.reduce_window") == 1
        assert "gather" not in text


X = snp.ones((1, 2, 5, 5))
MESSAGES = [
    (lambda: F.max_pool2d(X[0, 0], 2), r"max_pool2d: input must have 4 axes .* float32\[5,5\]"),
    (lambda: F.max_pool2d(X, 2, padding=2), "padding must be at most half"),
    (lambda: F.avg_pool2d(X, 6), "spans 6 does not fit an axis of 5"),
    (lambda: F.lp_pool2d(X, 2.0, 6), "lp_pool2d: a window that spans 6 does not fit"),
    (lambda: F.max_pool2d(X, 0), "kernel_size must be an integer of at least 1"),
    (lambda: F.avg_pool2d(X, 2, divisor_override=0), "divisor_override must not be 0"),
    (lambda: F.avg_pool2d(X, (2, 2, 2)), "or 2 of them"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("counted", [True, False])
def test_means_along_an_axis_of_any_size(padding, counted):
    pool = lambda x: F.avg_pool2d(x, 2, (1, 2), padding, count_include_pad=counted)
    f = st.jit(pool, dynamic_axes=({1: st.dynamic_size("n", least=2)},))
    for n in (2, 5, 20):
        x = np.random.default_rng(n).normal(size=(3, n, 5)).astype(np.float32)
        np.testing.assert_allclose(f(x), pool(x), rtol=1e-5, atol=1e-6)


def test_a_last_window_beyond_an_axis_of_any_size():
    pool = lambda x: F.avg_pool1d(x, 2, 2, ceil_mode=True)
    f = st.jit(pool, dynamic_axes=({1: "n"},))
    for n in (3, 4, 7, 8):  # it is there for odd ones, which is asked of each call's size
        x = snp.arange(1.0, n + 1)[None]
        np.testing.assert_allclose(f(x), pool(x), rtol=1e-6)
    with pytest.raises(st.errors.SizeError, match="depends on sizes that are known only while"):
        st.jit(st.vmap(lambda x: pool(x[None])[0]))(st.ragged([snp.ones(3), snp.ones(5)]))
