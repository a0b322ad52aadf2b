"""What derivatives keep, and whether an advised checkpoint saves what was said."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.explain import explain

N, DEPTH = 128, 6
WS = snp.ones((DEPTH, N, N))
X = snp.ones((256, N))
ARRAY = 4 * 256 * N


def block(w, x):
    x = snp.tanh(x @ w)
    return x + snp.tanh(x @ w)


def looped(f):
    def loss(ws, x):
        for i in range(DEPTH):
            x = f(ws[i], x)
        return (x**2).sum()

    return st.grad(loss)


def scanned(f):
    body = lambda x, w: (f(w, x), None)
    return st.grad(lambda ws, x: (st.lax.scan(body, x, ws)[0] ** 2).sum())


@pytest.mark.parametrize("of", [looped, scanned])
def test_what_is_advised_saves_about_as_much(of):
    with st.config(roll_loops=False):
        plain = st.explain(of(block), WS, X)
        (advice, *_) = plain.checkpoints
        less = st.explain(of(st.checkpoint(block)), WS, X)
    assert advice.times == DEPTH
    saved = plain.memory.temporaries - less.memory.temporaries
    assert 0.6 * saved <= advice.bytes <= 1.5 * saved
    assert sum(k.bytes for k in less.kept) < sum(k.bytes for k in plain.kept) / 2


def test_by_line():
    with st.config(roll_loops=False):
        kept = st.explain(looped(block), WS, X).kept
    first = block.__code__.co_firstlineno
    lines = {k.position.rsplit(":", 1)[1]: (k.bytes, k.count) for k in kept}
    # The slope of tanh does not follow from its value, which rounds to 1; the sum is what the next
    # one takes.
    assert lines[f"{first + 1} (block)"] == (2 * DEPTH * ARRAY, 2 * DEPTH)
    assert lines[f"{first + 2} (block)"] == (2 * DEPTH * ARRAY, 2 * DEPTH)


def test_calls_members_and_gradients_inside():
    inner = st.jit(looped(block))
    with st.config(roll_loops=False):
        plain = st.explain(looped(block), WS, X).kept
        called = st.explain(lambda ws, x: inner(ws, 2 * x), WS, X).kept
        members = st.explain(st.vmap(looped(block)), snp.stack([WS] * 2), snp.stack([X] * 2)).kept
    assert sum(k.bytes for k in called) == sum(k.bytes for k in plain)
    assert sum(k.bytes for k in members) == 2 * sum(k.bytes for k in plain)


def step(c, x):
    y = snp.tanh(c * x)
    return y, snp.sin(y).sum()


def last(w, xs):
    return st.lax.scan(step, w, xs)[1].sum()


def test_loops_keep_what_each_turn_makes():
    """Two arrays in each of 50 turns; a checkpoint keeps what is carried, and those of one turn."""
    xs, array = snp.ones((50, 800)), 4 * 800
    report = st.explain(st.grad(last), snp.ones(800), xs)
    assert [(k.bytes, k.count) for k in report.kept] == [(2 * 50 * array, 2)]
    (advice,) = report.checkpoints
    assert (advice.times, advice.loop) == (50, True)
    line = f":{last.__code__.co_firstlineno + 1} (last)"
    assert report.kept[0].position == advice.position and advice.position.endswith(line)
    assert advice.bytes == 2 * 50 * array - 2 * array - 50 * array
    # Of three members, each turn keeps as much for each, and what is carried of all of them.
    total = lambda ws, xs: st.vmap(lambda w: last(w, xs))(ws).sum()
    several = st.explain(st.grad(total), snp.ones((3, 800)), xs)
    assert sum(k.bytes for k in several.kept) == 3 * 3 * 50 * array
    line = f":{total.__code__.co_firstlineno} (<lambda>)"  # which has all members in it
    (advice,) = several.checkpoints
    assert [k.position for k in several.kept] == [advice.position]
    assert advice.position.endswith(line)


def test_the_words():
    with st.config(roll_loops=False):
        text = str(st.explain(looped(block), WS, X))
    assert "st.checkpoint(block)(...)" in text
    assert "which repeats 6 times" in text
    assert "st.lax.scan(st.checkpoint(body), ...)" not in text


def test_nothing_without_a_derivative():
    report = st.explain(block, WS[0], X)
    assert report.kept == report.checkpoints == ()
    assert "kept for" not in str(report)


def test_no_advice_where_nothing_repeats():
    def loss(w: st.Array) -> st.Array:
        return (snp.tanh(X @ w) ** 2).sum()

    report = st.explain(st.grad(loss), WS[0])
    assert report.kept
    assert report.checkpoints == ()


def test_calls_behind_all_that_is_kept_do_not_count():
    def f(ws, x):
        slopes = looped(block)(ws, x)
        return slopes, block(ws[0], x), block(ws[1], x)

    with st.config(roll_loops=False):
        more = st.explain(f, WS, X).checkpoints
        plain = st.explain(looped(block), WS, X).checkpoints
    advised = lambda savings: {(s.function, s.position): s.times for s in savings}
    assert advised(more) == advised(plain) != {}


def test_a_checkpoint_saves_what_is_kept_but_for_what_it_is_given_and_one_call(monkeypatch):
    """Each call keeps four arrays, and all but the last a slice of the weights for the next.

    What goes into it is a slice of the weights, and what the call before it gave, if there was one.
    """
    of_temporaries = explain.kept_of
    monkeypatch.setattr(explain, "kept_of", lambda *args: of_temporaries(*args[:2], 1 << 60))
    with st.config(roll_loops=False):
        savings = st.explain(looped(block), WS, X).checkpoints
    (saved,) = [s.bytes for s in savings if s.function == "block"]
    weights = 4 * N * N
    before = 4 * DEPTH * ARRAY + (DEPTH - 1) * weights
    given = DEPTH * weights + (DEPTH - 1) * ARRAY
    assert saved == before - given - (4 * ARRAY + weights)


def test_what_is_cheap_to_make_of_arguments_is_not_costly_to_keep():
    def f(x):
        y = snp.tanh(x)
        return x * 2, y, snp.tanh(x + 1) * 2, y * 2

    program = st.make_graph(f)(X)
    steps, kept = [], {}
    explain._open(program, {}, {*program.outputs}, steps, kept)
    costly = explain._costly(steps, kept)
    found = [s.equation.primitive.name for s in steps if s.outputs[0] in costly]
    # The product with what is kept itself is cheap, that with what is not is costly.
    assert found == ["tanh", "mul"]
    assert len(kept) == 4


def test_checkpoints_are_advised_that_save_more_than_a_tenth(monkeypatch):
    def search(program, noted, times, found):
        found.lines["here"] = [600, 400]
        found.savings.extend([explain.Saving(str(n), "f", 2, n, False) for n in (100, 101, 300)])

    monkeypatch.setattr(explain, "_search", search)
    kept, savings = explain.kept_of(st.make_graph(lambda x: x)(X), [], 1000)
    assert [(k.bytes, k.count) for k in kept] == [(1000, 2)]
    assert [s.bytes for s in savings] == [300, 101]
    # Where half of what is kept is computed again anyway, half as much is saved.
    assert [s.bytes for s in explain.kept_of(None, [], 500)[1]] == [150, 50]
