"""What a signature keeps: what is left out, and which result gets which argument's memory."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit import entry as module
from stretto._engine.api.jit.entry import _name_of_passed, aliases_of


def entry_of(f):
    (entry,) = f._entries.values()
    return entry


@pytest.mark.parametrize(
    "f, donated, expected",
    [
        (lambda a, b, c: (a + 1, b + 1, c + 1), [0, 1, 2], {0: 0, 1: 1, 2: 2}),
        (lambda a, b, c: (a + 1, b + 1, c + 1), [2], {2: 2}),
        (lambda a, b, c: (a + b, b, c.sum()), [0, 1], {0: 0, 1: 1}),
        (lambda a, b, c: (b, a), [0, 1], {0: 1, 1: 0}),  # each to itself
        (lambda a, b, c: (a + b, a), [1, 0], {1: 0, 0: 1}),
        (lambda a, b, c: a + b, [0, 1], {0: 0}),  # one result has room for one
        (lambda a, b, c: c.sum(), [0, 2], {}),
        (lambda a, b, c: (c > 0, c * 2), [0, 2], {2: 1}),  # of another type: none
        (lambda a, b, c: (), [0], {}),
    ],
)
def test_results_in_the_memory_of_arguments(f, donated, expected):
    program = st.make_graph(f)(snp.ones(3), snp.ones(3), snp.ones((2, 2)))
    found = aliases_of(program, donated)
    assert found == expected
    assert list(found) == sorted(found) and len(set(found.values())) == len(found)


def test_what_is_not_used_is_not_passed():
    table, unused = snp.arange(3.0), snp.arange(5.0)

    def f(a, b, c):
        snp.sin(unused) * b
        return a * table, c

    jitted = st.jit(f)
    jitted(snp.ones(3), snp.ones(5), 1.0)
    entry = entry_of(jitted)
    assert entry.kept == [0, 2] and not entry.taken
    assert [c is table for c in entry.constants] == [True]
    assert entry.text().count("%arg") and "%arg3" not in entry.text()
    assert entry.text() is entry.text() and entry.prepare() is entry.prepare()


def test_all_used_is_the_plain_case():
    jitted = st.jit(lambda a, b: a + b)
    for _ in range(2):  # the second call is remembered
        np.testing.assert_array_equal(jitted(snp.ones(3), snp.ones(3)), 2)
    entry = entry_of(jitted)
    assert (entry.kept, list(entry.constants), entry.single) == (None, [], True)
    assert entry.records == 1


def test_donating_calls_do_not_go_the_short_way():
    jitted = st.jit(lambda a: a + 1, donate_argnums=0)
    jitted(snp.ones(3))
    assert not entry_of(jitted).records and entry_of(jitted).taken == {0}
    idle = st.jit(lambda a: a.sum(), donate_argnums=0)
    with pytest.warns(UserWarning, match="no result can have the memory"):
        idle(snp.ones(3))
    idle(snp.ones(3))
    assert entry_of(idle).records == 1  # nothing is taken


def long(x):
    for k in range(60):
        x = snp.sin(x) @ snp.full((3, 3), float(k))
    return x


def traced(f, *args, **options):
    return st.jit(f, **options).trace(*args)._entry


X = snp.ones((3, 3))
OPTIONS = {"xla_cpu_enable_fast_math": False}


@pytest.mark.parametrize(
    ("settings", "f", "options", "later"),
    [
        ({}, long, {}, True),
        ({}, snp.sin, {}, False),
        ({"compile_in_background": False}, long, {}, False),
        ({"tiers": True}, long, {}, False),
        ({"plan": "measure"}, long, {}, False),
        ({}, long, {"donate_argnums": 0}, False),
        ({}, long, {"compiler_options": OPTIONS}, False),
        ({}, lambda x: st.pure_callback(snp.sin, x, long(x)), {}, False),
    ],
)
def test_only_a_long_plain_program_may_be_compiled_after_the_call(settings, f, options, later):
    with st.config(**{"compile_in_background": True, "tiers": False, **settings}):
        assert traced(f, X, **options)._may_come_later() is later


def test_a_program_that_writes_a_reference_is_compiled_at_once():
    reference = st.new_ref(X)

    def f(x):
        reference[...] = long(x)
        return x

    with st.config(compile_in_background=True, tiers=False):
        jitted = st.jit(f)
        jitted(X)
        assert not entry_of(jitted)._may_come_later()


def test_how_calls_are_run_is_decided_once():
    entry = traced(snp.sin, X)
    assert (entry.decided, entry.is_compiled, entry.is_interpreted) == (False, False, False)
    with st.config(interpret_small=True):
        entry.decide()
    assert (entry.decided, entry.is_compiled, entry.is_interpreted) == (True, False, True)
    with st.config(interpret_small=False):
        entry.decide()
        assert entry.is_interpreted and entry.executable is None
        other = traced(snp.sin, X)
        other.decide()
    assert (other.decided, other.is_compiled, other.is_interpreted) == (True, True, False)
    assert other.executable is not None, "before the call, which may wait for others"
    for options in (
        {"donate_argnums": 0},
        {"compiler_options": {"xla_cpu_enable_fast_math": False}},
    ):
        with st.config(interpret_small=True):
            compiled = traced(snp.sin, X, **options)
            compiled.decide()
        assert compiled.is_compiled and not compiled.is_interpreted


@pytest.mark.parametrize(
    ("tiers", "words"),
    [(False, ["trace", "lower", "compile"]), (True, ["trace", "lower", ".*compile"])],
)
def test_what_it_took_is_logged(caplog, tiers, words):
    f = lambda x: snp.cos(x) * 3.0
    with st.config(log_compiles=True, disk_cache=False, tiers=tiers, compile_in_background=False):
        traced(f, X).prepare()
    took = ", ".join([rf"{word} \d+\.\d ms" for word in words])
    message = caplog.records[0].getMessage()
    assert re.fullmatch(rf"compiled( quickly)? function for \(x: float32\[3,3\]\): {took}", message)


@pytest.mark.parametrize("tiers", [False, True])
def test_what_is_logged_is_what_each_step_took(caplog, monkeypatch, tiers):
    entry = traced(lambda x: snp.cos(x) * 5.0, X)
    entry.seconds = 0.25
    seconds = iter(range(100, 200))
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: next(seconds)))
    with st.config(log_compiles=True, disk_cache=False, tiers=tiers, compile_in_background=False):
        entry.prepare()
    message = caplog.records[0].getMessage()
    assert "trace 250.0 ms, lower 1000.0 ms" in message and "compile 1000.0 ms" in message


def test_one_array_is_not_donated_and_read_in_one_call():
    f = st.jit(lambda a, b, c: (a + 1, b[0] + c), donate_argnums=0)
    x, y = snp.ones(2), snp.ones(2)
    for args, other in (((x, [x], y), r"b\[0\]"), ((x, [y], x), "c")):
        message = f"one array was passed as a, which is donated, and as {other}; its memory"
        with pytest.raises(ValueError, match=message):
            f(*args)
    assert not x.is_deleted()
    f(x, [y], y)
    assert x.is_deleted() and not y.is_deleted()
    last = st.jit(lambda a, b: a + b, donate_argnums=1)
    with pytest.raises(ValueError, match="passed as b, which is donated, and as a;"):
        last(y, y)


def test_a_call_that_fails_gives_the_memory_back(monkeypatch):
    f = st.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))
    f(snp.ones(2), snp.ones(2))
    x, y = snp.ones(2), snp.array([5.0, 5.0])

    def fails(buffers):
        raise RuntimeError("no memory")

    monkeypatch.setattr(entry_of(f).runner._inner, "executable", fails)
    with pytest.raises(RuntimeError, match="no memory"):
        f(x, y)
    assert x.tolist() == [1, 1] and y.tolist() == [5, 5]


def test_what_messages_call_the_values_passed():
    assert [_name_of_passed("abc", None, k) for k in range(4)] == [
        "a",
        "b",
        "c",
        "a captured array",
    ]
    assert [_name_of_passed("abc", [0, 2], k) for k in range(3)] == ["a", "c", "a captured array"]


@pytest.mark.parametrize(("length", "later"), [(5000, False), (5001, True)])
def test_a_text_of_more_than_five_thousand_characters_is_long(monkeypatch, length, later):
    entry = traced(snp.sin, X)
    text = type("Text", (), {"calls": (), "__len__": lambda self: length})()
    monkeypatch.setattr(type(entry), "_whole_text", lambda self: text)
    with st.config(compile_in_background=True, tiers=False):
        assert entry._may_come_later() is later


def test_an_entry_for_other_shardings_is_made_once():
    entry = traced(snp.sin, X)
    there = st.sharding.SingleDeviceSharding(st.devices()[0])
    assert entry.with_shardings(()) is entry
    other = entry.with_shardings((there,))
    assert other is not entry and other.ins == (there,) and other.program is entry.program
    assert entry.with_shardings([there]) is other is other.with_shardings((there,))


@pytest.mark.devices
def test_what_is_not_used_is_not_passed_on_another_device_either():
    table, x, y = snp.arange(3.0), snp.ones(3), snp.ones(5)
    there = st.sharding.SingleDeviceSharding(st.devices()[3])
    f = st.jit(lambda a, b, c: (a * table, c + 1))
    asked = st.jit(lambda a, b: a + 1, out_shardings=there)
    for _ in range(2):
        with st.default_device(st.devices()[3]):
            first, second = f(x, y, 1.0)
            assert asked(x, y).tolist() == [2, 2, 2]
        assert first.tolist() == [0, 1, 2] and float(second) == 2
        assert first.sharding == second.sharding == there
    entry, of_asked = entry_of(f), entry_of(asked)
    assert [*entry._on] == [(there,) * 3] and entry.executable is None
    assert not of_asked._on and of_asked.executable is not None


@pytest.mark.devices
def test_a_result_with_the_memory_of_a_donated_argument_lies_where_that_does():
    mesh = st.make_mesh((8,), ("d",))
    apart, whole = [st.sharding.NamedSharding(mesh, st.P(*axes)) for axes in (("d",), ())]
    x, y = st.device_put(snp.arange(8.0), apart), st.device_put(snp.ones(8), whole)
    f = lambda x, y: y + x.sum()
    assert st.jit(f)(x, y).sharding.is_equivalent_to(whole, 1)
    out = st.jit(f, donate_argnums=0)(x, y)
    assert out.sharding.is_equivalent_to(apart, 1) and out.tolist() == [29.0] * 8
