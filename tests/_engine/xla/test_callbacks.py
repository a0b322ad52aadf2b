"""Compiled programs that call Python: errors, programs within calls, threads, memory."""

import gc
import re
import threading
import time
import traceback

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import TOKEN, HostCall
from stretto._engine.xla import callbacks, pjrt
from stretto._engine.xla.clients import runtime_of_calls

X = snp.array(2.0)
SCALAR = st.ShapeDtypeStruct((), np.float32)


def calling(f, declares=SCALAR):
    return st.jit(lambda x: st.pure_callback(f, declares, x))


@pytest.fixture
def handed(monkeypatch):
    """The NumPy arrays that become buffers."""
    arrays = []
    to_device = pjrt.to_device
    monkeypatch.setattr(
        pjrt, "to_device", lambda a, t, own, *at: arrays.append(a) or to_device(a, t, own, *at)
    )
    return arrays


def test_results_that_are_passed_on_stay_with_their_client(handed):
    @st.jit
    def step(tree, x):
        y = st.pure_callback(lambda x: np.asarray(x) + 1, SCALAR, tree["y"])
        return {"y": y, "w": (tree["w"] * y).astype(snp.bfloat16)}

    tree = {"y": X, "w": snp.ones((3, 2), snp.bfloat16)}
    for k in range(4):
        before = tree
        handed.clear()
        tree = step(tree, X)
        assert float(tree["y"]) == float(before["y"]) + 1
        if k:
            # bfloat16 has no buffer of Python's, and goes by way of the main client.
            assert {a.dtype for a in handed} == {np.dtype(snp.bfloat16)}
    assert float(before["y"]) == 5.0 and float(before["w"][0, 0]) == 3 * 4 * 5
    np.testing.assert_array_equal(tree["w"], snp.full((3, 2), 3 * 4 * 5 * 6))
    assert float(tree["y"] + 1) == 7.0  # on the main client


def test_arrays_are_handed_over_once(handed):
    captured, x = snp.array([1.0, 2.0]), snp.ones(2) * 2
    f = st.jit(lambda x: st.pure_callback(lambda x: np.asarray(x) + 1, x, x) * captured)
    for _ in range(3):
        handed.clear()
        np.testing.assert_array_equal(f(x), [3, 6])
    assert not handed
    np.testing.assert_array_equal(x * captured, [2, 4])  # on the main client


def test_an_array_that_stays_as_it_is_is_handed_over_where_it_lies():
    at = runtime_of_calls(1)
    host = pjrt.to_host(pjrt.to_device(np.arange(1000.0), array_type((1000,), X.dtype), False))
    assert np.shares_memory(pjrt.to_host(callbacks._there(host, at)), host)


@pytest.mark.parametrize("shape", [(), (3,), (300, 300)])
@pytest.mark.parametrize("value", ["full", "array", "result"])
def test_calls_without_results_return_when_their_functions_have(shape, value):
    """Also where the program does not run on the thread of its caller."""
    x = {
        "full": lambda: snp.full(shape, 0.5),
        "array": lambda: snp.array(np.full(shape, 0.5, np.float32)),
        "result": lambda: snp.full(shape, 0.25) * 2,
    }[value]()
    ended = []

    def slowly(x):
        time.sleep(0.02)
        ended.append(x.shape)

    f = st.jit(lambda x: st.debug.callback(slowly, x))
    for k in range(1, 4):
        f(x)
        assert len(ended) == k
    g = st.jit(lambda x: st.debug.callback(fails, x.sum()))
    for _ in range(2):
        with pytest.raises(Odd):
            g(x)


def test_parts_of_results_are_handed_on():
    f = st.jit(lambda x: st.pure_callback(lambda x: np.asarray(x) * 2, x, x))
    x = f(snp.arange(6.0).reshape(2, 3))
    for part in (x[0], x.T, x.reshape(3, 2), x[:, ::2], x.ravel()):
        np.testing.assert_array_equal(f(part), np.asarray(part) * 2)


def test_results_can_be_deleted_and_donated():
    f = st.jit(lambda x: st.pure_callback(lambda x: np.asarray(x) + 1, x, x))
    x = f(snp.zeros(100))
    y = f(x)
    x.delete()
    np.testing.assert_array_equal(f(y), 3)
    with pytest.raises(st.errors.DonatedArrayError, match="deleted"):
        f(x)
    add = st.jit(lambda x: x + 1, donate_argnums=0)
    kept = np.asarray(y)
    np.testing.assert_array_equal(add(y), 3)
    np.testing.assert_array_equal(kept, 2)
    with pytest.raises(st.errors.DonatedArrayError):
        f(y)
    again = st.jit(f, donate_argnums=0)
    z = snp.zeros(100)
    np.testing.assert_array_equal(again(z), 1)


