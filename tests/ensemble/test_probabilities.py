"""What is shared: clamping, right predictions, normalizing."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import probabilities


def test_clamped_keeps_all_but_what_underflowed():
    p = np.float32([0, 1e-30, 0.5])
    tiny = np.finfo(np.float32).tiny
    np.testing.assert_array_equal(probabilities.clamped(snp.asarray(p)), [tiny, *p[1:]])
    with st.enable_x64():
        assert float(probabilities.clamped(snp.zeros(1, np.float64))[0]) == np.finfo(float).tiny


def test_a_prediction_with_nan_is_neither_right_nor_wrong():
    p = snp.array([[0.9, 0.1], [0.9, 0.1], [np.nan, 0.1]])
    found = st.jit(probabilities.correct)(p, snp.array([0, 1, 0]))
    np.testing.assert_array_equal(found, [1, 0, np.nan])


def test_zeros_are_shared_equally():
    values = snp.array([[1.0, 3.0], [0.0, 0.0]])
    np.testing.assert_array_equal(probabilities.to_sum_one(values), [[0.25, 0.75], [0.5, 0.5]])
    slope = st.jit(st.grad(lambda v: probabilities.to_sum_one(v)[1, 0]))(values)
    assert np.isfinite(np.asarray(slope)).all()
