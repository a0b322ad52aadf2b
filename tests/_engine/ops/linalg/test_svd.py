"""The singular value decomposition: the laws, NumPy, and what has no derivative."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.ops.linalg.matrix_parts import adjoint
from stretto._engine.ops.linalg.svd import Pinv, Svd
from stretto.laws import c64, c128, f32, f64, law
from stretto.lax import linalg
from stretto.lax.linalg import svd
from tests import gpus
from tests.any_size import MODES, holds

gpu = gpus.gpu


def apart(x):
    """With singular values far from each other."""
    return x + snp.eye(*x.shape[-2:], dtype=x.dtype) * (4 * snp.arange(1, x.shape[-1] + 1)).astype(
        x.dtype
    )


def reduced(x):
    return svd(apart(x), full_matrices=False)


def without_phases(x):
    """Functions of the matrix: the vectors' phases are LAPACK's choice."""
    u, s, vh = reduced(x)
    some = snp.sin(s)[..., None, :]
    return (u * some) @ vh, (u * some) @ adjoint(u), (adjoint(vh) * some) @ vh, s


LAWS = [
    *(law(Svd, reduced, kind(3, 3)) for kind in (f32, f64)),
    *(law(Svd, without_phases, kind(3, 3)) for kind in (c64, c128)),
    *(law(Svd, reduced, f32(*shape)) for shape in ((2, 4, 2), (2, 4))),
    *(law(Svd, without_phases, c64(*shape)) for shape in ((4, 2), (2, 4))),
    law(Svd, lambda x: svd(apart(x)), f32(2, 2)),
    law(Svd, lambda x: svd(apart(x)), f32(4, 2), derivative=False),  # refused
    *(law(Svd, lambda x: svd(apart(x), compute_uv=False), kind(4, 2)) for kind in (f32, c64)),
]


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3)], ids=str)
@pytest.mark.parametrize("full", [True, False])
def test_equals_numpy(shape, full):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    k = min(shape[-2:])
    want = np.linalg.svd(x, full)
    for f in (svd, st.jit(svd, static_argnames=("full_matrices", "compute_uv"))):
        u, s, vh = map(np.asarray, f(snp.array(x), full_matrices=full))
        assert [u.shape, s.shape, vh.shape] == [w.shape for w in want]
        np.testing.assert_allclose(s, want[1], rtol=1e-5)
        np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], x, atol=1e-5)
        np.testing.assert_allclose(f(snp.array(x), compute_uv=False), want[1], rtol=1e-5)


def test_what_has_no_derivative():
    with pytest.raises(MissingRuleError, match="use full_matrices=False"):
        st.grad(lambda x: snp.sum(svd(x)[0]))(snp.ones((3, 2)))
    # Of equal singular values the sum has a gradient, the vectors have none.
    x = snp.eye(2)
    g = st.grad(lambda x: snp.sum(svd(x, compute_uv=False)))(x)
    np.testing.assert_allclose(g, np.eye(2), atol=1e-6)
    assert np.isnan(np.asarray(st.grad(lambda x: snp.sum(svd(x)[0]))(x))).any()


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)], ids=str)
@pytest.mark.parametrize("rounded", [False, True])
def test_what_is_computed_with_other_vectors_than_those_of_zero_has_a_gradient(shape, rounded):
    # Singular values of 0 exactly, or what rounding leaves of them.
    rng = np.random.default_rng(0)
    u, v, weights = rng.normal(size=shape[0]), rng.normal(size=shape[1]), rng.normal(size=shape)
    x = np.outer(u, v) if rounded else np.zeros(shape)
    if not rounded:
        x[0, 0], u, v = 2, np.eye(shape[0])[0], np.eye(shape[1])[0]

    def rank_one(x):
        u, s, vh = svd(x, full_matrices=False)
        return snp.sum(weights.astype("f") * s[0] * snp.outer(u[:, 0], vh[0]))

    # The product u u^T x has that of the projection on the nearest matrices of rank 1.
    p, q = np.outer(u, u) / (u @ u), np.outer(v, v) / (v @ v)
    want = p @ weights + weights @ q - p @ weights @ q
    for g in (st.grad(rank_one), st.jit(st.grad(rank_one))):
        np.testing.assert_allclose(g(x.astype(np.float32)), want, atol=1e-5)


def test_all_vectors_of_a_zero_matrix_have_zero_for_a_derivative():
    changes = st.jacfwd(lambda x: svd(x, full_matrices=False))(snp.zeros((3, 2)))
    for got in (changes[0], changes[2]):
        np.testing.assert_array_equal(got, np.zeros(got.shape))


def test_a_subset_by_index_and_the_algorithms():
    kinds = linalg.SvdAlgorithm
    x = snp.array(np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32))
    for kind in (kinds.QR, kinds.DIVIDE_AND_CONQUER, kinds.DEFAULT):
        options = {"full_matrices": False, "algorithm": kind, "subset_by_index": (0, 3)}
        compiled = st.jit(functools.partial(linalg.svd, **options))
        for u, s, vh in (linalg.svd(x, **options), compiled(x)):
            np.testing.assert_allclose((u * s[:, None]) @ vh, x, atol=1e-5)
    u, s, vh = linalg.svd(x, full_matrices=False, subset_by_index=(1, 2))
    assert (u.shape, s.shape, vh.shape) == ((2, 3, 1), (2, 1), (2, 1, 4))
    whole = linalg.svd(x, compute_uv=False)
    np.testing.assert_allclose(s, whole[:, 1:2], rtol=1e-5)
    np.testing.assert_array_equal(
        linalg.svd(x, compute_uv=False, subset_by_index=(1, 3)), whole[:, 1:]
    )
    with pytest.raises(ValueError, match="svd: subset_by_index needs full_matrices=False"):
        linalg.svd(x, subset_by_index=(1, 2))
    with pytest.raises(NotImplementedError, match="svd: algorithm must be SvdAlgorithm"):
        linalg.svd(x, algorithm=kinds.POLAR)


TALL = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)


@pytest.mark.parametrize(("x", "axes"), [(TALL, {(0, 0): 0}), (TALL.T, {(0, 1): 0})])
def test_any_number_of_rows_or_columns(x, axes):
    holds(lambda x: svd(x, compute_uv=False), [x], axes, tolerance=30)
    # the signs of vectors are LAPACK's choice
    squares = lambda x: [v**2 for v in svd(x, full_matrices=False)]
    holds(squares, [x], axes, MODES, 100)

    def again(x):
        u, s, vh = svd(x, full_matrices=False)
        return u.T @ u, vh @ vh.T, u * s @ vh

    low = np.outer(x[:, 0], x[0])  # of rank 1: most vectors are not determined
    holds(again, [low], axes, ("values", "ragged"), 100)


def test_what_varies_and_is_square_is_refused():
    with pytest.raises(AssertionError, match="refused") as caught:
        holds(svd, [TALL], {(0, 0): 0}, ("values",))
    assert "svd takes no matrices whose rows and columns both vary" in str(caught.value.__cause__)
    holds(svd, [np.stack([TALL, TALL + 1])], {(0, 0): 0}, ("values",), 30)  # but any number of them


def pinv(x, hermitian=False, rtol=1e-5):
    return Pinv(hermitian)(x, snp.full(x.shape[:-2], rtol, snp.real(x).dtype))


def of_hermitian(x):
    return pinv(x + 5 * snp.eye(x.shape[-1], dtype=x.dtype), True)  # its lower triangle is read


LAWS += [
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


@pytest.mark.parametrize("hermitian", [True, False])
def test_singular_values_that_are_no_more_than_the_bound_are_left_out(hermitian):
    """The second is half the greatest; of zeros none is left."""
    x = np.diag([2.0, 1.0, 0.25]).astype(np.float32)
    half, less = np.diag([0.5, 0, 0]), np.diag([0.5, 1, 0])
    for f in (pinv, st.jit(pinv, static_argnums=(1, 2))):
        np.testing.assert_allclose(f(snp.array(x), hermitian, 0.5), half, atol=1e-6)
        np.testing.assert_allclose(f(snp.array(x), hermitian, 0.49), less, atol=1e-6)
        np.testing.assert_array_equal(f(snp.zeros((3, 3)), hermitian, 0.0), np.zeros((3, 3)))


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


@pytest.mark.parametrize("vectors", [True, False])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(3, 2), (2, 2), (2, 3)])
def test_on_gpus_it_is_that_of_matrices_with_rows_enough(shape, full, vectors, gpu):
    """cuSOLVER takes no wider ones: of these the adjoint is decomposed, and both sides turned."""
    f = lambda x: svd(x, full_matrices=full, compute_uv=vectors)
    text = st.jit(f).lower(st.device_put(snp.ones(shape), gpu)).as_text()
    (call,) = [line for line in text.splitlines() if "cusolver_gesvd_ffi" in line]
    full = full and vectors
    assert f"{{full_matrices = {full}, compute_uv = {vectors}, transposed = False}}".lower() in call
    m, n = max(shape), min(shape)
    left = m if full else n
    assert f": (tensor<{m}x{n}xf32>) -> (tensor<{m}x{n}xf32>, tensor<{n}xf32>, " in call
    assert f"tensor<{m}x{left}xf32>, tensor<{n}x{n}xf32>, tensor<i32>)" in call
    wide = shape[0] < shape[1]
    assert text.count('"stablehlo.transpose"') == (wide + 2 * (wide and vectors))
    types = f"tensor<{n}xf32>"
    if vectors:
        first = f"{shape[0]}x{left if not wide else n}"
        second = f"{n if not wide else left}x{shape[1]}"
        types = f"tensor<{first}xf32>, {types}, tensor<{second}xf32>"
    assert f"-> ({types}) {{" in text


def test_vectors_of_a_square_matrix_keep_their_digits_beside_small_values():
    """Nothing lies outside of their space, where rounding errors would be divided by the values."""
    rng = np.random.default_rng(0)
    turn, dx = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=(3, 3))
    x = (turn * [2.0, 1.0, 1e-4]) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    both = lambda x, dx: st.jvp(lambda x: svd(x, full_matrices=False), (x,), (dx,))
    x, dx = x.astype(np.float32), dx.astype(np.float32)
    (u, _, vh), (du, _, dvh) = both(snp.array(x), snp.array(dx))
    with st.enable_x64():
        wide = both(snp.array(x.astype(float)), snp.array(dx.astype(float)))
        for got, change, want, slope in ((u, du, wide[0][0], wide[1][0]),
                                         (vh.T, dvh.T, wide[0][2].T, wide[1][2].T)):  # fmt: skip
            signs = np.sign(np.sum(np.asarray(got) * np.asarray(want), 0))
            np.testing.assert_allclose(change * signs, slope, atol=3e-6 * np.abs(slope).max())


@pytest.mark.parametrize("shape", [(4, 3), (3, 4)])
@pytest.mark.parametrize("op", [Svd(False, True), Svd(False, False)], ids=["vectors", "values"])
def test_the_plain_rule_is_the_derivative_of_each_factor(op, shape):
    """By which series are expanded; vectors keep their signs."""
    rng, step = np.random.default_rng(0), 1e-6
    x, dx = rng.normal(size=(2, *shape))
    with st.enable_x64():
        outs, douts = op.jvp((snp.asarray(x),), (snp.asarray(dx),))
        ends = [op(snp.asarray(x + sign * step * dx)) for sign in (1, -1)]
    assert len(outs) == len(douts) == len(ends[0])
    for dout, high, low in zip(douts, *ends, strict=True):
        want = (np.asarray(high) - np.asarray(low)) / (2 * step)
        np.testing.assert_allclose(dout, want, atol=1e-7)


@pytest.mark.parametrize(("add", "finite"), [(0.0, True), (1.0, False)])
def test_functions_of_two_zero_values_have_a_derivative_where_they_are_zero(add, finite):
    """Of ``u (s + 1) vh`` the product of the vectors of zeros stays, which is not determined."""

    def f(x):
        u, s, vh = svd(x, full_matrices=False)
        return (u * (s + add)) @ vh

    dx = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    out = np.asarray(st.jvp(f, (snp.diag(snp.array([1.0, 0.0, 0.0])),), (dx,))[1])
    assert np.isfinite(out).all() == finite
    if finite:
        np.testing.assert_allclose(out, dx, atol=1e-6)
