"""Normalization: PyTorch's figures, the definitions, laws, precision, messages."""

import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "batch_norm",
        {"input": (3, 4), "running_mean": (4,), "running_var": (4,), "weight": (4,), "bias": (4,)},
        {},
        [(3, 4), -1.11175, -1.12164, 0.19347, 0.50589],
    ),
    (
        "batch_norm",
        {
            "input": (3, 4, 2, 2),
            "running_mean": (4,),
            "running_var": (4,),
            "weight": (4,),
            "bias": (4,),
        },
        {"training": True, "eps": 0.01},
        [(3, 4, 2, 2), -2.11672, -4.37447, -6.62902, 0.53896],
    ),
    (
        "instance_norm",
        {"input": (2, 3, 5), "weight": (3,), "bias": (3,)},
        {},
        [(2, 3, 5), -0.2982, 3.64273, 0.16947, -1.31553],
    ),
    (
        "instance_norm",
        {"input": (2, 3, 2, 3), "running_mean": (3,), "running_var": (3,)},
        {"use_input_stats": False},
        [(2, 3, 2, 3), 0.70522, 14.35073],
    ),
    (
        "layer_norm",
        {"input": (2, 3, 4), "weight": (3, 4), "bias": (3, 4)},
        {"normalized_shape": (3, 4)},
        [(2, 3, 4), -3.83103, 3.71835, -0.2453, 11.2316],
    ),
    (
        "layer_norm",
        {"input": (2, 3, 4)},
        {"normalized_shape": (4,), "eps": 0.1},
        [(2, 3, 4), 1.00353, 7.93338],
    ),
    (
        "rms_norm",
        {"input": (2, 3, 4), "weight": (4,)},
        {"normalized_shape": (4,)},
        [(2, 3, 4), -0.58819, 0.06915, -0.53146],
    ),
    (
        "rms_norm",
        {"input": (2, 3, 4)},
        {"normalized_shape": (3, 4), "eps": 0.1},
        [(2, 3, 4), 1.00431, 12.78909],
    ),
    (
        "group_norm",
        {"input": (2, 6, 3), "weight": (6,), "bias": (6,)},
        {"num_groups": 3},
        [(2, 6, 3), -3.92986, 4.36331, -2.55615, -0.02171],
    ),
    (
        "local_response_norm",
        {"input": (2, 6, 3)},
        {"size": 4, "alpha": 0.5, "beta": 0.6, "k": 1.5},
        [(2, 6, 3), 1.41458, 12.24974],
    ),
    ("normalize", {"input": (3, 4)}, {}, [(3, 4), 2.3889, 2.55976]),
    ("normalize", {"input": (3, 4, 2)}, {"p": 3.0, "dim": -1}, [(3, 4, 2), 0.72139, 6.37825]),
    ("normalize", {"input": (3, 4, 2)}, {"p": math.inf, "dim": 0}, [(3, 4, 2), 0.79332, 6.95018]),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


X = np.random.default_rng(0).normal(2, 3, (3, 4, 5)).astype("f")


def standard(x, axes, eps=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_definitions():
    for run in (lambda f: f, st.jit):
        pairs = [
            (run(lambda x: F.batch_norm(x, None, None, training=True))(X), standard(X, (0, 2))),
            (run(F.instance_norm)(X), standard(X, (2,))),
            (run(lambda x: F.layer_norm(x, (4, 5)))(X), standard(X, (1, 2))),
            (run(lambda x: F.group_norm(x, 2))(X), standard(X.reshape(3, 2, 10), (2,))),
            (
                run(lambda x: F.rms_norm(x, 5, eps=0.5))(X),
                X / np.sqrt((X**2).mean(-1, keepdims=True) + 0.5),
            ),
            (run(F.normalize)(X), X / np.linalg.norm(X, axis=1, keepdims=True)),
        ]
        for got, want in pairs:
            np.testing.assert_allclose(got, want.reshape(X.shape), rtol=1e-4, atol=1e-5)


def test_batch_statistics():
    mean, variance = F.batch_statistics(X)
    np.testing.assert_allclose(mean, X.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(variance, X.var((0, 2)), rtol=1e-5)
    again = F.batch_norm(X, mean, variance, snp.ones(4), snp.zeros(4))
    want = F.batch_norm(X, None, None, training=True)
    np.testing.assert_allclose(again, want, rtol=1e-4, atol=1e-5)


def test_far_from_zero():
    # The variance is that of differences from the mean: it is not lost beside the mean's square.
    x = snp.array(np.array([[10000.0, 10001.0, 10002.0]], "f"))
    np.testing.assert_allclose(F.layer_norm(x, 3)[0], standard(np.arange(3.0), (0,)), rtol=1e-3)


def test_narrow_floats():
    x = snp.array(X, snp.bfloat16)
    wide = F.layer_norm(np.asarray(x, np.float32), 5)
    got = F.layer_norm(x, 5, snp.ones(5), snp.zeros(5))
    assert got.dtype == snp.bfloat16
    np.testing.assert_array_equal(got, wide.astype(snp.bfloat16))
    mean, variance = F.batch_statistics(x)
    assert mean.dtype == variance.dtype == snp.float32
    assert F.layer_norm(snp.array([[1, 3]]), 2).dtype == snp.float32


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
def test_normalize_at_zero(p):
    zero = snp.zeros((1, 3))
    f = lambda x: F.normalize(x, p, eps=0.5)
    np.testing.assert_allclose(st.jacrev(f)(zero)[0, :, 0], 2 * np.eye(3))
    np.testing.assert_allclose(st.jit(st.jacfwd(f))(zero)[0, :, 0], 2 * np.eye(3))


def bent(f):
    """``f`` and a curve: the sum of what is normalized has no slope of its own."""
    return lambda *args: snp.exp(f(*args))


CASES_OF_LAWS = {
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
        (f32(3, 2, 2), f32(2), f32(2)),
    ),
    "running": (F.batch_norm, (f32(3, 2), f32(2), f32(2).within(0.5, 2), f32(2), f32(2))),
    "instance_norm": (F.instance_norm, (f32(2, 2, 4),)),
    "layer_norm": (
        lambda x, w, b: F.layer_norm(x, (3, 2), w, b),
        (f32(2, 3, 2), f32(3, 2), f32(3, 2)),
    ),
    "rms_norm": (lambda x, w: F.rms_norm(x, 4, w), (f32(2, 4), f32(4))),
    "group_norm": (lambda x, w, b: F.group_norm(x, 2, w, b), (f32(2, 4, 2), f32(4), f32(4))),
    "local_response_norm": (lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 1.0), (f32(1, 4, 2),)),
    "normalize": (F.normalize, (f32(2, 4).within(0.5, 2),)),
    "cubes": (lambda x: F.normalize(x, 3.0, 0), (f32(3, 2).within(0.5, 2),)),
}


