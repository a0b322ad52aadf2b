"""Compiling beside the calls, and work in the background."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit import entry
from stretto._engine.core.config import config
from stretto._engine.core.errors import DonatedArrayError, ForkedProcessError
from stretto._engine.xla import background, cache
from stretto._engine.xla.array import Absent
from stretto._engine.xla.background import in_background
from tests.children import in_a_child


def test_in_order_on_another_thread():
    done, end = [], threading.Event()
    for i in range(5):
        in_background(lambda i=i: done.append((i, threading.get_ident())))
    in_background(end.set)
    assert end.wait(10)
    assert [i for i, _ in done] == [0, 1, 2, 3, 4]
    assert threading.get_ident() not in {thread for _, thread in done}


def test_under_the_settings_of_the_caller():
    seen, end = [], threading.Event()
    with st.config(disk_cache=False):
        in_background(lambda: (seen.append(config.disk_cache), end.set()))
    assert end.wait(10)
    assert seen == [False]


def test_it_begins_again_after_it_ended():
    for _ in range(3):
        end = threading.Event()
        in_background(end.set)
        assert end.wait(10)
        for thread in threading.enumerate():
            if thread.name == "stretto-background":
                thread.join(10)


def test_an_error_does_not_end_it(monkeypatch):
    caught, end = [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", caught.append)

    def fail():
        raise ValueError("no")

    in_background(fail)
    in_background(end.set)
    assert end.wait(10)
    assert [str(c.exc_value) for c in caught] == ["no"]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout.split()


def test_a_process_that_ends_drops_what_has_not_begun():
    code = """
import threading, time
from stretto._engine.xla.background import in_background
begun = threading.Event()
in_background(lambda: (begun.set(), time.sleep(0.5), print("first")))
in_background(lambda: print("second"))
begun.wait()
"""
    assert run(code) == ["first"]


def test_a_forked_child_starts_its_own():
    code = """
import os, threading, time
from stretto._engine.xla.background import in_background
begun = threading.Event()
in_background(lambda: (begun.set(), time.sleep(0.5)))
in_background(lambda: print("parent", flush=True))
begun.wait()
if os.fork() == 0:
    end = threading.Event()
    in_background(lambda: (print("child", flush=True), end.set()))
    end.wait(10)
    os._exit(0)
os.wait()
time.sleep(1)
"""
    assert sorted(run(code)) == ["child", "parent"]


# First calls that return before their programs are compiled, with the compiler held by a gate.


X = np.arange(2000.0, dtype=np.float32)


class Gate:
    """Lets the compiler work, once it is open; counts who came."""

    def __init__(self):
        self.opened, self.came, self.threads = threading.Event(), threading.Semaphore(0), []

    def pass_through(self, compiled):
        def wait(*args):
            self.threads.append(threading.current_thread())
            self.came.release()
            assert self.opened.wait(60)
            return compiled(*args)

        return wait

    def open(self):
        self.opened.set()


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Programs of any length come later, by as many threads as a test may want."""
    monkeypatch.setattr(entry, "_LONG", 0)
    monkeypatch.setattr(background, "cores", lambda: 8)
    with st.config(interpret_small=False, disk_cache=False):
        yield
    background.wait_for_all()


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr(cache, "compile_cached", gate.pass_through(cache.compile_cached))
    yield gate
    gate.open()


def is_pending(x):
    return isinstance(x._buffer, Absent) and not x.is_deleted()


def test_the_call_returns_and_whoever_reads_waits(gate):
    double = st.jit(lambda x: {"twice": 2 * x, "sum": x.sum()})
    out = double(X)
    assert is_pending(out["twice"]) and is_pending(out["sum"])
    assert out["twice"].shape == (2000,) and out["sum"].dtype == np.float32
    assert not out["twice"].is_ready()
    threading.Timer(0.1, gate.open).start()
    np.testing.assert_array_equal(out["twice"], 2 * X)
    assert out["twice"].is_ready()
    assert not is_pending(out["twice"])
    assert float(out["sum"]) == X.sum()
    assert gate.threads[0].name == "stretto-first-call"


def test_other_programs_are_compiled_meanwhile(gate):
    first, second = st.jit(lambda x: x + 1), st.jit(lambda x: x * 3)
    y = first(X)
    z = second(y)  # traced and begun, though y is not there
    assert gate.came.acquire(timeout=60) and gate.came.acquire(timeout=60)
    assert is_pending(y) and is_pending(z)
    gate.open()
    np.testing.assert_array_equal(z, 3 * (X + 1))


