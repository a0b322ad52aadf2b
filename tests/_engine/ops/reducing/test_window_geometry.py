"""Windows along an axis: their counts by enumeration, transposition, patches, refusals."""

import itertools

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.reducing.window import (
    PLAIN,
    AxisWindow,
    behind,
    patches,
    patches_reference,
    window_shape,
)

WINDOWS = [
    AxisWindow(*fields)
    for fields in itertools.product((1, 2, 3), (1, 2), (0, 2, -1), (0, 1, -1), (1, 2), (1, 2))
]
F32 = np.dtype(np.float32)


def line(n, w):
    """The padded elements by number, -1 for padding."""
    padded = []
    for i in range(n):
        padded += [i, *[-1] * (w.base_dilation - 1)] if i < n - 1 else [i]
    padded = [-1] * w.low + padded if w.low >= 0 else padded[-w.low :]
    return padded + [-1] * w.high if w.high >= 0 else padded[: w.high]


def windows(n, w):
    """The elements of each window."""
    padded = line(n, w)
    starts = range(0, len(padded) - (w.size - 1) * w.dilation, w.stride)
    return [[padded[s + k * w.dilation] for k in range(w.size)] for s in starts]


def test_counts():
    for n, w in itertools.product((3, 4, 7), WINDOWS):
        assert w.padded(n) == len(line(n, w))
        assert w.count(n) == len(windows(n, w)), w
    assert PLAIN.count(5) == 5 and AxisWindow(3).count(2) == AxisWindow(3).count(0) == 0


def test_patches_hold_the_elements_of_each_window():
    for n, w in itertools.product((3, 6), WINDOWS):
        x = np.arange(2 * n, dtype=np.float32).reshape(2, n)
        want = [[[row[i] if i >= 0 else -9 for i in window] for window in windows(n, w)]
                for row in x]  # fmt: skip
        want = np.array(want, np.float32).reshape(2, w.count(n), w.size).transpose(2, 0, 1)
        np.testing.assert_array_equal(patches_reference(x, 1, w, -9), want)
        np.testing.assert_array_equal(patches(as_value(x), 1, w, as_value(np.float32(-9))), want)


def test_transposed_windows_hold_the_windows_of_each_element():
    """Seen from an element the places run backwards."""
    for n, w in itertools.product((3, 5), WINDOWS):
        if not w.count(n):
            continue
        back = w.transposed(n)
        assert back.count(w.count(n)) == n
        places = windows(w.count(n), back)
        for i, k in itertools.product(range(n), range(w.size)):
            holds = [o for o, window in enumerate(windows(n, w)) if window[k] == i]
            assert places[i][w.size - 1 - k] == (holds[0] if holds else -1), (w, i, k)


def test_shapes_and_refusals():
    x = array_type((5, 4), F32)
    shape = lambda *windows: window_shape("max_pool", x, windows)
    assert shape(PLAIN, AxisWindow(2, 2)) == (5, 2)
    with pytest.raises(ValueError, match="max_pool: expected a window size for each axis of float"):
        shape(PLAIN)
    for fields in ({"size": 0}, {"stride": 0}, {"dilation": -1}, {"base_dilation": 0}):
        with pytest.raises(ValueError, match="must be positive; axis 1 of float32"):
            shape(PLAIN, AxisWindow(**fields))
    with pytest.raises(ValueError, match=r"takes away more than axis 0 of float32\[5,4\] has"):
        shape(AxisWindow(low=-3, high=-3), PLAIN)


def test_only_what_is_unlike_plain_windows_is_printed():
    assert repr(AxisWindow(3, high=2)) == "(size=3, high=2)" and repr(PLAIN) == "()"


def test_no_windows():
    x, w = np.ones((2, 3), np.float32), AxisWindow(4)
    assert patches_reference(x, 1, w, 0).shape == (4, 2, 0)
    assert patches(as_value(x), 1, w, as_value(np.float32(0))).shape == (4, 2, 0)


def test_the_elements_of_spread_operands_do_not_meet():
    """What is spread out beforehand gives the same as what the window spreads."""
    x = np.arange(1, 5, dtype=np.float32)
    dilated = lambda x: st.lax.reduce_window(
        x, 0.0, st.lax.add, (2,), (1,), [(1, 1)], base_dilation=(2,)
    )
    np.testing.assert_array_equal(st.jit(dilated)(x), [1, 1, 2, 2, 3, 3, 4, 4])
    np.testing.assert_array_equal(dilated(x), st.jit(dilated)(x))


def test_what_is_not_said_of_windows_is_plain():
    """One element each, next to each other, without padding or gaps."""
    assert AxisWindow(1, 1, 0, 0, 1, 1) == PLAIN
    assert [w.count(5) for w in (PLAIN, AxisWindow(3), AxisWindow(stride=2))] == [5, 3, 3]
    assert AxisWindow(3).config == (0, 0, 0) and AxisWindow(3).extent == 3


@pytest.mark.parametrize(("size", "base", "spread"), [(2, 2, True), (3, 2, False), (3, 3, True),
                                                      (1, 1, False), (2, 1, False)])  # fmt: skip
def test_elements_apart_are_spread_out_beforehand_where_no_window_holds_two(size, base, spread):
    f = lambda x: st.lax.reduce_window(
        x, 0.0, st.lax.add, (size,), (1,), "VALID", base_dilation=(base,)
    )
    x = np.arange(1, 6, dtype=np.float32)
    text = st.jit(f).lower(x).as_text()
    assert ("stablehlo.pad" in text) is spread
    np.testing.assert_array_equal(st.jit(f)(x), f(x))


@pytest.mark.parametrize("n", [1, 4, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("window", [AxisWindow(3, 2), AxisWindow(2, 1, 3, 0, 2, 2)])
def test_so_many_windows_behind_padding(n, count, window):
    """Windows that begin with the array, which holds what was in front; one where none is."""
    found = behind(window, count, n)
    assert found.count(n) == max(count, 1)
    assert found[:2] == window[:2] and found.dilation == window.dilation
    assert (found.low, found.base_dilation) == (0, 1)
