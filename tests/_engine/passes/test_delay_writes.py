"""Loops that write arrays: their values and derivatives, and that a step copies no array."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.index.writes import WRITES
from stretto._engine.passes.delay_writes import delay_writes
from stretto._engine.passes.prepare import prepare

N = 200


def over(step, a, first=2):
    """The array after a step for each of its places, and the sum of its squares."""
    return snp.sum(lax.fori_loop(first, a.shape[0], step, a) ** 2)


def recurrence(a):
    return over(lambda i, a: a.at[i].set(snp.sin(a[i - 1]) * a[i - 2] + a[i] / 2), a)


def added(a):
    return over(lambda i, a: a.at[i].add(snp.sin(a[i - 1]), mode="clip"), a)


def chosen(a):
    return over(lambda i, a: snp.where(i % 3 > 0, a.at[i].set(snp.sin(a[i - 1])), a), a)


def chosen_by_value(a):
    def step(i, a):
        return snp.where(a[i] > 0.5, a, a.at[i].set(snp.sin(a[i - 1])).at[i - 1].add(a[i]))

    return over(step, a)


def branches(a):
    def step(i, a):
        two = lambda a: a.at[i].set(snp.sin(a[i - 1])).at[i - 2].add(a[i])
        one = lambda a: a.at[i].set(a[i] * a[i - 1])
        return lax.switch(i % 3, [two, one, lambda a: a], a)

    return over(step, a)


def slices(a):
    def step(a, i):
        return lax.dynamic_update_slice(a, snp.sin(lax.dynamic_slice(a, (i,), (2,))), (i + 2,)), a[
            0
        ]

    a, ys = lax.scan(step, a, snp.arange(a.shape[0]))
    return snp.sum(a**2) + snp.sum(ys)


def several(a):
    """Writes that follow one another in a step, and reads behind them."""

    def step(carry, i):
        a, s = carry
        a = a.at[i].set(snp.sin(a[i - 1]) + s)
        b = a[i] * a[(3 * i) % a.shape[0]]
        a = a.at[i - 1].add(b).at[(i * 7) % a.shape[0]].multiply(snp.cos(a[i]))
        return (a, 0.5 * s), a[i - 1] * a[i]

    (a, s), ys = lax.scan(step, (a, 0.1), snp.arange(2, a.shape[0]))
    return snp.sum(a**2) + s + snp.sum(ys)


def extrema(a):
    n = a.shape[0]
    return over(lambda i, a: a.at[i].max(snp.sin(a[i - 1])).at[i - 1].min(a[(2 * i) % n]), a)


def quotients(a):
    return over(lambda i, a: a.at[i].multiply(snp.cos(a[i - 1])).at[i - 1].divide(1.5 + a[i]), a)


def pair(a):
    def step(i, ab):
        a, b = ab
        return a.at[i].set(snp.sin(b[i - 1])), b.at[i].set(snp.cos(a[i - 1]) * b[i])

    a, b = lax.fori_loop(1, a.shape[0], step, (a, a * 0.5))
    return snp.sum(a * b)


def rows(a):
    table = a[:, None] * snp.arange(1.0, 4.0)
    return over(lambda i, a: a.at[i].set(snp.sin(a[i - 1]) * a[i]), table)


def table(a):
    def outer(i, a):
        inner = lambda j, a: a.at[i, j].set(snp.sin(a[i - 1, j]) + a[i, j - 1] * a[i - 1, j - 1])
        return lax.fori_loop(1, 4, inner, a)

    return over(outer, a[:, None] * snp.arange(0.1, 0.5, 0.1))


def buffered(a):
    def step(carry, i):
        a, s = carry
        y = a[i] * s
        return (a.at[(i + 1) % a.shape[0]].set(snp.sin(y) + a[i] / 2), snp.cos(y)), y

    (a, _), ys = lax.scan(step, (a, 1.0), snp.arange(a.shape[0]))
    return snp.sum(a) + snp.sum(ys**2)


def constant(a):
    step = lambda c, i: (snp.sin(c) * a[i] + a[(i * 3) % a.shape[0]], None)
    return lax.scan(step, 0.3, snp.arange(a.shape[0]))[0]


def called(a):
    f = st.jit(lambda a, i: a.at[i].set(snp.sin(a[i - 1]) * a[i]))
    return over(lambda i, a: f(a, i), a)


def outside(a):
    """Places out of bounds, which writes drop and reads clip."""
    step = lambda i, a: a.at[i + 3].set(snp.sin(a[i + 9])).at[i - 8].add(a[i + 1])
    return over(step, a)


def examples(a):
    starts = snp.array([1, 2, 3])
    step = lambda k: lambda i, a: a.at[(i * k) % a.shape[0]].set(snp.sin(a[i - k]))
    return snp.sum(st.vmap(lambda k: over(step(k), a))(starts))


def referenced(a):
    ref = st.new_ref(a)

    def step(i, c):
        ref[i] = snp.sin(ref[i - 1]) * ref[i]
        return c

    lax.fori_loop(1, a.shape[0], step, 0)
    return snp.sum(ref[...] ** 2)


FORMS = [
    recurrence,
    added,
    chosen,
    chosen_by_value,
    branches,
    slices,
    several,
    extrema,
    quotients,
    pair,
    rows,
    table,
    buffered,
    constant,
    called,
    outside,
    examples,
    referenced,
]
names = lambda f: f.__name__


@pytest.fixture(scope="module")
def start():
    return np.random.default_rng(0).uniform(0.1, 0.9, N)


def difference(f, x, v, step=1e-6):
    """The derivative of ``f`` along ``v``, by the values around: the error is some 1e-9 of it."""
    return (np.asarray(f(x + step * v)) - np.asarray(f(x - step * v))) / (2 * step)


@pytest.mark.parametrize("f", FORMS, ids=names)
def test_the_derivatives_are_those_of_values_computed_step_by_step(f, start):
    v = np.random.default_rng(1).normal(size=N)
    with st.config(enable_x64=True, disable_jit=True):  # in Python, one operation after the other
        want = difference(f, start, v)
        value = float(f(start))
    with st.config(enable_x64=True):
        x, dx = snp.asarray(start), snp.asarray(v)
        got, gradient = st.jit(st.value_and_grad(f))(x)
        np.testing.assert_allclose(got, value, rtol=1e-12)
        np.testing.assert_allclose(np.dot(gradient, v), want, rtol=1e-6)
        np.testing.assert_allclose(st.jit(lambda x: st.jvp(f, (x,), (dx,))[1])(x), want, rtol=1e-6)


SECOND = [recurrence, chosen_by_value, branches, several, table, examples]


@pytest.mark.parametrize("f", SECOND, ids=names)
def test_second_derivatives_and_examples_are_right(f, start):
    v = np.random.default_rng(2).normal(size=N)
    with st.config(enable_x64=True):
        gradient = st.jit(st.grad(f))
        curved = st.jit(lambda x: st.jvp(st.grad(f), (x,), (snp.asarray(v),))[1])(start)
        back = st.jit(st.grad(lambda x: snp.vdot(st.grad(f)(x), v)))(start)
        want = difference(gradient, start, v)
        np.testing.assert_allclose(curved, want, rtol=1e-5, atol=1e-6 * np.abs(want).max())
        np.testing.assert_allclose(back, curved, rtol=1e-9, atol=1e-11 * np.abs(want).max())
        stack = np.stack([start, start[::-1], start**2])
        mapped = st.jit(st.vmap(st.grad(f)))(stack)
        each = np.stack([gradient(x) for x in stack])
        np.testing.assert_allclose(mapped, each, rtol=1e-9, atol=1e-12)


def bodies(program):
    """The bodies of all loops."""
    for e in program.equations:
        if isinstance(e.primitive, Scan):
            yield e.primitive.body
        for inner in getattr(e.primitive, "programs", list)():
            yield from bodies(inner)


def made_of_arrays(body, size):
    """The operations of a body whose results are as large as the array, and are no writes."""
    return [
        e.primitive.name
        for e in body.equations
        if not isinstance(e.primitive, (*WRITES, Scan))
        and any(v.type.size >= size for v in e.outputs)
    ]


@pytest.mark.parametrize("f", [f for f in FORMS if f is not examples], ids=names)
def test_steps_make_no_array_and_copy_none_and_memory_is_linear(f):
    n = 600
    gradient = st.grad(f)
    program = prepare(st.make_graph(gradient)(snp.ones(n)))
    check(program)
    loops = list(bodies(program))
    assert len(loops) >= 2  # forward and back
    assert [name for body in loops for name in made_of_arrays(body, n)] == []
    compiled, longer = (st.jit(gradient).lower(snp.ones(m)).compile() for m in (n, 4 * n))
    memory = [c.memory_analysis().temp_size_in_bytes for c in (compiled, longer)]
    assert memory[1] < 5 * memory[0]
    text = compiled.as_text()
    inside = [part for part in text.split("\n\n") if "ENTRY" not in part]
    large = re.compile(rf"= f32\[{n}(,\d+)?\]\S* copy\(")
    assert [line for part in inside for line in part.split("\n") if large.search(line)] == []


def test_what_waits_at_first_changes_no_bit():
    """Not even the sign of a zero in the first place, nor NaN and infinities."""
    x = np.full(300, -0.0, np.float32)
    x[1:3] = np.nan, np.inf

    def run(x):
        step = lambda i, x: x.at[i].add(x[i - 1]).at[i].multiply(x[i - 2]).at[5].set(x[6])
        return lax.fori_loop(8, 20, step, x)

    got = np.asarray(st.jit(run)(x))
    assert np.signbit(got[[0, 3, 4]]).all()
    assert np.isnan(got[1])
    assert np.isinf(got[2])


def test_a_loop_is_left_alone_where_nothing_is_won():
    def small(x):
        return lax.fori_loop(1, 9, lambda i, x: x.at[i].set(snp.sin(x[i - 1])), x)

    def unread(x):
        return lax.fori_loop(1, 900, lambda i, x: x.at[i].set(2.0), x)

    def half(x):
        step = lambda i, x: lax.dynamic_update_slice(x, snp.sin(x[:500]), (i,))
        return lax.fori_loop(1, 9, step, x)

    for f, n in ((small, 10), (unread, 1000), (half, 1000)):
        program = st.make_graph(f)(snp.ones(n))
        assert delay_writes(program) is program


def test_writes_do_not_wait_where_a_turn_gives_the_array_between_them():
    def given(x):
        def step(x, i):
            y = x.at[i].set(snp.sin(x[i - 1]))
            return y.at[i - 2].set(snp.cos(x[i - 1])), y

        return lax.scan(step, x, snp.arange(3, 9))

    program = prepare(st.make_graph(given)(snp.ones(1000)))
    assert delay_writes(program) is program


def test_reads_of_other_windows_behind_a_write_are_left_as_they_are(start):
    def run(a):
        def step(i, a):
            a = a.at[i].set(snp.sin(a[i - 1]))
            return a.at[i, 2].set(a[i, 1] * a[i - 1, 2])

        return over(step, a[:, None] * snp.arange(0.1, 0.9, 0.1))

    v = np.random.default_rng(1).normal(size=N)
    with st.config(enable_x64=True):
        got = np.dot(st.jit(st.grad(run))(start), v)
        np.testing.assert_allclose(got, difference(run, start, v), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64"])
def test_other_dtypes_agree_with_the_loop_as_it_is_written(dtype, start):
    x = snp.asarray(start[:160]).astype(dtype)

    def run(x):
        step = lambda i, x: x.at[i].add(x[i - 1] * x[i - 2]).at[i - 1].set(x[i] / 2)
        return snp.sum(snp.abs(lax.fori_loop(2, 160, step, x)).astype("float32"))

    got = st.jit(st.grad(run))(x)
    with st.config(simplify=False):
        want = st.jit(st.grad(run))(x)
    # sums may be in another order: some roundings of the dtype
    eps = 1e-6 if dtype == "complex64" else float(snp.finfo(dtype).eps)
    largest = float(np.abs(np.asarray(want, np.complex64)).max())
    error = np.abs(np.asarray(got, np.complex64) - np.asarray(want, np.complex64))
    assert error.max() <= 8 * eps * largest


@pytest.mark.parametrize(
    "step",
    [
        lambda i, x: (y := x.at[i].set(snp.sin(x[i - 1]))).at[i - 2].add(y[i] * y[i - 1]),
        lambda i, x: (y := x.at[i].add(x[i - 1])).at[i - 1].max(y[i // 2 * 2] - y[i - 2]),
        lambda i, x: (
            (y := x.at[i].set(2.0).at[i - 1].multiply(x[i])).at[i + 1].set(y[i] - y[i - 1])
        ),
    ],
)
def test_reads_behind_writes_find_what_is_not_yet_written(step):
    run = lambda x: lax.fori_loop(2, x.shape[0] - 1, step, x)
    x = snp.asarray(np.random.default_rng(0).uniform(0.5, 1, 300).astype(np.float32))
    program = st.make_graph(run)(x)
    changed = delay_writes(program)
    assert changed is not program
    check(changed)
    (loop,) = [e for e in changed.equations if isinstance(e.primitive, Scan)]
    assert loop.place == program.equations[0].place
    assert not any(e.place == loop.place for e in changed.equations if e is not loop)
    (got,), (want,) = evaluate(changed, [x]), evaluate(program, [x])
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.dtype == want.dtype


@pytest.mark.parametrize(("places", "waits"), [(1, True), (2, False)])
def test_writes_that_promise_different_places_wait_where_there_is_one(places, waits):
    """What waits at first has one place for all, which changes nothing."""

    def step(i, x):
        at = i - 1 + snp.arange(places)
        return x.at[at].set(snp.sin(x[at - 1]), unique_indices=True)

    run = lambda x: lax.fori_loop(2, 290, step, x)
    for x in (snp.ones(300), snp.ones((300, 3))):
        program = st.make_graph(run)(x)
        changed = delay_writes(program)
        assert (changed is not program) is waits
        np.testing.assert_allclose(evaluate(changed, [x])[0], run(x), rtol=1e-6)


def test_turns_that_are_given_values_and_give_some():
    def step(x, at):
        i, scale = at
        return x.at[i].set(snp.sin(x[i - 1]) * scale), x[i]

    run = lambda x, places, scales: lax.scan(step, x, (places, scales))
    x = np.random.default_rng(0).uniform(0.5, 1, 300).astype(np.float32)
    args = snp.asarray(x), snp.arange(2, 290), snp.linspace(0.5, 1.5, 288)
    program = st.make_graph(run)(*args)
    changed = delay_writes(program)
    (loop,) = [e.primitive for e in changed.equations if isinstance(e.primitive, Scan)]
    assert [e.primitive.name for e in loop.body.equations].count("scatter") == 1
    for got, want in zip(evaluate(changed, args), evaluate(program, args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
