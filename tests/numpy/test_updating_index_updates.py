"""``x.at[index]``."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

_UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "divide": np.divide,
}


def test_updates_are_dropped():
    x = np.zeros(3, np.float32)
    for index in (5, -5, np.array([5, 1]), np.array([1, -4])):
        want = np.zeros(3)
        want[[i for i in np.ravel(index) if -3 <= i < 3]] = 1
        update = lambda x, index=index: x.at[index].set(1.0)
        np.testing.assert_array_equal(update(snp.array(x)), want)
        np.testing.assert_array_equal(st.jit(update)(x), want)
        traced = st.jit(lambda x, i: x.at[i].set(1.0))(x, np.asarray(index, np.int32))
        np.testing.assert_array_equal(traced, want)


def test_updates_clip_when_asked():
    x = snp.zeros(3)
    np.testing.assert_array_equal(x.at[5].set(1.0, mode="clip"), [0, 0, 1])
    at = np.array([7, 9], np.int32)
    add = lambda i: x.at[i].add(1.0, mode="clip")
    np.testing.assert_array_equal(add(at), [0, 0, 2])
    np.testing.assert_array_equal(st.jit(add)(at), [0, 0, 2])


@pytest.mark.parametrize("kind", ["set", "add", "multiply", "min", "power", "divide"])
def test_masks_update(kind):
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    for mask in (x > 2, np.array([True, False])):
        for value in (np.float32(3), np.array([2, 3, 4], np.float32)):
            if mask.ndim == 2 and value.ndim:
                continue
            want = x.copy()
            old = want[mask]
            want[mask] = (
                value if kind == "set" else {**_UFUNCS, "power": np.power}[kind](old, value)
            )
            update = lambda x, m, v: getattr(x.at[m], kind)(v)
            for fun in (update, st.jit(update)):
                np.testing.assert_allclose(fun(snp.array(x), mask, value), want, rtol=1e-6)


def test_apply_counts_each_time_a_place_is_named():
    places = snp.array([0, 0, 2, 7])
    fun = lambda i: snp.zeros((3, 2)).at[i, :1].apply(lambda x: 2 * x + 1)
    for out in (fun(places), st.jit(fun)(places)):
        np.testing.assert_array_equal(out, [[3, 0], [0, 0], [1, 0]])
    pairs = st.vmap(fun)(snp.array([[0, 0], [1, 2]]))
    np.testing.assert_array_equal(pairs[:, :, 0], [[3, 0, 0], [0, 1, 1]])
    x, i = snp.ones(3), snp.array([0, 0, 1])
    out, dout = st.jvp(lambda x: x.at[i].apply(snp.sin), (x,), (x,))
    sin = np.sin(np.float32(1))
    np.testing.assert_allclose(out, [np.sin(sin), sin, 1], rtol=1e-6)
    np.testing.assert_allclose(dout, [np.cos(sin) * np.cos(1), np.cos(1), 1], rtol=1e-6)


def test_apply():
    x = np.array([1.0, 4.0, 9.0], np.float32)
    apply = lambda x: x.at[1:].apply(snp.sqrt)
    for fun in (apply, st.jit(apply), lambda x: snp.array(x).at[x > 2].apply(snp.sqrt)):
        np.testing.assert_array_equal(fun(snp.array(x) if fun is apply else x), [1, 2, 3])
