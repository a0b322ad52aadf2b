"""What compiled programs did when, and how long they take."""

import gzip
import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.xla import kernels
from stretto._engine.xla.instructions import Instruction
from stretto._engine.xla.kernels import kernels_of, limits_of, memory_over_time


def layers(w, x):
    h = x @ w
    return st.lax.scan(lambda c, _: (snp.tanh(c @ w), None), h, length=3)[0]


FIRST = layers.__code__.co_firstlineno


@pytest.fixture(scope="module")
def ran():
    w = x = snp.ones((128, 128))
    # What is kept on disk has the lines of the file that it was compiled from.
    with st.config(interpret_small=False, disk_cache=False):
        f = st.jit(layers)
        executable = f.lower(w, x).compile()._executable
        st.block_until_ready(f(w, x))
        (kernels,) = kernels_of(executable, lambda: st.block_until_ready(f(w, x)))
        return executable, kernels


def test_each_has_its_line_and_size(ran):
    _, kernels = ran
    lines = {k.line: [o for o in kernels if o.line == k.line] for k in kernels if k.file}
    assert set(lines) <= {FIRST + 1, FIRST + 2}
    assert any(k.bytes == 3 * 4 * 128 * 128 for k in lines[FIRST + 1])
    assert all(k.file == __file__ for k in kernels if k.file)


def test_steps_of_loops_are_runs_and_loops_contain_them(ran):
    _, kernels = ran
    loops = [k for k in kernels if k.contains]
    inside = [k for k in kernels if k.line == FIRST + 2 and not k.contains]
    names = {k.name: sum(o.name == k.name for o in inside) for k in inside}
    assert 3 in names.values() or not loops  # the compiler may write three steps out
    starts = [k.start for k in kernels]
    assert starts == sorted(starts)
    assert starts[0] >= 0
    flat = [k for k in kernels if not k.contains]
    for one, other in itertools.pairwise(flat):
        assert one.start + one.seconds == pytest.approx(other.start)


def test_memory_begins_with_the_arguments(ran):
    executable, kernels = ran
    timeline = memory_over_time(executable, kernels)
    assert timeline
    arguments = 2 * 4 * 128 * 128
    assert all(n >= arguments for _, n, _, _ in timeline)
    assert max(n for _, n, _, _ in timeline) < 8 * arguments


def _instruction(number, opcode, elements, *operands):
    # The shape is XLA's message: of float32 (11), with one size.
    shape = bytes([2 << 3, 11, 3 << 3, elements])
    return Instruction(
        number, f"i{number}", opcode, shape, operands, 0, True, "f.py", number, False, ""
    )


def test_results_live_until_they_are_read_last(monkeypatch):
    every = [
        _instruction(1, "parameter", 25),
        _instruction(2, "fusion", 10, 1),
        _instruction(3, "fusion", 2, 2),
        _instruction(4, "bitcast", 2, 3),
        _instruction(5, "fusion", 1, 4),
        _instruction(6, "fusion", 1, 5),
    ]
    monkeypatch.setattr(kernels, "instructions_of", lambda executable: every)
    run = [kernels.Kernel(f"i{n}", "f.py", n, float(n), 0.5, 0, False, n) for n in (2, 3, 5, 6)]
    assert memory_over_time(None, run) == [
        (2.5, 100 + 40, "f.py", 2),
        (3.5, 100 + 40 + 8, "f.py", 3),
        (5.5, 100 + 8 + 4, "f.py", 5),  # the result of 2 was read last by 3; 4 lies in that of 3
        (6.5, 100 + 4 + 4, "f.py", 6),
    ]


@pytest.mark.parametrize(
    ("opcode", "is_main", "is_loop", "bytes", "contains"),
    [
        ("fusion", True, False, 8 + 40 + 100, False),
        ("fusion", False, False, 8 + 8 + 8, False),  # a step reads a slice of what is stacked
        ("while", True, False, 8 + 40 + 100, True),
        ("call", True, False, 8 + 40 + 100, True),
        ("call", True, True, 8 + 40 + 100, False),
        ("conditional", False, False, 8 + 8 + 8, True),
    ],
)
def test_what_is_known_of_a_run(opcode, is_main, is_loop, bytes, contains):
    given = {n: _instruction(n, "parameter", size) for n, size in ((1, 10), (2, 25))}
    made = _instruction(3, opcode, 2, 1, 2, 9)._replace(is_main=is_main, is_loop=is_loop)
    for event, seconds in [({"ts": 5e5, "dur": 2e6}, 2.0), ({"ts": 5e5}, 0.0)]:
        found = kernels._kernel(made, given, event)
        assert found == kernels.Kernel("i3", "f.py", 3, 0.5, seconds, bytes, contains, 3)


