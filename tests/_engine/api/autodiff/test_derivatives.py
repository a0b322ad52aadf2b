"""Derivatives: known formulae, trees, every order of composition, conventions, refusals."""

import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import fwd_and_bwd
from stretto._engine.core.types import float0
from stretto.compat.jax import root as compat_root

X = np.array([0.3, -0.7, 1.2], np.float32)


def close(got, want, rtol=1e-5):
    assert st.tree.structure(got) == st.tree.structure(want)
    for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


# Values


def test_orders():
    f = lambda x: 2 * x**3
    assert [float(g(1.5)) for g in (f, st.grad(f), st.grad(st.grad(f)))] == [6.75, 13.5, 18.0]
    third = st.grad(st.grad(st.grad(f)))
    assert float(third(1.5)) == 12 and float(st.jit(third)(1.5)) == 12
    assert float(st.grad(third)(1.5)) == 0
    five = snp.sin
    for _ in range(5):
        five = st.grad(five)
    np.testing.assert_allclose(five(0.4), np.cos(0.4), rtol=1e-6)


def test_trees():
    params = {"w": [snp.array(X), None], "b": (snp.float32(2.0),)}

    def f(p, x, scale=1.0):
        return (snp.sum(p["w"][0] * x) * p["b"][0] + p["b"][0] ** 2) * scale

    x = 2 * X
    close(st.grad(f)(params, x), {"w": [2.0 * x, None], "b": (np.sum(X * x) + 4.0,)})
    value, slope = st.value_and_grad(f)(params, x, scale=3.0)
    np.testing.assert_allclose(value, 3 * (2 * np.sum(X * x) + 4), rtol=1e-6)
    close(slope, {"w": [6.0 * x, None], "b": (3 * np.sum(X * x) + 12.0,)})
    _, move = st.linearize(lambda p: {"f": f(p, x), "again": p}, params)
    zeros = {"w": [np.zeros(3, np.float32), None], "b": (snp.float32(1.0),)}
    close(move(zeros), {"f": np.sum(X * x) + 4.0, "again": zeros})
    _, pull = st.vjp(lambda p: [p["w"][0] * p["b"][0]], params)
    close(pull([np.ones(3, np.float32)]), ({"w": [2 * np.ones(3), None], "b": (X.sum(),)},))
    _, tangent = st.jvp(lambda p, q: (p["b"], q * 2), (params, 1.0), (zeros, 3.0))
    close(tangent, ((1.0,), 6.0))


@pytest.mark.parametrize(
    "argnums, want",
    [
        (0, 6.0),
        (1, 10.0),
        (-1, 15.0),
        ((0, 1), (6.0, 10.0)),
        ([2, 0], (15.0, 6.0)),
        ((-2,), (10.0,)),
    ],
)
def test_argnums(argnums, want):
    f = lambda x, y, z: x * y * z
    close(st.grad(f, argnums)(5.0, 3.0, 2.0), want)
    close(st.jacfwd(f, argnums)(5.0, 3.0, 2.0), want)
    close(st.jit(st.jacrev(f, argnums))(5.0, 3.0, 2.0), want)


def test_has_aux():
    f = lambda x: (x**2, {"x": x, "twice": [x * 2], "note": "a word", "n": 3})
    slope, aux = st.grad(f, has_aux=True)(3.0)
    (value, aux2), slope2 = st.value_and_grad(f, has_aux=True)(3.0)
    assert (float(slope), float(value), float(slope2)) == (6, 9, 6)
    for a in (aux, aux2):
        assert (float(a["x"]), float(a["twice"][0]), a["note"], a["n"]) == (3, 6, "a word", 3)
    y, pull, aux = st.vjp(f, 3.0, has_aux=True)
    assert (float(y), float(pull(1.0)[0]), aux["note"]) == (9, 6, "a word")
    y, dy, aux = st.jvp(f, (3.0,), (2.0,), has_aux=True)
    assert (float(dy), float(aux["twice"][0])) == (12, 6)
    y, move, aux = st.linearize(f, 3.0, has_aux=True)
    assert float(move(1.0)) == 6 and float(aux["x"]) == 3
    for jac in (st.jacfwd, st.jacrev):
        j, aux = jac(f, has_aux=True)(3.0)
        assert float(j) == 6 and float(aux["x"]) == 3
    h, aux = st.hessian(f, has_aux=True)(3.0)
    assert float(h) == 2 and aux["note"] == "a word"
    arrays = lambda x: (x**2, (x,))
    close(st.jit(st.vmap(st.grad(arrays, has_aux=True)))(X), (2 * X, (X,)))
    (value, aux), slope = st.jit(st.value_and_grad(arrays, has_aux=True))(3.0)
    assert (float(value), float(aux[0]), float(slope)) == (9, 3, 6)
    with pytest.raises(TypeError, match=r"has_aux=True the function must return a pair"):
        st.grad(lambda x: x, has_aux=True)(1.0)


