"""Forked children: without XLA's threads, but never waiting for them."""

import concurrent.futures
import functools
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.errors import ForkedProcessError
from stretto._engine.core.threads import in_turn, once
from stretto._engine.xla import clients
from tests.children import in_a_child

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
]

large = st.jit(lambda x: snp.sort(snp.sin(x)) * 2)
small = st.jit(lambda x: 2 * x + 1)
X = snp.arange(2000.0)
WAY_OUT = r"multiprocessing\.get_context\('spawn'\) or 'forkserver'"


@pytest.fixture(autouse=True)
def used():
    """The parent has used XLA, and its results are as before after each child."""
    want = np.asarray(large(X))
    with st.config(interpret_small=True):
        small(X[:3])
        small(X[:3])
        yield
    np.testing.assert_array_equal(large(X), want)
    np.testing.assert_array_equal(st.jit(lambda x: snp.sort(x) + 1)(X), np.arange(2000) + 1)


NEEDS_XLA = {
    "a function compiled before": lambda: large(X),
    "one that is compiled now": lambda: st.jit(lambda x: snp.sort(x) + 2)(X),
    "compile": lambda: st.jit(lambda x: snp.sort(x) + 2).lower(X).compile(),
    "a callback": lambda: st.jit(lambda x: st.pure_callback(lambda a: a, x, x))(X),
    "a donation": lambda: st.jit(snp.sort, donate_argnums=0)(X + 0),
    "a profile": lambda: st.profiler.start_trace("/nowhere"),
}


@pytest.mark.parametrize("name", NEEDS_XLA)
def test_what_needs_the_runtime_is_refused(name):
    error = in_a_child(NEEDS_XLA[name])
    assert isinstance(error, ForkedProcessError)
    with pytest.raises(ForkedProcessError, match=WAY_OUT):
        raise error


NUMPY_ALONE = {
    "operators": lambda: np.asarray(X[:5] * 2 + 1),
    "large arrays": lambda: np.asarray(snp.sort(-snp.ones((500, 500)) @ snp.ones((500, 500)))),
    "a small jitted function": lambda: np.asarray(small(X[:3])),
    "a new one": lambda: np.asarray(st.jit(lambda x: x - 1)(X[:3])),
    "a loop": lambda: np.asarray(st.lax.fori_loop(0, 5, lambda i, c: snp.sin(c), X)),
    "grad": lambda: float(st.grad(lambda x: (x * x).sum())(X[:3])[1]),
    "vmap": lambda: np.asarray(st.vmap(lambda x: 2.0 * x)(X[:3])),
    "random numbers": lambda: np.asarray(st.random.bits(st.random.PRNGKey(3), (4,))),
    "tracing": lambda: str(st.make_graph(snp.sin)(X)),
    "lowering": lambda: large.lower(X).as_text(),
    "reading a result": lambda: np.asarray(ready()),
    "waiting for one that is there": lambda: float(st.block_until_ready(ready())[1]),
    "waiting for several": lambda: len(st.block_until_ready([ready(), ready()])),
    "effects_barrier": st.debug.effects_barrier,
}


@functools.cache
def ready():
    """A result of XLA, as yet on the device alone."""
    return large(X).block_until_ready()


@pytest.mark.parametrize("name", NUMPY_ALONE)
def test_what_runs_in_numpy_goes_on(name):
    ready()
    work = NUMPY_ALONE[name]
    got, want = in_a_child(work), work()
    if isinstance(want, np.ndarray):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    else:
        assert got == want


def test_a_result_that_is_not_there_yet():
    """Nobody will compute it in the child."""
    zeros = snp.zeros((600, 600))
    slow = st.jit(lambda x: st.lax.fori_loop(0, 60, lambda i, c: c @ c, x))
    slow(zeros).block_until_ready()
    for read in (lambda y: float(y[0, 0]), lambda y: y.block_until_ready() and None):
        y = slow(zeros)
        late = not y.is_ready()
        error = in_a_child(lambda y=y, read=read: read(y))
        assert late, "it was computed at once: make it slower"
        assert isinstance(error, ForkedProcessError)
        assert float(y[0, 0]) == 0


