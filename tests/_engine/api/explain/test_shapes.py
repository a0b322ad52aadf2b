"""What is said about sizes that vary."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.explain.shapes import SizedProgram


def attend(w, x):
    scores = nn.functional.softmax((x @ w) @ x.T, -1)
    return (scores @ x)[1:]


def test_a_jitted_function():
    f = st.jit(attend, dynamic_axes=(None, {0: "n"}))
    report = st.explain_shapes(f, np.eye(4), np.ones((12, 4)))
    (one,) = report.programs
    assert one.buckets == {"n": 16} and one.valid == 0.75 and one.refused is None
    replaced = [line.split(" at ")[0] for line in one.ways["replaced"]]
    assert "reduce_max" in replaced and "dot_general" in replaced and one.carried > 3
    line = f"test_shapes.py:{attend.__code__.co_firstlineno + 1}"
    assert any(said.endswith(line) for said in one.ways["replaced"])
    text = str(report)
    assert text.startswith("attend: n up to 16; 75% of the arguments is valid\n")
    assert "replace padding first:" in text and repr(report) == text


def test_the_ways():
    f = st.jit(lambda x: (x[-1], x.T.ravel(), snp.flip(x, 0)), dynamic_axes=({0: "n"},))
    text = str(st.explain_shapes(f, np.ones((5, 3))))
    assert "move by the true size" in text and "put elements into another order" in text


def test_ragged_arrays():
    r = st.ragged([np.ones((n, 4)) for n in (4, 16, 10)])
    f = st.jit(st.vmap(lambda x: snp.tanh(x).mean(0)))
    (one,) = st.explain_shapes(f, r).programs
    assert one.buckets == {"n": 16} and one.valid == 30 / 48
    assert any(line.startswith("reduce_sum") for line in one.ways["replaced"])


def test_what_is_refused():
    f = st.jit(lambda x: snp.linalg.eigvals(x @ x.T), dynamic_axes=({0: "n"},))
    (one,) = st.explain_shapes(f, np.ones((5, 3))).programs
    assert "eig takes no matrices of a size that varies" in one.refused
    assert "refused: eig" in str(one)


def test_nothing_varies():
    report = st.explain_shapes(st.jit(lambda x: x * 2), np.ones(3))
    assert str(report).startswith("no size varies") and not report.programs


def test_long_lists_are_short():
    def f(x):
        for _ in range(20):
            x = x * x.sum()
        return x

    text = str(st.explain_shapes(st.jit(f, dynamic_axes=({0: "n"},)), np.ones(5)))
    assert "and 8 more" in text


@pytest.mark.parametrize("refused", [None, "it is odd"])
@pytest.mark.parametrize("count", [0, 1, 12, 13, 15])
def test_twelve_operations_of_a_way_are_named(count, refused):
    lines = [f"op{k} at f.py:{k}" for k in range(count)]
    program = SizedProgram("f", {"n": 16, "m": 8}, 0.5, 3, {"replaced": lines}, refused)
    text = str(program).splitlines()
    assert text[0] == "f: n up to 16, m up to 8; 50% of the arguments is valid"
    if refused:
        assert text[1:] == ["  refused: it is odd"]
        return
    assert text[1] == "  3 operations pass padding through"
    assert [line.strip() for line in text[3:15]] == lines[:12]
    assert text[15:] == ([f"    and {count - 12} more"] if count > 12 else [])
    assert (len(text) > 2) is (count > 0) and (not count or text[2].startswith(f"  {count} "))


def test_what_is_valid_is_not_said_of_traced_lengths():
    assert str(SizedProgram("f", {"n": 4}, None, 0, {}, None)).splitlines() == [
        "f: n up to 4",
        "  0 operations pass padding through",
    ]