def test_integers_have_float0_gradients():
    f = lambda p: p["x"] * p["n"] + p["flag"]
    args = {"x": 2.0, "n": np.arange(3)[1], "flag": True}
    for g in (st.grad(f, allow_int=True), st.jit(st.grad(f, allow_int=True))):
        slope = g(args)
        assert float(slope["x"]) == 1
        assert slope["n"].dtype == slope["flag"].dtype == float0 and slope["n"].shape == ()
    mapped = st.vmap(st.grad(lambda x, n: (x * n).sum(), (0, 1), allow_int=True))
    dx, dn = mapped(np.ones((2, 3), np.float32), np.arange(6).reshape(2, 3))
    assert dx.dtype == np.float32 and (dn.shape, dn.dtype) == ((2, 3), float0)
    _, pull = st.vjp(lambda x, n: (x * n, n + 1), 2.0, 3)
    dx, dn = pull((1.0, np.zeros((), float0)))
    assert float(dx) == 3 and dn.dtype == float0
    _, dy = st.jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, np.zeros((), float0)))
    assert float(dy[0]) == 3 and dy[1].dtype == float0
    jac = st.jacrev(lambda p: p["x"] * p["n"], allow_int=True)({"x": snp.array(X), "n": 2})
    np.testing.assert_array_equal(jac["x"], 2 * np.eye(3))
    assert (jac["n"].shape, jac["n"].dtype) == ((3,), float0)


def test_float0_goes_through_every_transformation():
    """Integers and booleans beside floats, in and out, mapped, in loops and branches."""

    def f(x, n, flag):
        out, last = st.lax.scan(lambda c, i: (c * x * i, i), x, n + 1)
        return st.lax.cond(flag, lambda: out, lambda: x), (last, flag)

    x, n = 2.0, snp.arange(2)
    zeros = np.zeros(2, float0), np.zeros((), float0)
    for wrap in (lambda g: g, st.jit):
        dx, dn, dflag = wrap(st.grad(lambda *a: f(*a)[0], (0, 1, 2), allow_int=True))(x, n, True)
        assert float(dx) == 2 * 3 * x**2
        assert (dn.shape, dn.dtype, dflag.shape, dflag.dtype) == ((2,), float0, (), float0)
        (dy, (dlast, dflag)) = wrap(lambda x: st.jvp(f, (x, n, True), (1.0, *zeros))[1])(x)
        assert float(dy) == 2 * 3 * x**2
        assert (dlast.shape, dlast.dtype, dflag.dtype) == ((2,), float0, float0)
        g = wrap(f)
        dx, dn, dflag = wrap(lambda x, g=g: st.vjp(g, x, n, True)[1]((1.0, zeros)))(x)
        assert float(dx) == 2 * 3 * x**2 and dn.dtype == dflag.dtype == float0
        move = wrap(lambda x: st.linearize(f, x, n, True)[1](1.0, *zeros))
        assert float(move(x)[0]) == 2 * 3 * x**2 and move(x)[1][1].dtype == float0
    xs, flags = snp.array([1.0, 2.0]), snp.array([True, False])
    mapped = st.vmap(st.grad(lambda *a: f(*a)[0], (0, 1, 2), allow_int=True), (0, None, 0))
    dx, dn, dflag = mapped(xs, n, flags)
    np.testing.assert_allclose(dx, [6, 1])
    assert (dn.shape, dn.dtype, dflag.shape) == ((2, 2), float0, (2,))


