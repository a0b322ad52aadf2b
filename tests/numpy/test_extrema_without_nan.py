"""The greatest and the least of what is not NaN, and where they are."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.array([[3.0, np.nan, -1.0], [np.nan, np.nan, 4.0]], np.float32)


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
@pytest.mark.parametrize("axis", [None, 1])
def test_nan_does_not_count(name, axis):
    want = getattr(np, name)(X, axis)
    ours = getattr(snp, name)
    np.testing.assert_array_equal(ours(snp.asarray(X), axis), want)
    np.testing.assert_array_equal(st.jit(lambda x: ours(x, axis))(X), want)


def test_nothing_but_nan():
    missing = snp.asarray(X)[:, 1]
    for function in (snp.nanmax, st.jit(snp.nanmax), snp.nanmin, st.jit(snp.nanmin)):
        assert np.isnan(function(missing))
    for function in (snp.nanargmax, st.jit(snp.nanargmax)):
        assert function(missing) == -1


def test_an_initial_value_counts():
    assert snp.nanmax(snp.asarray(X), initial=9.0) == 9.0
    assert snp.nanmin(snp.asarray(X), where=X > 0, initial=9.0) == 3.0


def test_slopes_go_to_the_extremum():
    slope = st.grad(snp.nanmax)(snp.asarray(X))
    np.testing.assert_array_equal(slope, [[0, 0, 0], [0, 0, 1]])


@pytest.mark.parametrize("name", ["nanmax", "nanmin", "nanargmax", "nanargmin"])
def test_refusals_name_the_function(name):
    function = getattr(snp, name)
    with pytest.raises(ValueError, match=rf"^{name}: .*out of bounds"):
        function(snp.asarray(X), axis=5)
    with pytest.raises(NotImplementedError, match=rf"^{name}"):
        function(snp.asarray(X), out=X)
    with pytest.raises(ValueError, match=rf"^{name}: {name} of an empty array"):
        function(snp.ones((0, 3)))
    assert function(snp.ones((0, 3)), axis=1).shape == (0,)


def test_a_mask_needs_an_initial_value():
    with pytest.raises(ValueError, match=r"^nanmax: where= may leave no element"):
        snp.nanmax(snp.asarray(X), where=X > 0)
