"""Formulas written by hand: their stable forms, where they are found, and where not."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.numpy import normalized

GRID = np.unique(
    np.concatenate(
        [
            s * v
            for s in (-1, 1)
            for v in (np.linspace(0, 100, 167), np.logspace(-20, 1, 80), [np.inf, 1.0])
        ]
    ).astype(np.float32)
)


def in_three(x):
    return snp.stack([x, 0.5 - x, 0.25 * x])


def by_hand(x):
    e = snp.exp(in_three(x))
    return snp.log(e / e.sum(0))


FORMULAS = {
    "log(1 + x)": (lambda x: snp.log(1 + x), np.log1p),
    "log(x + 1)": (lambda x: snp.log(x + 1), np.log1p),
    "log(1 - x)": (lambda x: snp.log(1 - x), lambda x: np.log1p(-x)),
    "log2(1 + x)": (lambda x: snp.log2(1 + x), lambda x: np.log1p(x) / np.log(2)),
    "exp(x) - 1": (lambda x: snp.exp(x) - 1, np.expm1),
    "1 - exp(x)": (lambda x: 1 - snp.exp(x), lambda x: -np.expm1(x)),
    "log(exp(x))": (lambda x: snp.log(snp.exp(x)), lambda x: x),
    "log(1 - exp(x))": (
        lambda x: snp.log(1 - snp.exp(x)),
        lambda x: np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x))),
    ),
    "log1p(-exp(x))": (
        lambda x: snp.log1p(-snp.exp(x)),
        lambda x: np.where(x > -0.7, np.log(-np.expm1(x)), np.log1p(-np.exp(x))),
    ),
    "log(1 + exp(x))": (lambda x: snp.log(1 + snp.exp(x)), lambda x: np.logaddexp(0, x)),
    "log1p(exp(x))": (lambda x: snp.log1p(snp.exp(x)), lambda x: np.logaddexp(0, x)),
    "log(sigmoid(x))": (lambda x: snp.log(nn.sigmoid(x)), lambda x: -np.logaddexp(0, -x)),
    "log(1 - sigmoid(x))": (lambda x: snp.log(1 - nn.sigmoid(x)), lambda x: -np.logaddexp(0, x)),
    "log1p(-sigmoid(x))": (lambda x: snp.log1p(-nn.sigmoid(x)), lambda x: -np.logaddexp(0, x)),
    "1 - sigmoid(x)": (lambda x: 1 - nn.sigmoid(x), lambda x: np.exp(-np.logaddexp(0, x))),
    "1 / (1 + exp(-x))": (lambda x: 1 / (1 + snp.exp(-x)), lambda x: np.exp(-np.logaddexp(0, -x))),
    "exp(x) / (1 + exp(x))": (
        lambda x: snp.exp(x) / (1 + snp.exp(x)),
        lambda x: np.exp(-np.logaddexp(0, -x)),
    ),
    "log(1 / (1 + exp(-x)))": (
        lambda x: snp.log(1 / (1 + snp.exp(-x))),
        lambda x: -np.logaddexp(0, -x),
    ),
    "1 - tanh(x)**2": (lambda x: 1 - snp.tanh(x) ** 2, lambda x: 1 / np.cosh(x) ** 2),
    "log(1 - tanh(x)**2)": (
        lambda x: snp.log(1 - snp.tanh(x) ** 2),
        lambda x: np.where(
            np.abs(x) < 1,
            np.log1p(-(np.tanh(x) ** 2)),
            2 * (np.log(2) - np.abs(x) - np.log1p(np.exp(-2 * np.abs(x)))),
        ),
    ),
    "log(softmax(x))": (
        lambda x: snp.log(nn.softmax(in_three(x), 0))[1],
        lambda x: 0.5 - x - np.logaddexp(np.logaddexp(x, 0.5 - x), 0.25 * x),
    ),
    "log(exp(x) / sum(exp(x)))": (
        lambda x: by_hand(x)[1],
        lambda x: 0.5 - x - np.logaddexp(np.logaddexp(x, 0.5 - x), 0.25 * x),
    ),
}


def exactly(name, x):
    with np.errstate(all="ignore"):
        return FORMULAS[name][1](x.astype(np.float64))


def size_of(name, want):
    """What a unit is relative to: a sure class's log softmax rounds as its probability does."""
    return np.maximum(np.abs(want), 1 if "softmax" in name or "sum" in name else 0)


