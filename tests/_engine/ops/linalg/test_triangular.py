"""Triangular systems: the laws, SciPy, broadcasting, refusals."""

import itertools

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.ops.linalg.triangular import TriangularSolve
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax.linalg import triangular_solve


def steep(**options):
    """With a diagonal that keeps the system well conditioned."""
    return lambda a, b: triangular_solve(a + 4 * snp.eye(a.shape[-1], dtype=a.dtype), b, **options)


LAWS = [
    *(law(TriangularSolve, steep(left_side=True, lower=True), kind(3, 3), kind(3, 2))
      for kind in (f32, f64, c64, c128)),
    *(law(TriangularSolve, steep(left_side=left, transpose_a=True, conjugate_a=conjugate),
          kind(3, 3), kind(3, 3))
      for left in (False, True) for conjugate, kind in ((False, f32), (False, c64), (True, c64))),
    law(TriangularSolve, steep(left_side=True, conjugate_a=True), c64(2, 3, 3), c64(2, 3, 1)),
    law(TriangularSolve, steep(lower=True, unit_diagonal=True), f32(2, 3, 3), f32(2, 2, 3)),
    law(TriangularSolve, steep(left_side=True, unit_diagonal=True), f32(3, 3), f32(3, 2)),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize(
    "lower, trans, unit", list(itertools.product((False, True), "NTC", (False, True)))
)
def test_equals_scipy(lower, trans, unit):
    rng = np.random.default_rng(0)
    a = (rng.normal(size=(5, 5)) + 1j * rng.normal(size=(5, 5)) + 4 * np.eye(5)).astype(
        np.complex64
    )
    b = rng.normal(size=(5, 3)).astype(np.complex64)
    want = scipy.linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit)
    options = {
        "left_side": True,
        "lower": lower,
        "transpose_a": trans != "N",
        "conjugate_a": trans == "C",
        "unit_diagonal": unit,
    }
    for f in (triangular_solve, st.jit(triangular_solve, static_argnames=tuple(options))):
        np.testing.assert_allclose(f(a, b, **options), want, rtol=1e-3, atol=1e-4)
        # x op(a) = b is op(a)^T x^T = b^T.
        right = f(a.T, b.T, **{**options, "left_side": False, "lower": not lower})
        np.testing.assert_allclose(np.asarray(right).T, want, rtol=1e-3, atol=1e-4)


def test_only_the_triangle_is_read():
    a = np.array([[2.0, np.nan], [1.0, 4.0]], np.float32)
    got = triangular_solve(snp.array(a), snp.array([2.0, 9.0]), left_side=True, lower=True)
    np.testing.assert_allclose(got, [1, 2])


def test_leading_axes_broadcast_and_vectors_stay_vectors():
    a = snp.broadcast_to(snp.eye(3) * 2, (4, 1, 3, 3))
    assert triangular_solve(a, snp.ones((1, 5, 3, 2)), left_side=True).shape == (4, 5, 3, 2)
    assert triangular_solve(snp.eye(3), snp.ones(3), left_side=True).shape == (3,)
    assert triangular_solve(snp.eye(3), snp.ones(3)).shape == (3,)


def test_one_matrix_for_all_examples_is_one_call():
    a, b = snp.eye(3) * 2, snp.ones((7, 3, 2))
    f = st.vmap(lambda b: triangular_solve(a, b, left_side=True))
    assert "triangular_solve" in str(st.make_graph(f)(b))
    assert "f32[3,14] = triangular_solve" in str(st.make_graph(f)(b))
    np.testing.assert_allclose(f(b), np.full((7, 3, 2), 0.5))


def test_a_zero_on_the_diagonal_gives_infinities_and_nan_alike():
    a, b = snp.array([[0.0, 0.0], [1.0, 1.0]]), snp.ones((2, 1))
    f = lambda a, b: triangular_solve(a, b, left_side=True, lower=True)
    np.testing.assert_array_equal(f(a, b), [[np.inf], [-np.inf]])
    np.testing.assert_array_equal(st.jit(f)(a, b), [[np.inf], [-np.inf]])


def test_refusals():
    with pytest.raises(
        ValueError, match=r"b must have size 3 along its axis -2, .* float32\[2,2\]"
    ):
        triangular_solve(snp.eye(3), snp.ones((2, 2)), left_side=True)
    with pytest.raises(ValueError, match="expected square matrices"):
        triangular_solve(snp.ones((2, 3)), snp.ones((2, 2)))


def typed(*shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


@pytest.mark.parametrize(
    "types",
    [
        (typed(3, 3), typed(3, 2, dtype="float64")),
        (typed(3, 3), typed(1, 3, 2)),
        (typed(3, 3), typed(3)),
        (typed(2, 3, 3), typed(4, 3, 2)),
        (typed(3, 3), typed(2, 3)),
    ],
    ids=str,
)
def test_right_hand_sides_that_do_not_fit_are_refused(types):
    left = TriangularSolve(True, True, "N", False)
    assert left.infer(typed(3, 3), typed(3, 2)).shape == (3, 2)
    with pytest.raises(ValueError, match="triangular_solve: "):
        left.infer(*types)
