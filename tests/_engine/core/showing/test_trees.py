"""What is shown of objects with trees of arrays."""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.lazy import brief
from stretto._engine.core.showing.trees import amount, short
from tests.pages import page_of, printed, text_in


@brief
class State(NamedTuple):
    count: Any
    mean: Any


@brief
@st.tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Record:
    count: Any
    mean: Any


LARGE = {"w": snp.ones((30, 30)), "b": snp.ones(30)}


def test_small_ones_are_whole():
    for cls in (State, Record):
        expected = f"{cls.__name__}(count=3, mean={{'w': Array([1., 1.], dtype=float32)}})"
        assert repr(cls(3, {"w": snp.ones(2)})) == expected


def test_large_ones_say_how_much_there_is():
    for cls in (State, Record):
        assert repr(cls(snp.int32(7), LARGE)) == (
            f"{cls.__name__}(count=Array(7, dtype=int32), mean=<dict of 2 arrays, 930 numbers, "
            f"3.7 kB>)"
        )


def test_a_page_lists_the_arrays():
    for cls in (State, Record):
        state = cls(snp.int32(7), {**LARGE, "<script>": snp.ones(2)})
        text = text_in(state)
        assert "float32[30,30]" in text and "<script>" in text and "932 numbers" in text
        assert "float32[30,30]" in printed(state)


def test_huge_ones_stay_short():
    state = State(0, {f"layer{k}": snp.ones(100) for k in range(5000)})
    assert len(repr(state)) < 200 and len(page_of(state)) < 150_000
    assert printed(state).count("\n") <= 41


def test_other_leaves():
    for mean in (None, (), "x" * 1000, object(), np.ones(1000), [1, 2.0], {"a": None}):
        state = State(0, mean)
        assert "\n" not in repr(state) and len(repr(state)) < 6000
        assert "State" in text_in(state)


def test_traced_and_donated_arrays():
    seen = []

    @st.jit
    def f(x):
        seen.append((repr(State(0, [x] * 20)), page_of(State(0, [x] * 20))))
        return x

    f(snp.ones((9, 9)))
    assert "list of 20 arrays" in seen[0][0] and "traced float32[9,9]" in seen[0][1]
    gone = snp.ones((9, 9))
    gone.delete()
    state = State(gone, LARGE)
    assert "count=float32[9,9]" in repr(state) and "State" in page_of(state)


def test_amounts():
    assert amount(()) == "0 arrays" and amount(snp.ones(1)) == "1 array, 1 number, 4 bytes"
    assert short(snp.ones(3)) == "Array([1., 1., 1.], dtype=float32)"
    assert short(snp.ones(30)) == "float32[30]"
