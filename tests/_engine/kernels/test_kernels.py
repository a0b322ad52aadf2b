"""Kernels in C, called by programs: values, whatever lies how, and the ways around them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine import kernels
from stretto._engine.kernels import LEVEL, WITHOUT
from stretto._engine.ops.product_strides import Geometry
from stretto.nn import functional as F

ROOT = Path(__file__).parents[3]

with_kernels = pytest.mark.skipif(bool(WITHOUT), reason=f"there are no kernels: {WITHOUT}")


def called(function, *args):
    """How many calls of our kernels the program of these arguments has."""
    return st.jit(function).lower(*args).as_text().count('call_target_name = "stretto_')


def drawn(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def close(got, expected, depth, dtype):
    bound = 4 * np.finfo(dtype).eps * np.sqrt(depth + 1)
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(got, expected, rtol=0, atol=bound * scale)


SIZES = [
    *[(1, 300, 100), (2, 100, 130), (3, 70, 100), (4, 65, 99), (5, 97, 77)],
    *[(8, 48, 64), (9, 49, 65), (24, 50, 40), (25, 33, 47), (31, 33, 320), (48, 48, 321)],
    *[(64, 128, 784), (100, 1, 700), (300, 2, 100), (257, 15, 33), (64, 600, 33), (129, 17, 641)],
]


@with_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_of_all_sizes_and_ways_to_lie(m, n, k, dtype):
    with st.config(enable_x64=True):
        x, y = drawn(m, k, dtype=dtype), drawn(k, n, dtype=dtype, seed=1)
        expected = x.astype(float) @ y.astype(float)
        for way, (f, operands) in {
            "as they are": (lambda x, y: x @ y, (x, y)),
            "x turned": (lambda x, y: x.T @ y, (np.ascontiguousarray(x.T), y)),
            "y turned": (lambda x, y: x @ y.T, (x, np.ascontiguousarray(y.T))),
            "both": (lambda x, y: x.T @ y.T, (x.T.copy(), y.T.copy())),
        }.items():
            assert called(f, *operands) == 1, way
            close(st.jit(f)(*operands), expected, k, dtype)
        close(st.jit(lambda x, y: (x @ y).T)(x, y), expected.T, k, dtype)


NARROW = pytest.mark.parametrize(
    "dtype", [np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16)], ids=["bf16", "f16"]
)


@with_kernels
@pytest.mark.parametrize("turned", [False, True], ids=["xx'", "x'x"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int8])
@pytest.mark.parametrize(("n", "k"), [(96, 40), (97, 3), (113, 700), (200, 64), (500, 10)])
def test_a_matrix_times_its_own_transpose_has_the_bits_of_any_product(n, k, dtype, turned):
    """What is below the diagonal is turned; with another array of the same values it is not."""
    x = integers(n, k, dtype=dtype) if dtype == np.int8 else drawn(n, k).astype(dtype)
    x = x.T.copy() if turned else x
    out = {np.dtype(np.int8): np.int32, np.dtype(ml_dtypes.bfloat16): np.float32}
    out = out.get(np.dtype(dtype), dtype)
    spec = "ki,kj->ij" if turned else "ik,jk->ij"
    total = drawn(n, n).astype(out)

    def product(x, y, total):
        gram = snp.einsum(spec, x, y, preferred_element_type=out)
        return gram, snp.maximum(total + gram, 0)

    with st.config(enable_x64=True):
        run = st.jit(product)
        one, other = snp.asarray(x), snp.asarray(x.copy())
        same = st.jit(lambda x, total: product(x, x, total))
        for got, expected in zip(same(one, total), run(one, other, total), strict=True):
            np.testing.assert_array_equal(got, expected)
        wide = x.astype(np.float64)
        close(
            np.asarray(same(one, total)[0], np.float64), np.einsum(spec, wide, wide), k, np.float32
        )


@with_kernels
def test_matrices_of_members_times_their_own_transposes():
    """Also where a second operand is another member's, or begins at another place of the array."""
    x = drawn(3, 120, 30)
    gram = st.jit(lambda x: x @ snp.swapaxes(x, 1, 2))
    close(gram(x), x @ x.swapaxes(1, 2), 30, np.float32)
    others = st.jit(lambda x: x @ snp.swapaxes(x[::-1], 1, 2))
    close(others(x), x @ x[::-1].swapaxes(1, 2), 30, np.float32)
    shifted = st.jit(lambda x: x[0] @ x[1].T)
    close(shifted(x), x[0] @ x[1].T, 30, np.float32)
    shared = st.jit(lambda x: snp.einsum("bik,jk->bij", x, x[0]))
    close(shared(x), np.einsum("bik,jk->bij", x, x[0]), 30, np.float32)