class Odd(Exception):
    pass


def fails(x):
    raise Odd("deep down", float(x))


@pytest.mark.parametrize("kind", ["pure", "io", "ordered", "debug"])
def test_errors_arrive_as_they_were_raised(kind):
    def f(x):
        if kind == "pure":
            return st.pure_callback(fails, SCALAR, x)
        if kind == "debug":
            return st.debug.callback(fails, x)
        return st.io_callback(fails, None, x, ordered=kind == "ordered")

    with pytest.raises(Odd) as caught:
        st.jit(f)(X)
    assert caught.value.args == ("deep down", 2.0)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "fails"
    assert caught.value.__cause__ is None
    assert not callbacks._failures


def test_what_an_error_came_from_stays_with_it():
    def f(x):
        try:
            fails(x)
        except Odd as error:
            raise ValueError("outer") from error

    with pytest.raises(ValueError, match="outer") as caught:
        calling(f)(X)
    assert isinstance(caught.value.__cause__, Odd)


def test_errors_of_every_kind():
    def stop(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calling(stop)(X)

    def leave(x):
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        calling(leave)(X)


def test_one_of_several_errors_arrives():
    f = st.jit(lambda x: [st.pure_callback(fails, SCALAR, x * i) for i in range(20)])
    for _ in range(30):
        with pytest.raises(Odd, match="deep down"):
            f(X)
    assert len(callbacks._failures) <= callbacks._KEPT


def test_errors_through_calls_within_calls():
    inner = calling(fails)
    with pytest.raises(Odd, match="deep down"):
        calling(inner)(X)


def test_a_program_works_again_after_an_error():
    calls = []

    def sometimes(x):
        calls.append(1)
        if len(calls) % 2:
            raise Odd
        return x

    f = calling(sometimes)
    for _ in range(3):
        with pytest.raises(Odd):
            f(X)
        assert f(X) == 2


def test_errors_from_elsewhere_stay_as_they_are():
    error = RuntimeError("something else")
    assert callbacks._original(error) is error


def test_the_runtime_names_the_failure():
    """That the words by which a failure is found again pass through jaxlib whole."""
    text = st.jit(lambda x: st.debug.callback(fails, x)).lower(X)._entry.text()

    def unknown(*arrays):
        raise callbacks._failure_of(Odd())

    made = pjrt.compile_text(text, (), (), [unknown], runtime_of_calls(1))
    host = np.ones((), "f")
    with pytest.raises(RuntimeError) as caught:
        made([pjrt.to_device(host, X.type, True, runtime_of_calls(1))])
    assert callbacks._NUMBER.search(str(caught.value))
    assert isinstance(callbacks._original(caught.value), Odd)


N = 120
MATRIX = st.ShapeDtypeStruct((N, N), np.float32)
work = st.jit(lambda x: snp.sin(x @ x / 10) @ x / 10)


def nested(depth, width):
    """A program with several calls at once, of functions that run such a program."""
    inner = nested(depth - 1, width) if depth else work

    @st.jit
    def f(x):
        return sum(st.pure_callback(inner, MATRIX, x @ (x * i) / 10) for i in range(width))

    return f


def matrix():
    return snp.array(np.random.default_rng(0).uniform(-0.1, 0.1, (N, N)).astype("f"))


def reference(depth, width, x):
    inner = (lambda x: reference(depth - 1, width, x)) if depth else work
    return sum(np.asarray(inner(snp.array(x @ (x * i) / 10))) for i in range(width))


@pytest.mark.parametrize("depth, width", [(0, 6), (1, 5), (2, 2), (4, 1)])
def test_programs_within_calls(depth, width):
    f, x = nested(depth, width), matrix()
    for _ in range(3):
        got = f(x)
    want = reference(depth, width, np.asarray(x))
    # Sums of 120 products, one after the other, in float32.
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())