def units(name, got, want, dtype=np.float32):
    """By how many units in the last place; nothing where both are NaN, infinite where one is."""
    got, want = np.asarray(got).astype(np.float64), want.astype(np.float64)
    info = snp.finfo(dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(dtype).astype(np.float64)
        off = np.abs(got - want) / np.maximum(
            size_of(name, want) * float(info.eps), float(info.tiny)
        )
    off = np.where((got == rounded) | (np.isnan(got) & np.isnan(rounded)), 0, off)
    return np.where(np.isnan(off), np.inf, off)


@pytest.mark.parametrize("name", FORMULAS)
def test_values_are_as_near_or_nearer(name):
    """A few units, which the compiler's functions are off by, or less than what is written."""
    f = FORMULAS[name][0]
    for dtype in (snp.float32, snp.bfloat16, snp.float16):
        x = snp.array(GRID).astype(dtype)
        want = exactly(name, np.asarray(x.astype(snp.float32)))
        stable = units(name, st.jit(f)(x), want, np.dtype(dtype))
        with st.config(stable_forms=False):
            written = units(name, st.jit(f)(x), want, np.dtype(dtype))
        assert np.all((stable <= 5) | (stable <= written + 2)), (dtype, stable.max())


@pytest.mark.parametrize("name", FORMULAS)
def test_slopes_are_as_near_or_nearer(name):
    f = FORMULAS[name][0]
    x = GRID[np.isfinite(GRID)]
    with st.enable_x64():
        want = np.asarray(st.vmap(st.grad(f))(snp.array(x.astype(np.float64))))
    inside = np.isfinite(want) & np.isfinite(exactly(name, x))
    x, want = x[inside], want[inside]

    def off(g):
        with np.errstate(all="ignore"):
            away = np.abs(np.asarray(g(snp.array(x))).astype(np.float64) - want)
        tiny = np.finfo(np.float32).tiny * np.maximum(np.abs(x), 1)
        bound = np.maximum(size_of(name, want), tiny) * 2.0**-23
        return np.where(np.isnan(away), np.inf, np.maximum(away - tiny, 0) / bound)

    ways = (
        st.vmap(st.grad(f)),
        st.jit(st.vmap(st.grad(f))),
        st.grad(lambda x: snp.sum(f(x))),
        st.grad(lambda x: snp.sum(st.jit(f)(x))),
        lambda x: st.jvp(f, (x,), (snp.ones_like(x),))[1],
    )
    for way in ways:
        stable = off(way)
        with st.config(stable_forms=False):
            written = off(way)
        # Conditioned by exp(x), whose argument is rounded: |x| units.
        assert np.all((stable <= 8 + np.abs(x)) | (stable <= written + 2)), stable.max()


def test_what_the_written_formulas_lose():
    f = FORMULAS["log(1 - sigmoid(x))"][0]
    assert st.jit(f)(20.0) == -20 and st.grad(f)(20.0) == -1
    assert st.value_and_grad(f)(200.0)[0] == -200
    with st.config(stable_forms=False):
        assert st.jit(f)(20.0) == -np.inf and not np.isfinite(st.grad(f)(20.0))
    assert f(20.0) == -np.inf  # at rest nothing is traced


def written_and_traced(f, *args):
    with st.config(stable_forms=False):
        written = str(st.make_graph(f)(*args))
    return written, str(st.make_graph(f)(*args))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: snp.log1p(snp.exp(-snp.abs(x))),  # guarded by hand
        lambda x: snp.log1p(snp.exp(snp.where(x > 0, -x, x))),
        lambda x: snp.log(2 + x),
        lambda x: snp.log(x - 1),
        lambda x: snp.log(st.lax.stop_gradient(nn.sigmoid(x))),
        lambda x: snp.exp(x) - 2,
        lambda x: snp.exp(x) / snp.sum(snp.exp(2 * x)),
        lambda x: snp.tanh(x) ** 2,
        nn.softplus,
        nn.functional.logsigmoid,
        normalized.log1mexp,
        normalized.log_softmax,
        lambda x: nn.gelu(x, "tanh"),
        nn.logsumexp,
        nn.mish,
    ],
)
def test_what_stays_as_written(f):
    written, traced = written_and_traced(f, snp.ones(3))
    assert traced == written


def test_complex_numbers_stay_as_written():
    for f in (lambda z: snp.log(1 + z), lambda z: snp.exp(z) - 1, lambda z: 1 - nn.sigmoid(z)):
        written, traced = written_and_traced(f, snp.ones(3, snp.complex64))
        assert traced == written