def rounded_close(got, expected, sizes, depth, roundings=1):
    """Within so many halves of a last place, and what sums in float32 of such sizes may be off."""
    last = float(ml_dtypes.finfo(got.dtype).eps) / 2
    bound = roundings * last * (np.abs(expected) + (0 if roundings == 1 else sizes)) * 1.01
    bound = bound + 2 * np.finfo(np.float32).eps * np.sqrt(depth + 1) * sizes + 1e-7
    assert (np.abs(np.asarray(got).astype(float) - expected) <= bound).all()


@with_kernels
@NARROW
@pytest.mark.parametrize("wide", [False, True], ids=["", "to f32"])
@pytest.mark.parametrize(("m", "n", "k"), [*SIZES, (100, 50, 2), (30, 20, 7)])
def test_products_of_narrow_floats(m, n, k, wide, dtype):
    """Whatever lies how, sums are those of float32, and are rounded once."""
    x, y = drawn(m, k).astype(dtype), drawn(k, n, seed=1).astype(dtype)
    expected = x.astype(float) @ y.astype(float)
    sizes = np.abs(x.astype(float)) @ np.abs(y.astype(float))
    out = np.float32 if wide else dtype
    times = lambda x, y: snp.matmul(x, y, preferred_element_type=np.float32 if wide else None)
    for way, (f, operands) in {
        "as they are": (times, (x, y)),
        "x turned": (lambda x, y: times(x.T, y), (np.ascontiguousarray(x.T), y)),
        "y turned": (lambda x, y: times(x, y.T), (x, np.ascontiguousarray(y.T))),
        "both": (lambda x, y: times(x.T, y.T), (x.T.copy(), y.T.copy())),
    }.items():
        assert called(f, *operands) == 1, way
        got = st.jit(f)(*operands)
        assert got.dtype == out
        rounded_close(got, expected, sizes, k)


@with_kernels
@NARROW
@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_members_of_narrow_floats_are_one_call(axes, dtype):
    x, y = drawn(5, 30, 41).astype(dtype), drawn(5, 41, 50, seed=1).astype(dtype)
    args = [v if axis == 0 else v[0] for v, axis in zip((x, y), axes, strict=True)]
    loss = lambda x, y: snp.sum(snp.matmul(x, y, preferred_element_type="float32") ** 2)
    many = st.vmap(lambda x, y: x @ y, in_axes=axes)
    slopes = st.vmap(st.grad(loss, argnums=(0, 1)), in_axes=axes)
    assert called(many, *args) == 1
    left, right = (a.astype(float) for a in args)
    rounded_close(st.jit(many)(*args), left @ right, np.abs(left) @ np.abs(right), 41)
    got = st.jit(slopes)(*args)
    with st.config(kernels=False):
        expected = st.jit(slopes)(*args)
    for one, other in zip(got, map(np.asarray, expected), strict=True):
        other = other.astype(float)
        rounded_close(one, other, np.abs(other) + np.abs(other).max(), 50, 2)


@with_kernels
@NARROW
@pytest.mark.parametrize("name", ["bias", "residual", "relu", "bias and relu"])
@pytest.mark.parametrize(("m", "n", "k"), [(3, 200, 60), (20, 90, 64), (70, 33, 700)])
def test_narrow_products_with_what_follows_them(m, n, k, name, dtype):
    """Each operation rounds, as it does alone."""
    f, _ = LAYERS[name]
    args = [drawn(*s, seed=i).astype(dtype) for i, s in enumerate([(m, k), (k, n), (n,), (m, n)])]
    text = st.jit(f).lower(*args).as_text()
    assert text.count("stretto_product") == 1 and "stablehlo.add" not in text
    wide = [a.astype(float) for a in args]
    expected = wide[0] @ wide[1] + {"b": wide[2], "r": wide[3]}.get(name[:1], 0) * (
        name[:2] != "re"
    )
    if name == "residual":
        expected = wide[0] @ wide[1] + wide[3]
    expected = np.maximum(expected, 0) if "relu" in name else expected
    sizes = np.abs(wide[0]) @ np.abs(wide[1]) + 4
    rounded_close(st.jit(f)(*args), expected, sizes, k, 2)


