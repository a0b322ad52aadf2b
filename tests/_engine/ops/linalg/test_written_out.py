"""Factorizations written out as loops: what files with them compute is what LAPACK does."""

import numpy as np
import pytest

import stretto.numpy as snp
from stretto import lax
from tests.export.running import agrees, exported, run

SHAPES = [(1, 1), (4, 4), (5, 3), (3, 5), (2, 4, 4), (2, 5, 3)]


def drawn(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype == "complex64" else x).astype(dtype)


def outs(f, *xs):
    """The results of the file, complex where those of the function are."""
    kinds = [np.asarray(v).dtype.kind for v in f(*xs)]
    got = run(exported(f, *xs), xs)
    return [g[..., 0] + 1j * g[..., 1] if k == "c" else g for g, k in zip(got, kinds, strict=True)]


def adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def close(x, y):
    np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5)


both = pytest.mark.parametrize("dtype", ["float32", "complex64"])


SQUARE = {
    "eigh": snp.linalg.eigh,
    "eigvalsh": snp.linalg.eigvalsh,
    "cholesky": snp.linalg.cholesky,
    "inv": snp.linalg.inv,
    "det": snp.linalg.det,
    "solve": lambda x: snp.linalg.solve(x, x),
    "triangular_solve": lambda x: lax.linalg.triangular_solve(x, x, left_side=True),
}
OF_ANY_SHAPE = {
    "qr": snp.linalg.qr,
    "complete qr": lambda x: snp.linalg.qr(x, "complete"),
    "svd": snp.linalg.svd,
    "thin svd": lambda x: snp.linalg.svd(x, full_matrices=False),
    "singular values": lambda x: snp.linalg.svd(x, compute_uv=False),
    "lu": lax.linalg.lu,
    "geqrf": lax.linalg.geqrf,
}


@both
@pytest.mark.parametrize("name", SQUARE | OF_ANY_SHAPE)
def test_matrices_without_elements(name, dtype):
    shapes = [(0, 0), (2, 0, 0)]
    if name in OF_ANY_SHAPE:
        shapes += [(0, 3), (3, 0), (2, 0, 3), (2, 3, 0)]
    for shape in shapes:
        agrees((SQUARE | OF_ANY_SHAPE)[name], np.zeros(shape, dtype))


@both
@pytest.mark.parametrize("shape", SHAPES)
def test_reflections(shape, dtype):
    x = drawn(shape, dtype)
    for got, want in zip(outs(snp.linalg.qr, x), np.linalg.qr(x), strict=True):
        close(got, want)
    whole = outs(lambda x: snp.linalg.qr(x, "complete"), x)
    for got, want in zip(whole, np.linalg.qr(x, "complete"), strict=True):
        close(got, want)


@both
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("whole", [False, True])
def test_singular_values(shape, dtype, whole):
    x = drawn(shape, dtype)
    if shape == (5, 3):
        x[:, 2] = x[:, 0] - x[:, 1]  # of less than full rank
    u, s, vh = outs(lambda x: tuple(snp.linalg.svd(x, full_matrices=whole)), x)
    k = min(shape[-2:])
    close(s, np.linalg.svd(x, compute_uv=False))
    close((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x)
    close(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*x.shape[:-2], *[u.shape[-1]] * 2)))
    close(
        vh @ adjoint(vh),
        np.broadcast_to(np.eye(vh.shape[-2]), (*x.shape[:-2], *[vh.shape[-2]] * 2)),
    )


@both
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 6, 6)])
def test_eigenvalues(shape, dtype):
    x = drawn(shape, dtype)
    x = x + adjoint(x)
    w, v = outs(lambda x: tuple(snp.linalg.eigh(x)), x)
    close(w, np.linalg.eigvalsh(x))
    close(v @ (w[..., None] * adjoint(v)), x)


@both
@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (2, 5, 5)])
def test_elimination(shape, dtype):
    x = drawn(shape, dtype)
    lower, pivots, order = outs(lambda x: tuple(lax.linalg.lu(x)), x)
    for got, want in zip((lower, pivots, order), lax.linalg.lu(x), strict=True):
        close(got, np.asarray(want))
    h = x @ adjoint(x) + np.eye(shape[-1], dtype=dtype)
    close(outs(lambda h: (snp.linalg.cholesky(h),), h)[0], np.linalg.cholesky(h))
    close(outs(lambda x: (snp.linalg.inv(x),), x)[0] @ x, np.broadcast_to(np.eye(shape[-1]), shape))


def test_not_positive_definite_gives_nan():
    (got,) = outs(lambda x: (snp.linalg.cholesky(x),), np.array([[1, 2], [2, 1]], "float32"))
    assert np.isnan(got[np.tril_indices(2)]).all()


def test_a_matrix_without_an_inverse():
    x = np.zeros((3, 3), "float32")
    (got,) = outs(lambda x: (snp.linalg.det(x),), x)
    assert got == 0


@both
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("form", ["N", "T", "C"])
@pytest.mark.parametrize("unit", [False, True])
def test_substitution(dtype, left, lower, form, unit):
    a = drawn((4, 4), dtype) + 3 * np.eye(4, dtype=dtype)
    b = drawn((4, 2) if left else (2, 4), dtype)
    f = lambda a, b: (
        lax.linalg.triangular_solve(
            a, b, left_side=left, lower=lower, transpose_a=form != "N",
            conjugate_a=form == "C", unit_diagonal=unit,
        ),
    )  # fmt: skip
    close(outs(f, a, b)[0], np.asarray(f(a, b)[0]))


@both
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_products_of_reflections(dtype, left, transpose):
    a, taus = [np.asarray(v) for v in lax.linalg.geqrf(drawn((4, 3), dtype))]
    c = drawn((4, 2) if left else (2, 4), dtype)
    f = lambda a, taus, c: (lax.linalg.ormqr(a, taus, c, left=left, transpose=transpose),)
    close(outs(f, a, taus, c)[0], np.asarray(f(a, taus, c)[0]))


@both
def test_tridiagonal_systems(dtype):
    dl, d, du = drawn((3, 5), dtype)
    b = drawn((5, 2), dtype)
    f = lambda *xs: (lax.linalg.tridiagonal_solve(*xs),)
    close(outs(f, dl, d + 3, du, b)[0], np.asarray(f(dl, d + 3, du, b)[0]))
