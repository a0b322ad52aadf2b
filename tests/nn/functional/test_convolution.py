"""Convolutions: PyTorch's figures, the definition, laws, messages."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import bf16, f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    (
        "conv1d",
        {"input": (2, 4, 7), "weight": (6, 2, 3), "bias": (6,)},
        {"stride": 2, "padding": 1, "groups": 2},
        [(2, 6, 4), 3.05141, 2.11631, 1.86558, 0.76285],
    ),
    (
        "conv1d",
        {"input": (3, 6), "weight": (2, 3, 2)},
        {"padding": "same", "dilation": 3},
        [(2, 6), -1.45093, 2.04051, 1.78656],
    ),
    (
        "conv2d",
        {"input": (2, 3, 6, 5), "weight": (4, 3, 3, 2), "bias": (4,)},
        {},
        [(2, 4, 4, 4), -1.46144, 13.85469, 0.42228, -1.8629],
    ),
    (
        "conv2d",
        {"input": (2, 4, 6, 5), "weight": (4, 1, 3, 3)},
        {"stride": (2, 1), "padding": (0, 2), "dilation": (1, 2), "groups": 4},
        [(2, 4, 2, 5), -0.41732, 2.12702, 0.4448],
    ),
    (
        "conv2d",
        {"input": (3, 4, 4), "weight": (2, 3, 2, 2), "bias": (2,)},
        {"padding": "valid"},
        [(2, 3, 3), 2.21787, 5.20965, 0.03604, 0.33306],
    ),
    (
        "conv2d",
        {"input": (1, 2, 5, 4), "weight": (2, 2, 2, 4)},
        {"padding": "same"},
        [(1, 2, 5, 4), -1.10338, 1.93188, 2.9892],
    ),
    (
        "conv3d",
        {"input": (1, 2, 4, 3, 4), "weight": (3, 2, 2, 2, 3), "bias": (3,)},
        {"stride": (1, 2, 1), "padding": 1},
        [(1, 3, 5, 2, 4), 0.75278, -0.15219, 7.59077, 0.09781],
    ),
    (
        "conv_transpose1d",
        {"input": (2, 4, 4), "weight": (4, 3, 3), "bias": (6,)},
        {"stride": 3, "padding": 1, "output_padding": 2, "groups": 2, "dilation": 2},
        [(2, 6, 14), -0.72173, 1.06912, 0.32485, -1.71656],
    ),
    (
        "conv_transpose2d",
        {"input": (2, 3, 3, 4), "weight": (3, 2, 3, 2), "bias": (2,)},
        {"stride": 2, "padding": (1, 0), "output_padding": (1, 0)},
        [(2, 2, 6, 8), 1.43223, 0.24381, -3.26983, -0.46118],
    ),
    (
        "conv_transpose2d",
        {"input": (4, 2, 3), "weight": (4, 1, 2, 2)},
        {"groups": 4, "padding": 1, "dilation": 3},
        [(4, 3, 4), 1.16978, 3.42025, -1.26607],
    ),
    (
        "conv_transpose3d",
        {"input": (1, 2, 2, 3, 2), "weight": (2, 2, 2, 1, 3), "bias": (2,)},
        {"stride": (2, 1, 3)},
        [(1, 2, 4, 3, 6), 1.17198, -0.45185, -0.00522, 0.35096],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def by_definition(x, w, stride, padding, dilation, groups):
    """out[n, o, p] = sum_{i, j} w[o, i, j] x[n, group of o and i, p stride + j dilation]."""
    x = np.pad(x, [(0, 0), (0, 0), (padding, padding), (padding, padding)])
    outs, ins, *kernel = w.shape
    sizes = [(n - dilation * (k - 1) - 1) // stride + 1 for n, k in zip(x.shape[2:], kernel)]
    out = np.zeros((x.shape[0], outs, *sizes))
    for o, i, r, c in itertools.product(range(outs), range(ins), *map(range, kernel)):
        channel = o // (outs // groups) * ins + i
        rows = np.arange(sizes[0]) * stride + r * dilation
        columns = np.arange(sizes[1]) * stride + c * dilation
        out[:, o] += w[o, i, r, c] * x[:, channel][:, rows][:, :, columns]
    return out


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 2, 2)])
def test_definition(stride, padding, dilation, groups):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 4, 7, 6)), rng.normal(size=(6, 4 // groups, 3, 2))
    got = F.conv2d(
        x.astype("f"),
        w.astype("f"),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    want = by_definition(x, w, stride, padding, dilation, groups)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_transpose_is_the_gradient():
    x, w = snp.ones((2, 3, 7, 6)), st.random.normal(st.random.PRNGKey(0), (4, 3, 3, 2))
    ct = st.random.normal(st.random.PRNGKey(1), (2, 4, 4, 3))
    settings = {"stride": 2, "padding": 1, "dilation": (1, 2)}
    (want,) = st.vjp(lambda x: F.conv2d(x, w, **settings), x)[1](ct)
    extra = [n - m for n, m in zip(x.shape[2:], F.conv_transpose2d(ct, w, **settings).shape[2:])]
    got = F.conv_transpose2d(ct, w, output_padding=tuple(extra), **settings)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_laws():
    laws.check(
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1, groups=2),
        [(f32(2, 4, 4, 3), f32(2, 2, 3, 2), f32(2))],
    )
    laws.check(
        lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1, 2, 2),
        [(f32(1, 4, 3), f32(4, 1, 3), f32(2))],
    )


def test_stacked_weights_in_a_scan():
    # Three members, each over a sequence of two images: the same as the loops.
    ws = st.random.normal(st.random.PRNGKey(0), (3, 2, 2, 3, 3))
    xs = st.random.normal(st.random.PRNGKey(1), (2, 2, 5, 5))

    def run(w):
        step = lambda carry, x: (carry + F.conv2d(x, w, padding=1).sum(), None)
        return st.lax.scan(step, snp.zeros(()), xs)[0]

    want = [sum(F.conv2d(x, w, padding=1).sum() for x in xs) for w in ws]
    np.testing.assert_allclose(st.jit(st.vmap(run))(ws), np.stack(want), rtol=1e-4, atol=1e-4)
    slopes = st.jit(st.vmap(st.grad(run)))(ws)
    each = np.stack([st.grad(run)(w) for w in ws])
    np.testing.assert_allclose(slopes, each, rtol=1e-4, atol=1e-4)


def test_narrow_floats_keep_their_dtype():
    x, w = snp.ones((1, 2, 4), snp.bfloat16), snp.ones((3, 2, 2), snp.bfloat16)
    assert F.conv1d(x, w, snp.ones(3, snp.bfloat16)).dtype == snp.bfloat16
    assert F.conv_transpose1d(x, snp.ones((2, 3, 2), snp.bfloat16)).dtype == snp.bfloat16
    laws.check(F.conv1d, [(bf16(1, 2, 3), bf16(2, 2, 2))], second=False)


def test_empty():
    assert F.conv2d(snp.ones((0, 3, 4, 4)), snp.ones((2, 3, 3, 3))).shape == (0, 2, 2, 2)
    assert F.conv_transpose1d(snp.ones((1, 2, 2)), snp.ones((2, 1, 1)), padding=1).shape == (
        1,
        1,
        0,
    )


X = snp.ones((2, 4, 5, 5))
MESSAGES = [
    (lambda: F.conv2d(X, snp.ones((2, 3, 3, 3))), r"has 4 channels .* takes 3 in each of 1 groups"),
    (lambda: F.conv2d(X[0, 0], snp.ones((2, 4, 3, 3))), r"must have 4 axes .* got float32\[5,5\]"),
    (lambda: F.conv2d(X, snp.ones((2, 4, 3))), "conv2d: weight must have 4 axes"),
    (lambda: F.conv2d(X, snp.ones((3, 2, 3, 3)), groups=2), "2 groups do not divide the 3 output"),
    (lambda: F.conv2d(X, snp.ones((2, 4, 6, 3))), "spans 6 does not fit an axis of 5"),
    (lambda: F.conv2d(X, snp.ones((2, 4, 3, 3)), snp.ones(3)), "bias must have 2 elements"),
    (
        lambda: F.conv2d(X, snp.ones((2, 4, 3, 3)), stride=0),
        "stride must be an integer of at least",
    ),
    (lambda: F.conv2d(X, snp.ones((2, 4, 3, 3)), stride=(1, 2, 3)), "or 2 of them; got"),
    (lambda: F.conv2d(X, snp.ones((2, 4, 3, 3)), stride=2, padding="same"), "needs a stride of 1"),
    (lambda: F.conv2d(X, snp.ones((2, 4, 3, 3)), padding="full"), "'same', 'valid' or numbers"),
    (lambda: F.conv2d([1.0], snp.ones((2, 4, 3, 3))), "conv2d: input must be an array"),
    (lambda: F.conv_transpose2d(X, snp.ones((3, 4, 3, 3))), "takes 3, in 1 groups"),
    (
        lambda: F.conv_transpose2d(X, snp.ones((4, 3, 3, 3)), stride=2, output_padding=2),
        "output_padding must be less than stride or dilation",
    ),
    (lambda: F.conv_transpose2d(X, snp.ones((4, 3, 1, 1)), padding=3), "takes away more than"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises((ValueError, TypeError), match=words):
        call()
