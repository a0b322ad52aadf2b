"""The QR factorization: the laws, NumPy, reflections, refusals."""

import numpy as np
import pytest
import scipy.linalg

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.types import array_type
from stretto._engine.ops.linalg.qr import (
    Geqp3,
    Geqrf,
    HouseholderProduct,
    Ormqr,
    PivotedQr,
    Qr,
    geqrf,
)
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax.linalg import householder_product, ormqr, qr
from tests.any_size import MODES, holds


def steep(x):
    return x + 3 * snp.eye(*x.shape[-2:], dtype=x.dtype)


def reduced(x):
    return qr(steep(x), full_matrices=False)


def pivoted(x):
    return qr(steep(x), full_matrices=False, pivoting=True)


SAMPLE = np.eye(4, 3, dtype=np.float32) + np.arange(3, dtype=np.float32)
RAW = [np.asarray(v) for v in geqrf(SAMPLE)]


def multiply(left, transpose):
    def function(c):
        is_complex = snp.iscomplexobj(c)
        a, taus = geqrf((SAMPLE + 1j * SAMPLE[::-1] if is_complex else SAMPLE).astype(c.dtype))
        return ormqr(a, taus, c, left=left, transpose=transpose)

    return function


# Reflections have no derivative: they are refused.
LAWS = [
    *(law(Qr, reduced, kind(3, 3)) for kind in (f32, f64, c64, c128)),
    *(law(Qr, reduced, kind(*shape)) for kind in (f32, c64) for shape in ((2, 4, 2), (2, 4))),
    law(Qr, lambda x: qr(steep(x)), f32(2, 3)),
    law(Qr, qr, f32(4, 2), derivative=False),
    *(law(Geqrf, geqrf, kind(4, 2), derivative=False) for kind in (f32, c64)),
    *(law(Geqp3, Geqp3(), kind(4, 2), derivative=False) for kind in (f32, c64)),
    *(law(PivotedQr, pivoted, kind(3, 3)) for kind in (f32, c64)),
    law(PivotedQr, pivoted, f32(2, 4, 2)),
    law(PivotedQr, lambda x: qr(x, pivoting=True), f32(3, 2), derivative=False),
    law(Ormqr, multiply(True, False), f32(4, 2)),
    law(Ormqr, multiply(True, True), c64(4, 2)),
    law(Ormqr, multiply(False, False), c64(2, 4)),
    *(law(HouseholderProduct, lambda x: householder_product(*geqrf(x)), kind(4, 2),
          derivative=False) for kind in (f32, c64)),
]  # fmt: skip


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("mode", ["complete", "reduced"])
def test_equals_numpy(shape, mode):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    f = lambda x: qr(x, full_matrices=mode == "complete")
    for g in (f, st.jit(f)):
        for got, want in zip(g(snp.array(x)), np.linalg.qr(x, mode), strict=True):
            np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (0, 3), (3, 0)], ids=str)
def test_pivoted_factors_are_scipys(shape):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    f = lambda x: qr(x, pivoting=True)
    eager, compiled = f(x), st.jit(f)(x)
    for got, other in zip(eager, compiled, strict=True):
        np.testing.assert_array_equal(got, other)
    q, r, p = map(np.asarray, eager)
    np.testing.assert_allclose(q @ r, x[:, p], atol=1e-5)
    if x.size:
        np.testing.assert_array_equal(p, scipy.linalg.qr(x, pivoting=True)[2])
        diagonal = np.abs(np.diag(r))
        assert (np.diff(diagonal) <= 1e-6).all()
    assert p.dtype == np.int32


def test_fewer_reflections_than_columns_and_leading_axes():
    a, taus = RAW
    q = np.asarray(qr(SAMPLE)[0])
    c = np.random.default_rng(0).normal(size=(5, 4, 2)).astype(np.float32)
    np.testing.assert_allclose(ormqr(a, taus, c), q @ c, atol=1e-5)
    one = st.jit(ormqr)(a, taus[:1], c[0])
    np.testing.assert_array_equal(one, ormqr(a, taus[:1], c[0]))
    wide, scales = geqrf(snp.asarray(np.vander(np.arange(1.0, 5.0)).astype(np.float32)))
    two = st.jit(ormqr)(wide, scales[:2], snp.eye(4))
    np.testing.assert_allclose(two, ormqr(wide, scales[:2], snp.eye(4)), atol=1e-6)
    np.testing.assert_array_equal(ormqr(a, taus[:0], c[0]), c[0])