READ = {
    "numpy": np.asarray,
    "an operator": lambda x: np.asarray(x + 0),
    "a slice": lambda x: np.asarray(x[:]),
    "another jitted function, compiled before": lambda x: np.asarray(same(x)),
    "pickle": lambda x: np.asarray(pickle.loads(pickle.dumps(x))),
    "copy": lambda x: np.asarray(copy.copy(x)),
    "deepcopy": lambda x: np.asarray(copy.deepcopy([x])[0]),
    "dlpack": np.from_dlpack,
    "tolist": lambda x: np.array(x.tolist(), np.float32),
    "repr": lambda x: repr(x) and np.asarray(x),
    "block_until_ready": lambda x: np.asarray(x.block_until_ready()),
    "a tree": lambda x: np.asarray(st.block_until_ready({"a": [x, x]})["a"][1]),
    "a donation": lambda x: np.asarray(st.jit(lambda x: x * 1, donate_argnums=0)(x)),
    "grad": lambda x: np.asarray(st.grad(lambda y: (y * y).sum() / 2)(x)),
    "device_put": lambda x: np.asarray(st.device_put(x, st.devices()[0])),
    "vmap": lambda x: np.asarray(st.vmap(lambda a: a * 1.0)(x)),
}

same = st.jit(lambda x: x * 1.0)


@pytest.mark.parametrize("name", READ)
def test_readers_wait(name, monkeypatch):
    for _ in range(3):  # until calls take the fast path
        np.asarray(same(X))
        background.wait_for_all()
    gate = Gate()
    monkeypatch.setattr(cache, "compile_cached", gate.pass_through(cache.compile_cached))
    plus = st.jit(lambda x: x + 1)
    y = plus(X)
    assert is_pending(y)
    threading.Timer(0.05, gate.open).start()
    np.testing.assert_array_equal(READ[name](y), X + 1)


def test_the_fast_path_takes_them(gate):
    gate.open()
    for _ in range(3):
        np.asarray(same(X))
    gate.opened.clear()
    y = st.jit(lambda x: x - 1)(X)
    threading.Timer(0.05, gate.open).start()
    np.testing.assert_array_equal(same(same(y)), X - 1)


def test_what_has_arrived_keeps_nothing_else(gate):
    pair = st.jit(lambda x: (x + 1, x + 2))
    one, other = pair(X)
    stands = one._buffer
    gate.open()
    background.wait_for_all()
    assert stands._call is None
    assert one._buffer is stands  # until it is read
    np.testing.assert_array_equal(one, X + 1)
    assert one._buffer is stands._buffer
    np.testing.assert_array_equal(other, X + 2)


# Errors


def failing(*args):
    raise RuntimeError("the compiler failed")


def test_an_error_is_raised_where_a_result_is_read(monkeypatch):
    real = cache.compile_cached
    monkeypatch.setattr(cache, "compile_cached", failing)
    plus = st.jit(lambda x: x + 1)
    y = plus(X)
    background.wait_for_all()
    assert y.is_ready()  # there is nothing to wait for
    with pytest.raises(RuntimeError, match="the compiler failed") as caught:
        np.asarray(y)
    assert "test_background.py" in caught.value.__notes__[0]
    monkeypatch.setattr(cache, "compile_cached", real)
    with pytest.raises(RuntimeError, match="the compiler failed"):  # of what it depends on
        np.asarray(st.jit(lambda y: y * 2)(y))
    with pytest.raises(RuntimeError, match="the compiler failed"):
        st.block_until_ready([y])
    np.testing.assert_array_equal(plus(X), X + 1)  # it is compiled anew


def test_a_call_that_was_begun_passes_an_error_on(gate, monkeypatch):
    real = cache.compile_cached
    monkeypatch.setattr(cache, "compile_cached", gate.pass_through(failing))
    y = st.jit(lambda x: x + 1)(X)
    assert gate.came.acquire(timeout=60)
    monkeypatch.setattr(cache, "compile_cached", real)
    z = st.jit(lambda y: y * 2)(y)
    assert is_pending(z)
    gate.open()
    with pytest.raises(RuntimeError, match="the compiler failed") as caught:
        z.block_until_ready()
    assert len(caught.value.__notes__) == 1


# Memory that is taken


def test_a_donation_waits_for_those_that_read_the_memory(gate):
    take = st.jit(lambda x: x * 0, donate_argnums=0)
    gate.open()
    take(snp.array(X) + 0)
    x = st.block_until_ready(st.jit(lambda: snp.arange(2000.0) + 0, inline=True)())
    gate.opened.clear()
    y = st.jit(lambda x: x + 1)(x)
    assert is_pending(y)
    threading.Timer(0.1, gate.open).start()
    zeros = take(x)
    assert y._buffer._call is None  # it was run before
    np.testing.assert_array_equal(y, X + 1)
    np.testing.assert_array_equal(zeros, 0 * X)
    with pytest.raises(DonatedArrayError):
        np.asarray(x)