@with_kernels
@NARROW
@pytest.mark.parametrize("m", [2, 40])
def test_narrow_results_are_rounded_to_nearest_even(m, dtype):
    """Ties too; what is too large is infinite, NaN stays, and small floats of 16 bits are kept."""
    info = ml_dtypes.finfo(dtype)
    with np.errstate(over="ignore"):
        ulp, most = float(info.eps), float(info.max)
        sums = [1 + ulp / 2, 1 + 3 * ulp / 2, -1 - ulp / 2, most * (1 + ulp / 8), -most * 2]
        sums = np.array([*sums, np.nan, np.inf, -0.0, float(info.smallest_normal) * 1.5])
        expected = sums.astype(np.float32).astype(dtype)
    if dtype == np.float16:
        sums = np.append(sums, [2.0**-24, 2.0**-15, 3 * 2.0**-25, 2.0**-25, 5 * 2.0**-26])
        expected = np.append(expected, sums[9:].astype(np.float32).astype(dtype))
    x = np.zeros((m, 80), dtype)
    x[:, :3] = 1
    y = np.zeros((3, sums.size), dtype)  # a sum of three exact parts
    for part in range(3):
        with np.errstate(over="ignore", invalid="ignore"):
            y[part] = sums - (y[:part].astype(float).sum(0) if part else 0)
        y[part] = np.where(np.isfinite(sums), np.clip(y[part].astype(float), -most, most), 0)
    y[0] = np.where(np.isfinite(sums), y[0], sums)
    y = np.concatenate([y, np.zeros((77, sums.size), dtype)])
    y = np.tile(y, (1, 20))
    f = lambda x, y: x @ y
    assert called(f, x, y) == 1
    got = np.asarray(st.jit(f)(x, y)).astype(float)
    wanted = np.tile(expected.astype(float), 20)
    np.testing.assert_array_equal(got, np.broadcast_to(wanted, got.shape))


INTEGERS = [
    *[("int8", "int32"), ("int8", "int8"), ("uint8", "int32"), ("uint8", "uint8")],
    *[("int8", "int16"), ("int16", "int32"), ("int16", "int16"), ("int32", "int32")],
    *[("uint16", "uint16"), ("uint32", "uint32")],
]
"""Dtypes of operands and results."""


@pytest.fixture
def all_sizes(monkeypatch):
    """Have kernels multiply integers of all sizes."""
    monkeypatch.setattr(Geometry, "is_quicker", lambda *_: True)


def integers(*shape, dtype, seed=0):
    """All integers of a dtype alike, the extremes in front."""
    info = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)
    found[..., :2] = info.min, info.max
    found[0] = info.min
    return found


@with_kernels
@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize(("dtype", "out"), INTEGERS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        *[(1, 300, 101), (3, 70, 100), (5, 97, 77), (24, 50, 43), (31, 33, 320), (100, 1, 700)],
        *[(300, 2, 102), (129, 17, 641), (100, 50, 2), (30, 20, 3), (9, 50, 1321)],
    ],
)
def test_products_of_integers_are_exact_modulo_two_to_their_bits(m, n, k, dtype, out):
    x, y = integers(m, k, dtype=dtype), integers(n, k, dtype=dtype, seed=1).T
    expected = (x.astype(np.int64) @ y.astype(np.int64)).astype(out)
    times = lambda x, y: snp.matmul(x, y, preferred_element_type=out)
    for way, (f, operands) in {
        "as they are": (times, (x, y.copy())),
        "x turned": (lambda x, y: times(x.T, y), (x.T.copy(), y.copy())),
        "y turned": (lambda x, y: times(x, y.T), (x, y.T)),
        "both": (lambda x, y: times(x.T, y.T), (x.T.copy(), y.T)),
    }.items():
        assert called(f, *operands) == 1, way
        got = np.asarray(st.jit(f)(*operands))
        assert got.dtype == out
        np.testing.assert_array_equal(got, expected, err_msg=way)


