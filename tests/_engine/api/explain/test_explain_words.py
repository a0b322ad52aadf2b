"""Places in words, and lists that stay short."""

import dis
import os
import types

import pytest

from stretto._engine.api.explain.explain import (
    Collective,
    Donation,
    Kept,
    Memory,
    Saving,
    StableForm,
    _geometry,
    collective_lines,
    kept_lines,
    memory_lines,
    near,
    short,
    stable_lines,
    where,
)
from stretto._engine.core.position import Position


def test_places():
    here = os.path.join(os.getcwd(), "model.py")
    assert near(here) == "model.py"
    assert near("/elsewhere/model.py") == "/elsewhere/model.py"
    code = compile("def f():\n    return 1\n", here, "exec").co_consts[0]
    *_, last = dis.get_instructions(code)
    assert where(Position(code, last.offset)) == "model.py:2 (f)"
    assert where(None) == "an unknown line"


def test_formulas_that_are_computed_in_another_way():
    assert stable_lines(()) == []
    head, *lines = stable_lines(tuple([StableForm(f"m.py:{k}", f"form {k}") for k in range(12)]))
    assert head == "computed so that digits stay (config.stable_forms):"
    assert lines == [*[f"  form {k}  m.py:{k}" for k in range(10)], "  and 2 more"]


def test_lists_stay_short():
    assert short(["a", "b"], 2) == ["  a", "  b"]
    assert short(["a", "b", "c"], 2) == ["  a", "  b", "  and 1 more"]


def left_out(lines):
    """How many lines of a list are shown, and what is said of the others."""
    shown = [line for line in lines if "f.py" in line]
    return len(shown), [line for line in lines if line.endswith("more")]


def test_how_many_lines_of_each_kind_are_shown():
    of = lambda count: [f"f.py:{k}" for k in range(count)]
    for count, rest in [(12, []), (14, ["  and 2 more"])]:
        found = [Collective("all-reduce", line, 1, 8) for line in of(count)]
        assert left_out(collective_lines(found, 8)) == (12, rest)
    for count, rest in [(5, []), (7, ["  and 2 more"])]:
        largest = tuple([(line, 8, 1) for line in of(count)])
        assert left_out(memory_lines("f", Memory(0, 0, 0, 0, largest, 0), ())) == (5, rest)
        assert left_out(kept_lines([Kept(line, 8, 1) for line in of(count)], ())) == (5, rest)


def test_collectives():
    """The largest first; of a whole argument of a mebibyte or more there is a warning."""
    assert collective_lines((), 1) == []
    assert collective_lines((), 8) == ["devices: 8, which send each other nothing"]
    small = Collective("all-gather", "f.py:1", 1, (1 << 20) - 1, "x")
    large = Collective("all-gather", "f.py:2", 2, 1 << 20, "w")
    other = Collective("all-reduce", "f.py:3", 1, 1 << 21)
    assert collective_lines((small, large, other), 8) == [
        "devices: 8, each of which gets 4.2 MB from others at a call, by line:",
        "  all-reduce, 1: 2.1 MB  f.py:3",
        "  all-gather, 2: 1.0 MB, the whole of w  f.py:2",
        "  all-gather, 1: 1.0 MB, the whole of x  f.py:1",
        "warning: every device gets the whole of w, 1.0 MB: split it as f.py:2 uses it, or keep "
        "the result split, lax.with_sharding_constraint",
    ]


def test_memory():
    memory = Memory(3000, 2000, 5000, 1000, (("f.py:1", 4000, 2), ("", 10, 1)), 5000)
    donations = (Donation("x", 0, 1000), Donation("w", "w", 500))
    assert memory.peak == 9000
    assert memory_lines("f", memory, donations) == [
        "memory: 9.0 kB at most: 3.0 kB of arguments, 2.0 kB of results, 5.0 kB of temporaries, "
        "less 1.0 kB donated",
        "temporaries at the peak, by line:",
        "  4.0 kB in 2  f.py:1",
        "pages: 5.0 kB may be mapped anew at each call; config.keep_memory, set first, keeps them",
        "donation: up to 1.5 kB less, as results could lie in the memory of",
        "  x, w, if the caller needs it no more: "
        "st.jit(f, donate_argnums=(0,), donate_argnames=('w',))",
    ]
    assert memory_lines("<lambda>", Memory(1, 2, 3, 0, (), 0), donations[:1])[0::2] == [
        "memory: 6 bytes at most: 1 bytes of arguments, 2 bytes of results, 3 bytes of temporaries",
        "  x, if the caller needs it no more: st.jit(f, donate_argnums=(0,))",
    ]


def test_what_is_kept():
    """Two checkpoints are advised at most."""
    kept = [Kept("f.py:1 (f)", 3000, 2), Kept("f.py:2 (f)", 1000, 1)]
    loop = Saving("f.py:1 (f)", "step", 7, 2000, True)
    calls = Saving("f.py:2 (f)", "<lambda>", 3, 500, False)
    assert kept_lines((), (loop,)) == []
    assert kept_lines(kept, (loop, calls, loop)) == [
        "kept for derivatives: 4.0 kB, by line:",
        "  3.0 kB in 2  f.py:1 (f)",
        "  1.0 kB in 1  f.py:2 (f)",
        "checkpoint: about 2.0 kB less at f.py:1 (f), which repeats 7 times",
        "  as st.lax.scan(st.checkpoint(step), ...) computes it again",
        "checkpoint: about 500 bytes less at f.py:2 (f), which repeats 3 times",
        "  as st.checkpoint(f)(...) computes it again, f being what repeats",
    ]


def convolution(**changes):
    dims = types.SimpleNamespace(lhs_spec=(0, 1, 2, 3), rhs_spec=(0, 1, 2, 3))
    plain = {
        "dims": dims,
        "strides": (1, 1),
        "rhs_dilation": (1, 1),
        "lhs_dilation": (1, 1),
        "feature_groups": 1,
        "batch_groups": 1,
    }
    return types.SimpleNamespace(**{**plain, **changes})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"strides": (1, 2)}, ["stride 1x2"]),
        ({"rhs_dilation": (2, 1)}, ["dilation 2x1"]),
        ({"lhs_dilation": (2, 2)}, ["image dilated 2x2"]),
        ({"feature_groups": 2}, ["2 groups"]),
        ({"batch_groups": 2}, ["2 groups of the batch"]),
        ({"strides": (3, 3), "feature_groups": 4}, ["stride 3x3", "4 groups"]),
    ],
)
def test_the_geometry_of_a_convolution(changes, words):
    parts = ["kernel 3x5", *words, "image 28x32, batch 7", "features 6 to 8"]
    assert _geometry(convolution(**changes), (7, 6, 28, 32), (8, 6, 3, 5)) == ", ".join(parts)


def test_the_geometry_names_axes_by_their_places():
    dims = types.SimpleNamespace(lhs_spec=(3, 0, 1, 2), rhs_spec=(1, 0, 3, 2))
    said = _geometry(convolution(dims=dims), (6, 28, 32, 7), (6, 8, 3, 5))
    assert said == "kernel 5x3, image 28x32, batch 7, features 6 to 8"
    point = types.SimpleNamespace(lhs_spec=(0, 1), rhs_spec=(0, 1))
    plain = convolution(dims=point, strides=(), rhs_dilation=(), lhs_dilation=())
    said = _geometry(plain, (7, 6), (8, 6))
    assert said == "kernel of one element, image of one element, batch 7, features 6 to 8"
