"""Padding of the last axes: PyTorch's figures, NumPy's padding, laws, messages."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st_

import stretto as st
import stretto.numpy as snp
from stretto import laws
from stretto.laws import f32
from stretto.nn import functional as F
from tests.nn.figures import digests, names, same

# Arrays, settings, and PyTorch's shape and digests: see ``tests.nn.figures``.
CASES = [
    ("pad", {"input": (2, 3, 4)}, {"pad": (1, 2), "value": 1.5}, [(2, 3, 7), 1.82036, 0.13762]),
    ("pad", {"input": (2, 3, 4)}, {"pad": (-1, 2, 0, -1)}, [(2, 2, 5), 5.21962, 0.20095]),
    (
        "pad",
        {"input": (2, 3, 4)},
        {"pad": (2, 3), "mode": "reflect"},
        [(2, 3, 9), -1.57725, -13.18386],
    ),
    (
        "pad",
        {"input": (2, 2, 3, 4)},
        {"pad": (2, 1, 0, 2), "mode": "reflect"},
        [(2, 2, 5, 7), 10.64431, 1.03294],
    ),
    (
        "pad",
        {"input": (2, 2, 3, 4)},
        {"pad": (2, 5, 1, -1), "mode": "replicate"},
        [(2, 2, 3, 11), 1.21701, 2.64208],
    ),
    (
        "pad",
        {"input": (2, 2, 3, 3, 4)},
        {"pad": (2, 4, 0, 1, 3, 2), "mode": "circular"},
        [(2, 2, 8, 4, 10), 1.45558, -1.34576],
    ),
    (
        "pad",
        {"input": (1, 2, 3, 3, 4)},
        {"pad": (2, 1, 0, 1, 1, 2), "mode": "reflect"},
        [(1, 2, 6, 4, 7), -59.15069, -2.86947],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.mark.parametrize("mode", MODES)
def test_definition(mode):
    x = np.arange(24.0, dtype="f").reshape(2, 3, 4)
    want = np.pad(x, [(0, 0), (2, 1), (0, 3)], MODES[mode])
    for run in (lambda f: f, st.jit):
        np.testing.assert_array_equal(run(lambda x: F.pad(x, (0, 3, 2, 1), mode))(x), want)


def test_taking_away():
    x = snp.arange(5.0)[None]
    assert F.pad(x, (-1, -2)).tolist() == [[1, 2]]
    assert F.pad(x, (-1, 2), "reflect").tolist() == [[1, 2, 3, 4, 3, 2]]
    assert F.pad(x, (2, -4), "replicate").tolist() == [[0, 0, 0]]
    assert F.pad(x, (2, -1), "circular").tolist() == [[2, 3, 0, 1, 2, 3]]
    assert F.pad(x, (0, 0), "reflect") is x


def test_dtypes():
    assert F.pad(snp.array([1, 2]), (1, 0), value=7).tolist() == [7, 1, 2]
    assert F.pad(snp.array([True]), (0, 1)).tolist() == [True, False]
    assert F.pad(snp.ones(1, snp.bfloat16), (0, 1), "replicate").dtype == snp.bfloat16


@pytest.mark.parametrize("mode", MODES)
def test_laws(mode):
    laws.check(lambda x: F.pad(x, (2, 1, -1, 2), mode), [f32(2, 4, 3)])


@given(
    mode=st_.sampled_from(["reflect", "replicate", "circular"]),
    n=st_.integers(1, 7),
    ends=st_.tuples(st_.integers(0, 7), st_.integers(0, 7)),
)
def test_gradient_adds_all_copies_up(mode, n, ends):
    most = {"reflect": n - 1, "circular": n, "replicate": 7}[mode]
    low, high = (min(end, most) for end in ends)
    index = np.pad(np.arange(n), (low, high), MODES[mode])
    ct = np.random.default_rng(0).integers(-9, 9, (2, len(index))).astype("f")
    want = np.zeros((2, n), "f")
    np.add.at(want, (slice(None), index), ct)
    _, back = st.vjp(lambda x: F.pad(x, (low, high), mode), snp.zeros((2, n)))
    np.testing.assert_array_equal(back(ct)[0], want)


X = snp.ones((2, 3, 4))
MESSAGES = [
    (lambda: F.pad(X, (1, 2, 3)), "must be pairs .before, after."),
    (lambda: F.pad(X, (1,) * 8), "at most one for each axis of float32"),
    (lambda: F.pad(X, (1, 1), "mirror"), "mode must be 'constant', 'reflect'"),
    (lambda: F.pad(X, (4, 0), "reflect"), "can add at most 3 elements to axis 2"),
    (lambda: F.pad(X, (5, 0), "circular"), "can add at most 4 elements to axis 2"),
    (lambda: F.pad(X[..., :0], (1, 0), "replicate"), "can add at most 0 elements to axis 2"),
    (lambda: F.pad(X, (-3, -2)), "takes away more than axis 2"),
    (lambda: F.pad(X, (1, 1), "reflect", 2.0), "value is for mode 'constant'"),
]


@pytest.mark.parametrize("call, words", MESSAGES, ids=range(len(MESSAGES)))
def test_messages(call, words):
    with pytest.raises(ValueError, match=words):
        call()