@pytest.mark.parametrize("name", CASES_OF_LAWS)
def test_laws(name):
    f, types = CASES_OF_LAWS[name]
    laws.check(bent(f), [types])


MESSAGES = [
    (lambda: F.batch_norm(X, None, None), "give running_mean and running_var, or training=True"),
    (lambda: F.batch_norm(X[:1, :, :1], None, None, training=True), "more than 1 value for each"),
    (lambda: F.batch_norm(X, snp.ones(3), snp.ones(3)), r"running_mean must have shape \(4,\)"),
    (lambda: F.batch_norm(X[0, 0], None, None), "must be .batch, channels, ...., got float32"),
    (lambda: F.instance_norm(X, weight=snp.ones(5)), r"weight must have shape \(4,\)"),
    (lambda: F.instance_norm(X[..., :1]), "more than 1 value for each channel"),
    (lambda: F.layer_norm(X, 4), r"must be normalized_shape \(4,\), got float32\[3,4,5\]"),
    (lambda: F.layer_norm(X, 5, snp.ones(4)), r"layer_norm: weight must have shape \(5,\)"),
    (lambda: F.rms_norm(X, ()), "must be normalized_shape"),
    (lambda: F.group_norm(X, 3), "num_groups 3 does not divide the 4 channels"),
    (lambda: F.local_response_norm(X[0], 3), "must be .batch, channels, length"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_instance_norm_is_named_in_its_messages():
    x = snp.ones((2, 3, 4))
    with pytest.raises(ValueError, match=r"^instance_norm: give running_mean .*use_input_stats"):
        F.instance_norm(x, use_input_stats=False)
    with pytest.raises(ValueError, match=r"^instance_norm: running_var must have shape"):
        F.instance_norm(x, snp.ones(3), snp.ones(2), use_input_stats=False)


CONSTANTS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "group_norm": lambda x: F.group_norm(x, 1),
    "instance_norm": F.instance_norm,
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "batch_statistics": lambda x: F.batch_statistics(x)[0] - x[0, :, 0],
    "variance": lambda x: F.batch_statistics(x)[1],
}


@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("value", [0.1, 1e10, 1e30])
@pytest.mark.parametrize("size", [7, 1000])
def test_constants_have_no_deviation(name, value, size):
    x = snp.full((2, 3, size), value)
    f = CONSTANTS[name]
    with st.config(interpret_small=False):
        compiled = st.jit(f)(x)
    for out in (f(x), compiled):
        np.testing.assert_array_equal(out, 0)


def test_rows_that_begin_with_an_outlier_keep_their_digits():
    rng = np.random.default_rng(0)
    for first in (0.0, 1e4, 1e6):  # which the mean is taken about
        x = rng.standard_normal((4, 500)) + 3
        x[:, 0] = first
        wide = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        for f in (F.layer_norm, st.jit(F.layer_norm, static_argnums=1)):
            # Some units in the last place of the greatest number of the row, over its deviation.
            np.testing.assert_allclose(f(np.float32(x), 500), wide, rtol=1e-5, atol=1e-5)


def test_slopes_do_not_depend_on_the_element_that_means_are_taken_about():
    x = snp.array([[2.0, -1.0, 0.5, 4.0]])
    weights = snp.array([[0.3, -1.0, 2.0, 0.7]])
    slope = lambda x, weights: st.grad(lambda x: snp.sum(F.layer_norm(x, 4) * weights))(x)
    want = slope(x, weights)
    for turns in (1, 2, 3):
        got = slope(snp.roll(x, turns, 1), snp.roll(weights, turns, 1))
        np.testing.assert_allclose(snp.roll(got, -turns, 1), want, atol=1e-6)