def test_an_argument_may_be_deleted(gate):
    x = snp.array(X) + 0
    y = st.jit(lambda x: x + 1)(x)
    x.delete()
    gate.open()
    np.testing.assert_array_equal(y, X + 1)


def test_a_result_may_be_deleted(gate):
    y, z = st.jit(lambda x: (x + 1, x + 2))(X)
    y.delete()
    gate.open()
    np.testing.assert_array_equal(z, X + 2)
    with pytest.raises(DonatedArrayError, match="deleted"):
        np.asarray(y)


def test_an_array_of_numpy_may_be_written_to(gate):
    x = X.copy()
    y = st.jit(lambda x: x + 1)(x)
    x[:] = 0
    gate.open()
    np.testing.assert_array_equal(y, X + 1)


# Who waits in the call


def with_callback(x):
    return st.pure_callback(lambda a: np.asarray(a) + 1, x, x)


NOT_LATER = {
    "callbacks": lambda: st.jit(with_callback)(X),
    "donated arguments": lambda: st.jit(lambda x: x + 1, donate_argnums=0)(snp.array(X)),
    "options": lambda: st.jit(
        lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": False}
    )(X),
    "ahead of time": lambda: st.jit(lambda x: x + 1).lower(X).compile()(X),
}


@pytest.mark.parametrize("name", NOT_LATER)
def test_some_wait_in_the_call(name):
    y = NOT_LATER[name]()
    assert not is_pending(y)
    np.testing.assert_array_equal(y, X + 1)


SETTINGS = {"compile_in_background": False, "tiers": True, "plan": "measure"}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_under_which_calls_wait(name):
    with st.config(**{name: SETTINGS[name]}):
        y = st.jit(lambda x: x + 1)(X)
    assert not is_pending(y)
    np.testing.assert_array_equal(y, X + 1)


def test_short_programs_wait(monkeypatch):
    monkeypatch.setattr(entry, "_LONG", 5000)
    assert not is_pending(st.jit(lambda x: x + 1)(X))


def test_a_long_program_by_its_text(monkeypatch):
    monkeypatch.setattr(entry, "_LONG", 5000)

    def long(x):
        for i in range(60):
            x = snp.sin(x) * (i + 1.5) + snp.flip(x * i)
        return x

    with st.config(roll_loops=False):
        y = st.jit(long)(X)
    assert is_pending(y) or y.is_ready()
    assert isinstance(y._buffer, background.Pending)
    assert y.block_until_ready().shape == (2000,)


def test_references_are_written_in_order(gate):
    ref = st.new_ref(snp.zeros(3))

    @st.jit
    def add(x):
        ref[...] += x
        return x + 1

    gate.open()
    assert not is_pending(add(snp.ones(3)))
    np.testing.assert_array_equal(ref[...], 1)


def test_no_more_threads_than_processors(gate, monkeypatch):
    monkeypatch.setattr(background, "cores", lambda: 1)
    y = st.jit(lambda x: x + 1)(X)
    threading.Timer(0.1, gate.open).start()
    z = st.jit(lambda x: x + 2)(X)  # waits in the call
    assert is_pending(y)
    assert not is_pending(z)
    np.testing.assert_array_equal(y + z, 2 * X + 3)


def test_a_second_call_waits_for_the_compiler(gate):
    plus = st.jit(lambda x: x + 1)
    y = plus(X)
    assert gate.came.acquire(timeout=60)
    threading.Timer(0.1, gate.open).start()
    z = plus(2 * X)
    np.testing.assert_array_equal(y, X + 1)
    np.testing.assert_array_equal(z, 2 * X + 1)
    assert len(gate.threads) == 1  # compiled once


def test_where_no_thread_can_be_started(monkeypatch):
    tried = []

    def refused(thread):
        tried.append(thread)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    y = st.jit(lambda x: x + 1)(X)
    assert not is_pending(y)
    np.testing.assert_array_equal(y, X + 1)
    assert tried and all(t.daemon for t in tried), "the end waits for them by itself"