@with_kernels
@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize("value", [-128, 127])
@pytest.mark.parametrize("m", [1, 5, 60])
def test_sums_of_extremes_wrap_around(m, value):
    x, y = np.full((m, 140000), value, np.int8), np.full((140000, 20), -128, np.int8)
    total = (140000 * -128 * value + 2**31) % 2**32 - 2**31
    for columns in (y, np.asfortranarray(y)):
        f = lambda x, y: snp.matmul(x, y, preferred_element_type="int32")
        np.testing.assert_array_equal(st.jit(f)(x, columns), np.full((m, 20), total))


@with_kernels
@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize("axes", [(0, 0), (None, 0), (0, None)])
def test_members_of_integers_are_one_call(axes):
    x, y = integers(5, 30, 41, dtype="int8"), integers(5, 41, 50, dtype="int8", seed=1)
    args = [v if axis == 0 else v[0] for v, axis in zip((x, y), axes, strict=True)]
    one = lambda x, y: snp.matmul(x, y, preferred_element_type="int32")
    many = st.vmap(one, in_axes=axes)
    assert called(many, *args) == 1
    wide = [a.astype(np.int64) for a in args]
    np.testing.assert_array_equal(st.jit(many)(*args), wide[0] @ wide[1])


@with_kernels
@pytest.mark.usefixtures("all_sizes")
@pytest.mark.parametrize("out", ["int8", "int16", "int32"])
@pytest.mark.parametrize("m", [3, 20, 70])
def test_integer_products_with_what_follows_them(m, out):
    """A sum is the kernel's, a cut at zero is XLA's."""
    x, y = integers(m, 61, dtype="int8"), integers(61, 33, dtype="int8", seed=1)
    b = np.arange(33).astype(out)
    times = lambda x, y: snp.matmul(x, y, preferred_element_type=out)
    product = (x.astype(np.int64) @ y.astype(np.int64)).astype(out)
    text = st.jit(lambda x, y: times(x, y) + b).lower(x, y).as_text()
    assert text.count("stretto_product") == 1 and "stablehlo.add" not in text
    np.testing.assert_array_equal(st.jit(lambda x, y: times(x, y) + b)(x, y), product + b)
    relu = lambda x, y: snp.maximum(times(x, y).T, 0)
    assert called(relu, x, y) == 1
    np.testing.assert_array_equal(st.jit(relu)(x, y), np.maximum(product.T, 0))


@with_kernels
@pytest.mark.parametrize(
    ("x", "y", "out"),
    [
        ((0, 8), (8, 9), "int32"),
        ((8, 0), (0, 9), "int32"),
        ((80, 1), (1, 90), "int32"),
        ((32, 32), (32, 32), "int8"),
        ((1000, 2), (2, 8), "int32"),
        ((100, 100), (100, 100), "int64"),
    ],
    ids=["no rows", "nothing summed", "one term", "small", "flat", "sums of 64 bits"],
)
def test_integer_products_that_are_left_to_xla(x, y, out):
    x, y = np.ones(x, np.int8), np.full(y, -2, np.int8)
    with st.enable_x64():
        f = lambda x, y: snp.matmul(x, y, preferred_element_type=out)
        assert called(f, x, y) == 0
        np.testing.assert_array_equal(st.jit(f)(x, y), x.astype(out) @ y.astype(out))


