"""What functions with rules take from outside: it may be traced, but not differentiated."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.higher_order.custom_function import fits


def with_rules(fun, fwd, bwd):
    made = st.custom_vjp(fun)
    made.defvjp(fwd, bwd)
    return made


def total(f):
    return lambda *args: f(*args).sum()


def closing(x, scale):
    """100 times the slope by x."""
    g = st.custom_vjp(lambda x: x * scale)
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (st.jit(lambda ct: ct * scale)(ct) * 100.0,))
    return g(x)


S = snp.array([2.0, 3.0, 5.0])


def closing_jvp(x, scale):
    """100 times the slope by x."""
    g = st.custom_jvp(lambda x: x * scale)
    g.defjvp(lambda p, t: (g(*p), st.jit(lambda dx: dx * scale)(t[0]) * 100.0))
    return g(x)


CLOSING = {"custom_jvp": closing_jvp, "custom_vjp": closing}
OUTSIDE = {
    "jit(grad)": lambda f: st.jit(st.grad(total(f))),
    "grad(jit)": lambda f: st.grad(total(st.jit(f))),
    "vmap(grad)": lambda f: st.vmap(st.grad(f)),
    "vmap(grad(jit))": lambda f: st.vmap(st.grad(st.jit(f))),
    "grad(vmap)": lambda f: st.grad(total(st.vmap(f))),
    "grad(jit(vmap(jit)))": lambda f: st.grad(total(st.jit(st.vmap(st.jit(f))))),
    "jit(grad(vmap))": lambda f: st.jit(st.grad(total(st.vmap(f)))),
    "grad(scan)": lambda f: st.grad(
        lambda x, s: st.lax.scan(lambda c, xs: (c + f(*xs), None), 0.0, (x, s))[0]
    ),
    "jit(grad(scan(jit)))": lambda f: st.jit(
        st.grad(lambda x, s: st.lax.scan(lambda c, xs: (c, st.jit(f)(*xs)), 0.0, (x, s))[1].sum())
    ),
    "grad(cond)": lambda f: st.grad(lambda x, s: st.lax.cond(s[0] > 0, f, snp.add, x, s).sum()),
    "grad(map(cond))": lambda f: st.grad(
        total(st.vmap(lambda x, s: st.lax.cond(s > 0, f, snp.add, x, s)))
    ),
    "grad(checkpoint)": lambda f: st.grad(total(st.checkpoint(f))),
}


@pytest.mark.parametrize("kind", CLOSING)
@pytest.mark.parametrize("order", OUTSIDE)
def test_what_is_taken_from_outside_may_be_traced(kind, order):
    got = OUTSIDE[order](CLOSING[kind])(snp.ones(3), S)
    np.testing.assert_allclose(got, 100 * S, rtol=1e-6)


@pytest.mark.parametrize("kind", CLOSING)
@pytest.mark.parametrize("order", OUTSIDE)
def test_what_is_taken_from_outside_cannot_be_differentiated(kind, order):
    swapped = OUTSIDE[order](lambda x, scale: CLOSING[kind](scale, x))
    with pytest.raises(
        st.errors.PerturbationError,
        match=f"{kind}: .* is differentiated by a value .* from outside",
    ):
        swapped(snp.ones(3), S)


def test_derivatives_of_derivatives_by_what_is_taken_from_outside():
    """The first derivative is what bwd computes, and may be differentiated by anything."""

    def f(x, scale):
        return with_rules(lambda x: x, lambda x: (x, None), lambda _, ct: (ct * scale**2,))(x)

    assert float(st.grad(lambda s: st.grad(f)(1.0, s))(3.0)) == 6
    assert float(st.jit(st.grad(lambda s: st.grad(f)(1.0, s)))(3.0)) == 6


def test_rules_that_take_from_outside_what_the_function_does_not():
    def f(x, scale):
        return with_rules(lambda x: x, lambda x: (x, None), lambda _, ct: (ct * scale,))(x)

    assert float(st.jit(st.grad(f))(1.0, 2.0)) == 2
    np.testing.assert_array_equal(st.vmap(st.grad(f))(snp.ones(3), S), S)
    for g in (st.grad(st.jit(f)), st.grad(f, (0, 1)), st.grad(lambda x, s: st.jit(f)(x, s) * s)):
        with pytest.raises(
            st.errors.EscapedTracerError, match=r"bwd of .* pass it to the function"
        ):
            g(1.0, 2.0)


@pytest.mark.parametrize(
    "value, like, fit",
    [
        (snp.ones(2), snp.zeros(2), True),
        (snp.ones(2), snp.zeros(3), False),
        (snp.float32(1), snp.float16(1), False),
        (1, 1.0, True),
        (1.0, snp.bfloat16(1), True),
        (1.0, 1j, True),
        (1.0, 1, False),
        (1j, 1.0, False),
        (True, 1.0, False),
    ],
    ids=str,
)
def test_python_numbers_fit_where_nothing_is_lost(value, like, fit):
    assert fits(as_value(value), as_value(like).type) is fit
