"""Updates at an index: every operation against loops, casts, masks, places named again."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.numpy.updating import apply_again, mask_of, names_once, update

STEPS = {
    "set": lambda old, new: new,
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
INDICES = {
    "number": 1,
    "from the end": -1,
    "slice": slice(0, 3, 2),
    "backwards": slice(None, None, -1),
    "array": np.array([2, 0, 2]),
    "mask": np.array([True, False, True, True]),
    "pair": (np.array([0, 3, 0]), slice(1, None)),
    "new axis": (None, 2, Ellipsis),
}


@pytest.mark.parametrize("kind", STEPS)
@pytest.mark.parametrize("name", INDICES)
def test_each_place_in_its_turn(kind, name):
    index, x = INDICES[name], np.arange(8, dtype=np.float32).reshape(4, 2)
    places = np.arange(8).reshape(4, 2)[index]
    values = np.random.default_rng(0).integers(-4, 5, places.shape).astype(np.float32)
    want = x.copy().ravel()
    for place, value in zip(places.ravel(), values.ravel(), strict=True):
        want[place] = STEPS[kind](want[place], value)
    at_rest = update(kind, snp.array(x), index, values)
    np.testing.assert_array_equal(at_rest, want.reshape(4, 2))
    compiled = st.jit(lambda x, v: update(kind, x, index, v))(x, values)
    np.testing.assert_array_equal(compiled, want.reshape(4, 2))


def test_the_array_itself_stays():
    x = snp.arange(4.0)
    update("set", x, 0, 9.0), update("add", x, np.array([1, 1]), 1.0)
    np.testing.assert_array_equal(x, np.arange(4))


def test_whole_numbers_divided_are_floats():
    got = update("divide", snp.array([4, 3]), 1, 2)
    assert got.dtype == np.float32 and got.tolist() == [4, 1.5]
    np.testing.assert_array_equal(update("power", snp.array([2.0, 3.0]), 1, 2.0), [2, 9])


@pytest.mark.parametrize(
    "x, value, error, message",
    [
        (snp.arange(3, dtype="int8"), 300, OverflowError, "the Python integer 300 does not fit in"),
        (snp.arange(3.0), 1j, TypeError, r"x.at\[...\].set: complex values cannot go into float32"),
        (snp.arange(3.0), np.ones((2, 2)), ValueError, r"x.at\[...\].set"),
        (snp.arange(3.0), [1.0], TypeError, r"x.at\[...\].set"),
    ],
)
def test_values_that_do_not_go_in(x, value, error, message):
    with pytest.raises(error, match=message):
        update("set", x, slice(0, 2), value)


def test_places_out_of_bounds():
    x, at = snp.arange(3.0), np.array([0, 5, -4])
    np.testing.assert_array_equal(update("add", x, at, 10.0), [10, 1, 2])
    np.testing.assert_array_equal(update("add", x, at, 10.0, mode="clip"), [20, 1, 12])
    with pytest.raises(IndexError, match=r"out of bounds|is not in"):
        update("set", x, at, 1.0, mode="raise")
    unwrapped = update("set", x, np.array([-1]), 9.0, wrap_negative_indices=False)
    np.testing.assert_array_equal(unwrapped, x)


def test_masks_of_leading_axes():
    x = snp.ones((2, 3))
    assert mask_of(x, 0) is None and mask_of(x, (0, slice(None))) is None
    assert mask_of(x, np.array([True, False])) is not None
    traced = st.jit(lambda x, m: update("set", x, m, 0.0))
    np.testing.assert_array_equal(traced(x, np.array([True, False])), [[0] * 3, [1] * 3])


def test_indices_that_name_each_element_once():
    x = snp.ones((4, 2))
    for index, once in [(1, True), (slice(None), True), (np.array([0, 2]), True),
                        (np.array([2, 2]), False), (np.array([0, -4]), False)]:  # fmt: skip
        assert names_once(x, index) == once


def test_a_function_applied_as_often_as_a_place_is_named():
    x = snp.array([2.0, 3.0, 5.0])
    for jit in (lambda f: f, st.jit):
        f = jit(lambda x, times: apply_again(lambda v: v * v, x, x * x, times))
        np.testing.assert_array_equal(f(x, snp.array([1, 2, 3])), [4, 81, 390625])
    got = x.at[np.array([0, 0, 1])].apply(lambda v: v + 10)
    np.testing.assert_array_equal(got, [22, 13, 5])
