"""What a mask leaves out gives no slope: random chains of functions with singular points.

The right value is the derivative at the elements that the mask takes, each alone, in float64, and
zero at all others, whatever the chain computes there.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp

LINKS = {
    "log": snp.log,
    "sqrt": snp.sqrt,
    "reciprocal": lambda x: 1 / x,
    "power": lambda x: x**0.5,
    "cbrt": snp.cbrt,
    "by itself": lambda x: snp.sin(x) / x,
    "entropy": lambda x: -x * snp.log(x),
    "two uses": lambda x: snp.log(x) * snp.sqrt(x) + x,
    "arcsin": snp.arcsin,
    "arctanh": snp.arctanh,
    "exp": lambda x: snp.exp(60 * x),
    "square": snp.square,
    "shift": lambda x: 1 - 2 * x,
    "tanh": snp.tanh,
    "called": st.jit(lambda x: snp.log1p(-x) * x),
    "again": st.checkpoint(lambda x: snp.sqrt(x) / (1 - x)),
    "choice": lambda x: snp.where(x > 0.3, snp.log(x), x * snp.sqrt(1 - x)),
    "kept": lambda x: snp.clip(x, -0.9, 5),
    "greater": lambda x: snp.maximum(x, 2 * x - 1.25),
    # These only move elements.
    "shaped": lambda x: snp.reshape(snp.reshape(x, (1, -1, 1)).T, x.shape),
    "in parts": lambda x: snp.concatenate([x[:2], x[2:]]) if x.ndim else x,
    "reversed": lambda x: snp.flip(snp.flip(x) * 2) if x.ndim else 2 * x,
}
WEIGHTS = np.array([1.0, -2.0, 0.5, 3.0])


def total(y):
    return snp.sum(WEIGHTS * y)


def in_steps(f, mask):
    step = lambda sum, e: (sum + e[2] * snp.where(e[1], f(e[0]), 0.0), None)
    return lambda x: st.lax.scan(step, 0.0, (x, mask, WEIGHTS))[0]


def in_branches(f, mask):
    one = lambda x, m: st.lax.cond(m, f, lambda x: 0.0 * x, x)
    return lambda x: total(st.vmap(one)(x, mask))


def around_branches(f, mask):
    one = lambda x, m: snp.where(m, st.lax.cond(m, f, f, x), 0.0)
    return lambda x: total(st.vmap(one)(x, mask))


FORMS = {
    "where": lambda f, m: lambda x: total(snp.where(m, f(x), 7.0)),
    "otherwise": lambda f, m: lambda x: total(snp.where(~m, -1.0, f(x))),
    "select": lambda f, m: lambda x: total(snp.select([m], [f(x)], 2.0)),
    "piecewise": lambda f, m: lambda x: total(snp.piecewise(x, [m], [f, lambda x: 0 * x])),
    "sum": lambda f, m: lambda x: snp.sum(WEIGHTS * f(x), where=m),
    "nested": lambda f, m: lambda x: total(snp.where(m, snp.where(m | (x > 9), f(x), 1 / x), 0)),
    "product": lambda f, m: lambda x: snp.where(m, f(x), 0.0) @ WEIGHTS,
    "called": lambda f, m: st.jit(lambda x: total(snp.where(m, st.jit(f)(x), 7.0))),
    "mapped": lambda f, m: lambda x: total(st.vmap(lambda x, m: snp.where(m, f(x), 0.0))(x, m)),
    "in steps": in_steps,
    "step by step": lambda f, m: lambda x: total(snp.where(m, st.lax.map(f, x), 0.0)),
    "in branches": in_branches,
    "around branches": around_branches,
    "rows": lambda f, m: lambda x: total(snp.where(m, snp.sum(f(x)[:, None], 1), 0.0)),
    "first": lambda f, m: lambda x: total(f(snp.where(m, x, 0.0))),
    "first, another": lambda f, m: lambda x: total(f(snp.where(m, x, 1.0))),
}
ALONE = {"first", "first, another"}
"""Forms that give the chain a constant where the mask does not hold; infinite values are right."""

chains = hs.lists(hs.sampled_from(sorted(LINKS)), min_size=1, max_size=4)
numbers = hs.sampled_from([0.0, 1.0, -1.0, 0.25, 0.5, 0.7, 2.0, -3.0, np.inf, np.nan])
four = lambda kind: hs.lists(kind, min_size=4, max_size=4).map(np.array)


def chain(names):
    def f(x):
        for name in names:
            x = LINKS[name](x)
        return x

    return f


NOT_CARRIED = {"called", "again"}
"""Functions into which a tangent of ``linearize`` is not carried with its mask."""


def check(names, x, mask, form, compiled):
    f = chain(names)
    x = snp.array(x)
    slope = st.vmap(st.grad(f))(x)
    second = st.vmap(st.grad(st.grad(f)))(x)
    # Only elements with derivatives can be taken.
    mask = mask & np.isfinite(slope) & np.isfinite(second) & np.isfinite(f(x))
    wanted = np.where(mask, WEIGHTS * slope, 0.0)
    curved = np.where(mask, WEIGHTS * second, 0.0)
    g = FORMS[form](f, mask)
    done = st.jit if compiled else lambda f: f
    # Terms of second derivatives cancel, of which some are 60**2 times as large as the sum.
    close = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-8)
    close(done(st.grad(g))(x), wanted)
    close(done(st.grad(lambda x: snp.sum(st.grad(g)(x))))(x), curved)
    close(done(lambda x: st.jvp(st.grad(g), (x,), (np.ones(4),))[1])(x), curved)
    forward = [done(lambda x, t: st.jvp(g, (x,), (t,))[1])(x, t) for t in np.eye(4)]
    close(forward, wanted)
    if form not in ALONE or not NOT_CARRIED.intersection(names):
        close(done(lambda x: st.linearize(g, x)[1](np.ones(4)))(x), wanted.sum())
    both = done(st.grad(lambda x: st.jvp(g, (x,), (np.ones(4),))[1]))(x)
    close(both, curved)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
@given(names=chains, x=four(numbers), mask=four(hs.booleans()), compiled=hs.booleans())
def test_only_what_is_taken_has_a_slope(form, names, x, mask, compiled):
    with st.enable_x64():
        check(names, x, mask, form, compiled and len(names) < 3)
