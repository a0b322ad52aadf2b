"""Functions of matrices written with vectors of equal values: derivatives, spellings, refusals."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

RNG = np.random.default_rng(0)
N = 4
TURN = np.linalg.qr(RNG.normal(size=(N, N)))[0]
WEIGHT = RNG.normal(size=(N, N))
ALONG = RNG.normal(size=(N, N))


def of_eigen(f):
    return lambda x: f(*snp.linalg.eigh(x))


def of_singular(f):
    return lambda x: f(*snp.linalg.svd(x, full_matrices=False))


def cube_by_lax(x):
    v, w = st.lax.linalg.eigh(x)
    return (v * w**3) @ v.T


SPECTRAL = {
    "square": of_eigen(lambda w, v: (v * w**2) @ v.T),
    "logarithm by diag": of_eigen(lambda w, v: v @ snp.diag(snp.log(w)) @ v.T),
    "root by einsum": of_eigen(lambda w, v: snp.einsum("ij,j,kj->ik", v, snp.sqrt(w), v)),
    "exponential of rows": of_eigen(lambda w, v: v @ (snp.exp(w)[:, None] * v.T)),
    "two halves": of_eigen(lambda w, v: (v * snp.sqrt(w)) @ (v * snp.sqrt(w)).T),
    "normalized": of_eigen(lambda w, v: (v * (w / snp.sum(w))[..., None, :]) @ snp.conj(v).mT),
    "divided": of_eigen(lambda w, v: (v / (1 + w)) @ v.T),
    "twice": of_eigen(lambda w, v: (v * w) @ v.T @ ((v * snp.sin(w)) @ v.T)),
    "cube by lax": cube_by_lax,
}
PARTS = {
    "projection": of_eigen(lambda w, v: v[:, 2:] @ v[:, 2:].T),
    "projection by a threshold": of_eigen(lambda w, v: (v * snp.where(w > 1.5, 1.0, 0.0)) @ v.T),
    "low rank": of_eigen(lambda w, v: (v[:, 2:] * w[2:]) @ v[:, 2:].T),
    "low rank by diag": of_eigen(lambda w, v: v[:, 2:] @ snp.diag(w[2:]) @ v[:, 2:].T),
}
VALUES = {
    "all equal": [1.0, 1.0, 1.0, 1.0],
    "two pairs": [1.0, 1.0, 2.0, 2.0],
    "nearly": [1.0, 1.0 + 1e-9, 2.0, 2.0 + 1e-13],
    "apart": [0.7, 1.0, 2.0, 2.6],
}


def derivatives(f, x, along):
    """The derivative of a weighted sum along a matrix, in each way."""
    weight = RNG.normal(size=np.shape(f(x)))
    total = lambda x: snp.sum(weight * f(x))
    step = 1e-5
    want = np.sum(weight * (np.asarray(f(x + step * along)) - np.asarray(f(x - step * along))))
    stack = snp.stack([x, x])
    gradients = [
        st.grad(total)(x),
        st.jit(st.grad(total))(x),
        st.grad(st.jit(total))(x),
        st.vmap(st.grad(total))(stack)[0],
        st.grad(lambda stack: snp.sum(st.vmap(total)(stack)))(stack)[0],
    ]
    got = [np.sum(np.asarray(g) * along) for g in gradients]
    return [*got, st.jvp(total, (x,), (snp.asarray(along),))[1]], want / (2 * step)


# A part of vectors that are all equal is a choice, and has no derivative.
@pytest.mark.parametrize(
    "values, name",
    [(v, n) for v in VALUES for n in SPECTRAL | PARTS if v != "all equal" or n in SPECTRAL],
)
def test_functions_of_symmetric_matrices_have_derivatives(name, values):
    x = TURN @ np.diag(VALUES[values]) @ TURN.T
    with st.config(enable_x64=True):
        got, want = derivatives((SPECTRAL | PARTS)[name], (x + x.T) / 2, ALONG + ALONG.T)
    # the differences are wrong by step^2 and by rounding over step
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


def test_the_trace_of_the_square_at_the_identity_and_any_other_weight():
    square = SPECTRAL["square"]
    for transform in (st.grad, lambda f: st.jit(st.grad(f))):
        got = transform(lambda x: snp.trace(square(x)))(snp.eye(3))
        np.testing.assert_allclose(got, 2 * np.eye(3), atol=1e-6)
        got = transform(lambda x: snp.sum(square(x)))(snp.eye(3))
        np.testing.assert_allclose(got, np.full((3, 3), 2.0), atol=1e-6)


@pytest.mark.parametrize("gap", [0.0, 1e-15, 1e-12, 1e-9, 1e-7, 1e-4, 1e-2])
def test_nearly_equal_values_lose_few_digits(gap):
    x = TURN @ np.diag([1.0, 1.0 + gap, 2.0, 2.0 + gap]) @ TURN.T
    x, dx = (x + x.T) / 2, ALONG + ALONG.T
    with st.config(enable_x64=True):
        got = st.jvp(SPECTRAL["square"], (snp.asarray(x),), (snp.asarray(dx),))[1]
    # behind the threshold of 1.5e-8 a quotient loses digits: 2e-16 / 1e-7
    np.testing.assert_allclose(got, x @ dx + dx @ x, rtol=1e-8 if gap >= 1e-7 else 1e-12, atol=1e-8)


SHAPES = [(3, 3), (4, 3), (3, 4)]
SINGULAR = {
    "itself": of_singular(lambda u, s, vh: (u * s) @ vh),
    "polar": of_singular(lambda u, s, vh: u @ vh),
    "cubes": of_singular(lambda u, s, vh: (u * s**3) @ vh),
    "inverse": of_singular(lambda u, s, vh: (vh.T / s) @ u.T),
    "by diag": of_singular(lambda u, s, vh: u @ snp.diag(snp.tanh(s)) @ vh),
    "left": of_singular(lambda u, s, vh: (u * s**2) @ u.T),
    "right": of_singular(lambda u, s, vh: (vh.T * s**3) @ vh),
    "zero at one": of_singular(lambda u, s, vh: (u * (s**3 - s)) @ vh),
    "soft threshold": of_singular(lambda u, s, vh: (u * snp.maximum(s - 0.5, 0)) @ vh),
    "low rank": of_singular(lambda u, s, vh: (u[:, :1] * s[:1]) @ vh[:1]),
}
SINGULAR_VALUES = {
    "all equal": [1.0, 1.0, 1.0],
    "two equal": [2.0, 1.0, 1.0],
    "nearly": [2.0, 1.0 + 1e-9, 1.0],
    "apart": [3.0, 2.0, 1.0],
    "zero": [2.0, 1.0, 0.0],
    "zeros": [2.0, 0.0, 0.0],
}
OF_FULL_RANK = ("polar", "inverse", "right")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", SINGULAR)
def test_functions_of_singular_values_have_derivatives(name, shape):
    m, n = shape
    left, right = (np.linalg.qr(RNG.normal(size=(k, k)))[0] for k in shape)
    for values, s in SINGULAR_VALUES.items():
        if "zero" in values and name in OF_FULL_RANK:
            continue
        if name == "low rank" and values == "all equal":
            continue
        x = left[:, :3] @ np.diag(s) @ right[:3]
        with st.config(enable_x64=True):
            got, want = derivatives(SINGULAR[name], x, RNG.normal(size=(m, n)))
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_matrices(dtype):
    z = RNG.normal(size=(N, N)) + 1j * RNG.normal(size=(N, N))
    turn = np.linalg.qr(z)[0]
    dx = z + z.conj().T
    x = turn @ np.diag(VALUES["two pairs"]) @ turn.conj().T
    square = of_eigen(lambda w, v: (v * w**2) @ v.conj().T)
    polar = of_singular(lambda u, s, vh: u @ vh)
    with st.config(enable_x64=True):
        x, dx = (snp.asarray(v, dtype) for v in (x, dx))
        tolerance = 1e-4 if dtype == "complex64" else 1e-12
        got = st.jvp(square, (x,), (dx,))[1]
        np.testing.assert_allclose(got, x @ dx + dx @ x, rtol=tolerance, atol=tolerance)
        got = st.jvp(polar, (snp.asarray(turn, dtype),), (dx,))[1]
        # at a unitary matrix it keeps the skew part of turn^H dx
        turned = turn.conj().T @ np.asarray(dx)
        want = turn @ (turned - turned.conj().T) / 2
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def test_half_of_the_difference_in_float32():
    x = snp.eye(3) + snp.diag(snp.array([0.0, 1e-6, 1.0]))
    got = st.grad(lambda x: snp.sum(SPECTRAL["logarithm by diag"](x)))(x)
    want = np.ones((3, 3))
    want[:2, 2] = want[2, :2] = np.log(2.0)
    want[2, 2] = 0.5
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_parameters_of_the_function_have_derivatives_too():
    def power(x, p):
        w, v = snp.linalg.eigh(x)
        return snp.sum(WEIGHT[:3, :3] * ((v * w**p) @ v.T))

    x = snp.diag(snp.array([1.0, 2.0, 2.0]))
    dx, dp = st.grad(power, (0, 1))(x, 3.0)
    weight = WEIGHT[:3, :3]
    half = (weight + weight.T) / 2
    a = np.asarray(x)
    np.testing.assert_allclose(dx, a @ a @ half + a @ half @ a + half @ a @ a, rtol=1e-5)
    np.testing.assert_allclose(dp, np.sum(np.diag(weight)[1:]) * 8 * np.log(2), rtol=1e-5)


def test_second_derivatives_where_values_are_apart():
    cube = lambda x: snp.trace(cube_by_lax(x))
    with st.config(enable_x64=True):
        x = snp.diag(snp.array([1.0, 2.0, 4.0]))
        along = snp.asarray(ALONG[:3, :3] + ALONG[:3, :3].T)
        got = st.jvp(st.grad(cube), (x,), (along,))[1]
        np.testing.assert_allclose(got, 3 * (x @ along + along @ x), rtol=1e-9, atol=1e-9)


OTHER_USES = {
    "values for rows": of_eigen(lambda w, v: (snp.diag(snp.sin(w)) @ v) @ v.T),
    "values for columns of rows": of_eigen(lambda w, v: v @ (v.T @ snp.diag(w))),
    "summed over rows": of_eigen(lambda w, v: snp.einsum("ij,ik->jk", v * v, snp.diag(w))),
    "other values' diagonal": of_eigen(lambda w, v: v[:, :2] @ snp.diag(w[1:3]) @ v[:, :2].T),
    "other values": of_eigen(lambda w, v: (v[:, 1:] * w[:-1]) @ v[:, 1:].T),
    "other vectors": of_eigen(lambda w, v: (v[:, :2] * w[:2]) @ (v[:, 1:3] * w[1:3]).T),
    "scaled rows": of_eigen(lambda w, v: (v * w[:, None]) @ v.T),
    "divided rows": of_eigen(lambda w, v: (v / w[:, None]) @ v.T),
    "divided by vectors": of_eigen(lambda w, v: v @ (snp.sqrt(w) / (3 + v)).T),
    "by place too": of_eigen(lambda w, v: (v * (w + snp.arange(4.0)[:, None])) @ v.T),
    "by place on the diagonal": of_eigen(lambda w, v: v @ snp.diag(w * snp.arange(4.0)) @ v.T),
    "rows by rows": of_eigen(lambda w, v: (v * w).T @ (v * v)),
    "columns by rows": of_eigen(lambda w, v: (v * w) @ (v * v * v)),
    "every other": of_eigen(lambda w, v: (v[:, ::2] * w[::2]) @ v[:, ::2].T),
    "some rows": of_eigen(lambda w, v: (v[1:] * w) @ v[:3].T),
    "values in the product": of_eigen(lambda w, v: snp.diag(w) @ snp.diag(snp.exp(w))),
    "a diagonal of values beside": of_eigen(lambda w, v: snp.diag(w)[:, :2] + v[:, :2] * w[:2]),
    "reshaped": of_eigen(lambda w, v: snp.reshape(v * w, (2, 8)) @ snp.ones((8, 1))),
    "values in pairs": of_eigen(lambda w, v: w[:, None] * w + snp.reshape(w, (2, 2)).sum()),
    "turned values": of_eigen(lambda w, v: snp.outer(w, snp.ones(4)).T * snp.outer(w, w)),
    "twice the diagonal": of_eigen(lambda w, v: v @ snp.diag(w) @ snp.diag(1 / w) @ v.T),
    "integers of values": of_eigen(lambda w, v: (v * snp.floor(w + 0.5)) @ v.T),
    "truth values": of_eigen(lambda w, v: (v * (w > 1.5)) @ v.T),
    "bent": of_eigen(lambda w, v: (v * snp.where(w > 1.5, w, w**2)) @ v.T),
}


@pytest.mark.parametrize("name", OTHER_USES)
def test_other_uses_of_vectors_have_the_derivative_by_vectors(name):
    x = TURN @ np.diag(VALUES["apart"]) @ TURN.T
    with st.config(enable_x64=True):
        f, x, along = OTHER_USES[name], (x + x.T) / 2, ALONG + ALONG.T
        step = 1e-6
        got = st.jvp(f, (snp.asarray(x),), (snp.asarray(along),))[1]
        want = np.asarray(f(x + step * along)) - np.asarray(f(x - step * along))
    np.testing.assert_allclose(got, want / (2 * step), rtol=1e-6, atol=1e-6)


def test_other_uses_of_singular_vectors_have_the_derivative_by_vectors():
    uses = {
        "left and right": lambda u, s, vh: (u * s) @ (vh.T * s).T @ (vh.T * s),
        "rows scaled": lambda u, s, vh: u.T @ (u * s) + s[:, None] * vh,
        "other values": lambda u, s, vh: (u[:, 1:] * s[:-1]) @ vh[1:],
        "half": lambda u, s, vh: (u[:, :2] @ snp.diag(s[1:])) @ vh[:2],
        "by place": lambda u, s, vh: u @ (vh * (s[:, None] * snp.arange(3.0))),
    }
    x, along = RNG.normal(size=(3, 3)), RNG.normal(size=(3, 3))
    with st.config(enable_x64=True):
        for name, use in uses.items():
            f, step = of_singular(use), 1e-6
            got = st.jvp(f, (snp.asarray(x),), (snp.asarray(along),))[1]
            want = np.asarray(f(x + step * along)) - np.asarray(f(x - step * along))
            np.testing.assert_allclose(got, want / (2 * step), rtol=1e-5, atol=1e-5, err_msg=name)


NOT_OF_THE_MATRIX = {
    "the vectors": of_eigen(lambda w, v: v),
    "a part of equal vectors": of_eigen(lambda w, v: v[:, :1] @ v[:, :1].T),
    "weights by number": of_eigen(lambda w, v: (v * (w * snp.arange(1.0, 4.0))) @ v.T),
    "another order": of_eigen(lambda w, v: (v * w[::-1]) @ v.T),
}


@pytest.mark.parametrize("name", NOT_OF_THE_MATRIX)
def test_what_depends_on_the_choice_of_vectors_has_no_derivative(name):
    f = lambda x: snp.sum(WEIGHT[:3, :3] * NOT_OF_THE_MATRIX[name](x))
    x = snp.diag(snp.array([1.0, 1.0, 1.0]))
    assert not np.isfinite(np.asarray(st.grad(f)(x))).all()
    assert not np.isfinite(np.asarray(st.jit(st.grad(f))(x))).all()


@pytest.mark.parametrize("transform", [lambda f: f, st.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("factor", [of_eigen(lambda w, v: v), of_singular(lambda u, s, vh: u)])
def test_debug_nans_says_that_the_vectors_have_none(factor, transform):
    gradient = transform(st.grad(lambda x: snp.sum(WEIGHT[:3, :3] * factor(x))))
    with st.config(debug_nans=True):
        words = "derivative of eigenvectors or singular vectors, which have none where values are"
        with pytest.raises(FloatingPointError, match=re.escape(words)):
            gradient(snp.eye(3))
        square = transform(st.grad(lambda x: snp.sum(SPECTRAL["square"](x))))
        np.testing.assert_allclose(square(snp.eye(3)), np.full((3, 3), 2.0), atol=1e-6)
