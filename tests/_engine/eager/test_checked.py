"""``config.debug_nans`` and ``debug_infs`` at rest, and where they hold."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import state
from stretto._engine.eager.checked import CHECKED
from stretto._engine.eager.interpreter import EAGER

NEGATIVE = snp.array([1.0, -2.0])


def fault(f, *args):
    """What ``f`` is found to do wrong."""
    with pytest.raises(st.errors.NonFiniteError) as raised:
        f(*args)
    return raised.value.fault


def test_an_operation_at_rest_is_named_with_its_line_and_operands():
    with st.config(debug_nans=True):
        found = fault(lambda: snp.log(NEGATIVE))
    assert (found.operation, found.kind, found.index) == ("log", "NaN", (1,))
    assert found.position.file == __file__
    (x,) = found.operands
    assert (x.least, x.greatest, x.nans) == (-2.0, 1.0, 0)


@pytest.mark.parametrize("f", [lambda x: x / 0, lambda x: snp.exp(x * 1000), lambda x: 1 / (x - x)])
def test_infinity(f):
    x = snp.array([0.5, 1.0])
    with st.config(debug_nans=True):
        f(x)
    with st.config(debug_infs=True):
        assert fault(f, x).kind == "infinity"


def test_what_operands_had_is_not_a_fault_at_rest():
    x = snp.array([np.nan, 1.0])
    with st.config(debug_nans=True):
        y = x * 2
        assert fault(lambda: snp.log(snp.array([np.nan, -1.0]))).operation == "log"
    assert np.isnan(np.asarray(y)).tolist() == [True, False]


def test_members_of_members_are_named_where_they_are_compiled():
    x = snp.array([[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]])
    with st.config(debug_nans=True):
        assert fault(st.jit(st.vmap(snp.log)), x[1]).examples == (2,)
        assert fault(st.jit(st.vmap(st.vmap(snp.log))), x).examples == (1, 2)
        assert fault(st.jit(st.vmap(st.vmap(snp.log)), inline=True), x.T).examples == (2, 1)


def test_a_setting_that_another_thread_changed_is_followed_at_the_next_operation():
    def run():
        with st.config(debug_nans=True):
            assert state.interpreter is CHECKED
        state.interpreter = CHECKED  # as where the change was made for all threads meanwhile
        assert np.isnan(np.asarray(snp.log(NEGATIVE))).tolist() == [False, True]
        return state.interpreter

    with ThreadPoolExecutor(1) as pool:  # an interpreter is its thread's
        assert pool.submit(run).result() is EAGER


def test_a_compiled_function_follows_a_setting_that_another_thread_changed():
    f = st.jit(snp.log)

    def run():
        with st.config(debug_nans=True):
            state.interpreter = EAGER  # as where the change was made for all threads meanwhile
            with pytest.raises(st.errors.NonFiniteError):
                f(NEGATIVE)
            return state.interpreter

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result() is CHECKED


def test_examples_and_rules_are_named_at_rest():
    with st.config(debug_nans=True):
        assert fault(st.vmap(snp.log), NEGATIVE).examples == (1,)
        nested = st.vmap(st.vmap(snp.log))  # at rest the outer one alone is known
        assert fault(nested, snp.array([[1.0, 2.0, 3.0], [4.0, 5.0, -6.0]])).examples == (1,)
        back = fault(st.grad(lambda x: snp.sqrt(x) * 0), 0.0)
        assert (back.backward, back.derivative_of) == (True, "sqrt")
        ahead = fault(lambda x: st.jvp(snp.sqrt, (x,), (0 * x,)), 0.0)
        assert (ahead.operation, ahead.backward, ahead.derivative_of) == ("mul", False, "sqrt")
        value = fault(lambda x: st.jvp(snp.log, (x,), (x,)), -1.0)
        assert (value.operation, value.derivative_of) == ("log", None)
        forward = fault(st.grad(snp.log), -1.0)
        assert (forward.operation, forward.backward) == ("log", False)


def test_loops_at_rest_have_steps():
    with st.config(debug_nans=True):
        found = fault(lambda: st.lax.fori_loop(0, 9, lambda i, x: snp.sqrt(x - 1), 3.0))
    assert found.steps == (("scan", 2),) or found.steps == (("while_loop", 2),)


def test_a_block_ends():
    with st.config(debug_nans=True):
        assert state.interpreter is CHECKED
        with st.config(debug_nans=False):
            assert state.interpreter is EAGER
            snp.log(NEGATIVE)
        assert state.interpreter is CHECKED
    assert state.interpreter is EAGER
    snp.log(NEGATIVE)


def test_the_setting_of_all_threads_reaches_new_ones_and_not_blocks():
    found = []

    def work():
        try:
            snp.log(NEGATIVE)
        except st.errors.NonFiniteError as error:
            found.append(error)
        with st.config(debug_nans=False):
            snp.log(NEGATIVE)

    st.config.debug_nans = True
    try:
        assert state.interpreter is CHECKED
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        st.config.debug_nans = False
    assert len(found) == 1
    assert state.interpreter is EAGER


def test_tracing_goes_on_where_the_setting_changes_meanwhile():
    def f(x):
        tracing = state.interpreter
        with st.config(debug_nans=True):
            assert state.interpreter is tracing
            y = snp.log(x)
        assert state.interpreter is tracing
        return y

    assert [e.primitive.name for e in st.make_graph(f)(NEGATIVE).equations] == ["log"]
    assert state.interpreter is EAGER


def test_on_another_device():
    with st.config(debug_nans=True), st.default_device(st.devices()[0]):
        assert fault(lambda: snp.log(NEGATIVE)).operation == "log"


def test_state_of_modules_and_random_numbers_work_as_at_rest():
    with st.config(debug_nans=True):
        st.random.manual_seed(0)
        norm = st.nn.BatchNorm1d(2)
        norm(snp.ones((3, 2)))
        st.random.normal(st.random.PRNGKey(0), (2,))


def test_threads_that_are_there_already_follow():
    steps, results = [threading.Event() for _ in range(4)], []

    def work():
        st.vmap(snp.log)(snp.ones(2))  # the thread has had an interpreter of its own
        steps[0].set()
        steps[1].wait()
        for f in (st.jit(snp.log), snp.log):
            try:
                f(NEGATIVE)
            except st.errors.NonFiniteError:
                results.append("found")
        steps[2].set()
        steps[3].wait()
        results.append(np.isnan(np.asarray(snp.log(NEGATIVE))).any())
        results.append(np.isnan(np.asarray(st.jit(snp.log)(NEGATIVE))).any())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        steps[0].wait()
        st.config.debug_nans = True
        steps[1].set()
        steps[2].wait()
    finally:
        st.config.debug_nans = False
        steps[1].set()
        steps[3].set()
    thread.join()
    assert results == ["found", "found", True, True]