def test_modes_agree():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 3)).astype("f4")
    f = lambda x: snp.tanh(w @ snp.sin(x)) * x
    v, ct = rng.normal(size=(2, 3)).astype("f4")
    y, dy = st.jvp(f, (X,), (v,))
    y2, move = st.linearize(f, X)
    y3, pull = st.vjp(f, X)
    np.testing.assert_allclose(y, y2), np.testing.assert_allclose(y, y3)
    np.testing.assert_allclose(move(v), dy, rtol=1e-5)
    np.testing.assert_allclose(np.dot(ct, dy), np.dot(pull(ct)[0], v), rtol=1e-4)
    j = st.jacfwd(f)(X)
    np.testing.assert_allclose(j @ v, dy, rtol=1e-4)
    np.testing.assert_allclose(ct @ j, pull(ct)[0], rtol=1e-4)
    np.testing.assert_allclose(st.vmap(move)(np.eye(3, dtype="f4")).T, j, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        st.jit(st.vmap(lambda c: pull(c)[0]))(np.eye(3, dtype="f4")), j, rtol=1e-5, atol=1e-6
    )


# Compositions


def scalar(x, y):
    return snp.sin(x * y) * x + st.lax.fori_loop(0, 3, lambda i, c: c * y + x, 1.0)


def plain(x, y):
    out = snp.sin(x * y) * x
    c = 1.0
    for _ in range(3):
        c = c * y + x
    return out + c


WRAPS = {"jit": st.jit, "grad": st.grad, "vmap": lambda f: st.vmap(f, (0, None))}


@pytest.mark.parametrize("order", list(itertools.permutations(WRAPS)), ids="∘".join)
def test_every_order_is_the_loop(order):
    """jit, grad and vmap in every order: grad outside vmap takes the sum over examples."""
    f = scalar
    for i, name in enumerate(reversed(order)):
        if name == "grad" and "vmap" in list(reversed(order))[:i]:
            mapped = f
            f = lambda x, y, mapped=mapped: mapped(x, y).sum()
        f = WRAPS[name](f)
    want = [float(st.grad(plain)(x, 0.5)) for x in X]
    np.testing.assert_allclose(f(X, 0.5), want, rtol=1e-5)


def test_nested_derivatives_of_different_variables():
    outer = st.grad(lambda y: st.grad(lambda x: snp.sin(x * y) * y)(1.5) * y)  # d/dy y³ cos(1.5 y)
    want = 3 * X**2 * np.cos(1.5 * X) - 1.5 * X**3 * np.sin(1.5 * X)
    np.testing.assert_allclose([outer(x) for x in X], want, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(outer)(X), want, rtol=1e-5)
    again = st.grad(outer)
    np.testing.assert_allclose(st.jit(st.vmap(again))(X), [again(x) for x in X], rtol=1e-5)


def test_no_perturbation_confusion():
    f = st.grad(lambda x: x * st.grad(lambda y: x + y)(1.0))
    assert float(f(2.0)) == 1.0
    g = lambda x: st.jvp(lambda y: x * y, (3.0,), (1.0,))[1]  # = x
    assert float(st.grad(lambda x: x * g(x))(2.0)) == 4.0
    assert float(st.jvp(lambda x: x * st.grad(lambda y: y * x)(1.0), (2.0,), (1.0,))[1]) == 4.0


def test_eager_grad_of_jitted_function():
    traces = []

    @st.jit
    def f(x):
        traces.append(1)
        return snp.sum(snp.tanh(x) ** 2)

    slope = st.grad(f)
    want = 2 * np.tanh(X) * (1 - np.tanh(X) ** 2)
    for _ in range(3):
        np.testing.assert_allclose(slope(snp.array(X)), want, rtol=1e-5)
    assert len(traces) == 1


def test_python_control_flow_on_concrete_values():
    def f(x):
        y = x
        while y < 10:
            y = y * x
        return y if float(x) > 2.5 else -y

    assert float(st.grad(f)(3.0)) == 27.0 and float(st.grad(f)(2.0)) == -32.0
    assert float(st.grad(lambda x: x**2 if bool(x > 0) else x)(-3.0)) == 1.0
    assert float(st.grad(st.grad(f))(3.0)) == 18.0
    assert float(st.grad(lambda x: x * int(x))(2.5)) == 2.0
    assert float(st.jvp(f, (3.0,), (2.0,))[1]) == 54.0
    with pytest.raises(st.errors.TracedValueError, match="the argument x"):
        st.jit(st.grad(f))(3.0)


