"""The places of extrema: the laws, and NumPy."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.api.jit.jit import jit
from stretto._engine.ops.reducing.reduce import Argmax, Argmin, argmax, argmin
from stretto.laws import b1, bf16, f32, law, u32

SPECIAL = np.array(
    [[1, 1, 0, 0], [0, 2, 2, np.nan], [np.inf, -np.inf, 0, 1], [0, -0.0, 0, -0.0]], np.float32
)
PLACES = {Argmax: argmax, Argmin: argmin}
LAWS = [
    *(
        law(primitive, lambda x, place=place: place(x, 1), case, derivative=False)
        for primitive, place in PLACES.items()
        for case in (f32(2, 3), bf16(2, 40), b1(3, 4), u32(2, 3), f32(0, 2), SPECIAL)
    )
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_places_of_nan_and_equals(run):
    x = np.array([1, np.nan, 7, np.nan], np.float32)
    assert int(run(lambda x: argmax(x, 0))(x)) == int(run(lambda x: argmin(x, 0))(x)) == 1
    flat = np.full(4, -np.inf, np.float32)
    assert int(run(lambda x: argmax(x, 0))(flat)) == int(run(lambda x: argmin(x, 0))(flat)) == 0


def test_index_dtype():
    assert argmax(np.ones((2, 3), np.float32), -1, np.int8).dtype == np.int8
    assert argmin(np.ones((2, 3), np.float32), -1).dtype == np.int32


@pytest.mark.parametrize("place", [argmax, argmin])
def test_of_several_at_once(place):
    x = np.array([[[3, 1], [2, 4], [5, 0]], [[1, 7], [0, 8], [2, 9]]], np.float32)
    for axis in (0, 1, 2):
        expected = np.stack([np.asarray(place(row, 1)) for row in np.moveaxis(x, axis, 0)])
        got = st.vmap(lambda row: place(row, 1), in_axes=axis)(x)
        np.testing.assert_array_equal(got, expected)


def test_refuses():
    with pytest.raises(ValueError, match=r"argmax: axis 1 of float32\[2,0\] is empty"):
        argmax(np.ones((2, 0), np.float32), 1)
    with pytest.raises(TypeError, match=r"argmax: expected real numbers or booleans, got complex"):
        argmax(np.ones(2, np.complex64), 0)
    with pytest.raises(TypeError, match="integer index_dtype, got float32"):
        argmax(np.ones(2, np.float32), 0, np.float32)


def test_a_bad_index_dtype_is_named():
    with pytest.raises(TypeError, match=r"^argmin: index_dtype must be a dtype"):
        argmin(np.ones(3), 0, "bad")
    with pytest.raises(TypeError, match=r"^argmax: index_dtype must be a dtype"):
        argmax(np.ones(3), 0, "bad")