@with_kernels
@pytest.mark.parametrize(
    ("spec", "x", "y"),
    [
        ("bij,bjk->bik", (7, 20, 30), (7, 30, 41)),
        ("bij,bkj->bik", (7, 20, 30), (7, 41, 30)),
        ("bhqd,bhkd->bhqk", (3, 4, 20, 18), (3, 4, 25, 18)),
        ("bqhd,bkhd->bhqk", (3, 20, 4, 18), (3, 25, 4, 18)),
        ("bhqk,bkhd->bqhd", (3, 4, 20, 25), (3, 25, 4, 18)),
        ("ij,njk->nik", (20, 30), (9, 30, 40)),
        ("ij,nkj->nik", (20, 30), (9, 40, 30)),
        ("nij,jk->nik", (9, 20, 30), (30, 40)),
        ("nij,jk->ink", (9, 20, 30), (30, 40)),
        ("nmij,jk->mnik", (3, 4, 20, 30), (30, 40)),
        ("abij,abjk->baik", (3, 4, 20, 30), (3, 4, 30, 40)),
        ("abcij,abcjk->abcki", (2, 3, 2, 20, 30), (2, 3, 2, 30, 40)),
        ("bij,bj->bi", (30, 70, 61), (30, 61)),
        ("ijk,jkl->il", (20, 6, 30), (6, 30, 40)),
    ],
)
def test_products_with_any_axes_shared_and_in_any_order(spec, x, y):
    x, y = drawn(*x), drawn(*y, seed=1)
    f = lambda x, y: snp.einsum(spec, x, y)
    assert called(f, x, y) == 1
    close(st.jit(f)(x, y), np.einsum(spec, x.astype(float), y.astype(float)), 200, np.float32)


@with_kernels
@pytest.mark.parametrize(
    ("spec", "x", "y"),
    [
        ("abcij,bajck->cik", (4, 6, 5, 20, 30), (6, 4, 30, 5, 40)),
        ("bi,bi->b", (300, 100), (300, 100)),
        ("i,j->ij", (150,), (160,)),
    ],
    ids=["axes that do not join", "no rows and columns", "nothing summed"],
)
def test_what_is_left_to_xla(spec, x, y):
    x, y = drawn(*x), drawn(*y, seed=1)
    f = lambda x, y: snp.einsum(spec, x, y)
    assert called(f, x, y) == 0
    close(st.jit(f)(x, y), np.einsum(spec, x.astype(float), y.astype(float)), 720, np.float32)


@with_kernels
@pytest.mark.parametrize(
    ("m", "k", "n", "calls"), [(16, 16, 16, 0), (64, 64, 1, 0), (17, 241, 1, 1), (1, 17, 241, 1)]
)
def test_multiply_adds_above_which_a_product_is_a_call(m, k, n, calls):
    assert called(lambda x, y: x @ y, drawn(m, k), drawn(k, n)) == calls


@with_kernels
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 50, 300), (40, 50, 60), (70, 5, 100)])
def test_what_is_not_finite_stays_where_it_belongs(m, n, k, value):
    x, y = drawn(m, k), drawn(k, n, seed=1)
    x[1, k - 1] = value
    y[0, n - 1] = value
    with np.errstate(invalid="ignore"):
        expected = x @ y
    got = np.asarray(st.jit(lambda x, y: x @ y)(x, y))
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))


@with_kernels
def test_operands_that_are_broadcast_are_not_written_out():
    w, x = drawn(30, 40), drawn(12, 20, 30, seed=1)
    f = lambda x, w: snp.einsum("bij,bjk->bik", x, snp.broadcast_to(w, (12, 30, 40)))
    assert called(f, x, w) == 1
    close(st.jit(f)(x, w), x.astype(float) @ w, 30, np.float32)


def _twice(y):
    return F.relu(y) + y


LAYERS = {
    "bias": (lambda x, w, b, r: x @ w + b, 0),
    "bias first": (lambda x, w, b, r: b + x @ w, 0),
    "residual": (lambda x, w, b, r: x @ w + r, 0),
    "relu": (lambda x, w, b, r: F.relu(x @ w), 0),
    "bias and relu": (lambda x, w, b, r: F.relu(x @ w + b), 0),
    "turned, and a residual": (lambda x, w, b, r: (w.T @ x.T).T + r, 0),
    "what is read twice": (lambda x, w, b, r: _twice(x @ w + b), 1),
}


@with_kernels
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("m", "n", "k"), [(3, 200, 60), (32, 100, 64), (70, 33, 700)])
def test_products_with_what_follows_them(name, m, n, k):
    f, adds = LAYERS[name]
    args = [drawn(*s, seed=i) for i, s in enumerate([(m, k), (k, n), (n,), (m, n)])]
    text = st.jit(f).lower(*args).as_text()
    assert text.count("stretto_product") == 1
    assert text.count("stablehlo.add") == adds, text
    with st.config(kernels=False):
        expected = st.jit(f)(*args)
    close(st.jit(f)(*args), np.asarray(expected), k, np.float32)