def test_unused_and_constant():
    close(st.grad(lambda x, y: y * 2, argnums=(0, 1))(snp.array(X), 1.0), (np.zeros(3), 2.0))
    assert float(st.grad(lambda x: snp.float32(3.0))(1.0)) == 0
    _, pull = st.vjp(lambda x: 3.0, X)
    np.testing.assert_array_equal(pull(1.0)[0], np.zeros(3))
    assert float(st.jvp(lambda x: 3.0, (1.0,), (1.0,))[1]) == 0


def test_types_of_gradients():
    for dtype in (snp.float16, snp.bfloat16, snp.float32):
        x = snp.ones(3, dtype)
        for g in (st.grad(lambda x: (x * 2.5).sum()), st.jit(st.grad(lambda x: snp.sin(x).sum()))):
            assert g(x).dtype == dtype
    with st.enable_x64():
        assert st.grad(lambda x: (x * np.float32(2)).sum())(snp.ones(2)).dtype == snp.float64
    mixed = st.grad(lambda x, y: (x * y).sum(), (0, 1))(snp.ones(2, snp.bfloat16), snp.ones(2))
    assert [g.dtype.name for g in mixed] == ["bfloat16", "float32"]


def test_functions_keep_their_names():
    def loss(x):
        """The loss."""
        return x

    assert st.grad(loss).__name__ == "grad_loss" and st.grad(loss).__doc__ == "The loss."
    assert st.jit(st.value_and_grad(loss)).trace(1.0).program.name == "value_and_grad_loss"


# Complex numbers: vjp and jvp are those of the bilinear pairing Re(ct * v), as in JAX.


def test_holomorphic():
    z = 0.5 - 1.5j
    for f, slope in (
        (lambda z: z**3, 3 * z**2),
        (snp.exp, np.exp(z)),
        (lambda z: 1 / z, -1 / z**2),
    ):
        for g in (
            st.grad(f, holomorphic=True),
            st.jacfwd(f, holomorphic=True),
            st.jacrev(f, holomorphic=True),
        ):
            np.testing.assert_allclose(g(z), slope, rtol=1e-5)
        np.testing.assert_allclose(st.jit(st.grad(f, holomorphic=True))(z), slope, rtol=1e-5)
    cube = st.hessian(lambda z: z**3, holomorphic=True)
    np.testing.assert_allclose(cube(z), 6 * z, rtol=1e-6)


def test_real_results_of_complex_arguments():
    """du/dx - i du/dy, as JAX has it: of |z|² at 1 + 2i, 2 - 4i."""
    f = lambda z: snp.abs(z) ** 2
    assert complex(st.grad(f)(1 + 2j)) == pytest.approx(2 - 4j, rel=1e-6)
    assert complex(st.jacrev(f)(1 + 2j)) == pytest.approx(2 - 4j, rel=1e-6)
    assert complex(st.jit(st.vmap(st.grad(f)))(snp.array([1 + 2j]))[0]) == pytest.approx(2 - 4j)


def test_complex_inside_a_real_function():
    f = lambda x: snp.abs((x + 2j) * (1 - 1j)) ** 2  # 2 (x² + 4)
    np.testing.assert_allclose(st.grad(f)(3.0), 12.0, rtol=1e-6)
    np.testing.assert_allclose(
        st.grad(lambda x: snp.real(snp.exp(1j * x)))(0.4), -np.sin(0.4), rtol=1e-6
    )
    np.testing.assert_allclose(
        st.jacfwd(lambda x: snp.exp(1j * x))(0.4), 1j * np.exp(0.4j), rtol=1e-6
    )


