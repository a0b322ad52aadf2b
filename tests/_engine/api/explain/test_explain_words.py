"""Places in words, and lists that stay short."""

import dis
import os

from stretto._engine.api.explain.explain import near, short, where
from stretto._engine.core.position import Position


def test_places():
    here = os.path.join(os.getcwd(), "model.py")
    assert near(here) == "model.py"
    assert near("/elsewhere/model.py") == "/elsewhere/model.py"
    code = compile("def f():\n    return 1\n", here, "exec").co_consts[0]
    *_, last = dis.get_instructions(code)
    assert where(Position(code, last.offset)) == "model.py:2 (f)"
    assert where(None) == "an unknown line"


def test_lists_stay_short():
    assert short(["a", "b"], 2) == ["  a", "  b"]
    assert short(["a", "b", "c"], 2) == ["  a", "  b", "  and 1 more"]
