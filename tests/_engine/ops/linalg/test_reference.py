"""LAPACK matrix by matrix: batches, empty matrices, what failed, dtypes kept, workspace."""

import numpy as np
import pytest

from stretto._engine.ops.linalg import reference

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
BATCHES = [(), (2,), (2, 0)]


def numbers(*shape, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape)
    return (x + 1j * random.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(
        dtype
    )


def hermitian(*shape, dtype=np.float64):
    x = numbers(*shape, dtype=dtype)
    return x @ x.conj().swapaxes(-1, -2) + np.eye(shape[-1], dtype=dtype)


def close(got, want, dtype):
    np.testing.assert_allclose(got, want, atol=2e3 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", BATCHES)
def test_factorisations_give_the_matrix_back(batch, dtype):
    x = hermitian(*batch, 4, 4, dtype=dtype)
    h = lambda m: m.conj().swapaxes(-1, -2)
    factor = reference.potrf(x)
    assert factor.dtype == dtype
    close(factor @ h(factor), x, dtype)
    v, w = reference.eigh(x, True)
    close(v * w[..., None, :] @ h(v), x, dtype)
    (alone,) = reference.eigh(x, False)
    close(alone, w, dtype)
    y = numbers(*batch, 3, 4, dtype=dtype)
    u, s, vh = reference.svd(y, False, True)
    close(u * s[..., None, :] @ vh, y, dtype)
    u, _, vh = reference.svd(y, True, True)
    assert (u.shape, vh.shape) == ((*batch, 3, 3), (*batch, 4, 4))
    t, z = reference.gees(y[..., :3], True)
    close(z @ t @ h(z), y[..., :3], dtype)
    w, left, right = reference.eig(y[..., :3], True, True)
    close(y[..., :3] @ right, right * w[..., None, :], dtype)
    close(h(left) @ y[..., :3], w[..., :, None] * h(left), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 5, 3)])
def test_reflections_make_an_orthogonal_matrix(shape, dtype):
    x, k = numbers(*shape, dtype=dtype), min(shape[-2:])
    both, taus = reference.geqrf(x)
    q, r = reference.householder_product(both[..., :k], taus), np.triu(both[..., :k, :])
    close(q @ r, x, dtype)
    assert q.dtype == both.dtype == taus.dtype == dtype
    c = numbers(*shape[:-1], 2, dtype=dtype, seed=1)
    form = "C" if np.dtype(dtype).kind == "c" else "T"
    turned = reference.multiply_by_reflections(both, taus, c, True, form)
    close(turned[..., :k, :], q.conj().swapaxes(-1, -2) @ c, dtype)
    both, taus, order = reference.geqp3(x)
    q, r = reference.householder_product(both[..., :k], taus), np.triu(both[..., :k, :])
    assert order.dtype == np.int32
    close(q @ r, np.take_along_axis(x, order[..., None, :].astype(int), -1), dtype)


def test_zero_pivots_are_no_failure():
    both, pivots = reference.getrf(np.array([[0.0, 0], [0, 0]]))
    np.testing.assert_array_equal(both, 0)
    assert pivots.tolist() == [0, 1]


def test_what_fails_is_nan_and_its_neighbours_are_not():
    good, bad = np.eye(2), np.array([[1.0, 2], [2, 1]])
    factors = reference.potrf(np.stack([good, bad]))
    np.testing.assert_array_equal(factors[0], good)
    np.testing.assert_array_equal(np.isnan(factors[1]), np.tril(np.ones((2, 2))))
    broken = np.stack([good, np.array([[np.nan, 0], [0, 1]])])
    for out in (*reference.gees(broken, True), *reference.eig(broken, True, True)):
        assert np.isfinite(out[0]).all() and np.isnan(out[1]).all()
    singular = np.zeros((2, 2)), np.array([[1.0, 1], [0, 1]]), np.zeros((2, 2))
    x = reference.gtsv(*singular, np.ones((2, 2, 1)))
    assert np.isfinite(x[0]).all() and np.isnan(x[1]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("form", "NTC")
def test_triangles(form, left, dtype):
    a, b = numbers(3, 3, dtype=dtype) + 3 * np.eye(3, dtype=dtype), numbers(3, 3, dtype=dtype)
    change = {"N": lambda m: m, "T": np.transpose, "C": lambda m: m.conj().T}[form]
    for lower in (True, False):
        for unit in (True, False):
            full = (np.tril if lower else np.triu)(a, -1 if lower else 1)
            full = full + (np.eye(3) if unit else np.diag(np.diag(a)))
            x = reference.trsm(a, b, left, lower, form, unit)
            close(change(full) @ x if left else x @ change(full), b, dtype)
            assert x.dtype == dtype


@pytest.mark.parametrize("n", [1, 2, 5])
def test_tridiagonal_systems(n):
    dl, d, du = (numbers(n, seed=i) for i in range(3))
    d, b = d + 4, numbers(n, 2)
    whole = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    close(whole @ reference.gtsv(dl, d, du, b), b, float)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_reductions_to_few_diagonals_keep_the_eigenvalues(lower, dtype):
    x = hermitian(4, 4, dtype=dtype)
    _, d, e, _ = reference.sytrd(x, lower)
    assert d.dtype == e.dtype == np.zeros(0, dtype).real.dtype
    line = np.diag(d) + np.diag(e, 1) + np.diag(e, -1)
    close(np.linalg.eigvalsh(line), np.linalg.eigvalsh(x), dtype)
    both, _ = reference.gehrd(numbers(4, 4, dtype=dtype))
    values = np.linalg.eigvals(np.triu(both, -1))
    close(np.sort_complex(values), np.sort_complex(np.linalg.eigvals(numbers(4, 4, dtype=dtype))),
          dtype)  # fmt: skip


def test_matrices_without_elements():
    none = np.zeros((0, 0))
    for f in (reference.potrf, lambda x: reference.eigh(x, True), lambda x: reference.gees(x, True),
              lambda x: reference.eig(x, True, True), reference.getrf, reference.gehrd,
              lambda x: reference.sytrd(x, True)):  # fmt: skip
        outs = f(none)
        assert all(out.size == 0 for out in (outs if isinstance(outs, tuple) else (outs,)))
    u, s, vh = reference.svd(np.zeros((3, 0)), True, True)
    np.testing.assert_array_equal(u, np.eye(3))
    assert s.shape == (0,) and vh.shape == (0, 0)
    _, _, order = reference.geqp3(np.zeros((0, 3)))
    assert order.tolist() == [0, 1, 2]


def test_workspace_that_float32_rounded_down():
    """2^24 + 1 is no float32: the query's answer is one too few."""
    assert reference._size(np.float32(2**24 + 1)) >= 2**24 + 1
    assert reference._size(np.complex64(10)) in (10, 11)
