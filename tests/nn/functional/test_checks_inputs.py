"""Checks that name the layer, keys for two parameters, sizes."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.nn.functional.checks import check_features, check_signal, hashable, positive, two_keys

LAYER = nn.Flatten()


def test_two_keys():
    key = st.random.PRNGKey(0)
    one, other = two_keys(key, "Layer")
    assert one.shape == other.shape == (2,) and (one != other).any()
    with st.random.keys(key):
        drawn = two_keys(None, "Layer")
    assert (drawn[0] != one).any()
    with pytest.raises(TypeError, match="Layer: expected a key"):
        two_keys(snp.ones(2), "Layer")


def test_sizes():
    positive("Layer", rows=3)
    for wrong in (0, -1, 2.0, True, "3", None):
        with pytest.raises(ValueError, match="Layer: rows must be a positive integer, got"):
            positive("Layer", rows=wrong)
    assert hashable([1, 2]) == (1, 2) and hashable(None) is None


def test_signals():
    assert check_signal(LAYER, np.ones((2, 3, 4)), 1, 3).shape == (2, 3, 4)
    assert check_signal(LAYER, np.ones((3, 4)), 1, 3).shape == (3, 4)
    assert check_signal(LAYER, np.ones((2, 3, 4)), 1).shape == (2, 3, 4)
    for shape, options in (((2, 4, 4), {}), ((4,), {}), ((3, 4), {"batch": True})):
        with pytest.raises(ValueError, match=r"Flatten\(start_dim=1.*batch, 3 channels, length\)"):
            check_signal(LAYER, np.ones(shape), 1, 3, **options)


def test_features():
    assert check_features(LAYER, np.ones((2, 3)), 3).shape == (2, 3)
    for shape in ((), (2,)):
        with pytest.raises(ValueError, match="3 features"):
            check_features(LAYER, np.ones(shape), 3)
