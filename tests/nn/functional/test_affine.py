"""Linear and bilinear maps: PyTorch's figures, the definition, laws, messages."""

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
        "linear",
        {"input": (2, 3, 4), "weight": (5, 4), "bias": (5,)},
        {},
        [(2, 3, 5), 28.23728, 0.3473, 1.58798, 3.14534],
    ),
    ("linear", {"input": (4,), "weight": (4,)}, {}, [(), 1.16611, 2.40115, 0.98697]),
    (
        "bilinear",
        {"input1": (2, 3, 4), "input2": (2, 3, 2), "weight": (5, 4, 2), "bias": (5,)},
        {},
        [(2, 3, 5), -2.45208, 0.05476, -0.29768, -8.16486, 3.14534],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=names(CASES))
def test_equals_pytorch(case):
    name, arrays, settings, want = case
    for run in (lambda f: f, st.jit):
        same(digests(getattr(F, name), arrays, settings, run), want)


def test_definition():
    rng = np.random.default_rng(0)
    x, y, w = rng.normal(size=(3, 4)), rng.normal(size=(3, 2)), rng.normal(size=(5, 4, 2))
    got = F.bilinear(x.astype("f"), y.astype("f"), w.astype("f"), np.ones(5, "f"))
    want = np.einsum("ni,kij,nj->nk", x, w, y) + 1
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    got = F.linear(x.astype("f"), w[:, :, 0].astype("f"), np.float32(2))
    np.testing.assert_allclose(got, x @ w[:, :, 0].T + 2, rtol=1e-5, atol=1e-5)


def test_laws():
    laws.check(F.linear, [(f32(2, 3), f32(4, 3), f32(4)), (f32(3), f32(3))])
    laws.check(F.bilinear, [(f32(2, 3), f32(2, 2), f32(2, 3, 2), f32(2))])


def test_one_product():
    text = st.jit(F.linear).lower(snp.ones((2, 3)), snp.ones((4, 3)), snp.ones(4)).as_text()
    assert text.count("dot_general") == 1 and "transpose" not in text


def test_messages():
    with pytest.raises(ValueError, match=r"linear: expected input .* float32\[2,3\] and float32"):
        F.linear(snp.ones((2, 3)), snp.ones((4, 5)))
    with pytest.raises(ValueError, match="bilinear: expected input1"):
        F.bilinear(snp.ones((2, 3)), snp.ones((1, 3)), snp.ones((4, 3, 3)))
    with pytest.raises(TypeError, match="linear: weight must be an array"):
        F.linear(snp.ones(2), [[1.0, 2.0]])
