"""Packs are divided in time; the loop itself is tested through ``fit``.

Ctrl-C during a step waits for its end; asked for twice, it does not.
"""

import signal
import threading

import numpy as np
import pytest

import stretto as st
from stretto import optim
from stretto.ensemble import Trainer
from stretto.ensemble.training.loop import divide_idle_packs, finish_before_interrupt


def begun(**options):
    members = [{"w": np.float32(i), "b": np.float32(9)} for i in range(4)]
    e = st.Ensemble(lambda p, x: p["w"] * x + p["b"], members, **options)
    trainer = Trainer(lambda m, x: m(x).sum(), optim.sgd(0.1))
    return trainer.start(e, st.random.PRNGKey(0))


def with_active(state, active):
    return state.replace(packs=(state.packs[0].replace(active=st.numpy.array(active)),))


@pytest.mark.parametrize(
    ("active", "options", "left"),
    [
        ([True, True, True, False], {}, (0, 1, 2, 3)),
        ([False, True, True, False], {}, (1, 2)),
        ([False, False, False, True], {}, (3,)),
        ([True, True, True, False], {"shared": "b"}, (0, 1, 2)),
        ([False, False, False, False], {}, (0, 1, 2, 3)),
    ],
    ids=["most", "half", "one", "shared", "none"],
)
def test_when_a_pack_is_divided(active, options, left):
    state = divide_idle_packs(with_active(begun(**options), active))
    assert state.packs[0].group.places == left
    assert state.going == (any(active),)
    assert state.each("active").tolist() == active


def press():
    signal.raise_signal(signal.SIGINT)


def test_after_the_work():
    done = []
    with pytest.raises(KeyboardInterrupt):
        finish_before_interrupt(lambda: (press(), done.append(1)))
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_time_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt):
        finish_before_interrupt(lambda: (press(), press(), done.append(1)))
    assert not done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nobody_asks():
    done = []
    finish_before_interrupt(lambda: done.append(1))
    with pytest.raises(ZeroDivisionError):
        finish_before_interrupt(lambda: 1 / 0)
    thread = threading.Thread(target=finish_before_interrupt, args=(lambda: done.append(2),))
    thread.start()
    thread.join()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        finish_before_interrupt(lambda: (press(), done.append(3)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == [1, 2, 3]
