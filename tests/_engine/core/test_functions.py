"""Names and signatures of users' functions."""

from __future__ import annotations

import functools
import inspect
import weakref

import pytest

from stretto._engine.core.functions import likeness_of, name_of, signature_of


class Unnamed:
    """An object that can be called, and has no name of its own."""

    def __call__(self, x):
        return x


def named(x, y=1):
    return x + y


@pytest.mark.parametrize(
    ("fun", "name"),
    [
        (named, "named"),
        (functools.partial(functools.partial(named, 1), y=2), "named"),
        (lambda x: x, "function"),
        (functools.partial(lambda x: x), "function"),
        (Unnamed(), "Unnamed"),
    ],
)
def test_the_name_is_that_of_the_function_inside(fun, name):
    assert name_of(fun) == name


def test_the_signature_where_python_knows_it():
    assert signature_of(named) == inspect.signature(named)
    assert signature_of(type) is None


def test_a_likeness_has_the_signature_and_does_not_keep_the_function():
    z = object()

    def f(x, /, y=1, *args, w=2, **kwargs):
        return x, z, f

    @functools.wraps(f)
    def wrapping(*args):
        return f(*args)

    for fun in (f, wrapping, named):
        assert likeness_of(fun) is not fun
        assert signature_of(likeness_of(fun)) == signature_of(fun)
    assert likeness_of(max) is max
    like, seen = likeness_of(wrapping), weakref.ref(wrapping)
    del wrapping, fun
    assert seen() is None
    assert signature_of(like) == signature_of(f)
