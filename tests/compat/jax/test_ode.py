"""``odeint`` beside the numbers that JAX 0.10.2 gives in 64 bits."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.compat.jax.ode import odeint

TOL = {"rtol": 1e-12, "atol": 1e-14}
"""Both take the same steps; what is left is the order of sums."""


@pytest.fixture(autouse=True)
def in_64_bits():
    with st.enable_x64():
        yield


def pendulum(y, t, damping, gravity):
    angle, speed = y
    return [speed, -damping * speed - gravity * snp.sin(angle)]


def last(start, times, damping, gravity):
    angle, speed = odeint(pendulum, [start, 0.5 * start], times, damping, gravity)
    return (angle**2).sum() + speed[2]


def driven(k):
    return odeint(lambda y, t: -k * y + snp.cos(t), snp.array([1.0, 2.0]), snp.array([0, 1.0, 3]))


def test_a_tree_of_values():
    angle, speed = odeint(pendulum, [1.0, 0.5], snp.linspace(0.0, 2.0, 4), 0.25, 9.8)
    expected = [1.0, -0.15798452601926805, -0.7240992557649335, 0.6673187905035383]
    np.testing.assert_allclose(angle, expected, **TOL)
    expected = [0.5, -2.763804115698666, 1.4674923243865106, 1.169738931388073]
    np.testing.assert_allclose(speed, expected, **TOL)


def test_gradients_of_the_start_the_times_and_the_arguments():
    found = st.grad(last, (0, 1, 2, 3))(1.0, snp.linspace(0.0, 2.0, 4), 0.25, 9.8)
    times = [-6.434478301870568, 0.8732765664575121, 4.000024197615476, 1.5611775377975805]
    expected = [4.047851835438649, times, -2.2160538135380947, 0.5802651264934863]
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-11)


def test_gradients_of_captured_values_mapped_and_compiled():
    expected = [[0, 0], [-0.7838809688550589, -1.28046630931319],
                [-0.5393212174150954, -0.9066905131696716]]  # fmt: skip
    np.testing.assert_allclose(st.jacrev(driven)(0.7), expected, rtol=1e-11)
    found = st.jit(st.vmap(st.grad(lambda k: driven(k).sum())))(snp.array([0.7, 1.3]))
    np.testing.assert_allclose(found, [-3.510359052085573, -1.2421779962036423], rtol=1e-11)


def test_complex_values():
    y = odeint(lambda y, t: 1j * y, snp.array([1.0 + 0j]), snp.array([0.0, 1, 2]))
    expected = [
        1,
        0.5403022999088298 + 0.8414709791682254j,
        -0.416146833252827 + 0.9092974104166373j,
    ]
    np.testing.assert_allclose(y[:, 0], expected, **TOL)


@pytest.mark.parametrize(
    ("options", "until", "expected"),
    [
        ({}, 1.0, [1.0, 0.34775467352358147, 0.15270468450864613]),
        ({"hmax": 0.5}, 1.0, [1.0, 0.36787790853170815, 0.13533730710588313]),
        ({"mxstep": 1}, 0.1, [1.0, 0.9048373536841408, 0.8186877344744462]),
    ],
)
def test_tolerances_and_the_longest_and_the_most_steps(options, until, expected):
    times = snp.array([0.0, until, 2 * until])
    y = odeint(lambda y, t: -y, 1.0, times, rtol=1e-2, atol=1e-2, **options)
    np.testing.assert_allclose(y, expected, **TOL)


def test_integer_arguments_have_no_gradient():
    def end(y, n):
        return odeint(lambda y, t, n: -n * y, y, snp.array([0.0, 1.0]), n)[-1]

    assert float(st.grad(end)(1.0, snp.array(2))) == pytest.approx(np.exp(-2), abs=1e-7)


@pytest.mark.parametrize(
    ("t", "args", "words"),
    [
        (np.arange(3), (), "t must be an array of floats; got one of int64"),
        (np.ones((2, 2)), (), "t must have one axis; got the shape"),
        (np.arange(3.0), ("a",), "args must be trees of arrays or numbers; got 'a'"),
    ],
)
def test_refusals(t, args, words):
    with pytest.raises(TypeError, match=words):
        odeint(lambda y, t, *args: -y, 1.0, t, *args)
