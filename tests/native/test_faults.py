"""The short ways when the world changes in their midst: threads, collections, signals, finalizers.

Each runs in a process of its own, since what is looked for is a crash; with the extension in C and
with its twins in Python.
"""

import os
import subprocess
import sys
import textwrap

import pytest

BEGIN = """
import gc, signal, sys, threading, time
import numpy as np
import stretto as st, stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto._engine.eager.interpreter import EAGER
"""


@pytest.fixture(params=["1", "0"], ids=["native", "twins"])
def run(request):
    def run(code):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", BEGIN + textwrap.dedent(code)],
            env={**os.environ, "STRETTO_NATIVE": request.param},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stdout

    return run


def test_another_thread_replaces_the_arrays_of_a_list(run):
    """Wrong types, too, in the midst of a call: right values for what was there, no crash."""
    out = run("""
        sys.setswitchinterval(1e-6)
        f = st.jit(lambda xs: [x @ x for x in xs])
        fresh = lambda: snp.array(np.ones((64, 64), np.float32))
        xs, stop = [fresh() for _ in range(12)], []
        def replace():
            while not stop:
                for i in range(len(xs)):
                    xs[i] = fresh()
        thread = threading.Thread(target=replace)
        thread.start()
        try:
            end, calls = time.monotonic() + 3, 0
            while time.monotonic() < end:
                for y in f(xs):
                    assert (np.asarray(y) == 64).all()
                calls += 1
        finally:
            stop.append(1)
            thread.join()
        print(calls > 10)
    """)
    assert out.split() == ["True"]


def test_another_thread_changes_the_types_of_a_list(run):
    """What is kept for later calls is of the arguments as they were when they were looked up."""
    run("""
        sys.setswitchinterval(1e-6)
        kinds = [snp.ones(2), snp.ones(2, int), snp.ones(1), snp.ones((1, 2), snp.bfloat16)]
        xs, stop = [kinds[0], kinds[0]], []
        def replace():
            while not stop:
                for x in kinds:
                    xs[:] = [x, x]
        thread = threading.Thread(target=replace)
        thread.start()
        try:
            end = time.monotonic() + 2
            while time.monotonic() < end:
                f = st.jit(lambda xs: xs[0] + xs[1])
                for _ in range(4):
                    f(xs)
                for x in kinds:
                    y = f([x, x])
                    assert y.type is x.type and (np.asarray(y, np.float32) == 2).all(), (y, x)
        finally:
            stop.append(1)
            thread.join()
    """)


def test_a_finalizer_empties_the_list_while_the_call_collects(run):
    run("""
        f = st.jit(lambda xs: [x @ x for x in xs])
        class Cycle:
            def __init__(self, xs):
                self.me, self.xs = self, xs
            def __del__(self):
                self.xs.clear()
                gc.collect()
        fresh = lambda: [snp.array(np.ones((64, 64), np.float32)) for _ in range(12)]
        for _ in range(3):
            f(fresh())
        gc.set_threshold(1, 1, 1)
        for _ in range(300):
            xs = fresh()
            Cycle(xs)
            args = (xs,)
            if len(xs) == 12:
                ys = f(*args)
                assert len(ys) in (0, 12) and all((np.asarray(y) == 64).all() for y in ys)
    """)


def test_caches_are_cleared_by_a_finalizer_in_the_midst(run):
    run("""
        from stretto._engine.eager.table import forget
        f = st.jit(lambda x, y: (x @ y, x + 1))
        class Clears:
            def __init__(self):
                self.me = self
            def __del__(self):
                st.clear_caches()
                forget()
        gc.set_threshold(1, 1, 1)
        x = snp.ones((2, 2))
        for i in range(300):
            Clears()
            assert float((x + i)[0, 0]) == 1 + i
            assert float((2 - x)[0, 0]) == 1
            assert float(snp.sin(x * 0)[0, 0]) == 0
            assert float(f(x, x)[0][0, 0]) == 2
    """)