@with_kernels
def test_a_cut_at_zero_keeps_nan_and_gives_positive_zeros():
    x = np.array([[np.nan, 0.0, -0.0, 1.0]] * 40, np.float32)
    w = np.eye(4, 500, dtype=np.float32)
    w[0] = 0
    f = lambda x, w: F.relu(x @ w)
    with st.config(kernels=False):
        expected = np.asarray(st.jit(f)(x[:, 1:], w[1:]))
    got = np.asarray(st.jit(f)(x[:, 1:], w[1:]))
    assert got.tobytes() == expected.tobytes()
    assert np.isnan(st.jit(f)(x, w)).all()


@with_kernels
@pytest.mark.parametrize("how", ["alone", "members", "shared batch"])
def test_a_training_step_is_the_same_without_kernels(how):
    sizes = [(40, 64), (64,), (64, 10), (10,)]
    members = () if how == "alone" else (5,)
    params = [drawn(*members, *s, seed=i) * 0.1 for i, s in enumerate(sizes)]
    x = drawn(*(members if how == "members" else ()), 32, 40, seed=9)
    y = np.arange(32) % 10

    def loss(params, x):
        w1, b1, w2, b2 = params
        return F.cross_entropy(F.relu(x @ w1 + b1) @ w2 + b2, y)

    step = st.value_and_grad(loss)
    if how != "alone":
        step = st.vmap(step, in_axes=(0, 0 if how == "members" else None))
    assert called(step, params, x) >= 3
    ours = st.jit(step)(params, x)
    with st.config(kernels=False):
        theirs = st.jit(step)(params, x)
    for a, b in zip(st.tree.leaves(ours), st.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@with_kernels
def test_loops_call_kernels_too():
    w = drawn(64, 64) / 8

    def f(x, w):
        return st.lax.fori_loop(0, 20, lambda i, x: snp.tanh(x @ w), x)

    x = drawn(64, 64, seed=1)
    assert called(f, x, w) == 1
    expected = x.astype(float)
    for _ in range(20):
        expected = np.tanh(expected @ w)
    np.testing.assert_allclose(st.jit(f)(x, w), expected, atol=1e-4)


@with_kernels
def test_programs_from_disk_call_kernels(tmp_path):
    code = (
        "import numpy as np, stretto as st\n"
        "x = np.ones((64, 100), np.float32)\n"
        "print(float(st.jit(lambda x: x @ x.T)(x)[3, 4]))"
    )
    environment = {**os.environ, "STRETTO_CACHE_DIR": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.strip() == "100.0", done.stderr


def test_files_and_settings_and_small_products_go_without():
    x = drawn(64, 64)
    f = lambda x: x @ x
    with st.config(kernels=False):
        assert called(f, x) == 0
    assert called(f, x[:8, :8]) == 0
    assert called(f, x.astype(ml_dtypes.float8_e4m3fn)) == 0
    assert called(lambda x: st.lax.dot(x, x, precision="highest"), x) == 0
    assert "stretto_" not in st.export.stablehlo(f, x).text


OFF = "from stretto._engine.kernels import LEVEL, WITHOUT; print(LEVEL, WITHOUT)"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"STRETTO_KERNELS": "0"}, "STRETTO_KERNELS=0 turns them off"),
        ({"STRETTO_KERNELS_LEVEL": "sse9"}, "there are none for vectors of sse9 here"),
        ({"XLA_FLAGS": "--xla_cpu_max_isa=SSE4_2"}, "there are none for vectors of sse4_2 here"),
    ],
)
def test_why_there_are_none(variables, said):
    if WITHOUT:
        pytest.skip(f"there are none here: {WITHOUT}")
    environment = {**os.environ, **variables}
    done = subprocess.run(
        [sys.executable, "-c", OFF], env=environment, capture_output=True, text=True, check=True
    )
    assert said in done.stdout


