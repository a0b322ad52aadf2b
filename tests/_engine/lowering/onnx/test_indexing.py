"""Slices at places that are computed, gathers, scatters, sorts."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64, lax, vmap
from stretto.errors import ExportError
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


# Windows at all places, of all axes

I3 = np.array([-7, 0, 2], "int32")


@pytest.mark.parametrize("start", [-9, -1, 0, 1, 2, 3, 9])
@pytest.mark.parametrize("constant", [True, False])
def test_slices_at_places_before_within_and_behind(start, constant):
    update = np.full((2, 4, 3), 7, "float32")

    def f(x, i):
        i = start if constant else i
        return (
            lax.dynamic_slice(x, (i, 0, 0), (2, 4, 3)),
            lax.dynamic_slice(x, (0, i, i), (5, 1, 2)),
            lax.dynamic_slice(x, (i, i, i), (5, 4, 3)),
            lax.dynamic_update_slice(x, update, (i, 0, 0)),
            lax.dynamic_update_slice(x, update[:, :2, :2], (i, i, 1)),
            lax.dynamic_update_slice(x, x + 1, (i, i, i)),
            x.at[:1].set(7.0),
        )

    agrees(f, X, np.int32(start))


def test_axes_that_are_taken_whole_are_not_cut():
    model = agrees(lambda x, i: lax.dynamic_slice(x, (i, i, i), (2, 4, 3)), X, np.int32(1))
    once = ("Reshape", "Max", "Min", "Slice")
    assert [operators(model)[op] for op in once] == [1, 1, 1, 1]
    model = agrees(lambda x, i: lax.dynamic_update_slice(x, x + 1, (i, i, i)), X, np.int32(1))
    assert operators(model) == {"Add": 1}
    model = agrees(lambda x: lax.dynamic_slice(x, (7, 1, 1), (5, 4, 3)) * 2, X)
    assert operators(model) == {"Mul": 1}


def test_slices_of_any_size():
    f = lambda x, i: (
        lax.dynamic_slice(x, (i, 0, 1), (2, 4, 2)),
        lax.dynamic_slice(x, (i, i, 0), (x.shape[0] - 2, 2, 3)),
        lax.dynamic_update_slice(x, x[:2] * 0, (i, 0, 0)),
        x[i],
    )
    model = exported(f, X, np.int32(0), dynamic_axes=({0: st.dynamic_size("n", least=3)}, None))
    for n, i in ((5, 1), (3, 0), (4, 2), (6, 3)):
        x = np.random.default_rng(n).normal(size=(n, 4, 3)).astype("float32")
        for got, want in zip(run(model, [x, np.int32(i)]), f(snp.array(x), i), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (4,), (2, 2)])
@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_elements_along_each_axis(axis, shape, mode):
    places = np.array([-9, 1, 2, 30], "int32")[: max(1, 4 if shape else 1)].reshape(shape or (1,))
    places = places if shape else places[0]
    agrees(lambda x, i: snp.take(x, i, axis, mode=mode), X, places)
    agrees(lambda x: snp.take(x, places, axis, mode=mode), X)


INDEXED = [
    lambda x, i: x[i],
    lambda x, i: x[:, i],
    lambda x, i: x[..., i],
    lambda x, i: x[i, i],
    lambda x, i: x[i, :, i],
    lambda x, i: x[:, i, i],
    lambda x, i: x[i, i, i],
    lambda x, i: x[i[:, None], i],
    lambda x, i: x[i[:, None], :, i],
    lambda x, i: x[i, 1:3],
    lambda x, i: x[1:3, i],
    lambda x, i: x[1:3, i, :2],
    lambda x, i: x[None, i],
]


@pytest.mark.parametrize("f", INDEXED)
def test_indices_of_arrays(f):
    agrees(f, X, np.array([1, 0, 2]))
    agrees(f, X, np.array([-1, 0, 1]))
    agrees(lambda x, i: f(x + 1j * x, i).imag, X, np.array([1, 0, 2]))


def windows(x, i, sizes, mode, **how):
    """Gather windows of these sizes at indices into their axes."""
    numbers = lax.GatherDimensionNumbers(**how)
    return lax.gather(x, i, numbers, sizes, mode=mode)


GATHERS = [
    # Offsets before, between and behind the batch; axes in another order; windows of parts.
    (((5, 4, 3), (2, 1)), (2, 4, 3), {"offset_dims": (1, 2, 3), "collapsed_slice_dims": (),
                                      "start_index_map": (0,)}),
    (((5, 4, 3), (2, 1)), (2, 4, 3), {"offset_dims": (0, 2, 3), "collapsed_slice_dims": (),
                                      "start_index_map": (0,)}),
    (((5, 4, 3), (2, 1)), (1, 4, 3), {"offset_dims": (0, 1), "collapsed_slice_dims": (0,),
                                      "start_index_map": (0,)}),
    (((5, 4, 3), (2, 1)), (5, 1, 3), {"offset_dims": (0, 2), "collapsed_slice_dims": (1,),
                                      "start_index_map": (1,)}),
    (((5, 4, 3), (2, 2)), (1, 2, 3), {"offset_dims": (1, 2), "collapsed_slice_dims": (0,),
                                      "start_index_map": (0, 1)}),
    (((5, 4, 3), (1, 2)), (1, 2, 3), {"offset_dims": (1, 2), "collapsed_slice_dims": (0,),
                                      "start_index_map": (0, 1)}),
    (((5, 4, 3), (2,)), (1, 2, 3), {"offset_dims": (0, 1), "collapsed_slice_dims": (0,),
                                    "start_index_map": (0, 1)}),
    (((5, 4, 3), (2, 2)), (2, 1, 3), {"offset_dims": (1, 2), "collapsed_slice_dims": (1,),
                                      "start_index_map": (1, 0)}),
    (((5, 4, 3), (2, 2)), (3, 4, 2), {"offset_dims": (1, 2, 3), "collapsed_slice_dims": (),
                                      "start_index_map": (2, 0)}),
    (((5, 4, 3), (2, 1)), (1, 2, 2), {"offset_dims": (1, 2), "collapsed_slice_dims": (0,),
                                      "start_index_map": (0,)}),
    (((5, 4, 3), (2, 0)), (5, 2, 3), {"offset_dims": (1, 2, 3), "collapsed_slice_dims": (),
                                      "start_index_map": ()}),
    (((5, 4, 3), (5, 2, 1)), (1, 1, 3), {"offset_dims": (2,), "collapsed_slice_dims": (1,),
                                         "start_index_map": (1,), "operand_batching_dims": (0,),
                                         "start_indices_batching_dims": (0,)}),
    (((4, 5, 3), (2, 5, 1)), (2, 1, 3), {"offset_dims": (2, 3), "collapsed_slice_dims": (),
                                         "start_index_map": (0,), "operand_batching_dims": (1,),
                                         "start_indices_batching_dims": (1,)}),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["clip", "fill", "promise_in_bounds"])
@pytest.mark.parametrize(("shapes", "sizes", "how"), GATHERS)
def test_windows_at_index_vectors(shapes, sizes, how, mode):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shapes[0]).astype("float32")
    i = rng.integers(*((0, 1) if mode == "promise_in_bounds" else (-1, 5)), shapes[1])
    agrees(lambda x, i: windows(x, i, sizes, mode, **how), x, i.astype("int32"))


NAMES = {
    "offset_dims": "update_window_dims",
    "collapsed_slice_dims": "inserted_window_dims",
    "start_index_map": "scatter_dims_to_operand_dims",
    "operand_batching_dims": "operand_batching_dims",
    "start_indices_batching_dims": "scatter_indices_batching_dims",
}
SCATTERS = [
    (shapes, sizes, {NAMES[k]: v for k, v in how.items()})
    for shapes, sizes, how in GATHERS
    if how["start_index_map"]
]


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize(("shapes", "sizes", "how"), SCATTERS)
def test_updates_of_windows_at_index_vectors(shapes, sizes, how, mode):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shapes[0]).astype("float32")
    i = rng.integers(-1, 5, shapes[1]).astype("int32")
    inserted = (*how["inserted_window_dims"], *how.get("operand_batching_dims", ()))
    window = [n for d, n in enumerate(sizes) if d not in inserted]
    batch = iter(shapes[1][:-1])
    ndim = len(window) + len(shapes[1]) - 1
    at = dict(zip(how["update_window_dims"], window, strict=True))
    updates = rng.normal(size=[at[d] if d in at else next(batch) for d in range(ndim)])
    numbers = lax.ScatterDimensionNumbers(**how)
    f = lambda x, i, u: (
        lax.scatter_add(x, i, u, numbers, mode=mode),
        lax.scatter_min(x, i, u, numbers, mode=mode),
        lax.scatter_sub(x, i, u, numbers, mode=mode),
    )
    agrees(f, x, i, updates.astype("float32"))


def test_updates_without_indices():
    whole, of_rows = [
        lax.ScatterDimensionNumbers(
            update_window_dims=dims, inserted_window_dims=(), scatter_dims_to_operand_dims=()
        )
        for dims in ((0, 1, 2), (1, 2, 3))
    ]
    none = np.zeros(0, "int32")
    agrees(lambda x, u: lax.scatter(x, none, u, whole), X, X + 1)
    agrees(lambda x, u: lax.scatter(x, none, u, whole), X, X[:, :2] + 1)
    with pytest.raises(ExportError, match="scatter by 'add' without indices"):
        exported(lambda x, u: lax.scatter_add(x, none, u, whole), X, X)
    with pytest.raises(ExportError, match="scatter by 'set' without indices"):
        twice = np.zeros((2, 0), "int32")
        exported(lambda x, u: lax.scatter(x, twice, u, of_rows), X, np.stack([X, X]))


@pytest.mark.parametrize("f", INDEXED[:10])
def test_updates_at_indices_of_arrays(f):
    def g(x, i):
        ones = snp.zeros(x.shape).at[(i, *[slice(None)] * 2)].add(1.0)
        return ones * x, x.at[i].multiply(2.0), x.at[:, i].set(7.0), x.at[..., i].min(0.0)

    agrees(g, X, np.array([1, 0, 2]))
    agrees(st.grad(lambda x, i: (f(x, i) ** 2).sum()), X, np.array([1, 0, 1]))


@pytest.mark.parametrize("update", ["set", "add", "multiply", "min", "max"])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "float16", "uint32", "complex64"])
def test_updates_of_each_dtype(update, dtype):
    if dtype == "complex64" and update not in ("set", "add"):
        return
    if dtype == "bool" and update in ("min", "max"):
        return
    x = (np.arange(15).reshape(5, 3) % 4).astype(dtype)
    values = (np.arange(9).reshape(3, 3) % 3).astype(dtype)
    for mode, last in (("clip", 0), ("drop", 9)):
        f = lambda x, i, v, mode=mode: getattr(x.at[i], update)(v, mode=mode)
        agrees(f, x, np.array([4, 1, last], "int32"), values)


def test_updates_of_any_size():
    f = lambda x, i: (x.at[i].add(1.0, mode="drop"), x.at[:, i].set(0.0), x.at[i].get(mode="fill"))
    model = exported(f, X, I3, dynamic_axes=({0: "n"}, {0: "m"}))
    for n, places in ((5, I3), (2, np.array([0, 5, 1, 0], "int32"))):
        x = np.random.default_rng(n).normal(size=(n, 4, 3)).astype("float32")
        for got, want in zip(run(model, [x, places]), f(snp.array(x), places), strict=True):
            np.testing.assert_array_equal(got, want)


# Orders


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16"])
@pytest.mark.parametrize("axis", [0, 1])
def test_places_of_extrema(dtype, axis):
    x = (np.arange(20).reshape(4, 5) * 7 % 6).astype(dtype)
    if dtype == "uint64":
        x[1] += np.uint64(2**63)
    with enable_x64():
        agrees(lambda x: (x.argmax(axis), x.argmin(axis), x.max(axis), x.min(axis)), x)


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_places_in_rows_of_which_there_are_none(dtype):
    agrees(lambda x: (x.argmax(1), x.argmin(1)), np.ones((0, 3), dtype))


def test_places_of_the_first_nan():
    x = X[0].copy()
    x[1, 1:] = x[3, 0] = np.nan
    exact = agrees(lambda x: (x.argmax(1), x.argmin(1), x.argmax(0), x.argmin(0)), x)
    assert operators(exact)["Where"] == 4
    assert operators(exported(lambda x: x.argmax(1), X[0], exact=False)) == {"ArgMax": 1, "Cast": 1}
    assert operators(exported(lambda x: x.argmax(1), X[0].astype("int32"))) == {
        "ArgMax": 1,
        "Cast": 1,
    }


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint64", "int8", "bool"])
def test_the_greatest_few(dtype):
    x = (np.arange(20).reshape(4, 5) * 7 % 6).astype(dtype)
    if dtype == "uint64":
        x[1] += np.uint64(2**63)
    with enable_x64():
        agrees(lambda x: [lax.top_k(x, k) for k in (1, 2, 5)], x)
        agrees(lambda x: (snp.sort(x, 0), snp.argsort(x, 0), snp.sort(x, 1, descending=True)), x)


@pytest.mark.parametrize("keys", [1, 2, 3])
@pytest.mark.parametrize("axis", [0, 1])
def test_sorts_by_keys_along_an_axis(keys, axis):
    a, b = np.random.default_rng(0).integers(0, 3, (2, 6, 5)).astype("int32")
    c = np.arange(30, dtype="float32").reshape(6, 5) + 1j
    agrees(lambda a, b, c: lax.sort((a, b, c), dimension=axis, num_keys=keys), a, b, c)


def test_running_totals_keep_the_digits_of_float64():
    with enable_x64():
        agrees(lambda x: (lax.cumsum(x, 0), lax.cumprod(x, 1)), X.astype("float64"))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "uint32", "int64", "float16",
                                   "complex64"])  # fmt: skip
@pytest.mark.parametrize("reverse", [False, True])
def test_running_totals_of_each_dtype(dtype, reverse):
    x = (np.arange(1, 13).reshape(3, 4) * 5 % 7).astype(dtype)
    x = x + 1j * x if dtype == "complex64" else x
    with enable_x64():
        if dtype != "bool":
            agrees(lambda x: [lax.cumsum(x, a, reverse=reverse) for a in (0, 1)], x)
            agrees(lambda x: [lax.cumprod(x, a, reverse=reverse) for a in (0, 1)], x, rtol=1e-3)
        if dtype not in ("bool", "complex64"):
            agrees(lambda x: [lax.cummax(x, a, reverse=reverse) for a in (0, 1)], x)