def test_a_sum_along_another_axis_is_no_softmax():
    def wrong(x):
        e = snp.exp(x)
        return snp.log(e / snp.sum(e, 1))  # divides rows by the sums of others

    x = snp.array([[0.0, 1.0], [2.0, 4.0]])
    np.testing.assert_allclose(st.jit(wrong)(x), wrong(x), rtol=1e-5)
    right = lambda x: snp.log(snp.exp(x) / snp.sum(snp.exp(x), 1)[:, None])
    assert np.isfinite(st.jit(right)(100 * x)).all()


def test_values_used_elsewhere_stay():
    def f(x):
        p = nn.sigmoid(x)
        return snp.log(p), p

    logs, p = st.jit(f)(-20.0)
    assert logs == -20 and abs(p / np.exp(-20.0) - 1) < 1e-6
    assert st.make_graph(f, simplified=True)(1.0).out_types[1].dtype == snp.float32


def test_types_are_those_written():
    for name, (f, _) in FORMULAS.items():
        for x in (1.0, snp.float32(1), snp.ones(2, snp.bfloat16), np.int32(1)):
            stable = st.eval_shape(f, x)
            with st.config(stable_forms=False):
                assert st.eval_shape(f, x) == stable, name


def test_long_chains_are_not_kept():
    def f(x):
        for _ in range(3000):
            x = 1 - (-x)
        return x

    assert st.jit(f)(1.0) == 3001
    assert st.grad(f)(1.0) == 1


def test_explain_says_so():
    inner = st.jit(lambda x: snp.log(1 + x))

    def loss(x):
        return snp.sum(snp.log(1 - nn.sigmoid(x)) + inner(x))

    for _ in range(2):  # also where inner was traced before
        report = st.explain(st.grad(loss), snp.ones(3))
        said = [form.form for form in report.stable_forms]
        assert "1 - sigmoid(x) as sigmoid(-x)" in said
        assert "log(1 + x) as log1p(x)" in said
        assert "stable_forms" in str(report) and "(loss)" in str(report)
    with st.config(stable_forms=False):
        assert not st.explain(st.grad(loss), snp.ones(3)).stable_forms


STEPS = {
    "exp": snp.exp,
    "log": snp.log,
    "log1p": snp.log1p,
    "sigmoid": nn.sigmoid,
    "tanh": snp.tanh,
    "1 - x": lambda x: 1 - x,
    "1 + x": lambda x: 1 + x,
    "x - 1": lambda x: x - 1,
    "-x": lambda x: -x,
    "x**2": lambda x: x**2,
    "1 / x": lambda x: 1 / x,
    "x / 3": lambda x: x / 3,
}


def test_random_programs_are_as_near_as_written():
    """Errors against float64 stay within what rounding each step once does to the written one."""
    rng = np.random.default_rng(7)
    changed = 0
    for _ in range(80):
        steps = [list(STEPS)[i] for i in rng.integers(len(STEPS), size=rng.integers(2, 6))]
        x = (3 * rng.normal(size=9)).astype(np.float32)

        def f(x, noise=None, steps=steps):
            for i, step in enumerate(steps):
                x = STEPS[step](x)
                x = x if noise is None else x * noise[i]
            return x

        def both(x, noise=None, f=f):
            out, pull = st.vjp(lambda x: f(x, noise), x)
            return out, pull(snp.ones_like(out))[0]

        with st.enable_x64():
            wide = snp.array(x.astype(np.float64))
            want = [np.asarray(v) for v in both(wide)]
            with st.config(stable_forms=False):
                noisy = [
                    [np.asarray(v) for v in both(wide, 1 + 2.0**-22 * rng.uniform(-1, 1, 6))]
                    for _ in range(6)
                ]
        stable = [np.asarray(v) for v in st.jit(both)(snp.array(x))]
        with st.config(stable_forms=False):
            written = [np.asarray(v) for v in st.jit(both)(snp.array(x))]
        for i, exact in enumerate(want):
            with np.errstate(all="ignore"):
                spread = np.max([np.abs(v[i] - exact) for v in noisy], 0)
                off, before = np.abs(stable[i] - exact), np.abs(written[i] - exact)
                known = np.isfinite(exact) & np.isfinite(before) & (np.abs(exact) < 1e30)
                bound = 2 * before + 4 * spread + 2.0**-19 * np.abs(exact) + 1e-36
            assert np.all(off[known] <= bound[known]), (steps, x, stable, want)
            changed += np.sum(off[known] < before[known] / 2)
    assert changed > 5  # it does find some