def test_complex_conventions():
    """With f = u + iv of z = x + iy: jvp is the directional derivative; vjp(ct) pairs with it."""
    z, v, ct = 0.3 - 0.8j, 0.7 + 0.2j, -0.4 + 1.1j
    for f in (
        lambda z: z * snp.conj(z) * z,
        lambda z: snp.real(z) * z,
        snp.abs,
        lambda z: snp.sin(z) * snp.imag(z),
    ):
        y, dy = st.jvp(f, (z,), (v,))
        with st.enable_x64():
            step = 1e-6
            limit = (np.asarray(f(z + step * v)) - np.asarray(f(z - step * v))) / (2 * step)
        np.testing.assert_allclose(dy, limit, rtol=1e-4)
        y, pull = st.vjp(f, z)
        back = ct if np.iscomplexobj(y) else ct.real
        np.testing.assert_allclose(
            np.real(back * np.asarray(dy)), np.real(np.asarray(pull(back)[0]) * v), rtol=1e-4
        )
    np.testing.assert_allclose(st.vjp(snp.conj, z)[1](ct)[0], np.conj(ct), rtol=1e-6)
    np.testing.assert_allclose(st.vjp(snp.abs, 3 + 4j)[1](1.0)[0], 0.6 - 0.8j, rtol=1e-6)


# Refusals


def two(x, params):
    return x


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: st.grad(two)(1, 2.0),
            TypeError,
            r"grad: x must be of a floating dtype, got int32\[\].*allow_int",
        ),
        (
            lambda: st.grad(two, 1)(1.0, {"w": [2.0, 3]}),
            TypeError,
            r"params\['w'\]\[1\] must be of a floating",
        ),
        (lambda: st.jacfwd(two)(1j, 2.0), TypeError, "jacfwd: x is complex.*holomorphic=True"),
        (lambda: st.grad(two, holomorphic=True)(1.0, 2.0), TypeError, "x must be complex"),
        (
            lambda: st.grad(two)(snp.ones(2), 1.0),
            TypeError,
            r"two must return a real scalar, got float32\[2\]",
        ),
        (
            lambda: st.grad(lambda x: (x, x))(1.0),
            TypeError,
            r"scalar, got float32\[\], float32\[\]",
        ),
        (lambda: st.grad(lambda x: None)(1.0), TypeError, "scalar, got no array"),
        (lambda: st.grad(lambda x: x > 0)(1.0), TypeError, r"scalar, got bool\[\]"),
        (
            lambda: st.grad(lambda x: x * 1j)(1.0),
            TypeError,
            r"returned complex64\[\] with holomorphic=False",
        ),
        (lambda: st.grad(two, 2)(1.0, 2.0), TypeError, "argnums names argument 2.* 2 positional"),
        (lambda: st.grad(two)("a", 2.0), TypeError, "grad: x must be an array or a number"),
        (lambda: st.grad(lambda x: "a")(1.0), TypeError, "the result must be an array or a number"),
        (
            lambda: st.jacrev(lambda x: x > 0)(1.0),
            TypeError,
            "jacrev: function must return real floating",
        ),
        (lambda: st.jacfwd(two)(1, 2.0), TypeError, "jacfwd: x must be of a floating dtype"),
        (lambda: st.jvp(two, 1.0, 2.0), TypeError, "primals and tangents must be tuples"),
        (
            lambda: st.jvp(two, (1.0, 2.0), (1.0,)),
            TypeError,
            "part at primals: a tuple of length 2",
        ),
        (
            lambda: st.jvp(two, (1.0, 2.0), (snp.ones(2), 1.0)),
            ValueError,
            r"float32\[2\], float32\[\]",
        ),
        (
            lambda: st.jvp(two, (1, 2.0), (1, 1.0)),
            TypeError,
            r"the primal int32\[\] has no derivative",
        ),
        (lambda: st.jvp(two, (1.0, 2.0), (snp.float16(1), 1.0)), TypeError, "primal's dtype"),
        (
            lambda: st.jvp(two, (1.0, 2.0), (1j, 1.0)),
            TypeError,
            r"float32 for float32\[\] .*dtype float0\), got complex64\[\]",
        ),
        (
            lambda: st.jvp(two, (1.0, 2.0), (1, 1.0)),
            TypeError,
            r"jvp: a tangent must have its primal's dtype, float32 for float32\[\].*got int32\[\]",
        ),
        (lambda: st.jvp(two, (1.0, 2.0), (np.int32(1), 1.0)), TypeError, r"got int32\[\]"),
        (lambda: st.jvp(two, (1.0, 2.0), (True, 1.0)), TypeError, r"got bool\[\]"),
        (lambda: st.jvp(two, (1j, 2.0), (1.0, 1.0)), TypeError, r"complex64 for .*got float32\[\]"),
        (lambda: st.linearize(two, 1.0, 2.0)[1](1, 1.0), TypeError, r"linearize: .*got int32\[\]"),
        (lambda: st.vjp(lambda x: x, 1.0)[1](1), TypeError, r"vjp: .*got int32\[\]"),
        (
            lambda: st.jvp(two, (1.0, 2), (np.zeros((), float0), np.zeros((), float0))),
            TypeError,
            r"jvp: float0 zeros of shape \(\) are not a tangent of float32\[\]",
        ),
        (
            lambda: st.vjp(lambda n: n, 2)[1](np.zeros(3, float0)),
            TypeError,
            r"vjp: float0 zeros of shape \(3,\) are not a tangent of int32\[\]",
        ),
        (
            lambda: st.grad(two, (0, -2))(1.0, 2.0),
            ValueError,
            r"argnums names an argument twice: \(0, -2\)",
        ),
        (
            lambda: st.jacrev(two, "params")(1.0, 2.0),
            TypeError,
            "jacrev: argnums must be an int or a sequence of ints, got 'params'",
        ),
        (lambda: st.vjp(two, 1.0, 2.0)[1]((1.0, 1.0)), TypeError, "structure of the output"),
        (lambda: st.vjp(two, snp.ones(2), 2.0)[1](1.0), ValueError, r"float32\[\], float32\[2\]"),
        (lambda: st.linearize(two, 1.0, 2.0)[1](1.0), TypeError, "linearize: tangents"),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_escaped_tracers():
    kept = []
    st.grad(lambda x: (kept.append(x), x)[1])(1.0)
    for use in (lambda v: v + 1, float, bool, lambda v: st.grad(lambda y: y * v)(1.0)):
        with pytest.raises(st.errors.EscapedTracerError, match="outlived"):
            use(kept[0])


