"""Kernels of a compiled program: their lines, runs and sizes, and what is alive after each."""

import itertools

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla.kernels import kernels_of, limits_of, memory_over_time


def layers(w, x):
    h = x @ w
    return st.lax.scan(lambda c, _: (snp.tanh(c @ w), None), h, length=3)[0]


FIRST = layers.__code__.co_firstlineno


@pytest.fixture(scope="module")
def ran():
    w = x = snp.ones((128, 128))
    with st.config(interpret_small=False):
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