def test_a_child_of_a_child():
    def child():
        return in_a_child(lambda: large(X)), in_a_child(lambda: np.asarray(small(X[:3])))

    error, result = in_a_child(child)
    assert isinstance(error, ForkedProcessError)
    assert result.tolist() == [1, 3, 5]


def test_fork_of_multiprocessing():
    context = multiprocessing.get_context("fork")
    with context.Pool(1) as pool:
        assert pool.apply_async(_halves, (4,)).get(60) == [0, 0.5, 1, 1.5]
        with pytest.raises(ForkedProcessError, match=WAY_OUT):
            pool.apply_async(_sorted, (4,)).get(60)


def test_a_pool_of_processes():
    context = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(_halves, 4).result(60) == [0, 0.5, 1, 1.5]
        with pytest.raises(ForkedProcessError, match=WAY_OUT):
            pool.submit(_sorted, 4).result(60)


def _halves(n):
    return (snp.arange(n) / 2).tolist()


def _sorted(n):
    return large(snp.arange(float(n))).tolist()


def test_the_way_out_works():
    script = (
        "import multiprocessing\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from tests._engine.xla.test_forked import _sorted\n"
        "if __name__ == '__main__':\n"
        "    _sorted(4)\n"
        "    context = multiprocessing.get_context('spawn')\n"
        "    with ProcessPoolExecutor(1, mp_context=context) as pool:\n"
        "        print(len(pool.submit(_sorted, 4).result(60)))\n"
    )
    assert _run(script) == "4\n"


def _run(script):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fork_before_the_runtime_has_started():
    """Parent and child each have their own."""
    script = (
        "import os, stretto as st, stretto.numpy as snp\n"
        "f = st.jit(lambda x: snp.sort(snp.sin(x)))\n"
        "pid = os.fork()\n"
        "found = float(f(snp.arange(3.0))[2] > 0.9)\n"
        "pid and print('child', os.waitpid(pid, 0)[1])\n"  # so that both do not print at once
        "print(found, flush=True)\n"
    )
    assert sorted(_run(script).split("\n")) == ["", "1.0", "1.0", "child 0"]


def test_a_child_that_ends_as_any_program():
    """What is taken down there is not waited for."""
    script = (
        "import os, sys, stretto as st, stretto.numpy as snp\n"
        "x = st.jit(lambda x: snp.sort(snp.sin(x)))(snp.arange(3.0))\n"
        "st.jit(lambda x: st.pure_callback(lambda a: a, x, x))(x)\n"
        "pid = os.fork()\n"
        "pid or sys.exit(3)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    assert _run(script) == "3\n"


def test_while_the_runtime_is_being_made(monkeypatch):
    monkeypatch.setattr(clients, "_runtime", None)
    monkeypatch.setattr(clients, "_starting", True)
    assert isinstance(in_a_child(clients.runtime), ForkedProcessError)


def test_what_another_thread_was_in_the_midst_of():
    """It compiles, traces and holds locks; the child waits for none of it."""
    holding, done = threading.Event(), threading.Event()
    tracing, traced = threading.Event(), threading.Event()

    @st.jit
    def slow(x):
        if threading.current_thread() is not threading.main_thread():
            tracing.set()
            traced.wait(60)
        return x + 1

    entry = small.trace(X[:3])._entry
    table, making = {}, {}

    def hold():
        def make():
            with clients._lock:
                holding.set()
                done.wait(60)
                return "made"

        in_turn(entry._turn, lambda: once(table, making, "text", make))

    threads = [threading.Thread(target=hold), threading.Thread(target=lambda: slow(X[:3]))]
    for thread in threads:
        thread.start()
    holding.wait(60)
    tracing.wait(60)

    def child():
        assert slow(X[:3]).tolist() == [1, 2, 3]
        assert small(X[:3]).tolist() == [1, 3, 5]
        entry.decide()
        assert once(table, making, "text", lambda: "made anew") == "made anew"
        return type(_error_of(lambda: large(X)))

    try:
        assert in_a_child(child) is ForkedProcessError
    finally:
        done.set()
        traced.set()
        for thread in threads:
            thread.join()


def _error_of(work):
    try:
        work()
    except Exception as error:
        return error
    return None
