"""Slices at places that are computed, gathers, scatters, sorts."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import lax, vmap
from tests.export.running import agrees, exported, operators, run

X = np.random.default_rng(0).normal(size=(5, 4, 3)).astype("float32")
PLACES = np.array([-9, 0, 1, 3, 4, 99], "int32")


def test_a_gather_along_one_axis_is_one_node():
    model = agrees(lambda x, i: x.at[i].get(mode="promise_in_bounds"), X, np.array([1, 3, 0]))
    assert operators(model)["Gather"] == 1


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_out_of_bounds(mode):
    agrees(lambda x, i: x.at[i].get(mode=mode, fill_value=7), X, PLACES)
    agrees(lambda x, i: x.at[:, i, i].get(mode=mode, fill_value=7), X, PLACES)


@pytest.mark.parametrize("update", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("mode", ["clip", "drop"])
def test_updates_out_of_bounds(update, mode):
    places = np.array([4, 99, 1], "int32")
    values = np.arange(1.0, 4.0, dtype="float32")[:, None, None]
    agrees(lambda x, i, v: getattr(x.at[i], update)(v, mode=mode), X, places, values)


def test_equal_places_add_up():
    agrees(lambda x, i: x.at[i, 0].add(1.0), X, np.array([2, 2, 2, 0]))


def test_each_example_has_its_own_places():
    starts = np.array([0, 2, 9], "int32")
    x = X[:3]
    agrees(vmap(lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 3))), x, starts)
    agrees(vmap(lambda x, i: lax.dynamic_update_slice(x, x[:2] * 0, (i, 0))), x, starts)
    agrees(lambda x: snp.take_along_axis(x, snp.argsort(x, 1), 1), X)


def test_slices_are_moved_to_fit():
    f = lambda x, i, j: (
        lax.dynamic_slice(x, (i, j, 0), (2, 3, 3)),
        lax.dynamic_update_slice(x, x[:2, :2] * 0, (i, j, 0)),
    )
    model = exported(f, X, np.int32(0), np.int32(0))
    for i, j in [(0, 0), (3, 1), (-5, 9), (9, -5)]:
        for got, want in zip(run(model, [X, np.int32(i), np.int32(j)]), f(X, i, j), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "bool", "uint32"])
def test_sorts(dtype):
    x = np.random.default_rng(0).integers(0, 4, (6, 5)).astype(dtype)
    agrees(lambda x: (snp.sort(x, 0), snp.argsort(x, 1), snp.argsort(x, 0, descending=True)), x)


def test_sorts_by_several_keys_keep_the_order_of_equal_ones():
    a, b = np.random.default_rng(0).integers(0, 3, (2, 20)).astype("int32")
    agrees(lambda a, b: lax.sort((a, b, snp.arange(20)), num_keys=2), a, b)
    agrees(lambda a, b: snp.lexsort((a, b)), a, b)


def test_nan_comes_last():
    x = X[0, 0].tolist() + [np.nan, -np.inf, np.inf, np.nan, 0.0]
    agrees(lambda x: (snp.sort(x), snp.argsort(x), lax.top_k(x, 3)), np.array(x, "float32"))


@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_products_and_extrema(reverse):
    f = lambda x: [
        g(x, axis=1, reverse=reverse)
        for g in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp)
    ]
    agrees(f, X)
    agrees(lambda x: lax.cumsum(x, axis=0, reverse=reverse), (X * 10).astype("int8"))
