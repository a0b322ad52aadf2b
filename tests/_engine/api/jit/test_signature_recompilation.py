"""The warning for a function compiled again and again: what differs, and what to do."""

import re
import warnings

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.jit.signature import _short
from stretto._engine.core.errors import RecompilationWarning


@pytest.fixture(autouse=True)
def soon():
    with st.config(recompilation_warning=3):
        yield


def remark(f, calls):
    """The one warning that these calls give, at the fourth signature."""
    seen = []
    for n, call in enumerate(calls):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call(f)
        for w in caught:
            assert w.category is RecompilationWarning and n == 3
            assert w.filename == __file__
            seen.append(str(w.message))
    (message,) = seen
    assert f"{f.__name__} was compiled for 4 signatures" in message
    assert "recompilation_warning" in message
    return message


def scale(x, n=2, *, mode="twice"):
    return st.tree.map(lambda v: v * n, x)


@pytest.mark.parametrize(
    "options, calls, words",
    [
        (
            {},
            [lambda f, n=n: f(snp.ones(n)) for n in range(1, 7)],
            r"the shape of x: 4 in all, \(1,\), \(2,\), \(3,\), … \(4,\)\. Pad or split x",
        ),
        (
            {"static_argnums": 1},
            [lambda f, n=n, m=m: f(snp.ones(n), m) for n, m in ((1, 2), (2, 2), (3, 2), (1, 3))],
            r"the shape of x: 3 in all, \(1,\), \(2,\), \(3,\)\. Pad or split x",
        ),
        (
            {},
            [
                lambda f, d=d: f(snp.ones(2, d))
                for d in ("float32", "int32", "uint8", "int8", "bool")
            ],
            r"the dtype of x: 4 in all, float32, int32, uint8, … int8\. Convert x to one dtype",
        ),
        (
            {"static_argnums": 1},
            [lambda f, n=n: f(1.0, n) for n in range(6)],
            r"the value of the static argument 1: 4 in all, 0, 1, 2, … 3\. Where it decides no",
        ),
        (
            {"static_argnames": "mode"},
            [lambda f, m=m: f(1.0, mode=m) for m in "abcdef"],
            "the value of the static argument 'mode': 4 in all, 'a', 'b', 'c', … 'd'",
        ),
        (
            {},
            [lambda f, n=n: f([1.0] * n) for n in range(1, 7)],
            r"the tree structure of the arguments: 4 in all, .*Give containers the same keys",
        ),
        (
            {},
            [lambda f, n=n: f({"w": snp.ones(2), "b": [snp.ones(n), 1.0]}) for n in range(1, 7)],
            r"the shape of x\['b'\]\[0\]: 4 in all",
        ),
    ],
    ids=["shape", "three values", "dtype", "static", "static name", "structure", "leaf"],
)
def test_what_differs_is_named(options, calls, words):
    assert re.search(words, remark(st.jit(scale, **options), calls))


def test_weak_types_and_settings():
    def each(make):
        return [lambda f, n=n: make(f, n) for n in range(6)]

    def by_settings(f, n):
        with st.config(enable_x64=bool(n & 1), threefry_partitionable=bool(n & 2)):
            f(snp.ones(1, snp.float32))

    assert "the settings (stretto.config) in force: 4 in all" in remark(
        st.jit(scale), each(by_settings)[:4]
    )

    def by_weakness(f, n):
        weak, strong = 1.0, snp.float32(1)
        f(weak if n & 1 else strong, weak if n & 2 else strong)

    message = remark(st.jit(scale), each(by_weakness)[:4])
    assert "the weak type of x: 2 in all, an array of a dtype, a Python number" in message
    assert "Pass x always as a number, or always as an array" in message


def quiet(calls, f):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for call in calls:
            call(f)


def test_once_and_only_where_it_compiles():
    shapes = [lambda f, n=n: f(snp.ones(n)) for n in range(1, 12)]
    f = st.jit(scale)
    remark(f, shapes)
    quiet([lambda f, n=n: f(snp.ones(n)) for n in range(20, 30)], f)  # said once
    f.clear_cache()
    remark(f, shapes)
    inner = st.jit(scale)
    quiet(shapes, lambda x: st.eval_shape(inner, x))  # traced, and never compiled by itself
    quiet([lambda g, n=n: g(snp.ones(n)) for n in range(1, 12)], st.vmap(inner))


def test_the_setting():
    shapes = [lambda f, n=n: f(snp.ones(n)) for n in range(1, 10)]
    with st.config(recompilation_warning=0):
        quiet(shapes, st.jit(scale))
    with st.config(recompilation_warning=9):
        quiet(shapes, st.jit(scale))
    for bad in (-1, 1.5, True, "3", None):
        with pytest.raises(st.errors.ConfigError, match="must be an int, 0 or more; got"):
            st.config(recompilation_warning=bad)


def test_as_an_error_it_comes_after_the_compilation():
    f = st.jit(scale)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 4):
            f(snp.ones(n))
        with pytest.raises(RecompilationWarning):
            f(snp.ones(4))
        np.testing.assert_array_equal(f(snp.ones(4)), 2)


def test_long_values_are_cut():
    f = st.jit(scale, static_argnames="mode")
    message = remark(f, [lambda f, m=m: f(1.0, mode=m * 500) for m in "abcdef"])
    assert len(message) < 1000


@pytest.mark.parametrize(("length", "cut"), [(79, False), (80, False), (81, True)])
def test_values_of_eighty_characters_are_whole(length, cut):
    text = "x" * length
    assert _short(text) == ("x" * 80 + "…" if cut else text)


def test_functions_of_the_package_itself_are_not_remarked_on():
    def anything(x):
        return x

    anything.__module__ = "stretto.ensemble.training.training_data"
    inner = st.jit(anything)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 40):
            inner(snp.ones(n))
