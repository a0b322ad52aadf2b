"""How long programs take: the median of runs, on numbers made up for their inputs."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.xla import timing


def test_the_median_after_one_run_to_warm_up(monkeypatch):
    lengths = iter([100.0, 5.0, 1.0, 3.0, 2.0, 4.0])
    clock = itertools.chain.from_iterable((0.0, length) for length in lengths)
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    program = st.make_graph(lambda x: x + 1)(snp.ones(3))
    assert timing.seconds_of(program) == 3.0
    assert next(clock, None) is None


def test_more_work_takes_longer():
    def turns(n):
        f = lambda x: st.lax.fori_loop(0, n, lambda i, x: snp.sin(x), x)
        return timing.seconds_of(st.make_graph(f)(snp.ones(1000)))

    assert 0 < turns(1) < turns(300)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64", "int32", "bool", "uint8"])
def test_numbers_are_small_and_indices_are_in_bounds(dtype):
    type = array_type((50, 20), snp.dtype(dtype))
    x = timing._numbers(type, np.random.default_rng(0))
    assert x.shape == type.shape and x.dtype == type.dtype
    if type.kind in ("float", "complex"):
        assert 0.05 < np.abs(x).astype(float).mean() < 0.2
    else:
        assert not x.any()


def test_programs_that_read_at_indices_and_have_no_inputs():
    read = st.make_graph(lambda x, i: (x[i], x))(snp.ones(3), 2)
    assert timing.seconds_of(read) > 0
    assert timing.seconds_of(st.make_graph(lambda: snp.ones(3))()) > 0
