"""jit in several threads: one trace, one compilation, and nobody waits for ever."""

import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import cache, pjrt


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self, fun):
        self.fun, self.calls = fun, 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.fun(*args, **kwargs)


def in_threads(*works):
    results = [None] * len(works)

    def run(n):
        results[n] = works[n]()

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(works))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not [t for t in threads if t.is_alive()], "threads wait for each other"
    return results


@pytest.fixture
def compiled(monkeypatch):
    """The texts that are compiled."""
    texts = []

    def compile_text(text, *rest):
        texts.append(text)
        return pjrt.compile_text(text, *rest)

    monkeypatch.setattr(cache, "_load_or_compile", compile_text)
    return texts


def test_many_threads_trace_and_compile_once(compiled):
    started = threading.Barrier(8)

    def fun(x):
        for _ in range(200):
            x = snp.sin(x) * 1.01
        return x

    counted = Counted(fun)
    f = st.jit(counted)

    def work():
        started.wait()
        return float(f(snp.float32(1.0)))

    results = in_threads(*[work] * 8)
    assert counted.calls == 1 and len(compiled) == 1
    assert len(set(results)) == 1 and None not in results


def test_many_functions_in_many_threads(compiled):
    start = threading.Barrier(6)
    leaves = [Counted(lambda x, n=n: x * n) for n in range(4)]
    jitted = [st.jit(leaf) for leaf in leaves]
    whole = st.jit(Counted(lambda x: sum(f(x) for f in jitted)))

    def work(n):
        start.wait()
        order = jitted[n % 4 :] + jitted[: n % 4]
        return float(whole(1.0)), [float(f(2.0)) for f in order]

    results = in_threads(*[lambda n=n: work(n) for n in range(6)])
    assert {total for total, _ in results} == {6.0}
    assert all(sorted(values) == [0, 2, 4, 6] for _, values in results)
    assert [leaf.calls for leaf in leaves] == [1] * 4 and whole._fun.calls == 1
    assert len(compiled) == len(set(compiled)) == 5


def test_functions_that_call_each_other_in_two_threads():
    """Each thread traces one of them and needs the other's: neither waits for ever."""
    both = threading.Barrier(2, timeout=30)
    mine = threading.local()

    def body(x, other):
        if getattr(mine, "depth", 0):
            return x * 2
        mine.depth = 1
        both.wait()
        return other(x) + 1

    one = st.jit(lambda x: body(x, two))
    two = st.jit(lambda x: body(x, one))
    results = in_threads(lambda: float(one(1.0)), lambda: float(two(1.0)))
    assert set(results) <= {2.0, 3.0, 4.0}  # by who was first


def test_threads_have_their_own_transformations():
    def work(n):
        return [float(st.jit(st.grad(lambda x: x**n))(1.5)) for _ in range(3)]

    results = in_threads(*[lambda n=n: work(n) for n in range(1, 5)])
    for n, values in enumerate(results, 1):
        np.testing.assert_allclose(values, n * 1.5 ** (n - 1), rtol=1e-6)
