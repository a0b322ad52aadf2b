"""The pseudo-inverse: the laws, NumPy, equal and small singular values."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.ops.linalg.pinv import Pinv
from stretto.laws import c64, c128, f32, f64, law
from tests.any_size import holds


def pinv(x, hermitian=False, rtol=1e-5):
    return Pinv(hermitian)(x, snp.full(x.shape[:-2], rtol, snp.real(x).dtype))


def of_hermitian(x):
    return pinv(x + 5 * snp.eye(x.shape[-1], dtype=x.dtype), True)  # its lower triangle is read


LAWS = [
    *(law(Pinv, pinv, kind(4, 2)) for kind in (f32, f64, c64, c128)),
    law(Pinv, pinv, f32(2, 2, 4)),
    *(law(Pinv, of_hermitian, kind(3, 3)) for kind in (f32, c64)),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("hermitian", [True, False])
def test_equals_numpy_also_below_full_rank(hermitian):
    x = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    x = x @ x.T if hermitian else np.concatenate([x, x], 1)
    for f in (pinv, st.jit(pinv, static_argnums=1)):
        np.testing.assert_allclose(f(snp.array(x), hermitian), np.linalg.pinv(x, 1e-5), atol=1e-4)


def test_equal_singular_values_have_a_gradient():
    g = st.grad(lambda x: snp.sum(pinv(x) ** 2))(snp.eye(3))
    np.testing.assert_allclose(g, -2 * np.eye(3), atol=1e-5)


def test_rtol_has_one_number_a_matrix():
    with pytest.raises(ValueError, match="pinv: rtol must be a real number for each matrix"):
        Pinv(False)(snp.ones((2, 3, 3)), snp.ones(()))


def test_matrices_of_any_size():
    tall = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    for axes in ({(0, 0): 0}, {(0, 1): 0}, {(0, 0): 0, (0, 1): 1}):
        holds(pinv, [tall], axes, tolerance=30)
    low = np.outer(tall[:, 0], tall[0]).astype(np.float32)  # of rank 1
    holds(pinv, [low], {(0, 0): 0, (0, 1): 1}, ("values", "ragged"), 30)
    square = {(0, 0): 0, (0, 1): 0}
    holds(lambda x: pinv(x + x.T, hermitian=True), [tall[:3]], square, tolerance=30)