@with_kernels
def test_each_level_of_vectors_gives_the_same(tmp_path):
    """Tiles sum in one order: the bits are those of this level. Of few rows only the digits are."""
    code = (
        "import numpy as np, sys, stretto as st\n"
        "r = np.random.default_rng(0)\n"
        "x, w = (r.standard_normal(s).astype('f') for s in ((70, 400), (400, 90)))\n"
        "y = st.jit(lambda x, w: x @ w)(x, w)\n"
        "few = st.jit(lambda x, w: x @ w)(x[:2], w)\n"
        "half = st.jit(lambda x, w: x @ w)(x.astype(np.float16), w.astype(np.float16))\n"
        "i, j = ((v * 30).astype(np.int8) for v in (x, w))\n"
        "times = st.jit(lambda i, j: st.numpy.matmul(i, j, preferred_element_type='int32'))\n"
        "parts = [np.asarray(v, 'f') for v in (times(i, j), times(i, j[:, :5]), y, half, few)]\n"
        "np.save(sys.argv[1], np.concatenate([v.reshape(-1, 10) for v in parts]))"
    )
    found = []
    for number, variables in enumerate(
        [
            *[{"STRETTO_KERNELS_LEVEL": level} for level in kernels.kernels.levels()],
            {"NPROC": "1"},
            {"NPROC": "4"},
        ]
    ):
        file = tmp_path / f"{number}.npy"
        environment = {**os.environ, **variables, "STRETTO_CACHE_DIR": str(tmp_path / str(number))}
        subprocess.run([sys.executable, "-c", code, str(file)], env=environment, check=True)
        found.append(np.load(file))
    for other in found[1:]:
        assert other[:-18].tobytes() == found[0][:-18].tobytes()
        np.testing.assert_allclose(other, found[0], atol=1e-4)


def test_the_best_level_of_the_processor_is_used():
    if WITHOUT:
        pytest.skip(f"there are none here: {WITHOUT}")
    with pytest.raises(ValueError, match="no kernels for sse9"):
        kernels.kernels.use("sse9")
    assert LEVEL in kernels.kernels.levels()


def test_python_takes_the_revision_that_is_in_the_sources():
    """Of another one it takes no kernels, and their tests would be left out."""
    source = (ROOT / "src/stretto/_engine/kernels/module.c").read_text("utf-8")
    assert f"#define REVISION {kernels._REVISION}\n" in source


@with_kernels
@pytest.mark.parametrize(
    "f",
    [
        lambda w, x: snp.broadcast_to(w.reshape(-1), (4, 64 * 64)).reshape(4, 64, 64) @ x,
        lambda w, x: w.reshape(2, 32, 64).reshape(64, 64)[:64] @ x,
        lambda w, x: snp.stack([w, w])[0:1] @ x,
        lambda w, x: st.lax.rev(w.reshape(64, 64, 1), (2,)).reshape(64, 64) @ x,
    ],
    ids=["repeated in another shape", "in another shape", "the first part", "reversed axes of one"],
)
def test_a_product_reads_an_operand_in_the_array_that_it_lies_in(f):
    """So that nothing is laid out anew: the shape of the operand is not that of the matrices."""
    random = np.random.default_rng(0)
    w = snp.asarray(random.standard_normal((64, 64)), dtype=snp.float32)
    x = snp.asarray(random.standard_normal((4, 64, 64)), dtype=snp.float32)
    text = st.jit(f).lower(w, x).as_text()
    (call,) = [line for line in text.splitlines() if "stretto_product" in line]
    operands = call[call.rindex(": (") :]
    assert "tensor<4x64x64xf32>, tensor<4x64x64xf32>" not in operands
    assert "broadcast_in_dim" not in operands
    with st.config(kernels=False):
        want = st.jit(f)(w, x)
    np.testing.assert_allclose(st.jit(f)(w, x), want, rtol=2e-4, atol=1e-4)


ISA = "--xla_cpu_max_isa="


@pytest.mark.parametrize(
    ("level", "flags", "asked"),
    [
        ("", "", ""),
        ("AVX2", "", "avx2"),
        ("neon", f"{ISA}AVX2", "neon"),
        ("", f"{ISA}AVX2", "avx2"),
        ("", f"{ISA}avx2 --other=1", "avx2"),
        ("", f"--other=1 {ISA}AVX512_BF16", "avx512"),
        ("", f"{ISA}SSE4_2", "sse4_2"),
    ],
)
def test_which_vectors_are_asked_for(level, flags, asked, monkeypatch):
    monkeypatch.setenv("STRETTO_KERNELS_LEVEL", level)
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert kernels._asked() == asked


