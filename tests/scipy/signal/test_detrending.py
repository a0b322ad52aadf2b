"""Removal of lines and means: SciPy's values, pieces, axes, laws, refusals."""

import numpy as np
import pytest
from scipy import signal

import stretto as st
from stretto.scipy.signal import detrend

X = np.random.default_rng(0).normal(size=(3, 12)).cumsum(1)


@pytest.mark.parametrize("kind", ["linear", "constant"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_scipys(kind, axis):
    with st.enable_x64():
        got = detrend(X, axis, kind)
        np.testing.assert_allclose(got, signal.detrend(X, axis, kind), atol=1e-13)


@pytest.mark.parametrize("bp", [0, 5, [3, 7], [0, 12], np.array([4, 4])])
def test_pieces(bp):
    with st.enable_x64():
        got = detrend(X, bp=bp)
        np.testing.assert_allclose(got, signal.detrend(X, bp=bp), atol=1e-13)


def test_lines_become_nothing_and_what_is_left_stays():
    line = 3 + 0.5 * np.arange(20.0)
    with st.enable_x64():
        np.testing.assert_allclose(detrend(line), 0, atol=1e-13)
        once = detrend(X)
        np.testing.assert_allclose(detrend(once), once, atol=1e-13)
        np.testing.assert_allclose(detrend(np.ones(1)), 0)  # one point is its own line


def test_dtypes_and_slopes():
    assert detrend(np.arange(4)).dtype == np.float32
    with st.enable_x64():
        # It is a projection: its transpose is itself.
        matrix = np.asarray(st.jacobian(detrend)(X[0]))
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
        np.testing.assert_allclose(matrix @ matrix, matrix, atol=1e-13)


def test_refusals():
    with pytest.raises(
        ValueError, match=r"detrend: bp must be positions along the axis, 0 to 12; got"
    ):
        detrend(X, bp=13)
    with pytest.raises(ValueError, match="detrend: bp must be positions"):
        detrend(X, bp=-1)
    with pytest.raises(ValueError, match="type must be 'linear' or 'constant'; got 'cubic'"):
        detrend(X, type="cubic")
    with pytest.raises(NotImplementedError, match="detrend: arrays are immutable"):
        detrend(X, overwrite_data=True)
    with pytest.raises(ValueError, match="detrend: axis"):
        detrend(X, 2)


@pytest.mark.parametrize("kind", ["constant", "linear"])
def test_constants_leave_nothing(kind):
    x = st.numpy.full((2, 7), 1e10)
    with st.config(interpret_small=False):
        compiled = st.jit(lambda x: detrend(x, type=kind))(x)
    for out in (detrend(x, type=kind), compiled):
        np.testing.assert_array_equal(out, 0)
