"""Linear operations with a transpose of their own: the laws, every order, what does not fit."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order.linear_call import LinearCall, with_transpose
from stretto.laws import c64, f32, f64, law
from stretto.lax import linear_call


def divide(x, by):
    """``x / by``, whose transpose is 10 times the right one where ``by`` is 7."""
    wrong = lambda by: snp.where(by == 7.0, 10.0, 1.0)
    return linear_call(lambda r, x: x / r, lambda r, ct: ct / r * wrong(r), by, x)


def pair(x, y, by):
    out = linear_call(
        lambda r, t: {"sum": t["x"] * r[0] + t["y"].sum(), "y": t["y"] * r[0]},
        lambda r, ct: {"x": ct["sum"] * r[0], "y": ct["y"] * r[0] + ct["sum"].sum()},
        (by, None),
        {"x": x, "y": y},
    )
    return out["sum"], out["y"]


LAWS = [
    *[law(LinearCall, divide, kind(3), kind(3).within(1, 2)) for kind in (f32, f64)],
    law(LinearCall, lambda x: divide(x, 2.0 + 0j), c64(2)),
    law(LinearCall, pair, f64(2), f64(3), f64()),
    law(LinearCall, st.vmap(divide, (None, 0)), f32(), f32(3).within(1, 2)),
    law(LinearCall, st.jit(divide), f64(2), f64(2).within(1, 2)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


ORDERS = {
    "grad": st.grad,
    "jit(grad)": lambda f: st.jit(st.grad(f)),
    "grad(jit)": lambda f: st.grad(st.jit(f)),
    "vmap(grad)": lambda f: lambda x, by: st.vmap(st.grad(f), (0, None))(x[None], by)[0],
    "grad(vmap)": lambda f: st.grad(lambda x, by: st.vmap(f, (None, 0))(x, by[None]).sum()),
    "grad(vmap, other)": lambda f: (
        lambda x, by: st.grad(lambda x, by: st.vmap(f, (0, None))(x, by).sum())(x[None], by)[0]
    ),
    "grad(scan)": lambda f: st.grad(
        lambda x, by: st.lax.scan(lambda c, by: (f(c, by), None), x, by[None])[0]
    ),
    "grad(cond)": lambda f: st.grad(lambda x, by: st.lax.cond(by > 0, f, snp.add, x, by)),
    "grad(checkpoint)": lambda f: st.grad(st.checkpoint(f)),
    "linear_transpose": lambda f: lambda x, by: st.linear_transpose(lambda x: f(x, by), x)(1.0)[0],
    "linear_transpose(vmap)": lambda f: (
        lambda x, by: st.linear_transpose(st.vmap(lambda x: f(x, by)), x[None])(snp.ones(1))[0][0]
    ),
    "linear_transpose(jvp)": lambda f: (
        lambda x, by: st.linear_transpose(lambda dx: st.jvp(lambda x: f(x, by), (x,), (dx,))[1], x)(
            1.0
        )[0]
    ),
}


@pytest.mark.parametrize("order", ORDERS)
def test_backwards_it_is_the_transpose_given(order):
    g = ORDERS[order](divide)
    for by, want in ((4.0, 1 / 4), (7.0, 10 / 7)):
        np.testing.assert_allclose(g(snp.array(3.0), snp.array(by)), want, rtol=1e-6)
        # Forwards it is the function.
        np.testing.assert_allclose(st.jvp(divide, (3.0, by), (1.0, 0.0))[1], 1 / by, rtol=1e-6)


def test_transposed_twice_it_is_itself():
    """A loop of unknown length goes both ways, and has derivatives."""

    def power(n, x):
        return st.lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, 2.0 * c[1]), (n, x))[1]

    f = lambda x: linear_call(power, power, 3, x)
    twice = st.linear_transpose(lambda ct: st.linear_transpose(f, 1.0)(ct)[0], 1.0)
    assert float(twice(1.0)[0]) == 8
    assert float(st.grad(lambda x: f(x) ** 2)(1.0)) == 128
    assert float(st.grad(st.grad(lambda x: f(x) ** 2))(1.0)) == 128
    assert float(st.hessian(lambda x: f(x) ** 2)(1.0)) == 128


def test_what_is_taken_from_outside_is_a_residual():
    def f(x, by, scale):
        return linear_call(lambda r, x: x / by, lambda r, ct: ct / by * scale, (), x)

    for wrap in (lambda g: g, st.jit):
        assert float(wrap(st.grad(f))(3.0, 4.0, 8.0)) == 2
        assert float(st.grad(wrap(f))(3.0, 4.0, 8.0)) == 2
        np.testing.assert_allclose(wrap(st.grad(f, 1))(3.0, 4.0, 8.0), -3 / 16)
        # The scale acts backwards alone: on the first derivative.
        assert float(wrap(st.grad(st.grad(f), 2))(3.0, 4.0, 8.0)) == 0.25
    xs = snp.array([1.0, 2.0])
    np.testing.assert_allclose(st.vmap(st.grad(f), (0, 0, None))(xs, xs, 3.0), 3 / xs)


@pytest.mark.parametrize(
    "fun, back, message",
    [
        (lambda r, x: x > 0, None, "what is linear must be floating or complex, got bool"),
        (lambda r, x: x, lambda r, ct: (ct, ct), "part at linear_args: a leaf and a tuple"),
        (lambda r, x: x, lambda r, ct: ct.sum(), r"linear_args is float32\[2\], got float32\[\]"),
        (lambda r, x: x, lambda r, ct: ct.astype("f2"), r"float32\[2\], got float16\[2\]"),
    ],
)
def test_what_does_not_fit_is_refused(fun, back, message):
    with pytest.raises(TypeError, match=f"linear_call: .*{message}"):
        linear_call(fun, back, (), snp.ones(2))


def test_only_what_is_linear_may_depend_on_what_is_transposed():
    with pytest.raises(
        TypeError, match=r"cannot be transposed: linear_call at .* it is not linear"
    ):
        st.linear_transpose(lambda x: divide(x, x), 1.0)(1.0)


def test_of_one_array_the_transpose_is_taken_only_where_it_is_recorded():
    transposed = []

    def back(ct):
        transposed.append(ct)
        return 3 * ct

    double = lambda x: with_transpose(lambda x: 2 * x, back, x)
    np.testing.assert_array_equal(double(snp.ones(2)), [2.0, 2.0])
    np.testing.assert_array_equal(st.jit(double)(snp.ones(2, "int32")), [2, 2])
    assert not transposed
    np.testing.assert_array_equal(st.grad(lambda x: double(x).sum())(snp.ones(2)), [3.0, 3.0])
    assert transposed
