from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

A = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [0, 1, 5, (1, 2), ((0, 1), (2, 0))])
def test_modes(agree, mode, width):
    agree("pad", A, width, mode=mode)


def test_constant_values(agree):
    agree("pad", A, 1, constant_values=7)
    agree("pad", A, ((1, 1), (2, 2)), constant_values=((1, 2), (3, 4)))
    agree("pad", A.astype(np.int32), 1, constant_values=3, dtype="int32")
    assert snp.pad(snp.array(A), {-1: (1, 0)}).shape == (2, 4)


@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
@pytest.mark.parametrize("width", [1, 5, (9, 2)])
def test_odd_reflections(agree, mode, width):
    agree("pad", A, width, mode=mode, reflect_type="odd")


@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median"])
@pytest.mark.parametrize("kwargs", [{}, {"stat_length": 2}, {"stat_length": ((1, 2), (3, 9))}])
def test_statistics(agree, mode, kwargs):
    agree("pad", A, ((1, 2), (3, 0)), mode=mode, **kwargs)
    agree("pad", A.astype(np.int32), 1, mode=mode, dtype="int32", **kwargs)


def test_ramps(agree):
    agree("pad", A, ((1, 2), (3, 0)), mode="linear_ramp")
    agree("pad", A, 2, mode="linear_ramp", end_values=((9, -1), (0, 3)))
    agree("pad", A.astype(np.int32), 3, mode="linear_ramp", end_values=10, dtype="int32")


def test_functions_return_the_vector():
    def fill(row, pair, axis, options):
        return row.at[: pair[0]].set(options["left"]).at[row.size - pair[1] :].set(axis)

    out = st.jit(lambda x: snp.pad(x, ((1, 2), (1, 0)), fill, left=9))(A[:1])
    assert out.tolist() == [[9, 9, 9, 9], [9, 1, 2, 3], [9, 0, 0, 0], [9, 0, 0, 0]]


def test_derivative():
    slope = st.grad(lambda x: snp.pad(x, 2, mode="edge").sum())(snp.ones(3))
    assert slope.tolist() == [3, 1, 3]


def test_errors():
    x = snp.array(A)
    with pytest.raises(ValueError, match="negative"):
        snp.pad(x, -1)
    with pytest.raises(ValueError, match="for each of 2 axes"):
        snp.pad(x, ((1, 1), (1, 1), (1, 1)))
    with pytest.raises(ValueError, match="mode must be"):
        snp.pad(x, 1, mode="constante")
    with pytest.raises(ValueError, match="is empty"):
        snp.pad(snp.zeros(0), 1, mode="edge")
    with pytest.raises(TypeError, match="takes no"):
        snp.pad(x, 1, reflect_type="odd")
    with pytest.raises(ValueError, match="'even' or 'odd'"):
        snp.pad(x, 1, mode="reflect", reflect_type="both")
    with pytest.raises(ValueError, match="stat_length must be positive"):
        snp.pad(x, 1, mode="mean", stat_length=0)
    with pytest.raises(ValueError, match="must return the vector"):
        snp.pad(x, 1, lambda row, pair, axis, options: None)


MODES = ["constant", "edge", "linear_ramp", "mean", "reflect", "symmetric", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", [0, 2, (1, 2), ((1, 0),)])
def test_a_scalar_has_no_axis_to_pad(mode, width):
    x = snp.float32(3)
    for found in (snp.pad(x, width, mode), st.jit(lambda x: snp.pad(x, width, mode))(x)):
        assert found.shape == ()
        assert float(found) == 3.0
