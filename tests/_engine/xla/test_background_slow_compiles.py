"""A program that takes long to compile is named while it does, and when it is done."""

import logging
import threading

import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.xla import background, pjrt
from stretto._engine.xla.background import watch


class Clock:
    """Stands for time: it goes on when a test says so."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        threading.Event().wait(0.001)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(background, "time", clock)
    return clock


@pytest.fixture
def said():
    """The messages, and an event for each."""

    class Kept(logging.Handler):
        def __init__(self):
            super().__init__()
            self.texts, self.come = [], threading.Event()

        def emit(self, record):
            self.texts.append((record.levelname, record.getMessage()))
            self.come.set()

    kept = Kept()
    logger = logging.getLogger("stretto")
    logger.addHandler(kept)
    yield kept
    logger.removeHandler(kept)


def test_it_says_so_once_and_how_long_it_took(clock, said):
    def compile():
        clock.now += 9.9
        assert not said.come.wait(0.05)  # it is not late yet
        watching = [t for t in threading.enumerate() if t.name == "stretto-slow-compiles"]
        assert watching and all(t.daemon for t in watching), "no process waits for these"
        clock.now += 2.1
        assert said.come.wait(60)
        clock.now += 60
        return "made"

    assert watch("net", compile) == "made"
    (first, during), (second, after) = said.texts
    assert first == second == "WARNING"
    assert during.startswith("compiling net, called at ") and "has taken 12 s so far" in during
    assert "test_background_slow_compiles.py" in during
    assert after.startswith("compiled net, called at ") and after.endswith("in 72 s")


def test_it_is_said_after_just_so_many_seconds(clock, said):
    def compile():
        clock.now += 10
        assert said.come.wait(60)

    watch("net", compile)
    assert [text.split(",")[0] for _, text in said.texts] == ["compiling net", "compiled net"]


def test_the_usual_ones_are_not_mentioned(clock, said):
    def compile():
        clock.now += 9.5
        return "made"

    assert watch("net", compile) == "made"
    clock.now += 100
    assert not said.come.wait(0.05) and not said.texts


def test_the_setting_says_after_how_many_seconds(clock, said):
    def late():
        clock.now += 3
        assert said.come.wait(60)

    with st.config(slow_compile_warning=2):
        watch("net", late)
    assert len(said.texts) == 2 and "3 s" in said.texts[0][1]
    said.texts.clear()
    said.come.clear()

    def never():
        clock.now += 3000
        assert not said.come.wait(0.05)

    with st.config(slow_compile_warning=0):
        watch("net", never)
    assert not said.texts
    with pytest.raises(st.errors.ConfigError, match="slow_compile_warning must be an int"):
        st.config(slow_compile_warning=-1)


def test_what_fails_is_not_called_compiled(clock, said):
    def compile():
        clock.now += 20
        assert said.come.wait(60)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        watch("net", compile)
    assert len(said.texts) == 1 and not background._compilations


def test_several_at_a_time_have_each_their_own(clock, said):
    ready = threading.Barrier(3)

    def compile():
        ready.wait(60)
        while len([text for _, text in said.texts if "so far" in text]) < 2:
            threading.Event().wait(0.001)

    threads = [threading.Thread(target=watch, args=(name, compile)) for name in "ab"]
    for thread in threads:
        thread.start()
    ready.wait(60)
    clock.now += 11
    for thread in threads:
        thread.join(60)
    names = sorted(text.split()[1].strip(",") for _, text in said.texts)
    assert names == ["a", "a", "b", "b"]


@pytest.mark.parametrize("in_background", [False, True])
def test_of_a_jitted_function(clock, said, monkeypatch, in_background):
    """With a compiler that waits for the message."""

    class Slow:
        def __init__(self, client):
            self._client = client

        def __getattr__(self, name):
            return getattr(self._client, name)

        def compile_and_load(self, *args):
            clock.now += 31
            assert said.come.wait(60)
            return self._client.compile_and_load(*args)

    monkeypatch.setattr(pjrt.runtime(), "client", Slow(pjrt.runtime().client))

    @st.jit
    def network(x):
        return snp.sin(x) @ x + (31 + in_background)  # another program each time

    settings = {"interpret_small": False, "disk_cache": False}
    with st.config(**settings, compile_in_background=in_background):
        network(snp.ones((3, 3))).tolist()
    texts = [text for _, text in said.texts]
    assert texts[0].startswith("compiling network") and "31 s so far" in texts[0]
    assert "threading.py" not in texts[0]
    assert texts[1].startswith("compiled network") and len(texts) == 2
