"""Places in windows, values read and added there: the laws, long windows as short ones."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.reducing.window import (
    AxisWindow,
    SelectAndGatherAdd,
    SelectAndScatterAdd,
    WindowPlace,
)
from stretto._engine.ops.thresholds import WINDOW_PLACES
from stretto.laws import bf16, f16, f32, f64, law
from tests.any_size import holds

OVERLAP = AxisWindow(3, 2, 1, 2)
SPREAD = AxisWindow(2, 3, 1, 2, base_dilation=2, dilation=3)
CROPPED = AxisWindow(2, 1, -1, -2)
LONG = AxisWindow(40, 9, 20, 20, base_dilation=2)
WINDOWS = [OVERLAP, SPREAD, CROPPED, LONG]
N = 5


def place(window, greatest=True):
    return WindowPlace(1, window, greatest)


def read(window):
    return SelectAndGatherAdd(1, window)


def write(window, n=N):
    return SelectAndScatterAdd(1, window, n)


def places(window, n=N):
    """Any places at all, two rows of them."""
    return np.random.default_rng(0).integers(0, window.size, (2, window.count(n))).astype(np.int32)


LAWS = [
    *(law(WindowPlace, place(w, g), f32(2, N)) for w in WINDOWS for g in (True, False)),
    *(law(WindowPlace, place(OVERLAP), k(2, N)) for k in (bf16, f16, f64)),
    law(WindowPlace, place(OVERLAP), f32(0, N)),
    *(law(SelectAndGatherAdd, read(w), f64(2, N), places(w)) for w in WINDOWS),
    law(SelectAndGatherAdd, read(OVERLAP), bf16(2, N), places(OVERLAP)),
    law(SelectAndGatherAdd, read(AxisWindow(9)), f32(2, N), places(AxisWindow(9))),
    *(law(SelectAndScatterAdd, write(w), f64(2, w.count(N)), places(w)) for w in WINDOWS),
    law(SelectAndScatterAdd, write(OVERLAP), bf16(2, 3), places(OVERLAP)),
    law(SelectAndScatterAdd, write(AxisWindow(9)), f32(2, 0), places(AxisWindow(9))),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("window", [AxisWindow(3), AxisWindow(40, 1, 20, 19)], ids=str)
def test_the_first_of_equals_and_nan_before_all(run, window):
    x = snp.array([[1.0, 3, 3, -np.inf, 3], [np.nan, 5, np.nan, 1, 2]])
    got = np.asarray(run(place(window))(x))
    values = np.asarray(run(read(window))(x, as_value(got)))
    padded = np.pad(np.asarray(x), [(0, 0), (window.low, window.high)], constant_values=-np.inf)
    for row, line in enumerate(padded):
        for o in range(got.shape[1]):
            part = line[o : o + window.size]
            assert got[row, o] == np.argmax(part)
            np.testing.assert_array_equal(values[row, o], part[np.argmax(part)])


def test_long_windows_are_lowered_otherwise_and_say_the_same(monkeypatch):
    """The two ways to lower, at one window: by slices, and by index."""
    rng = np.random.default_rng(3)
    window = AxisWindow(6, 2, 3, 2, base_dilation=2, dilation=2)
    x = rng.integers(-3, 4, (4, 9)).astype(np.float32)
    at = rng.integers(0, 6, (4, window.count(9))).astype(np.int32)
    values = rng.normal(size=at.shape).astype(np.float32)
    calls = [
        (place(window), (x,)),
        (place(window, False), (x,)),
        (read(window), (x, at)),
        (write(window, 9), (values, at)),
    ]
    for fun, args in calls:
        short = st.jit(fun).lower(*args).compile()(*args)
        with monkeypatch.context() as patch:
            patch.setattr("stretto._engine.ops.reducing.window._SHORT", 1)
            lowered = st.jit(fun).lower(*args)
            assert any(op in lowered.as_text() for op in ("gather", "scatter", "reduce_window"))
            np.testing.assert_allclose(lowered.compile()(*args), short, rtol=1e-6)


def test_errors_name_what_does_not_fit():
    x = snp.ones((2, N))
    with pytest.raises(TypeError, match=r"window_place: expected floats with an axis 1, got int32"):
        place(OVERLAP)(snp.ones((2, N), snp.int32))
    with pytest.raises(TypeError, match=r"expected places int32\[2,3\], got int32\[2,2\]"):
        read(OVERLAP)(x, snp.zeros((2, 2), snp.int32))
    with pytest.raises(TypeError, match=r"expected values of shape \(2, 3\), got float32\[2,5\]"):
        write(OVERLAP)(x, snp.zeros((2, N), snp.int32))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_second_derivatives_over_any_size(stride):
    x = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    pooled = lambda x: lax.reduce_window(x, -np.inf, lax.max, (4, 1), (stride, 1), "SAME") ** 2
    slope = st.grad(lambda x: pooled(x).sum())
    holds(slope, [x], {(0, 0): 0}, tolerance=10)


@pytest.mark.parametrize(("size", "reduced"), [(32, False), (33, True)])
def test_places_in_long_windows_are_found_by_a_reduction(size, reduced):
    place = WindowPlace(0, AxisWindow(size), True)
    text = st.jit(place).lower(snp.zeros(40)).as_text()
    assert ("stablehlo.reduce_window" in text) is reduced


def test_the_work_is_what_the_windows_hold():
    x = array_type((2, 10), np.dtype(np.float32))
    op = place(AxisWindow(3, 2))
    assert op.work((x,), (op.infer(x),)) == (2 * 4) * 3
    back = write(AxisWindow(3, 1), 10)
    values = array_type((2, 8), np.dtype(np.float32))
    assert back.work((values,), (x,)) == (2 * 8) * 3


@pytest.mark.parametrize("axis", [-1, 2])
def test_an_axis_that_is_not_there_is_refused(axis):
    x = array_type((2, N), np.dtype(np.float32))
    with pytest.raises(TypeError, match=f"expected floats with an axis {axis}, got float32"):
        WindowPlace(axis, OVERLAP, True).infer(x)


@pytest.mark.parametrize("place_", [((2, 4), "int32"), ((2, 3), "int64")])
def test_places_of_another_type_are_refused(place_):
    x, (shape, dtype) = array_type((2, N), np.dtype(np.float32)), place_
    with pytest.raises(TypeError, match=r"expected places int32\[2,3\], got"):
        read(OVERLAP).infer(x, array_type(shape, np.dtype(dtype)))


def test_places_in_many_windows_are_compiled():
    for n, compiled in ((WINDOW_PLACES, True), (WINDOW_PLACES - 2, False)):
        x = array_type((2, n // 2), np.dtype(np.float32))
        assert place(AxisWindow(1)).compiled((x,)) is compiled
