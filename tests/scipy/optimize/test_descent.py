"""The search that quasi-Newton methods share: when it stops, its counts, the status."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.scipy.optimize.descent import Estimate, Stop, curvature, descend

STEEPEST = Estimate(lambda x: snp.ones(()), lambda h, g: h * g, lambda h, s, y, b: h)
INF = float("inf")


def stop(**options):
    return Stop(**{"steps": 100, "gtol": 1e-6, "norm": INF, "tries": 20, **options})


def bowl(x):
    return snp.sum(snp.array([1.0, 3.0]) * x * x)


def run(f=bowl, start=(3.0, -1.0), **options):
    with st.enable_x64():
        return descend(f, snp.array(np.array(start)), STEEPEST, stop(**options))


def test_it_ends_where_the_gradient_is_small():
    end = run()
    assert int(end.status()) == 0 and float(snp.max(abs(end.gradient))) < 1e-6
    np.testing.assert_allclose(end.x, 0, atol=1e-6)
    rough = run(gtol=1.0)
    assert int(rough.step) < int(end.step) and int(rough.status()) == 0
    assert int(end.step) < int(end.evaluations)


def test_at_a_minimum_there_is_nothing_to_do():
    end = run(start=(0.0, 0.0))
    assert (int(end.step), int(end.evaluations), int(end.status())) == (0, 1, 0)


def test_after_too_many_steps_or_values():
    assert (int(run(steps=2).step), int(run(steps=2).status())) == (2, 1)
    end = run(evaluations=3)
    assert int(end.status()) == 1 and 3 <= int(end.evaluations) < 3 + 20


def test_stuck_where_no_value_is_lower():
    kink = run(lambda x: snp.sum(abs(x)) + snp.sum(snp.sign(x)) * 1e3, start=(1e-9, 1e-9))
    assert int(kink.status()) in (1, 5)
    nan = run(lambda x: snp.sum(x) * np.nan)
    assert (int(nan.status()), int(nan.step)) == (5, 0)


def test_it_ends_where_values_change_little():
    end = run(lambda x: 1e6 + bowl(x), ftol=1e-5)
    assert int(end.status()) == 0 and float(snp.max(abs(end.gradient))) > 1e-6


def test_what_teaches_something_of_the_curve():
    with st.enable_x64():
        s = snp.array([1.0, 2.0])
        curved, c, scale = curvature(s, 3 * s)
        assert bool(curved) and float(c) == 15 and float(scale) == 1 / 3
        for y in (-s, 0 * s, s * np.inf, snp.array([2.0, -1.0])):
            curved, c, scale = curvature(s, y)
            assert not bool(curved) and float(c) == float(scale) == 1
