"""``jet`` beside nested ``jvp``, and beside the numbers that JAX 0.10.2 gives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

X = np.array([0.3, 0.7, 1.4])
TERMS = [np.array(v) for v in ([1.0, 0.5, -0.3], [0.2, 0.1, 0.4], [0.3, -0.2, 0.1], [0.5, 0, 0.2])]
W = np.arange(9.0).reshape(3, 3) / 9

FUNCTIONS = {
    "sin": snp.sin,
    "exp": snp.exp,
    "log": snp.log,
    "tanh": snp.tanh,
    "sqrt": snp.sqrt,
    "quotient": lambda x: (x + 1) / (1 + x * x),
    "of constants": lambda x: 2 / x + x / 3,
    "power": lambda x: x**2.5,
    "power of itself": lambda x: x**x,
    "arcsin": lambda x: snp.arcsin(x / 2),
    "erf": st.special.erf,
    "gammaln": lambda x: st.special.gammaln(x + 1),
    "softmax": lambda x: st.nn.softmax(x, -1),
    "largest": snp.max,
    "sorted": lambda x: snp.sort(x * x - x),
    "product": snp.prod,
    "layers": lambda x: snp.tanh(W @ snp.sin(W @ x)),
    "solve": lambda x: snp.linalg.solve(W + snp.diag(x), x),
    "gather": lambda x: x[snp.array([2, 0])] * x[1],
    "where": lambda x: snp.where(x > 0.5, x * x, snp.sin(x)),
    "jit": st.jit(lambda x: snp.exp(snp.sin(x))),
    "cond": lambda x: st.lax.cond(x[0] > 0, snp.exp, snp.sin, x),
    "loop": lambda x: st.lax.fori_loop(0, 3, lambda i, c: c * snp.cos(c), x),
    "scan": lambda x: st.lax.scan(lambda c, _: (snp.sin(c), c), x, None, length=2)[1],
    "vmap": st.vmap(lambda x: x * snp.sin(x)),
}


@pytest.fixture(autouse=True)
def in_64_bits():
    with st.enable_x64():
        yield


def along(t):
    v = TERMS
    return X + v[0] * t + v[1] * t**2 / 2 + v[2] * t**3 / 6 + v[3] * t**4 / 24


@pytest.mark.parametrize("name", FUNCTIONS)
def test_beside_nested_derivatives(name):
    f = FUNCTIONS[name]
    value, terms = st.jet(f, (X,), (TERMS,))
    np.testing.assert_allclose(value, f(snp.array(X)), rtol=1e-14)
    nested = lambda t: f(along(t))
    for term in terms:
        nested = lambda t, g=nested: st.jvp(g, (t,), (1.0,))[1]
        np.testing.assert_allclose(term, nested(0.0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("f", "sums"),
    [
        (snp.log, [3.833333333, -10.571995465, 68.779856387, -664.679996375]),
        (lambda x: x**x, [-0.533729823, 3.949033745, -9.023557964, 77.509732562]),
        (lambda x: st.nn.gelu(x, "tanh"), [0.881797449, 1.542223173, 0.108709595, -0.661717025]),
    ],
)
def test_numbers_of_jax(f, sums):
    found = [float(t.sum()) for t in st.jet(f, (X,), (TERMS,))[1]]
    assert found == pytest.approx(sums, abs=1e-8)


def test_arguments_and_scales():
    f = lambda x, y: x * snp.sin(y)
    value, terms = st.jet(f, (1.0, 2.0), ([1.0, 0.0], [0.5, 0.3]))
    assert [float(v) for v in (value, *terms)] == pytest.approx(
        [0.90929743, 0.70122401, -0.76831524]
    )
    _, terms = st.jet(f, (1.0, 2.0), ([1.0, 0.0], [0.5, 0.3]), factorial_scaled=False)
    assert [float(v) for v in terms] == pytest.approx([0.70122401, -0.44657965])
    _, terms = st.jet(f, (1.0, 2.0), ([1.0], [0.5, 0.3]))
    assert [float(v) for v in terms] == pytest.approx([0.70122401, -0.76831524])


def test_inside_and_around_other_transformations():
    third = lambda x: st.jet(snp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2]
    np.testing.assert_allclose(st.jit(st.vmap(third))(snp.array(X)), -np.cos(X), rtol=1e-12)
    assert float(st.grad(third)(0.5)) == pytest.approx(np.sin(0.5))
    slope = lambda x: st.jet(st.grad(snp.sin), (x,), ([1.0, 0.0],))[1][1]
    assert float(slope(0.5)) == pytest.approx(-np.cos(0.5))
    twice = lambda x: st.jet(lambda x: st.jet(snp.exp, (x,), ([2.0],))[1][0], (x,), ([3.0],))[1][0]
    assert float(twice(0.5)) == pytest.approx(6 * np.exp(0.5))


def test_trees_and_values_without_a_derivative():
    f = lambda p, n: {"a": p["x"] ** 2, "n": n + 1}
    value, terms = st.jet(f, ({"x": 3.0}, 2), ([{"x": 1.0}], []))
    assert float(value["a"]) == 9 and int(value["n"]) == 3
    assert [float(v) for v in terms["a"]] == [6] and [int(v) for v in terms["n"]] == [0]


def test_users_rules_are_asked():
    f = st.custom_jvp(snp.sin)
    f.defjvp(lambda primals, tangents: (f(*primals), 2 * tangents[0] * primals[0]))
    _, terms = st.jet(f, (3.0,), ([1.0, 0.0],))
    assert [float(t) for t in terms] == [6, 2]
    g = st.custom_vjp(snp.sin)
    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct,))
    with pytest.raises(st.errors.MissingRuleError, match="custom_vjp"):
        st.jet(g, (3.0,), ([1.0],))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: st.jet(snp.sin, X, (TERMS,)), TypeError, "primals and series must be tuples"),
        (lambda: st.jet(snp.sin, (X,), ()), ValueError, "a series for each argument, got 0 for 1"),
        (
            lambda: st.jet(snp.sin, (X,), ([1.0],)),
            ValueError,
            "jet: a tangent must have its primal",
        ),
        (lambda: st.jet(snp.sin, (X,), ([(X,)],)), TypeError, "term 1 of argument 0 must have the"),
    ],
)
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(("args", "series"), [((), ()), ((3.0,), ([],))])
def test_without_terms_there_is_the_value_alone(args, series):
    value, terms = st.jet(lambda *x: snp.asarray(2.0) * sum(x, 1.0), args, series)
    assert float(value) == 2 * sum(args, 1.0) and terms == []