@pytest.mark.parametrize(
    ("environment", "found", "revision", "loaded"),
    [
        ({}, ["avx512", "avx2"], 0, ("avx512", "")),
        ({"STRETTO_KERNELS": "1"}, ["avx2"], 0, ("avx2", "")),
        ({"STRETTO_KERNELS_LEVEL": "avx2"}, ["avx512", "avx2"], 0, ("avx2", "")),
        ({"STRETTO_KERNELS_LEVEL": "avx512"}, ["avx2"], 0, "there are none for vectors of avx512"),
        ({}, [], 0, "there are none for vectors of none here"),
        ({}, ["avx2"], 1, "they were built from another version"),
        ({}, ["avx2"], -1, "they were built from another version"),
        ({}, ModuleNotFoundError("no"), 0, "they were not built for this Python"),
        ({}, ImportError("no file"), 0, r"they cannot be loaded \(no file\)"),
        ({"STRETTO_KERNELS": "0"}, ["avx2"], 0, "STRETTO_KERNELS=0 turns them off"),
        ({"STRETTO_KERNELS": "False"}, ["avx2"], 0, "STRETTO_KERNELS=0 turns them off"),
    ],
)
def test_what_is_loaded_and_why_nothing_is(environment, found, revision, loaded, monkeypatch):
    for name in ("STRETTO_KERNELS", "STRETTO_KERNELS_LEVEL", "XLA_FLAGS"):
        monkeypatch.setenv(name, environment.get(name, ""))
    used = []

    def import_module(name):
        if isinstance(found, Exception):
            raise found
        revisions = {"REVISION": kernels._REVISION + revision}
        return SimpleNamespace(levels=lambda: found, use=used.append, **revisions)

    monkeypatch.setattr(kernels, "importlib", SimpleNamespace(import_module=import_module))
    module, level, why = kernels._load()
    if isinstance(loaded, str):
        assert (module, level, used) == (None, "", []) and re.match(loaded, why)
    else:
        assert module is not None and (level, why) == loaded and used == [level]


def test_huge_pages_are_advised_where_there_are_kernels(monkeypatch):
    told = []
    monkeypatch.setattr(kernels, "kernels", SimpleNamespace(huge_pages=told.append))
    kernels.advise_huge_pages(True)
    kernels.advise_huge_pages(False)
    monkeypatch.setattr(kernels, "kernels", None)
    kernels.advise_huge_pages(True)
    assert told == [True, False]


@with_kernels
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_large_results_are_not_copied_for_what_they_wait_for(dtype):
    """They have the memory of what the kernel wrote, unless that is read after them as well."""
    x, w = drawn(512, 128, dtype=dtype), drawn(128, 300, dtype=dtype, seed=1)
    x = (x / 16).astype(dtype)  # whose squares are floats of 16 bits

    def alone(x, w):
        return x @ w

    def read(x, w):
        y = x @ w
        return y, snp.concatenate([y.T @ y] * 3)

    def twice(x, w):
        return (alone(x, w),) * 2

    text = st.jit(alone).lower(x, w).compile().as_text()
    assert "stretto_unwritten" in text and "dynamic-update-slice" not in text
    assert " copy(" not in text
    exact = x.astype(np.float64) @ w.astype(np.float64)
    last = float(ml_dtypes.finfo(dtype).eps)
    for f in (alone, read, twice):
        assert "stretto_unwritten" in st.jit(f).lower(x, w).compile().as_text()
        got = [np.asarray(y).astype(np.float64) for y in st.tree.leaves(st.jit(f)(x, w))]
        np.testing.assert_allclose(got[0], exact, rtol=last, atol=1e-4)
        if f is read:
            size = np.abs(got[0]).T @ np.abs(got[0])
            assert (np.abs(got[1][:300] - got[0].T @ got[0]) <= (last + 2e-6) * size).all()
        elif f is twice:
            np.testing.assert_array_equal(got[0], got[1])