def test_what_vjp_gives_passes_through_jit():
    def f(x, n, p):
        return {"y": snp.sin(x) * p["w"] * n, "n": n + 1}

    calls = (2.0, 3, {"w": snp.ones(2)})
    plain, compiled = st.vjp(f, *calls), st.jit(lambda *a: st.vjp(f, *a))(*calls)
    zero = np.zeros((), float0)
    ct = {"y": snp.array([1.0, 2.0]), "n": zero}
    for back in (plain[1], compiled[1], st.jit(lambda b: b)(plain[1])):
        dx, dn, dp = back(ct)
        np.testing.assert_allclose(dx, 9 * np.cos(2.0), rtol=1e-6)
        np.testing.assert_allclose(dp["w"], np.sin(2.0) * 3 * np.array([1.0, 2.0]), rtol=1e-6)
        assert dn.dtype == float0
    assert repr(plain[1]).startswith("<vjp of f at ")
    grads = st.jit(lambda back, ct: back(ct))(compiled[1], ct)
    np.testing.assert_allclose(grads[0], 9 * np.cos(2.0), rtol=1e-6)


def test_a_jitted_vjp_is_traced_once_for_the_way_back():
    traces = []
    forward = st.jit(lambda x: st.vjp(snp.sin, x))
    backward = st.jit(lambda back: traces.append(1) or back(1.0))
    for x in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(backward(forward(x)[1])[0], np.cos(x), rtol=1e-6)
    assert traces == [1]


def test_what_linearize_gives_passes_through_jit_and_scan():
    y, along = st.jit(lambda x: st.linearize(lambda x: x**3, x))(2.0)
    assert (float(y), float(along(1.0))) == (8.0, 12.0)
    assert st.tree.leaves(st.tree.map(lambda x: x, along)) == st.tree.leaves(along)
    y, along, aux = st.linearize(lambda x: [x * x, {"x": x}], 3.0, has_aux=True)
    assert (float(y), float(along(1.0)), float(aux["x"])) == (9.0, 6.0, 3.0)


