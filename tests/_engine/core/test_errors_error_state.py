"""NumPy's error states entered for one call: in other threads, within each other, after errors."""

import contextvars
import threading

import numpy as np
import pytest

from stretto._engine.core.errors import ErrorState, _Quiet

QUIET, STRICT = {"divide": "ignore", "invalid": "ignore"}, {"all": "raise"}


@pytest.fixture(params=["as built", "in Python"])
def state(request, monkeypatch):
    if request.param == "in Python":
        monkeypatch.setattr("stretto._engine.core.errors._Run", _Quiet)
    return ErrorState


def test_the_state_holds_during_the_call_alone(state):
    run = state(**QUIET).run
    before = np.geterr()
    during = run(np.geterr)
    assert during["divide"] == during["invalid"] == "ignore"
    assert np.geterr() == before
    assert run(np.divide, 1.0, 0.0) == np.inf


def test_arguments_and_results_are_handed_on(state):
    run = state(**QUIET).run
    assert run(lambda *args, **options: (args, options), 1, 2, three=3) == ((1, 2), {"three": 3})
    assert run(lambda: None) is None


def test_an_error_passes_and_leaves_the_state_as_it_was(state):
    run = state(**STRICT).run
    before = np.geterr()
    for _ in range(2):
        with pytest.raises(FloatingPointError, match="divide by zero"):
            run(np.divide, 1.0, 0.0)
        assert np.geterr() == before
    assert run(np.geterr)["over"] == "raise"


def test_calls_within_calls(state):
    quiet, strict = state(**QUIET), state(**STRICT)

    def within():
        inner = strict.run(np.geterr)["divide"], quiet.run(np.geterr)["divide"]
        return *inner, np.geterr()["divide"]

    assert quiet.run(within) == ("raise", "ignore", "ignore")

    def deeper(n):
        return quiet.run(deeper, n - 1) if n else quiet.run(np.divide, 1.0, 0.0)

    assert deeper(20) == np.inf
    assert quiet.run(deeper, 20) == np.inf


def test_each_thread_has_a_state_of_its_own(state):
    quiet = state(**QUIET)
    inside, leave = threading.Event(), threading.Event()
    results = []

    def wait():
        inside.set()
        assert leave.wait(10)
        return np.geterr()["divide"]

    thread = threading.Thread(target=lambda: results.append(quiet.run(wait)))
    thread.start()
    assert inside.wait(10)
    try:
        assert quiet.run(np.divide, 1.0, 0.0) == np.inf  # while the other is in it
    finally:
        leave.set()
        thread.join()
    assert results == ["ignore"]


def test_only_calls_within_a_call_take_the_long_way():
    nested = []
    quiet = _Quiet(contextvars.copy_context(), lambda f, *args: nested.append(f) or f(*args))
    assert quiet(abs, -1) == 1 and nested == []
    assert quiet(lambda: quiet(abs, -2)) == 2 and nested == [abs]
    with pytest.raises(TypeError):
        quiet(abs, "x")
    assert quiet(abs, -3) == 3 and nested == [abs]
