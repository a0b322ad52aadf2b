"""Tridiagonal systems and reductions: the laws, NumPy, singular systems, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.types import array_type
from stretto._engine.ops.linalg.triangular import (
    TridiagonalReduction,
    TridiagonalSolve,
    _whole_matrix,
)
from stretto._engine.ops.thresholds import MATRICES
from stretto.laws import c64, f32, f64, law
from stretto.lax.linalg import tridiagonal, tridiagonal_solve
from tests.any_size import MODES, holds

RNG = np.random.default_rng(0)


def solve(dl, d, du, b):
    return tridiagonal_solve(dl, d + 6, du, b)


def perturbed(dl, d, du, b):
    return tridiagonal_solve(dl, d + 6, du, b, perturb_singular=True)


LAWS = [
    *(law(TridiagonalSolve, solve, *[kind(4)] * 3, kind(4, 2)) for kind in (f32, f64, c64)),
    law(TridiagonalSolve, solve, *[f32(2, 3)] * 3, f32(2, 3, 1)),
    law(TridiagonalSolve, perturbed, *[f32(3)] * 3, f32(3, 1)),
    *(law(TridiagonalReduction, tridiagonal, kind(4, 4), derivative=False) for kind in (f32, c64)),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


def whole(dl, d, du):
    return np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("perturb", [False, True])
def test_ends_of_the_outer_diagonals_are_not_read(n, perturb):
    dl, d, du = RNG.normal(size=(3, n)).astype(np.float32) + np.array([[0], [4], [0]], np.float32)
    dl[0] = du[-1] = np.nan
    b = RNG.normal(size=(n, 2)).astype(np.float32)
    f = lambda *args: tridiagonal_solve(*args, perturb_singular=perturb)
    for g in (f, st.jit(f)):
        np.testing.assert_allclose(g(dl, d, du, b), np.linalg.solve(whole(dl, d, du), b), atol=1e-5)


def test_a_singular_system_is_nan_alone_and_perturbed_finite():
    one, zero = np.ones(3, np.float32), np.zeros(3, np.float32)
    dl = du = np.stack([one, one])
    d = np.stack([zero, one * 4])  # [[0, 1, 0], [1, 0, 1], [0, 1, 0]] is singular
    b = np.ones((2, 3, 1), np.float32)
    for f in (tridiagonal_solve, st.jit(tridiagonal_solve)):
        got = np.asarray(f(dl, d, du, b))
        assert np.isnan(got[0]).all()
        np.testing.assert_allclose(got[1], np.linalg.solve(whole(dl[1], d[1], du[1]), b[1]), 1e-5)
    got = tridiagonal_solve(dl, d, du, b, perturb_singular=True)
    assert np.isfinite(got).all()


def test_the_reduction_turns_back():
    x = RNG.normal(size=(4, 4))
    x = (x + x.T).astype(np.float32)
    for lower in (True, False):
        eager = tridiagonal(x, lower=lower)
        compiled = st.jit(tridiagonal, static_argnames="lower")(x, lower=lower)
        for a, b in zip(eager, compiled, strict=True):
            np.testing.assert_array_equal(a, b)
        _, d, e, _ = map(np.asarray, eager)
        form = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
        np.testing.assert_allclose(np.linalg.eigvalsh(form), np.linalg.eigvalsh(x), atol=1e-5)
    assert [v.shape for v in tridiagonal(snp.zeros((2, 0, 0)))] == [
        (2, 0, 0),
        (2, 0),
        (2, 0),
        (2, 0),
    ]


def test_refusals():
    with pytest.raises(ValueError, match="the diagonals must have 3 elements, as b has rows"):
        tridiagonal_solve(snp.ones(2), snp.ones(3), snp.ones(3), snp.ones((3, 1)))
    with pytest.raises(ValueError, match="tridiagonal_solve: expected an array of rank 2 or more"):
        tridiagonal_solve(snp.ones(2), snp.ones(2), snp.ones(2), snp.ones(2))
    with pytest.raises(TypeError, match=r"tridiagonal_solve: dl must be an array .* got a list"):
        tridiagonal_solve([1.0], snp.ones(1), snp.ones(1), snp.ones((1, 1)))
    with pytest.raises(MissingRuleError, match="use eigh, which has derivatives"):
        st.grad(lambda x: snp.sum(tridiagonal(x)[1]))(snp.eye(3))


def test_systems_of_any_size():
    dl, d, du, b = (RNG.normal(size=(4, 2)).astype(np.float32) for _ in range(4))
    one = {(i, 0): 0 for i in range(4)}
    holds(solve, [dl[:, 0], d[:, 0], du[:, 0], b], one, MODES, 30)
    # the last of du is not read
    du[-1] = np.nan
    holds(solve, [dl[:, 0], d[:, 0], du[:, 0], b], one, ("values", "ragged"), 30)


@pytest.mark.parametrize("lower", [True, False])
def test_reductions_of_any_size(lower):
    x = RNG.normal(size=(4, 4)).astype(np.float32)
    modes = ("values", "vmap", "ragged")
    holds(lambda x: tridiagonal(x + x.T, lower=lower), [x], {(0, 0): 0, (0, 1): 0}, modes, 30)


def typed(*shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("other", [typed(2), typed(1, 3), typed(3, dtype="float64")], ids=str)
def test_a_diagonal_that_does_not_fit_is_refused(which, other):
    diagonals = [typed(3)] * 3
    assert TridiagonalSolve(False).infer(*diagonals, typed(3, 2)).shape == (3, 2)
    diagonals[which] = other
    with pytest.raises(ValueError, match="tridiagonal_solve: expected dl, d and du of the dtype"):
        TridiagonalSolve(False).infer(*diagonals, typed(3, 2))


def test_many_systems_are_compiled_by_their_number():
    least = MATRICES * 3
    for n, compiled in ((least, True), (least - 3, False)):
        assert TridiagonalSolve(False).compiled((typed(n // 3, 3),)) is compiled
        assert TridiagonalSolve(True).compiled((typed(n // 3, 3),))
    assert TridiagonalSolve(False).compiled((typed(MATRICES, 1),))
    assert not TridiagonalSolve(False).compiled((typed(MATRICES - 1, 1),))
    assert not TridiagonalSolve(False).compiled((typed(0),))


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("n", [1, 2, 4])
def test_whole_matrices_have_the_diagonals_beside_the_main_one(batch, n):
    dl, d, du = np.arange(1.0, 1 + 3 * np.prod((*batch, n))).reshape(3, *batch, n).astype("f")
    whole = np.asarray(_whole_matrix(*map(snp.asarray, (dl, d, du))))
    for at in np.ndindex(*batch):
        want = np.diag(d[at]) + np.diag(dl[at][1:], -1) + np.diag(du[at][:-1], 1)
        np.testing.assert_array_equal(whole[at], want)
