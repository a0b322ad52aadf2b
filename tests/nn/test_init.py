"""Initial values: PyTorch's bounds and spreads, gains and fans, shapes, messages."""

from __future__ import annotations

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn import init
from stretto.nn.init import fan_of, fans_of

KEY = st.random.PRNGKey(0)
SHAPE = (40, 30, 3)  # 90 inputs, 120 outputs


def spread(x, bound=None, std=None):
    x = np.asarray(x, np.float64)
    assert x.shape == SHAPE and abs(x.mean()) < 0.06 * (bound or std)
    if bound:
        assert 0.99 * bound < np.abs(x).max() <= bound * (1 + 1e-6)
        std = bound / math.sqrt(3)
    assert x.std() == pytest.approx(std, rel=0.03)


def test_spreads():
    spread(init.uniform(KEY, SHAPE, -0.5, 0.5), bound=0.5)
    spread(init.normal(KEY, SHAPE, std=0.5), std=0.5)
    spread(init.kaiming_uniform(KEY, SHAPE), bound=math.sqrt(6 / 90))
    spread(init.kaiming_uniform(KEY, SHAPE, a=math.sqrt(5)), bound=math.sqrt(1 / 90))
    spread(init.kaiming_uniform(KEY, SHAPE, mode="fan_out"), bound=math.sqrt(6 / 120))
    spread(init.kaiming_uniform(KEY, SHAPE, nonlinearity="linear"), bound=math.sqrt(3 / 90))
    spread(init.kaiming_normal(KEY, SHAPE, nonlinearity="relu"), std=math.sqrt(2 / 90))
    spread(init.xavier_uniform(KEY, SHAPE), bound=math.sqrt(6 / 210))
    spread(init.xavier_normal(KEY, SHAPE, gain=2.0), std=2 * math.sqrt(2 / 210))
    assert np.mean(init.normal(KEY, (1000,), mean=5.0)) == pytest.approx(5, abs=0.1)


def test_truncated():
    x = np.asarray(init.trunc_normal(KEY, (4000,), mean=1.0, std=2.0, a=-1.0, b=2.0))
    assert -1 <= x.min() < -0.9 and 1.9 < x.max() <= 2
    # The mean of a standard normal between -1 and 1/2 is (φ(-1) - φ(1/2)) / (Φ(1/2) - Φ(-1)).
    assert x.mean() == pytest.approx(1 + 2 * (0.24197 - 0.35207) / (0.69146 - 0.15866), abs=0.05)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (4, 3, 2)])
def test_orthogonal(shape):
    q = np.asarray(init.orthogonal(KEY, shape, gain=2.0)).reshape(shape[0], -1) / 2
    product = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
    np.testing.assert_allclose(product, np.eye(len(product)), atol=1e-5)


def test_orthogonal_is_uniform():
    # Uniform over rotations and reflections: entries have mean 0, both determinants occur.
    draws = st.vmap(lambda k: init.orthogonal(k, (3, 3)))(st.random.split(KEY, 500))
    assert np.abs(np.mean(draws, 0)).max() < 0.1
    assert 0.4 < (np.linalg.det(np.asarray(draws)) > 0).mean() < 0.6


def test_sparse():
    x = np.asarray(init.sparse(KEY, (20, 50), 0.33, std=3.0))
    assert ((x == 0).sum(0) == 7).all()
    assert x[x != 0].std() == pytest.approx(3, rel=0.1)
    assert len({tuple(column) for column in (x == 0).T}) > 40


def test_without_chance():
    assert init.constant((2,), 0.5).tolist() == [0.5, 0.5]
    assert init.zeros((2,)).tolist() == [0, 0] and init.ones((2,), snp.int32).tolist() == [1, 1]
    assert init.eye((2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    x = st.random.normal(KEY, (1, 4, 6, 5))
    kernel = init.dirac((4, 4, 3, 3))
    same = st.nn.functional.conv2d(x, kernel, padding=1)
    np.testing.assert_allclose(same, x, rtol=1e-6)
    kernel = init.dirac((4, 2, 3, 3), groups=2)
    same = st.nn.functional.conv2d(x, kernel, padding=1, groups=2)
    np.testing.assert_allclose(same, x, rtol=1e-6)


def test_dtypes_and_keys():
    draws = [init.uniform, init.normal, init.trunc_normal, init.kaiming_uniform]
    draws += [init.kaiming_normal, init.xavier_uniform, init.xavier_normal, init.orthogonal]
    for draw in draws:
        assert draw(KEY, (3, 2)).dtype == snp.float32
        assert draw(KEY, (3, 2), dtype=snp.bfloat16).dtype == snp.bfloat16
        with st.random.keys(KEY):
            first, second = draw(None, (3, 2)), draw(None, (3, 2))
        with st.random.keys(KEY):
            np.testing.assert_array_equal(draw(None, (3, 2)), first)
        assert (first != second).any()
        compiled = st.jit(lambda k, draw=draw: draw(k, (3, 2)))(KEY)
        np.testing.assert_allclose(compiled, draw(KEY, (3, 2)), rtol=1e-5, atol=1e-6)


MESSAGES = [
    (lambda: init.kaiming_uniform(KEY, (3,)), r"two axes at least, got \(3,\)"),
    (lambda: init.kaiming_normal(KEY, (3, 2), mode="both"), "mode must be 'fan_in' or 'fan_out'"),
    (lambda: init.orthogonal(KEY, (3,)), "orthogonal: shape must be"),
    (lambda: init.sparse(KEY, (3, 2, 1), 0.5), "sparse: shape must be .outputs, inputs."),
    (lambda: init.eye((3,)), "eye: shape must be"),
    (lambda: init.dirac((3, 2)), "dirac: shape must be"),
    (lambda: init.dirac((3, 2, 3), groups=2), "outputs that 2 groups divide"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()


# torch.nn.init.calculate_gain of PyTorch 2.13.0.
GAINS = {"linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "relu": 2**0.5, "selu": 0.75}


def test_gains():
    for name, gain in GAINS.items():
        assert init.calculate_gain(name) == pytest.approx(gain)
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / (1 + 1e-4)))
    assert init.calculate_gain("leaky_relu", 1) == pytest.approx(1)


def test_fans():
    assert fans_of((4, 3, 5, 2), "f") == (30, 40)
    assert fan_of((4, 3), "fan_in", "f") == 3 and fan_of((4, 3), "fan_out", "f") == 4


def test_messages_of_gains():
    with pytest.raises(ValueError, match="calculate_gain: nonlinearity must be one of linear"):
        init.calculate_gain("gelu")
    with pytest.raises(ValueError, match=r"f: shape must be .*, two axes at least, got \(3,\)"):
        fans_of((3,), "f")
    with pytest.raises(ValueError, match="f: mode must be 'fan_in' or 'fan_out', got 'both'"):
        fan_of((3, 2), "both", "f")


def test_the_module_shows_its_functions_alone():
    assert dir(init) == sorted(init.__all__)
