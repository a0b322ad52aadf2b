"""Closures made into arguments: what is hoisted, derivatives by it, mistakes."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

GRID = snp.linspace(0.0, 1.0, 5)
POINTS = [0.0, 0.25, 0.5, 0.75, 1.0]


def test_nothing_is_hoisted_at_rest():
    converted, consts = st.closure_convert(lambda x: {"out": [x * GRID, None]}, 1.0)
    assert consts == []
    np.testing.assert_allclose(converted(2.0)["out"][0], 2 * GRID)


def hoisted(f, *examples):
    """How many values, and the result with each doubled."""
    converted, consts = st.closure_convert(f, *examples)
    return len(consts), converted(*examples, *[2.0 * c for c in consts])


def test_traced_floating_values_are_hoisted():
    def outer(a, n):
        count, out = hoisted(lambda x: x * a * n + (n > 0) + GRID.sum(), 1.0)
        return out, count

    for wrap in (lambda g: g, lambda g: st.grad(g, has_aux=True)):
        out, count = wrap(outer)(3.0, 2)
        assert count == (0 if wrap(outer) is outer else 1)
    slope, count = st.grad(outer, has_aux=True)(3.0, 2)
    assert (float(slope), count) == (4, 1)
    out, count = st.jit(lambda a, n: (outer(a, n)[0], outer(a, n)[1]))(3.0, 2)
    assert (float(out), int(count)) == (2 * 6 + 1 + 2.5, 1)
    slopes = st.vmap(lambda a: st.grad(outer, has_aux=True)(a, 2)[0])(GRID)
    np.testing.assert_allclose(slopes, [4] * 5)


# What it is for: a function with rules of its own that is given a function.


@functools.partial(st.custom_vjp, nondiff_argnums=(0,))
def integrate(f, high, *consts):
    """The sum of f over a grid up to ``high``."""
    return sum(f(high * x, *consts) for x in POINTS) * high / 5


def integrate_fwd(f, high, *consts):
    return integrate(f, high, *consts), (high, consts)


def integrate_bwd(f, res, ct):
    high, consts = res
    _, pull = st.vjp(lambda *c: sum(f(high * x, *c) for x in POINTS) * high / 5, *consts)
    return ct * f(high, *consts), *pull(ct)


integrate.defvjp(integrate_fwd, integrate_bwd)


def integral(f, high):
    converted, consts = st.closure_convert(f, high)
    return integrate(converted, high, *consts)


def by_hand(f, high):
    return sum(f(high * x) for x in POINTS) * high / 5


ORDERS = {
    "grad": st.grad,
    "jit(grad)": lambda g: st.jit(st.grad(g)),
    "grad(jit)": lambda g: st.grad(st.jit(g)),
    "vmap(grad)": lambda g: lambda a, n: st.vmap(st.grad(g), (0, None))(snp.stack([a, 2 * a]), n),
    "grad(vmap)": lambda g: st.grad(
        lambda a, n: st.vmap(g, (0, None))(snp.stack([a, 2 * a]), n).sum()
    ),
    "grad(scan)": lambda g: st.grad(
        lambda a, n: st.lax.scan(lambda c, x: (c * g(a * x, n), None), a, snp.array(POINTS))[0]
    ),
    "grad(grad)": lambda g: st.grad(st.grad(g)),
    "grad(grad(jit))": lambda g: st.grad(st.grad(st.jit(g))),
}


@pytest.mark.parametrize("order", ORDERS)
def test_derivatives_by_what_was_captured(order):
    def loss(method):
        def of(a, n):
            b = snp.sin(a)
            return method(lambda x: snp.cos(x * b) * (a + n), 2.0)

        return of

    with st.enable_x64():
        got, want = (ORDERS[order](loss(m))(snp.array(0.7), 3) for m in (integral, by_hand))
        for a, b in zip(st.tree.leaves(got), st.tree.leaves(want), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda c: c(1.0), r"converted for 1 arguments and 0 captured .* part .* at args\[0\]"),
        (lambda c: c([1.0, 2.0], 3.0), ".* at args: a tuple of length 1 and a tuple of length 2"),
        (
            lambda c: c([1.0, snp.ones(2)]),
            r"converted for x\[1\] of type float32\[\], got float32\[2\]",
        ),
        (lambda c: c([1.0, 2j]), r".*x\[1\] of type float32\[\], got complex64\[\]"),
    ],
)
def test_other_arguments_are_refused(call, message):
    def f(x):
        return x[0] * x[1]

    converted, _ = st.closure_convert(f, [1.0, st.ShapeDtypeStruct((), np.float32)])
    assert float(converted([2.0, 3])) == 6
    with pytest.raises(TypeError, match=f"closure_convert: f was {message}"):
        call(converted)
