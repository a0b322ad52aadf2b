"""The kernel for gathers: values, what is read beyond the ends, and what bags do not depend on."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.kernels import kernels
from stretto.nn import functional as F

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")

DTYPES = ["float32", "float64"]
# Less than a vector more than some vectors, and runs that are cut.
WIDTHS = [16, 17, 31, 64, 65, 127, 300, 4097, 8191, 12289]


@pytest.fixture(autouse=True)
def _wide(request):
    """Have float64 where a test is for it."""
    with st.enable_x64(request.node.callspec.params.get("dtype") == "float64"):
        yield


def called(function, *args):
    """The result of a program, which has one call of the kernel."""
    jitted = st.jit(function)
    assert jitted.lower(*args).as_text().count('"stretto_gather"') == 1
    return np.asarray(jitted(*args))


def drawn(*shape, dtype="float32"):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def places(high, *shape, beyond=0):
    return np.random.default_rng(1).integers(-high - beyond, high + beyond, shape).astype(np.int32)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_and_bags_of_all_widths(width, dtype):
    table, at = drawn(50, width, dtype=dtype), places(50, 13, 7)
    np.testing.assert_array_equal(called(lambda w, i: w[i], table, at), table[at])
    got = called(lambda w, i: w[i].sum(1), table, at)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(got, table[at].astype(np.float64).sum(1), rtol=0, atol=60 * eps)
    got = called(lambda w, i: w[i].max(1), table, at)
    np.testing.assert_array_equal(got, table[at].max(1))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("terms", [1, 2, 255, 256, 257, 5000])
def test_bags_of_many_rows(terms, dtype):
    table, at = drawn(50, 70, dtype=dtype), places(50, 16, terms)
    factors = drawn(16, terms, dtype=dtype)
    rows = table[at].astype(np.float64)
    eps = np.finfo(dtype).eps
    close = lambda got, expected, scale: np.testing.assert_allclose(
        got, expected, rtol=0, atol=20 * eps * scale
    )
    close(called(lambda w, i: w[i].mean(1), table, at), rows.mean(1), 1 + terms / 500)
    product = called(lambda w, i, f: (w[i] * f[:, :, None]).sum(1), table, at, factors)
    close(product, (rows * factors[:, :, None]).sum(1), terms)


@pytest.mark.parametrize("name", ["bool", "int8", "uint16", "bfloat16", "float32", "complex128"])
def test_rows_of_any_dtype(name):
    with st.enable_x64():
        table = snp.asarray(drawn(50, 80) * 9).astype(name)
        at = places(50, 40)
        got = called(lambda w, i: w[i], table, at)
        np.testing.assert_array_equal(got, np.asarray(table)[at])


@pytest.mark.parametrize("width", [1, 40])
def test_beyond_the_ends(width):
    table = drawn(100000 // width, width)
    at = places(len(table), 2100, beyond=len(table))
    wrapped = np.where(at < 0, at + len(table), at)
    inside = (wrapped >= 0) & (wrapped < len(table))
    moved = np.clip(wrapped, 0, len(table) - 1)
    got = called(lambda w, i: w[i], table, at)
    np.testing.assert_array_equal(got, table[moved])
    got = called(lambda w, i: snp.take(w, i, axis=0, mode="fill", fill_value=7), table, at)
    np.testing.assert_array_equal(got, np.where(inside[:, None], table[moved], 7))
    at = np.array([0, 1, len(table), -len(table) - 1] * 600, np.int32)
    got = called(lambda w, i: F.embedding(i, w), table, at)
    outside = np.broadcast_to((np.abs(at + 0.5) > 2)[:, None], got.shape)
    np.testing.assert_array_equal(np.isnan(got), outside)


@pytest.mark.parametrize("dtype", DTYPES)
def test_single_elements(dtype):
    x, at = drawn(2100, 40, dtype=dtype), places(40, 2100)
    each = np.arange(2100)
    expected = x[each, at]
    got = called(lambda x, i: snp.take_along_axis(x, i[:, None], 1)[:, 0], x, at)
    np.testing.assert_array_equal(got, expected)
    picked = lambda x, i: x[snp.arange(2100), i]
    for each_at in (at, at.astype(np.int64)):
        np.testing.assert_array_equal(called(picked, x, each_at), expected)
    turned = lambda x, i: picked(x.T, i)
    np.testing.assert_array_equal(called(turned, x.T.copy(), at), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_special_numbers(dtype):
    table = drawn(40, 64, dtype=dtype)
    table[0], table[1], table[2], table[3] = np.nan, np.inf, -np.inf, -0.0
    at = np.array([[0, 4], [1, 5], [1, 2], [3, 3], [2, 2], [5, 0]] * 10, np.int32)
    rows = table[at].astype(np.float64)
    with np.errstate(invalid="ignore"):
        for kind in ("sum", "mean", "max"):
            got = called(lambda w, i, kind=kind: getattr(w[i], kind)(1), table, at)
            np.testing.assert_allclose(got, getattr(rows, kind)(1), rtol=1e-5)
    assert not np.signbit(called(lambda w, i: w[i].sum(1), table, at)[3]).any()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_rows_that_do_not_count_are_not_read(mode):
    table, at = drawn(40, 64), places(40, 64, 5) % 40
    table[3] = np.nan
    at[5] = 3
    bags = lambda w, i: F.embedding_bag(i, w, mode=mode, padding_idx=3)
    got = np.asarray(st.jit(bags)(table, at))
    counted = (at != 3)[:, :, None]
    rows = np.where(counted, table[at], 0).astype(np.float64)
    expected = rows.sum(1)
    if mode == "mean":
        expected /= np.maximum(counted.sum(1), 1)
    if mode == "max":
        expected = np.where(counted, table[at], -np.inf).max(1)
        expected[5] = 0
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_members_are_as_one_alone(dtype):
    tables, at = drawn(6, 50, 70, dtype=dtype), places(50, 6, 33, 9)
    bags = lambda w, i: w[i].mean(1)
    for axes in ((0, 0), (0, None), (None, 0)):
        args = [a if axis == 0 else a[0] for a, axis in zip((tables, at), axes, strict=True)]
        together = called(st.vmap(bags, in_axes=axes), *args)
        for k in range(6):
            own = [a[k] if axis == 0 else a for a, axis in zip(args, axes, strict=True)]
            np.testing.assert_array_equal(together[k], called(bags, *own))


@pytest.mark.parametrize("dtype", DTYPES)
def test_loops_read_where_their_arrays_lie(dtype):
    tables, at = drawn(5, 50, 70, dtype=dtype), places(50, 5, 33)

    def run(tables, at):
        return st.lax.scan(lambda _, x: (None, x[0][x[1]]), None, (tables, at))[1]

    got = called(run, tables, at)
    np.testing.assert_array_equal(got, np.stack([w[i] for w, i in zip(tables, at, strict=True)]))