def run_threads(count, f):
    failures = []

    def run(i):
        try:
            f(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_programs_within_calls_in_many_threads():
    f, x = nested(1, 3), matrix()
    want = np.asarray(f(x))

    def several(_):
        for _ in range(3):
            np.testing.assert_array_equal(f(x), want)

    run_threads(5, several)


def test_calls_that_wait_for_what_was_begun_before():
    x = matrix()

    @st.jit
    def f(x, *rest):
        return sum(
            st.pure_callback(lambda a: np.asarray(a) + np.asarray(late[0]), MATRIX, x @ x * i)
            for i in range(5)
        )

    for _ in range(5):
        late = [work(work(x))]
        f(x)


def test_threads_get_their_own_results():
    f = calling(lambda x: 2 * x)

    def several(i):
        for _ in range(20):
            assert f(snp.array(float(i))) == 2 * i

    run_threads(8, several)


def test_a_call_returns_when_its_callbacks_have():
    done = []

    def slow(x):
        threading.Event().wait(0.05)
        done.append(1)

    st.jit(lambda x: st.debug.callback(slow, x))(X)
    assert done == [1]


def test_calls_that_have_returned_are_not_waited_for():
    assert calling(lambda x: np.asarray(x) + 1)(X) == 3
    with pytest.raises(ZeroDivisionError):
        calling(lambda x: 1 / 0)(X)
    assert not callbacks._running


def test_the_barrier_waits_for_other_threads():
    begun, done = threading.Event(), []

    def slow(x):
        begun.set()
        threading.Event().wait(0.1)
        st.debug.effects_barrier()  # does not wait for itself
        done.append(1)

    f = st.jit(lambda x: st.io_callback(slow, None, x))
    thread = threading.Thread(target=f, args=(X,))
    thread.start()
    assert begun.wait(10)
    st.debug.effects_barrier()
    assert done == [1]
    thread.join()
    st.debug.effects_barrier()


def test_programs_that_call_nothing_have_the_client_of_the_process():
    executable = st.jit(lambda x: x + 1).lower(X).compile()._executable
    assert isinstance(executable, pjrt.Executable)
    assert not isinstance(executable, callbacks.CallingExecutable)


def test_memory_given_to_a_call_is_not_written():
    f = st.jit(lambda x: st.pure_callback(lambda x: 3 * x, x, x) * 2, donate_argnums=0)
    x = work(matrix())
    view = np.asarray(x)
    before = view.copy()
    np.testing.assert_allclose(f(x), 6 * before, rtol=1e-6)
    assert x.is_deleted()
    np.testing.assert_array_equal(view, before)


def test_results_outlive_what_made_them():
    def f(x):
        return x * 2

    out = calling(f, MATRIX)(matrix())
    host = np.asarray(out)
    gc.collect()
    for _ in range(5):
        work(matrix()).block_until_ready()
    np.testing.assert_array_equal(host, 2 * np.asarray(matrix()))


def test_buffers_go_with_their_arrays():
    f, x = calling(lambda x: 2 * x, MATRIX), matrix()
    clients = [at.client for at in (pjrt.runtime(), runtime_of_calls(1))]

    def count():
        gc.collect()
        return sum(len(client.live_arrays()) for client in clients)

    f(x)
    before = count()
    for _ in range(20):
        f(x)
    assert count() <= before


def test_stages():
    lowered = calling(lambda x: 2 * x).lower(X)
    assert re.search(r'custom_call.*"xla_ffi_python_cpu_callback"', lowered.as_text())
    compiled = lowered.compile()
    assert compiled(X) == 4
    assert "custom-call" in compiled.as_text()
    assert compiled.memory_analysis() is not None


def test_clearing_caches_forgets_it():
    calls = []
    f = calling(lambda x: calls.append(1) or x)
    f(X)
    st.clear_caches()
    f(X)
    assert len(calls) == 2


def test_of_many_failures_the_latest_are_kept(monkeypatch):
    """256, as the runtime reports one alone of several that fail at once."""
    monkeypatch.setattr(callbacks, "_failures", {})
    errors = [Odd() for _ in range(258)]
    for error in errors:
        callbacks._failure_of(error)
    assert [*callbacks._failures.values()] == errors[2:]


def test_functions_go_one_level_further_than_who_runs_them():
    """Each level has a runtime of its own, so a level too many is one runtime too many."""
    functions = callbacks.Functions([], 0)
    for depth, expected in ((0, 1), (3, 4), (1, 4)):
        callbacks.holding(callbacks._thread, "depth", depth, functions.deepen)
        assert functions.depth == expected


@pytest.mark.parametrize("ordered", [False, True])
def test_a_token_follows_the_results_of_ordered_calls(ordered):
    type = array_type((2,), np.dtype(np.float32))
    call = HostCall(lambda values: [values[0], values[0] + 1], (type,), ordered)
    given = [np.ones(2, np.float32), *[np.zeros(TOKEN.shape, TOKEN.dtype)] * ordered]
    hosts = callbacks._call(call, given)
    assert [h.tolist() for h in hosts] == [[1, 1], [2, 2], *[0] * ordered]
    assert all(h.dtype == TOKEN.dtype for h in hosts[2:])


def test_a_program_called_from_outside_is_compiled_for_the_first_client_of_calls(monkeypatch):
    """The others are for programs that called functions call."""
    depths = []
    made = callbacks.runtime_of_calls
    monkeypatch.setattr(callbacks, "runtime_of_calls", lambda n: depths.append(n) or made(n))
    f = st.jit(lambda x: st.pure_callback(lambda x: np.asarray(x) + 31, x, x))
    np.testing.assert_array_equal(f(snp.ones(2)), 32)
    assert {*depths} == {1}