def test_it_is_compiled_under_the_settings_of_the_caller(monkeypatch):
    seen = []
    real = cache.compile_cached
    monkeypatch.setattr(
        cache, "compile_cached", lambda *args: seen.append(st.config.disk_cache) or real(*args)
    )
    for value in (True, False):
        with st.config(disk_cache=value):
            y = st.jit(lambda x: x + 1)(X)
        y.block_until_ready()
    assert seen == [True, False]


def test_signatures_are_counted_while_they_are_compiled(gate):
    plus = st.jit(lambda x: x + 1)
    y = plus(X)
    report = st.explain_recompilation(plus)
    assert "compiled" in str(report)
    gate.open()
    y.block_until_ready()


# Interrupts, forks and the end


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_an_interrupt_ends_the_wait_alone(gate):
    y = st.jit(lambda x: x + 1)(X)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        np.asarray(y)
    gate.open()
    np.testing.assert_array_equal(y, X + 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_wait(gate):
    y = st.jit(lambda x: x + 1)(X)
    assert gate.came.acquire(timeout=60)
    assert isinstance(in_a_child(lambda: np.asarray(y)), ForkedProcessError)
    assert in_a_child(background.wait_for_all) is None
    gate.open()
    np.testing.assert_array_equal(y, X + 1)


PROGRAM = """
import stretto as st, stretto.numpy as snp
from stretto._engine.api.jit import entry
entry._LONG = 0
y = st.jit(lambda x: snp.sort(snp.sin(x)))(snp.arange(5000.0))
assert type(y._buffer).__name__ == "Pending"
{end}
"""
ENDS = {
    "nobody reads it": "",
    "an error": "raise SystemExit(3)",
    "read at exit": """
import atexit
atexit.register(lambda: print(y.shape, float(y[0]) < -0.99))
""",
}


@pytest.mark.parametrize("name", ENDS)
def test_a_process_ends_well(name):
    code = textwrap.dedent(PROGRAM).format(end=ENDS[name])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == (3 if name == "an error" else 0), done.stderr
    assert done.stderr == ""
    assert done.stdout == ("(5000,) True\n" if name == "read at exit" else "")


LONG = """
import atexit, time
from stretto._engine.xla import cache
cache.compile_cached = lambda *args: time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
def test_an_interrupt_ends_a_process_that_waits_at_its_end():
    code = LONG + PROGRAM.format(end="atexit.register(lambda: print('ending', flush=True))")
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ending\n"
        start = time.monotonic()
        while process.poll() is None and time.monotonic() < start + 30:
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
        assert process.returncode == -signal.SIGINT, process.stderr.read()


def test_many_threads_call_at_once():
    plus = st.jit(lambda x: snp.sort(x) + 1)
    results = [None] * 8

    def call(i):
        results[i] = np.asarray(plus(X + i))

    threads = [threading.Thread(target=call, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, X + i + 1)


class Strange(Exception):
    """One that cannot be copied: it takes other arguments than it keeps."""

    def __init__(self, a, b):
        super().__init__(a)
        self.b = b


class Told(Exception):
    """One whose copies have its arguments alone."""

    def __reduce__(self):
        return type(self), self.args


def test_a_copied_error_has_what_was_written_to_it():
    error = Told("no")
    error.where, error.__cause__ = "here", KeyError("why")
    error.add_note("first")
    again = background._again(error, None)
    assert again is not error and again.args == ("no",) and again.where == "here"
    assert again.__notes__ == ["first"] and again.__notes__ is not error.__notes__
    assert again.__cause__ is error.__cause__ and again.__suppress_context__


@pytest.mark.parametrize("error", [ValueError("no"), Strange("no", 1), MemoryError("no")])
def test_an_error_is_raised_anew_each_time(error, monkeypatch):
    def fail(*args):
        raise error

    monkeypatch.setattr(cache, "compile_cached", fail)
    y = st.jit(snp.sin)(X)
    raised, lengths = [], []
    for _ in range(5):
        with pytest.raises(type(error), match="no") as caught:
            np.asarray(y)
        lengths.append(len(caught.traceback))
        raised.append(caught.value)
    assert len(set(lengths[1:])) == 1
    assert all(len(each.__notes__) == 1 for each in raised)
    if not isinstance(error, Strange):
        assert len({id(each) for each in raised}) == 5


def test_threads_do_not_share_an_error(monkeypatch):
    def fail(*args):
        raise ValueError("no")

    monkeypatch.setattr(cache, "compile_cached", fail)
    y, caught = st.jit(snp.sin)(X), []

    def read():
        try:
            np.asarray(y)
        except ValueError as error:
            error.add_note(f"mine {threading.get_ident()}")
            caught.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(error) for error in caught}) == 4
    assert all(len(error.__notes__) == 2 for error in caught)