def test_the_diagonal_of_r_is_real():
    x = np.random.default_rng(0).normal(size=(3, 3)) * (1 + 1j)
    _, r = qr(snp.array(x.astype(np.complex64)))
    np.testing.assert_allclose(np.imag(np.diag(r)), 0, atol=1e-6)


EYE, RNG = np.eye(4, 3), np.random.default_rng(0)
DEPENDENT = {
    "zeros": np.zeros((4, 3)),
    "exactly 0 in r": EYE[:, [0, 0, 1]],
    "last exactly 0": EYE[:, [0, 1, 1]],
    "rounded": RNG.normal(size=(4, 1)) @ RNG.normal(size=(1, 3)),
    "rounded, wide": RNG.normal(size=(3, 2)) @ RNG.normal(size=(2, 5)),
    "rounded, square": RNG.normal(size=(3, 1)) @ RNG.normal(size=(1, 3)) * 1e-6,
    "complex": RNG.normal(size=(4, 1)) @ (RNG.normal(size=(1, 3)) * (1 + 2j)),
}


@pytest.mark.parametrize("name", DEPENDENT)
@pytest.mark.parametrize("pivoting", [False, True])
def test_dependent_columns_have_finite_derivatives_whatever_rounding_leaves(name, pivoting):
    x = DEPENDENT[name]
    x = x.astype(np.complex64 if np.iscomplexobj(x) else np.float32)
    factors = lambda x: qr(x, full_matrices=False, pivoting=pivoting)[:2]
    squares = lambda x: snp.sum(abs(factors(x)[1]) ** 2)  # those of x
    for f in (st.grad(squares), st.jit(st.grad(squares))):
        scale = np.abs(x).max()
        np.testing.assert_allclose(f(x), 2 * x.conj(), atol=1e-5 * scale, rtol=0)
    # As far as q and r have derivatives those of their product are those of x, and no way turns.
    (q, r), (dq, dr) = map(np.asarray, factors(x)), map(np.asarray, st.jvp(factors, (x,), (x,))[1])
    np.testing.assert_allclose(dr, r, atol=1e-5 * scale)
    np.testing.assert_allclose(dq, np.zeros_like(q), atol=1e-4)
    assert np.isfinite(st.jvp(factors, (x,), (np.ones_like(x),))[1][0]).all()


def test_only_the_last_column_of_a_square_matrix_turns_with_the_others():
    # For x(t) = rotation(t) diag(1, 0) q is the rotation, and r stays.
    def factors(t):
        rotation = snp.array([[snp.cos(t), -snp.sin(t)], [snp.sin(t), snp.cos(t)]])
        return qr(rotation @ snp.diag(snp.array([-1.0, 0.0])))

    dq, dr = st.jvp(factors, (0.0,), (1.0,))[1]
    np.testing.assert_allclose(np.abs(dq), [[0, 1], [1, 0]], atol=1e-6)
    np.testing.assert_allclose(dr, np.zeros((2, 2)), atol=1e-6)


def test_refusals():
    with pytest.raises(MissingRuleError, match="columns of q beyond those of x are not determined"):
        st.grad(lambda x: snp.sum(qr(x)[0]))(snp.ones((3, 2)))
    with pytest.raises(MissingRuleError, match="use qr, which has derivatives"):
        st.grad(lambda x: snp.sum(geqrf(x)[0]))(snp.ones((3, 2)))
    with pytest.raises(ValueError, match="householder_product: expected a of no more columns"):
        householder_product(snp.ones((2, 3)), snp.ones(2))
    with pytest.raises(ValueError, match="ormqr: expected reflections a with 3 rows"):
        ormqr(*RAW, np.ones((3, 2), np.float32))
    with pytest.raises(MissingRuleError, match="ormqr has no jvp rule by reflections"):
        st.grad(lambda a: snp.sum(ormqr(a, RAW[1], snp.ones((4, 1)))))(RAW[0])
    with pytest.raises(MissingRuleError, match="columns of q beyond those of x"):
        st.grad(lambda x: snp.sum(qr(x, pivoting=True)[0]))(snp.ones((3, 2)))


TALL = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
WITHOUT_DERIVATIVE = ("values", "vmap", "ragged")