def test_each_run_lasts_until_the_next_begins():
    """But those that contain others, which have their own time; the last, until the call ends."""
    run = lambda number, start, contains: kernels.Kernel(
        "", "", 0, start, 0.25, 0, contains, number
    )
    given = [run(1, 12.0, False), run(2, 13.0, True), run(3, 13.0, False), run(4, 15.5, False)]
    found = kernels._lasting(given, 10.0, 17.0)
    assert [(k.number, k.start, k.seconds) for k in found] == [
        (1, 2.0, 1.0),
        (2, 3.0, 0.25),
        (3, 3.0, 2.5),
        (4, 5.5, 1.5),
    ]
    assert kernels._lasting([], 1.0, 2.0) == []


def test_runs_are_of_the_call_in_which_they_began(monkeypatch):
    """Of the program's own instructions, in order; a loop stands before what is in it."""
    one, loop = _instruction(1, "fusion", 2), _instruction(2, "while", 2)
    run = lambda name, ts, module="ours": {
        "name": name, "ts": ts * 1e6, "dur": 1e6, "args": {"hlo_op": name, "hlo_module": module}
    }  # fmt: skip
    call = lambda ts, dur: {"name": kernels._CALL, "ts": ts * 1e6, "dur": dur * 1e6}
    events = [
        call(10, 5), call(20, 5), {"name": "other"}, run("i1", 12), run("i1", 11), run("i2", 11),
        run("i1", 13, "another"), run("i9", 13), run("i1", 17), run("i1", 25), run("i1", 20),
    ]  # fmt: skip

    def export(folder):
        with gzip.open(f"{folder}/host.trace.json.gz", "wt", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)

    monkeypatch.setattr(kernels, "instructions_of", lambda executable: [one, loop])
    session = SimpleNamespace(stop_and_export=export)
    monkeypatch.setattr(kernels.pjrt, "start_profile", lambda name: session)
    modules = SimpleNamespace(hlo_modules=lambda: [SimpleNamespace(name="ours")])
    calls = []
    found = kernels_of(SimpleNamespace(loaded=modules), lambda: calls.append(None), 2)
    assert [[(k.name, k.start, k.seconds) for k in each] for each in found] == [
        [("i2", 1.0, 1.0), ("i1", 1.0, 1.0), ("i1", 2.0, 3.0)],
        [("i1", 0.0, 5.0), ("i1", 5.0, 0.0)],
    ]
    assert len(calls) == 2


def test_limits_are_of_the_fastest_of_twelve_runs(monkeypatch):
    """Of two operations for each of 768³ products, and of three arrays of 4 Mi elements."""
    asked = []

    def times(program, rounds):
        asked.append((program.equations[0].primitive.name, rounds))
        return [3.0, 0.5 * len(asked), 4.0]

    monkeypatch.setattr(kernels, "times_of", times)
    assert limits_of.__wrapped__() == (2 * 768**3 / 0.5, 3 * 4 * 2**22)
    assert asked == [("dot_general", 12), ("add", 12)]


def test_limits_are_measured_once():
    limits = limits_of()
    assert limits.flops > 1e8
    assert limits.bytes > 1e8
    assert limits_of() is limits


def test_one_profile_at_a_time(ran, tmp_path):
    executable, _ = ran
    with st.profiler.trace(tmp_path):
        st.block_until_ready(snp.ones(2))
    assert kernels_of(executable, lambda: None, 2) == [[], []]


# How long programs take: the median of runs, on numbers made up for their inputs.


def test_the_median_after_one_run_to_warm_up(monkeypatch):
    lengths = iter([100.0, 5.0, 1.0, 3.0, 2.0, 4.0])
    clock = itertools.chain.from_iterable((7.0, 7.0 + length) for length in lengths)
    monkeypatch.setattr(kernels, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    program = st.make_graph(lambda x: x + 1)(snp.ones(3))
    assert kernels.seconds_of(program) == 3.0
    assert next(clock, None) is None


def test_more_work_takes_longer():
    def turns(n):
        f = lambda x: st.lax.fori_loop(0, n, lambda i, x: snp.sin(x), x)
        return kernels.seconds_of(st.make_graph(f)(snp.ones(1000)))

    assert 0 < turns(1) < turns(300)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int32", "bool", "uint8"])
def test_numbers_are_small_and_indices_are_in_bounds(dtype):
    type = array_type((50, 20), snp.dtype(dtype))
    x = kernels._numbers(type, np.random.default_rng(0))
    assert x.shape == type.shape and x.dtype == type.dtype
    if type.kind in ("float", "complex"):
        assert 0.05 < np.abs(x).astype(float).mean() < 0.2
    else:
        assert not x.any()


def test_programs_that_read_at_indices_and_have_no_inputs():
    read = st.make_graph(lambda x, i: (x[i], x))(snp.ones(3), 2)
    assert kernels.seconds_of(read) > 0
    assert kernels.seconds_of(st.make_graph(lambda: snp.ones(3))()) > 0
