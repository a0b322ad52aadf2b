"""What is set for one call is set back, wherever an exception comes from outside."""

import contextlib
import types

import pytest

from stretto._engine.core.holding import holding, restoring
from tests.interrupts import EVENTS, interrupted, sites

FILES = ("core/holding",)


def test_for_the_call_alone():
    holder = types.SimpleNamespace(value=1)
    assert holding(holder, "value", 2, lambda x: (x, holder.value), 3) == (3, 2)
    with pytest.raises(ZeroDivisionError):
        holding(holder, "value", 2, lambda: 1 / 0)
    assert holder.value == 1


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("fails", [False, True])
def test_set_back_from_anywhere(event, fails):
    holder = types.SimpleNamespace(value=1)

    def work():
        with contextlib.suppress(ZeroDivisionError):
            holding(holder, "value", 2, lambda: 1 / (not fails))

    at = sites(work, FILES, event)
    assert len(at) > 2
    for site in at:
        assert interrupted(work, site, FILES, event)
        assert holder.value == 1, site


@pytest.mark.parametrize("event", EVENTS)
def test_restored_from_anywhere(event):
    now = []

    def work():
        restoring(now.clear, now.append, 1)

    for site in sites(work, FILES, event):
        interrupted(work, site, FILES, event)
        assert not now, site
