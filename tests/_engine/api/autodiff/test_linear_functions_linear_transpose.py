"""Linear functions run backwards: the adjoint, every order, what is not linear."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

W = np.arange(9, dtype=np.float32).reshape(3, 3) + 1
X = st.ShapeDtypeStruct((3,), np.float32)
HALF = st.jit(lambda x: 0.5 * x)
LINEAR = {
    "matrix product": lambda x: W @ x,
    "sum": lambda x: 2.0 * x.sum(),
    "cumsum": snp.cumsum,
    "slice": lambda x: x[1:],
    "gather": lambda x: x[snp.array([0, 0, 2])],
    "scatter": lambda x: snp.zeros(4, np.float32).at[2].add(x[0]),
    "several": lambda x: {"a": x - x[0], "b": [x.reshape(3, 1), None], "c": snp.ones(2)},
    "jit": st.jit(lambda x: HALF(HALF(x)) @ W),
    "vmap": st.vmap(lambda a: a * snp.array(W[0])),
    "scan": lambda x: st.lax.scan(lambda c, a: (c * 2 + a, c), x[0], x),
    "fori_loop": lambda x: st.lax.fori_loop(0, 3, lambda i, c: c * 2.0 + x, x),
    "cond": lambda x: st.lax.cond(snp.array(W)[0, 0] > 0, lambda x: x, lambda x: 2 * x, x),
    "linearized": st.linearize(snp.sin, snp.array(W[0]))[1],
    "complex": lambda x: (x * (1 + 2j)).sum(),
    "another dtype": lambda x: x.astype(np.float16),
}


def cotangent(out):
    return st.tree.map(lambda o: (snp.arange(o.size) + 1).reshape(o.shape).astype(o.dtype), out)


@pytest.mark.parametrize("name", LINEAR)
def test_it_is_the_vjp_anywhere(name):
    f = LINEAR[name]
    x = snp.array(W[1])
    ct = cotangent(f(x))
    (want,) = st.vjp(f, x)[1](ct)
    back = st.linear_transpose(f, X)
    for g in (back, st.jit(back), st.linear_transpose(f, x)):
        (got,) = g(ct)
        assert (got.shape, got.dtype) == ((3,), np.float32)
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_several_arguments():
    f = lambda x, p: x @ W + 3.0 * p["a"][0]
    back = st.linear_transpose(f, X, {"a": [X, None], "unused": 1.0})
    ct = snp.array([1.0, 0.0, -1.0])
    dx, dp = back(ct)
    np.testing.assert_allclose(dx, W @ ct)
    np.testing.assert_allclose(dp["a"][0], 3 * ct)
    assert dp["a"][1] is None and float(dp["unused"]) == 0


def test_transposed_twice_it_is_itself():
    f = lambda x: W @ x
    twice = st.linear_transpose(lambda ct: st.linear_transpose(f, X)(ct)[0], X)
    np.testing.assert_allclose(twice(W[0])[0], W @ W[0])


def test_under_transformations():
    back = lambda w, ct: st.linear_transpose(lambda x: w @ x, X)(ct)[0]
    cts = snp.array(W)
    np.testing.assert_allclose(st.vmap(back, (None, 0))(W, cts), W @ W)
    np.testing.assert_allclose(st.jit(st.vmap(back, (None, 1), 1))(W, cts), W.T @ W)
    loss = lambda w: (back(w, cts[0]) ** 2).sum()  # |wᵀ c|²
    np.testing.assert_allclose(st.grad(loss)(snp.array(W)), 2 * np.outer(W[0], W[0] @ W), rtol=1e-5)
    np.testing.assert_allclose(st.jvp(lambda ct: back(W, ct), (cts[0],), (cts[1],))[1], W[1] @ W)


def test_complex_is_not_conjugated_and_integers_go():
    (ct,) = st.linear_transpose(lambda z: (2 - 3j) * z, 1j)(1.0 + 1j)
    np.testing.assert_allclose(ct, (2 - 3j) * (1 + 1j))
    (ct,) = st.linear_transpose(lambda n: 3 * n.sum(), st.ShapeDtypeStruct((2,), np.int32))(2)
    np.testing.assert_array_equal(ct, [6, 6])


def test_what_is_added_is_left_out():
    np.testing.assert_array_equal(st.linear_transpose(lambda x: x + 1, X)(W[0])[0], W[0])


def test_what_is_rounded_beside_the_arguments_is_linear():
    inner = st.jit(lambda x, c: x * c.astype(int))
    f = lambda x: inner(x, snp.array([1.5, 2.5, 3.5]))
    np.testing.assert_array_equal(st.linear_transpose(f, X)(snp.ones(3))[0], [1, 2, 3])


NOT_LINEAR = {
    "sin": (snp.sin, "sin cannot be transposed: sin at .* is not linear in what depends on"),
    "mul": (lambda x: x * x, "function cannot be transposed: mul at .*_linear_transpose.py"),
    "div": (lambda x: 1 / x, "div at"),
    "dot": (lambda x: x @ x, "dot_general at"),
    "norm": (lambda x: snp.sqrt((x * x).sum()), "mul at"),
    "where": (lambda x: snp.where(x > 0, x, 0), "gt at"),
    "maximum": (lambda x: snp.maximum(x, 0), "max at"),
    "to int": (lambda x: x.astype(int).astype(float), "convert_element_type at"),
    "sort": (snp.sort, "sort at"),
    "jit": (st.jit(lambda x: st.jit(snp.cos)(x) + x), "cos at"),
    "jit to bool": (st.jit(lambda x: st.jit(lambda x: x > 0)(x) * x), "gt at"),
    "jit to int": (
        lambda x: x + st.jit(lambda c, x: x.astype(int) + c.astype(int))(snp.ones(3), x),
        "convert_element_type at",
    ),
    "scan": (lambda x: st.lax.scan(lambda c, a: (c * a, c), x[0], x)[0], "scan at"),
    "while": (
        lambda x: st.lax.while_loop(lambda c: snp.array(False), lambda c: 2 * c, x),
        r"while at .* \(.*lax.scan",
    ),
    "scatter": (lambda x: x.at[0].multiply(x[1]), "scatter_mul at"),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_what_is_not_linear_is_named(name):
    f, message = NOT_LINEAR[name]
    out = st.eval_shape(f, X)
    for wrap in (lambda g: g, st.jit):
        with pytest.raises(TypeError, match=f"linear_transpose: .*{message}.*stretto.vjp"):
            wrap(lambda ct: st.linear_transpose(f, X)(ct)[0])(snp.ones(out.shape))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: st.linear_transpose(lambda x, n: x, X, 1), r"float32\[3\], int32\[\] to float32"),
        (lambda: st.linear_transpose(lambda x: x.argmax(), X), r"float32\[3\] to int32\[\]"),
        (lambda: st.linear_transpose(lambda x: x, "a"), "x must be an array or a number"),
        (lambda: st.linear_transpose(lambda x: "a", X), "the result must be an array"),
        (
            lambda: st.linear_transpose(lambda x: x, X)((W[0], W[0])),
            "structure of the result of function; they part at result: a leaf and a tuple",
        ),
        (lambda: st.linear_transpose(lambda x: x, X)(W), r"type, float32\[3\]; got float32\[3,3\]"),
        (lambda: st.linear_transpose(lambda x: x, X)(W[0].astype("f2")), r"got float16\[3\]"),
    ],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()