@pytest.mark.parametrize("pivoting", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_any_number_of_rows_or_columns(full, pivoting):
    factors = lambda x: qr(x, full_matrices=full, pivoting=pivoting)
    modes = WITHOUT_DERIVATIVE if full else MODES
    holds(factors, [TALL], {(0, 0): 0}, modes, 30)
    holds(factors, [TALL.T], {(0, 1): 0}, modes, 30)
    holds(factors, [TALL[:2]], {(0, 0): 0}, WITHOUT_DERIVATIVE, 30)  # fewer than columns
    # columns that depend on others keep their place among those of padding
    holds(factors, [TALL.T * np.array([1, 0, 0, 2, 0], np.float32)], {(0, 1): 0}, ("values",), 30)


def test_reflections_of_any_number_of_rows():
    rows = {(0, 0): 0}
    holds(lambda x: householder_product(*geqrf(x)), [TALL], rows, WITHOUT_DERIVATIVE, 30)
    both = {(0, 0): 0, (1, 0): 0}
    holds(lambda x, c: ormqr(*geqrf(x), c), [TALL, TALL[:, :2]], both, WITHOUT_DERIVATIVE, 30)
    complex_ = (TALL + 1j * TALL[::-1]).astype(np.complex64)
    holds(lambda x: qr(x, full_matrices=False), [complex_[:3]], rows, WITHOUT_DERIVATIVE, 30)


def test_what_reflections_multiply_must_be_matrices():
    a, taus = geqrf(snp.ones((3, 2)))
    for matrix, other in ((a, snp.ones(3)), (a[0], snp.ones((3, 2)))):
        with pytest.raises(ValueError, match="ormqr: expected an array of rank 2 or more"):
            ormqr(matrix, taus, other)
    with pytest.raises(ValueError, match="ormqr: taus must have rank 1 or more"):
        ormqr(a, snp.float32(1), snp.ones((3, 2)))


def typed(*shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


@pytest.mark.parametrize(
    "types",
    [
        (typed(4, 3), typed()),
        (typed(4, 3), typed(2, 3)),
        (typed(4, 3), typed(4)),
        (typed(3, 4), typed(3)),
        (typed(4, 3), typed(3, dtype="float64")),
    ],
    ids=str,
)
def test_reflections_that_do_not_fit_are_refused(types):
    assert HouseholderProduct().infer(typed(4, 3), typed(3)).shape == (4, 3)
    assert HouseholderProduct().infer(typed(4, 3), typed(2)).shape == (4, 3)
    with pytest.raises(ValueError, match="householder_product: "):
        HouseholderProduct().infer(*types)


@pytest.mark.parametrize(
    "types",
    [
        (typed(4, 3), typed(2, 3), typed(4, 2)),
        (typed(4, 3), typed(3), typed(5, 4, 2)),
        (typed(4, 3), typed(4), typed(4, 2)),
        (typed(4, 3), typed(3, dtype="float64"), typed(4, 2)),
        (typed(4, 3), typed(3), typed(4, 2, dtype="float64")),
        (typed(4, 3), typed(3), typed(3, 2)),
        (typed(4, 3), typed(3), typed(2, 4)),
    ],
    ids=str,
)
def test_what_reflections_multiply_must_fit(types):
    assert Ormqr(True, False).infer(typed(4, 3), typed(3), typed(4, 2)).shape == (4, 2)
    assert Ormqr(False, False).infer(typed(4, 3), typed(2), typed(2, 4)).shape == (2, 4)
    with pytest.raises(ValueError, match="ormqr: expected reflections a with"):
        Ormqr(True, False).infer(*types)


@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize(("reflections", "others"), [(0, 2), (3, 0), (0, 0)])
def test_products_of_nothing_are_what_is_multiplied(left, reflections, others):
    """Without a reflection, or without a row or column beside the reflected ones."""
    a, taus = RAW[0], RAW[1][:reflections]
    c = np.arange(4.0 * others, dtype=np.float32).reshape((4, others) if left else (others, 4))
    f = lambda a, taus, c: ormqr(a, taus, c, left=left)
    for way in (f, st.jit(f)):
        np.testing.assert_array_equal(way(a, taus, c), c)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
def test_reflections_of_any_shape_multiply_compiled_as_at_rest(shape, left):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    a, taus = geqrf(x)
    c = np.random.default_rng(1).normal(size=(shape[0], 2)).astype(np.float32)
    c = c if left else c.T.copy()
    op = Ormqr(left, False)
    at_rest = np.asarray(op(a, taus, snp.asarray(c)))
    np.testing.assert_allclose(st.jit(op)(a, taus, c), at_rest, atol=1e-6)
    q = np.linalg.qr(x, "complete")[0]
    np.testing.assert_allclose(at_rest, q @ c if left else c @ q, atol=1e-5)
