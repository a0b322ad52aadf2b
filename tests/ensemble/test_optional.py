"""Packages that need not be installed."""

import math

import pytest

from stretto.ensemble.optional import axes_of, first_of


def test_the_first_that_is_there():
    assert first_of(("no_such_package.inner", "math", "json"), "f", "x") is math


def test_none_is_there():
    words = "f needs no_such_package or neither: pip install 'stretto\\[plots\\]'"
    with pytest.raises(ModuleNotFoundError, match=words):
        first_of(("no_such_package.inner", "neither"), "f", "'stretto[plots]'")


def test_axes_that_are_given_need_nothing():
    ax = object()
    assert axes_of(ax, "f") is ax
