"""Why functions were compiled again: what differs from the nearest signature, and what to do."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.explain.recompilations import (
    Change,
    Recompilation,
    RecompilationReport,
    _short,
)


def scale(x, n=2, *, mode="twice"):
    return st.tree.map(lambda v: v * n, x)


class Unequal:
    def __repr__(self):
        return f"<Unequal at {id(self):#x}>"


class Setting:
    def __init__(self, n):
        self.n = n


@pytest.mark.parametrize(
    "options, calls, what, before, now, remedy",
    [
        (
            {},
            [lambda f, n=n: f(snp.ones(n)) for n in (1, 2)],
            "the shape of x", (1,), (2,), "dynamic_axes",
        ),
        (
            {},
            [lambda f, d=d: f(snp.ones(2, d)) for d in ("float32", "int32")],
            "the dtype of x", "float32", "int32", "snp.asarray",
        ),
        (
            {},
            [lambda f: f(1.0), lambda f: f(np.float32(1.0))],
            "the weak type of x", "a Python number", "an array of a dtype", "snp.asarray",
        ),
        (
            {"static_argnums": 1},
            [lambda f, n=n: f(snp.ones(2), n) for n in (2, 3)],
            "the value of the static argument 1", "2", "3", "not static",
        ),
        (
            {"static_argnames": "mode"},
            [lambda f: f(snp.ones(2), mode=Unequal()), lambda f: f(snp.ones(2), mode=Unequal())],
            "the value of the static argument 'mode'", None, None, "__eq__ and __hash__",
        ),
        (
            {},
            [lambda f: f([snp.ones(2)]), lambda f: f((snp.ones(2),))],
            "the tree structure of the arguments", None, None, "same keys",
        ),
    ],
    ids=["shape", "dtype", "weak", "static", "unequal", "structure"],
)  # fmt: skip
def test_what_differs_is_named_with_the_remedy(options, calls, what, before, now, remedy):
    f = st.jit(scale, **options)
    for call in calls:
        call(f)
    first, second = st.explain_recompilation(f).signatures
    assert (first.nearest, first.changes, second.nearest) == (None, (), 1)
    (change,) = second.changes
    assert change.what == what
    assert remedy in change.remedy
    if before is not None:
        assert (str(change.before), str(change.now)) == (str(before), str(now))


def test_settings_and_axes_are_named():
    f = st.jit(scale)
    f(snp.ones(2))
    with st.config(simplify=False):
        f(snp.ones(2))
    st.vmap(f, axis_name="i")(snp.ones((3, 2)))
    _, second, third = st.explain_recompilation(f).signatures
    (change,) = second.changes
    assert (change.before, change.now) == ("simplify=True", "simplify=False")
    assert any("axis i=3" in str(c.now) for c in third.changes)


def test_the_nearest_is_chosen():
    f = st.jit(scale)
    for x in (snp.ones(2), snp.ones(3, int), snp.ones(3)):
        f(x)
    signatures = st.explain_recompilation(f).signatures
    assert [each.number for each in signatures] == [1, 2, 3]
    third = signatures[2]
    assert (third.nearest, [c.what for c in third.changes]) == (2, ["the dtype of x"])


def test_what_is_jitted_anew_is_noticed():
    for k in range(5):
        f = st.jit(lambda x: x + k)  # noqa: B023 (called at once)
        f(snp.ones(2))
    report = st.explain_recompilation(f)
    assert report.jitted == 5
    assert "jitted anew: 5 functions of this line" in str(report)
    once = st.jit(lambda x: x)
    once(1.0)
    assert "anew" not in str(st.explain_recompilation(once))


def test_compiled_and_interpreted():
    f = st.jit(lambda x: snp.sin(x) @ x)
    with st.config(interpret_small=True):
        f(snp.ones((2, 2)))
    with st.config(interpret_small=False):
        f(snp.ones((2, 2)))
    report = st.explain_recompilation(f)
    assert [s.compiled for s in report.signatures] == [False, True]
    assert all(s.seconds > 0 for s in report.signatures)


def test_methods_and_mistakes():
    class Model:
        @st.jit
        def __call__(self, x):
            return x

        go = st.jit(lambda self, x: x, static_argnums=0)

    model = Model()
    model.go(1.0)
    assert len(st.explain_recompilation(model.go).signatures) == 1
    assert st.explain_recompilation(scale).signatures == ()
    with pytest.raises(TypeError, match="explain_recompilation: expected a function, got int"):
        st.explain_recompilation(3)


def test_the_words_of_signatures_and_remedies():
    """What differs most often comes first; long values are cut."""
    shape = Change("the shape of x", (1,), (2,), "dynamic_axes")
    static = Change("the static n", "a" * 40, "b" * 41, "pass it as an array")
    signatures = (
        Recompilation(1, None, (), True, 0.1),
        Recompilation(2, 1, (static, shape), True, 0.1),
        Recompilation(3, 2, (shape,), False, 0.1),
        Recompilation(4, 3, (), True, 0.1),
    )
    report = RecompilationReport("f", "f.py:1", signatures, 1)
    assert [*report.remedies] == ["the shape of x", "the static n"]
    assert str(report).splitlines() == [
        "f at f.py:1: 4 signatures",
        "  1. compiled, the first",
        f"  2. compiled, as against 1: the static n: {'a' * 40} -> {'b' * 40}…; "
        "the shape of x: (1,) -> (2,)",
        "  3. traced, as against 2: the shape of x: (1,) -> (2,)",
        "  4. compiled, as against 3: nothing that is kept; its cache was cleared",
        "the shape of x: dynamic_axes",
        "the static n: pass it as an array",
    ]
    twice = str(RecompilationReport("f", "f.py:1", signatures[:1], 2))
    assert "1 signature\n" in twice and "jitted anew: 2 functions of this line" in twice


@pytest.mark.parametrize(("length", "cut"), [(39, False), (40, False), (41, True)])
def test_values_of_forty_characters_are_whole(length, cut):
    text = "x" * length
    assert _short(text) == ("x" * 40 + "…" if cut else text)