FINALIZERS = """
    x, f, ran = snp.ones(3), st.jit(lambda x: x * 2 + 1), []
    class Computes:
        def __init__(self):
            self.me = self
        def __del__(self):
            fresh = snp.ones(1 + len(ran) % 97)  # of a type that was not met
            ran.append(float((fresh + 1.0)[0] + snp.sin(fresh * 0)[0] + f(x)[0]
                             + snp.array([1e9]).astype(int)[0] * 0))
    errors = []
    sys.unraisablehook = errors.append
    gc.set_threshold(1, 1, 1)
    big = snp.ones(20000)
    for _ in range(50):
        for function in (snp.exp, snp.sort, snp.cumsum, snp.sum, snp.linalg.norm, snp.floor,
                         lambda x: x + 1.0, lambda x: 1.0 - x, lambda x: x @ x, f,
                         lambda x: x.astype(int), lambda x: snp.round(x, 2), snp.mean, snp.diff,
                         lambda x: snp.where(x > 0, x, 0), lambda x: x.at[0].set(1.0)):
            Computes()
            function(x)
        Computes()
        snp.interp(x, x, x)
    assert not errors, [str(e.exc_value) for e in errors]
    assert len(ran) > 100 and set(ran) == {5.0}
"""


def test_finalizers_compute_in_the_midst_of_a_rule(run):
    run(FINALIZERS)


def test_a_signal_handler_computes_in_the_midst_of_a_rule(run):
    out = run("""
        x, ran = snp.ones(1000), []
        f = st.jit(lambda x: x * 2 + 1)
        g = st.grad(lambda x: (x * x).sum())
        f(x), g(x)
        def handler(*_):
            ran.append(float((x + 1.0)[0] + snp.sin(x * 0)[0] + f(x)[0] + g(x)[0]))
            signal.setitimer(signal.ITIMER_REAL, 2e-4)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 2e-4)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert float(snp.sort(x)[0]) == 1 and float((2 - x)[0]) == 1
            assert float(f(x)[0]) == 3 and float(g(x)[0]) == 2
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # the handler sets the timer anew
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert state.interpreter is EAGER
        print(len(ran) > 50, set(ran))
    """)
    assert out.split() == ["True", "{7.0}"]


KINDS = {
    "an operator that waits": """
        def call(i):
            return slow(x) + 1.0
    """,
    "an operation that waits": """
        def call(i):
            return snp.sin(slow(x))
    """,
    "a jitted call that waits": """
        g = st.jit(lambda y: y * 2 + 1)  # small, and interpreted: it needs the elements
        def call(i):
            return g(slow(x)[0, 0])
    """,
    "waiting for a tree": """
        def call(i):
            return st.block_until_ready({"b": slow(x), "a": [slow(x)]})
    """,
    "a jitted call with fresh arrays": """
        h = st.jit(lambda xs: [a @ a for a in xs])
        def call(i):
            return h([snp.array(np.full((60, 60), float(k))) for k in range(40)])
    """,
}


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "ValueError", "RuntimeError", "TypeError"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_signal_handler_raises_is_not_lost(run, kind, error):
    setting = """
        x = snp.ones((300, 300)) / 300
        @st.jit
        def slow(x):
            return st.lax.fori_loop(0, 20, lambda i, y: y @ x, x)
    """
    code = (
        textwrap.dedent(setting)
        + textwrap.dedent(KINDS[kind])
        + textwrap.dedent(f"""
        raised = lost = caught = 0
        def handler(*_):
            global raised
            raised += 1
            raise {error}("planted")
        signal.signal(signal.SIGALRM, handler)
        for _ in range(3):
            call(0)
        start = time.perf_counter()
        call(1)
        length = time.perf_counter() - start
        for i in range(25):
            before = raised
            try:
                signal.setitimer(signal.ITIMER_REAL, max(length * (i + 1) / 26, 1e-5))
                end = time.monotonic() + 5
                while raised == before and time.monotonic() < end:
                    call(i)
                lost += 1
            except {error} as problem:
                assert "planted" in str(problem), problem
                caught += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert state.interpreter is EAGER
        print(raised, caught, lost)
    """)
    )
    assert run(code).split() == ["25", "25", "0"]
