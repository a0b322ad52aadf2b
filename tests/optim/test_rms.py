"""Sums and means of squares, against NumPy element by element; figures are in the optimizers'."""

import numpy as np
import pytest

from stretto import optim
from tests.optim.running import assert_stable, flat, run, run_scan, slowly


def rms(t, g, p, v):
    v = 0.9 * v + 0.1 * g * g
    return p + g / np.sqrt(v + 1e-8), v


def rms_corrected(t, g, p, v):
    v = 0.9 * v + 0.1 * g * g
    return p + g / (np.sqrt(v / (1 - 0.9 ** (t + 1))) + 1e-8), v


def rss(t, g, p, s):
    s = s + g * g
    return p + g / np.sqrt(s + 1e-7), s


CASES = [
    (optim.scale_by_rms(), rms, 1),
    (optim.scale_by_rms(eps_in_sqrt=False, bias_correction=True), rms_corrected, 1),
    (optim.scale_by_rss(0.0), rss, 1),
]


@pytest.mark.parametrize(("tx", "step", "moments"), CASES, ids=["rms", "corrected", "rss"])
def test_values_by_definition(tx, step, moments):
    expected = slowly(step, moments, np.float64)
    np.testing.assert_allclose(flat(run(tx)[0]), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(flat(run_scan(tx)[0]), expected, rtol=0, atol=1e-5)
    assert_stable(tx)


def test_states_count_only_where_that_is_needed():
    assert isinstance(optim.scale_by_rms().init({}), optim.ScaleByRmsState)
    counted = optim.scale_by_rms(bias_correction=True).init({})
    assert isinstance(counted, optim.ScaleByRmsWithCountState)
    assert isinstance(optim.scale_by_stddev().init({}), optim.ScaleByRStdDevState)
    counted = optim.scale_by_stddev(bias_correction=True).init({})
    assert isinstance(counted, optim.ScaleByRStdDevWithCountState)


def test_what_is_refused():
    with pytest.raises(ValueError, match="scale_by_stddev: decay must be at least 0 and below 1"):
        optim.scale_by_stddev(1.0)
    with pytest.raises(
        ValueError, match="scale_by_rss: initial_accumulator_value must be at least"
    ):
        optim.scale_by_rss(-1.0)
