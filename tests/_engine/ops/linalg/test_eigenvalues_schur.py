"""The Schur and the Hessenberg form: the laws, NaN, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.types import array_type
from stretto._engine.ops.linalg.eigenvalues import Hessenberg, Schur, TriangularSylvester
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax.linalg import hessenberg, schur
from tests.any_size import holds


def apart(x):
    n = x.shape[-1]
    return x + snp.diag(snp.arange(1, n + 1, dtype=x.dtype) * 4)


def squared(x):
    """A function of the form whatever the phases."""
    t, z = Schur(True, True)(apart(x))
    magnitudes = lambda m: snp.real(m * snp.conj(m))
    return magnitudes(t), magnitudes(z), magnitudes(Schur(False, True)(apart(x))[0])


def product_and_form(x):
    """``z t z^H`` and the magnitudes in ``t``: rounding chooses the signs and phases of ``z``."""
    t, z = schur(x)
    return z @ t @ snp.conj(snp.matrix_transpose(z)), snp.abs(t)


LAWS = [
    *(law(Schur, product_and_form, kind(3, 3), derivative=False) for kind in (f32, f64, c128)),
    law(
        Schur,
        lambda x: snp.abs(schur(x, compute_schur_vectors=False)[0]),
        c64(2, 3, 3),
        derivative=False,
    ),
    # Gaps of eigenvalues divide: more than rounding remains of 32 bits.
    law(Schur, squared, c64(3, 3), factor=20),
    law(Schur, squared, c128(4, 4)),
    *(law(Hessenberg, hessenberg, kind(4, 4), derivative=False) for kind in (f32, c64)),
]


def test_nan_and_infinity_stay_with_their_own_matrix():
    x = np.stack([np.eye(3), np.full((3, 3), np.nan), np.full((3, 3), np.inf)]).astype(np.float32)
    for f in (schur, st.jit(schur)):
        for out in map(np.asarray, f(x)):
            assert np.isfinite(out[0]).all()
            assert np.isnan(out[1:]).all()


def test_empty_and_small_matrices():
    for f in (schur, st.jit(schur)):
        assert [v.shape for v in f(snp.zeros((2, 0, 0)))] == [(2, 0, 0)] * 2
    h, taus = hessenberg(snp.full((1, 1), 3.0))
    assert float(h[0, 0]) == 3
    assert taus.shape == (0,)
    assert [v.shape for v in hessenberg(snp.zeros((0, 0)))] == [(0, 0), (0,)]


def test_refusals():
    with pytest.raises(NotImplementedError, match="schur: eigenvalues cannot be sorted"):
        schur(snp.eye(2), sort_eig_vals=True)
    with pytest.raises(MissingRuleError, match="order of eigenvalues are LAPACK's choice"):
        st.grad(lambda x: snp.sum(schur(x)[0]))(snp.eye(2))
    with pytest.raises(MissingRuleError, match="reflections are an intermediate result"):
        st.grad(lambda x: snp.sum(hessenberg(x)[0]))(snp.eye(3))
    with pytest.raises(ValueError, match="hessenberg: expected square matrices"):
        hessenberg(snp.ones((2, 3)))


def test_matrices_of_any_size():
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    axes = {(0, 0): 0, (0, 1): 0}
    holds(hessenberg, [x], axes, ("values", "vmap", "ragged"), 30)
    with pytest.raises(AssertionError, match="refused") as caught:
        holds(schur, [x], axes, ("values",))
    assert "schur takes no matrices of a size that varies" in str(caught.value.__cause__)


RNG = np.random.default_rng(0)


def rising(x, start):
    return x + snp.diag(snp.arange(x.shape[-1], dtype=x.dtype) * 3 + start)


def whole(r, s, f):
    return TriangularSylvester("all")(rising(r, 4), rising(s, 4), f)


def part(name):
    return lambda r, f: TriangularSylvester(name)(rising(r, 1), -rising(r, 1), f)


LAWS += [
    *(law(TriangularSylvester, whole, kind(3, 3), kind(2, 2), kind(3, 2)) for kind in (f32, c64)),
    law(TriangularSylvester, whole, f64(2, 3, 3), f64(2, 1, 1), f64(2, 3, 1)),
    # Differences of the diagonal divide: more than rounding remains of 32 bits.
    *(
        law(TriangularSylvester, part(p), c64(3, 3), c64(3, 3), factor=8)
        for p in ("lower", "upper")
    ),
]


@pytest.mark.parametrize("case", LAWS, ids=lambda case: f"{LAWS.index(case)}-{case}")
def test_laws(case):
    case.check()


def test_only_the_triangles_are_read_and_the_equation_holds():
    r, s, f = (RNG.normal(size=n) for n in ((3, 3), (4, 4), (3, 4)))
    r, s = r + 4 * np.eye(3), s + 4 * np.eye(4)
    with st.enable_x64(True):
        y = np.asarray(TriangularSylvester("all")(*map(snp.asarray, (r, s, f))))
        np.testing.assert_allclose(np.triu(r) @ y + y @ np.triu(s), f, atol=1e-12)
        assert (
            TriangularSylvester("all")(snp.zeros((0, 0)), snp.asarray(s), snp.zeros((0, 4))).size
            == 0
        )


@pytest.mark.parametrize("name", ["lower", "upper"])
def test_the_equations_of_a_part_hold_there(name):
    r, f = RNG.normal(size=(2, 4, 4)) + np.diag([1.0, 4, 7, 10])
    keep = np.tril if name == "lower" else np.triu
    offset = -1 if name == "lower" else 1
    with st.enable_x64(True):
        args = [snp.asarray(v) for v in (r, -r, f)]
        for g in (TriangularSylvester(name), st.jit(TriangularSylvester(name))):
            y = np.asarray(g(*args))
            np.testing.assert_array_equal(y, keep(y, offset))
            residual = np.triu(r) @ y - y @ np.triu(r) - f
            np.testing.assert_allclose(keep(residual, offset), 0, atol=1e-12)


def test_sums_that_are_zero_are_infinite_or_nan():
    one = snp.ones((1, 1))
    for f in (TriangularSylvester("all"), st.jit(TriangularSylvester("all"))):
        assert not np.isfinite(f(one, -one, one)).any()


def test_refusals_of_sylvester():
    with pytest.raises(ValueError, match="sylvester: expected one dtype, equal leading axes"):
        TriangularSylvester("all")(snp.eye(2), snp.eye(3), snp.ones((3, 2)))


def test_equations_of_any_size():
    r, s, f = (RNG.normal(size=n).astype(np.float32) for n in ((4, 4), (2, 2), (4, 2)))
    holds(whole, [r, s, f], {(0, 0): 0, (0, 1): 0, (1, 0): 1, (1, 1): 1, (2, 0): 0, (2, 1): 1},
          tolerance=30)  # fmt: skip
    square = {(i, d): 0 for i in (0, 1) for d in (0, 1)}
    for name in ("lower", "upper"):
        holds(part(name), [r, r.T], square, tolerance=100)


@pytest.mark.parametrize(
    ("dtype", "differentiable"),
    [("float32", True), ("float32", False), ("complex64", False)],
)
def test_schur_forms_without_a_derivative(dtype, differentiable):
    x = snp.eye(2, dtype=dtype) * snp.array([1, 2], dtype)
    with pytest.raises(MissingRuleError, match="schur has no jvp rule"):
        st.jvp(Schur(True, differentiable), (x,), (x,))
    st.jvp(Schur(True, True), (x.astype("complex64"),), (x.astype("complex64"),))


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 3), (2, 2), (2, 3)),
        ((3, 3), (2, 2), (3, 3)),
        ((1, 3, 3), (2, 2), (1, 3, 2)),
        ((3, 3), (1, 2, 2), (3, 2)),
        ((3, 3), (2, 2), (1, 3, 2)),
    ],
    ids=str,
)
def test_equations_that_do_not_fit_are_refused(shapes):
    f32 = np.dtype(np.float32)
    with pytest.raises(ValueError, match="sylvester: expected one dtype, equal leading axes"):
        TriangularSylvester("all").infer(*[array_type(shape, f32) for shape in shapes])
    types = [array_type(shape, f32) for shape in ((3, 3), (2, 2), (3, 2))]
    assert TriangularSylvester("all").infer(*types) is types[2]
    for k in range(3):
        mixed = [t if i != k else array_type(t.shape, np.dtype(float)) for i, t in enumerate(types)]
        with pytest.raises(ValueError, match="sylvester: expected one dtype"):
            TriangularSylvester("all").infer(*mixed)