def test_cotangents_of_integers_may_be_integers():
    _, back = st.vjp(lambda x: (x * 2, 3), 1.0)
    assert back((1.0, 0))[0] == 2.0
    _, back = st.vjp(lambda x: (x * 2, x > 0), 1.0)
    assert back((1.0, False))[0] == 2.0
    with pytest.raises(TypeError, match=r"vjp: the primal bool\[\] has no derivative"):
        back((1.0, 0.5))


def test_a_loss_is_one_array_and_no_tree():
    for result, got in (((1.0,), r"float32\[\] in a tree"), ([], "no array")):
        with pytest.raises(TypeError, match=f"must return a real scalar, got {got}"):
            st.grad(lambda x, r=result: st.tree.map(lambda v: v * x, r))(1.0)
    with pytest.raises(TypeError, match=r"got float32\[\] in a tree"):
        st.value_and_grad(lambda p: p)({"w": 1.0})


def test_has_aux_takes_a_list_of_two():
    assert [float(v) for v in st.grad(lambda x: [x * x, x], has_aux=True)(3.0)] == [6.0, 3.0]
    for result in ((1.0,), (1.0, 2.0, 3.0), {"a": 1.0, "b": 2.0}, 1.0):
        with pytest.raises(TypeError, match="must return a pair"):
            st.grad(lambda x, r=result: r, has_aux=True)(1.0)


@pytest.mark.parametrize("transform", [st.grad, st.value_and_grad, st.jacfwd, st.jacrev, st.vmap])
def test_only_functions_are_transformed(transform):
    with pytest.raises(TypeError, match=f"{transform.__name__}: expected a function, got int"):
        transform(3)


@pytest.mark.parametrize("transform", [st.grad, st.jacfwd, st.jacrev])
def test_argnums_may_be_an_integer_of_numpys(transform):
    assert transform(lambda x, y: x * y, argnums=np.int64(1))(2.0, 3.0) == 2.0
    assert len(transform(lambda x, y: x * y, argnums=[np.int32(0), 1])(2.0, 3.0)) == 2
    with pytest.raises(TypeError, match=r"argnums must be an int or a sequence of ints, got 1\.0"):
        transform(lambda x, y: x * y, argnums=1.0)(2.0, 3.0)


@pytest.mark.parametrize("jitted", [True, False])
def test_both_ways(jitted):
    traces = []

    def f(x, w, *, scale=1.0):
        traces.append(1)
        return scale * snp.sin(x) @ w

    forward, backward = fwd_and_bwd(f, argnums=(0, 1), jitted=jitted)
    w = snp.array([[1.0, 2.0], [3.0, 4.0]])
    for x in (snp.ones(2), snp.zeros(2)):
        y, residuals = forward(x, w, scale=2.0)
        np.testing.assert_allclose(y, 2 * np.sin(x) @ w, rtol=1e-6)
        dx, dw = backward(residuals, snp.ones(2))
        np.testing.assert_allclose(dx, 2 * np.cos(x) * np.array([3.0, 7.0]), rtol=1e-6)
        np.testing.assert_allclose(dw, 2 * np.sin(x)[:, None] * np.ones(2), rtol=1e-6)
    assert len(traces) == (1 if jitted else 2)


def test_one_argument_and_aux():
    forward, backward = fwd_and_bwd(lambda x, y: (x * y, {"x": x}), -1, has_aux=True)
    out, residuals, aux = forward(2.0, 3.0)
    assert (float(out), float(aux["x"]), float(backward(residuals, 1.0))) == (6.0, 2.0, 2.0)


def test_mistakes():
    with pytest.raises(TypeError, match="fwd_and_bwd: expected a function, got int"):
        fwd_and_bwd(3, 0)
    with pytest.raises(TypeError, match="fwd_and_bwd: argnums names argument 2"):
        fwd_and_bwd(lambda x: x, 2)[0](1.0)


@pytest.mark.parametrize("jitted", [False, True])
def test_both_directions_are_named(jitted):
    def cubed(x):
        return x**3

    forward, backward = compat_root.fwd_and_bwd(cubed, 0, jitted=jitted)
    assert (forward.__name__, backward.__name__) == ("forward_cubed", "backward_cubed")
    value, residuals = forward(2.0)
    assert float(value) == 8 and float(backward(residuals, 1.0)) == 12
    assert "cubed" in repr(residuals)
