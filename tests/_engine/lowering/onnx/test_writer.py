"""The writer of nodes: broadcasting without nodes, casts, shapes of any size, loops."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64
from tests.export.running import agrees, exported, operators, run

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def test_what_repeats_elements_is_carried_small():
    model = agrees(lambda x, y: x * 2 + snp.broadcast_to(y, (4, 3)), X, X[0])
    assert operators(model) == {"Mul": 1, "Add": 1}


def test_equal_work_is_written_once():
    model = agrees(lambda x: snp.sin(x) * snp.sin(x), X)
    assert operators(model)["Sin"] == 1


FLOATS = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483520, 255.5, -0.6, 70000], "float32")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "bool"])
def test_floats_as_integers_saturate(dtype):
    agrees(lambda x: x.astype(dtype), FLOATS)


def test_floats_as_wide_integers_saturate():
    with enable_x64():
        agrees(lambda x: x.astype("int64"), FLOATS.astype("float64") * 1e12)


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "uint32", "float16", "int8"])
def test_choices_of_dtypes_without_a_kernel(dtype):
    x = (np.arange(12).reshape(4, 3) % 2).astype(dtype)
    agrees(lambda c, x: snp.where(c, x, x[::-1]), X > 0, x)


def test_unsigned_integers_of_64_bits():
    with enable_x64():
        x = np.array([1, 2**63 + 5, 2**64 - 1], np.uint64)
        agrees(lambda c, x: (snp.where(c, x, x[::-1]), snp.sort(x), x.argmax(), x.max()),
               np.array([True, False, True]), x)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_shapes_with_sizes_that_vary(n):
    def f(x):
        rows = snp.arange(x.shape[0])[:, None] * snp.ones((1, 2))
        flat = x.reshape(x.shape[0] * 3)
        return rows, flat, snp.concatenate([x, x[:1]]), snp.full((x.shape[0], 2), 7), x[::-1]

    model = exported(f, X, dynamic_axes=({0: "n"},))
    x = np.random.default_rng(n).normal(size=(n, 3)).astype("float32")
    for got, want in zip(run(model, [x]), f(snp.array(x)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_bits_of_other_widths():
    agrees(lambda x: st.lax.bitcast_convert_type(x, "uint8"), X)
    words = np.random.default_rng(0).integers(0, 255, (3, 4)).astype("uint8")
    agrees(lambda x: st.lax.bitcast_convert_type(x, "int32"), words)


@pytest.mark.parametrize(("exponent", "mantissa"), [(8, 7), (5, 10), (8, 23), (6, 3), (11, 52)])
def test_rounding_to_fewer_bits(exponent, mantissa):
    x = np.concatenate([X.ravel(), FLOATS])
    agrees(lambda x: st.lax.reduce_precision(x, exponent, mantissa), x)


def test_padding_between_elements_and_cut_at_the_ends():
    agrees(lambda x: st.lax.pad(x, np.float32(9), [(1, -1, 2), (-1, 2, 1)]), X)


def test_a_loop_whose_state_is_not_read():
    agrees(lambda x: st.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x)), X)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int32", "float16"])
def test_reductions(op, dtype):
    x = (np.arange(1, 13).reshape(4, 3) % 4).astype(dtype)
    agrees(lambda x: getattr(x, op)(axis=1), x)


def test_bitwise_reductions_fold_halves():
    x = np.arange(3, 38, dtype="int32").reshape(5, 7)
    agrees(lambda x: (snp.bitwise_xor.reduce(x, 1), snp.bitwise_and.reduce(x, 0)), x)


def test_nan_is_kept_in_extrema():
    x = X.copy()
    x[1, 1] = np.nan
    agrees(lambda x: (x.max(1), x.min(0), snp.maximum(x, 0), x.argmax(1), x.argmin(0)), x)
