"""Parameters of draws: what is known and out of range is refused."""

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import random

KEY = random.key(0)


@pytest.mark.parametrize(
    "draw",
    [
        lambda: random.bernoulli(KEY, -0.5),
        lambda: random.bernoulli(KEY, 1.5),
        lambda: random.bernoulli(KEY, math.nan),
        lambda: random.bernoulli(KEY, np.float32(2)),
        lambda: random.binomial(KEY, 10, -0.5),
        lambda: random.binomial(KEY, -10, 0.5),
        lambda: random.geometric(KEY, 1.5),
        lambda: random.multinomial(KEY, 5, snp.array([-0.5, 1.0])),
        lambda: random.multinomial(KEY, -5, snp.array([0.5, 0.5])),
        lambda: random.choice(KEY, 3, p=snp.array([-1.0, 1.0, 1.0])),
        lambda: random.choice(KEY, 3, p=snp.array([math.nan, 1.0, 1.0])),
        lambda: random.gamma(KEY, -1.0),
        lambda: random.loggamma(KEY, -1.0),
        lambda: random.beta(KEY, -1.0, 1.0),
        lambda: random.beta(KEY, 1.0, -1.0),
        lambda: random.chisquare(KEY, -1.0),
        lambda: random.t(KEY, -1.0),
        lambda: random.f(KEY, -1.0, 1.0),
        lambda: random.poisson(KEY, -1.0),
        lambda: random.pareto(KEY, -1.0),
        lambda: random.rayleigh(KEY, -1.0),
        lambda: random.lognormal(KEY, -1.0),
        lambda: random.weibull_min(KEY, -1.0, 1.0),
        lambda: random.wald(KEY, -1.0),
        lambda: random.dirichlet(KEY, snp.array([-1.0, 1.0])),
    ],
)
def test_numbers_out_of_range(draw):
    with pytest.raises(ValueError, match=r"random\.\w+: \w+ must (not be negative|be from 0 to 1)"):
        draw()


def test_elements_of_arrays_out_of_range_have_a_draw_of_their_own():
    drawn = random.gamma(KEY, snp.array([-1.0, 1.0]))
    assert np.isnan(drawn[0]) and drawn[1] > 0
    assert not st.jit(lambda p: random.bernoulli(KEY, p))(-0.5)
