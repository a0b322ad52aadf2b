"""Guards: the sizes of a call decide what bounds leave open, and what they decided is kept."""

import pytest

from stretto._engine.core import sizes
from stretto._engine.core.errors import SizeError
from stretto._engine.core.size_guards import (
    Guard,
    differs_by_example,
    known_sizes,
    varying_sizes,
    without_elements,
)
from stretto._engine.core.sizes import SizeVariable, size_of, size_variable

N = SizeVariable("n", 0)


def test_a_guard_holds_of_some_sizes():
    guard = Guard(size_of(N) + 1, 5, True)
    assert guard.of({N: 3}) and not guard.of({N: 4})
    assert guard.most(N) == 3 and Guard(size_of(N), 5, False).most(N) == float("inf")


def test_what_known_sizes_decide_is_noted():
    n = size_of(N)
    with known_sizes([{N: 0}]) as guards:
        assert without_elements(n, "mean")
    assert guards == [Guard(n, 1, True)]
    with known_sizes([{N: 2}, {N: 3}]) as guards:
        assert not without_elements(n, "mean")
    assert guards == [Guard(n, 1, False)]
    with known_sizes([{N: 0}, {N: 3}]), pytest.raises(SizeError, match="for some of the examples"):
        without_elements(n, "mean")
    with pytest.raises(SizeError, match="known only while the program runs"):
        without_elements(n, "mean")
    assert not without_elements(size_variable("m"), "mean") and without_elements(0, "mean")
    assert not without_elements(size_variable("m", 1, 1), "mean") and not without_elements(
        1, "mean"
    )
    assert without_elements(size_variable("m", 0, 0), "mean")


def test_conditions_of_our_own_code_are_decided_by_known_sizes():
    """Of what is not known they are refused."""
    n, m = size_of(N), size_variable("m", 0)
    decide = lambda size: sizes._GUARDS[0](size, 4, "n < 4")
    assert decide(n) is None
    with known_sizes([{N: 3}]) as guards:
        assert decide(n) is True and decide(n + 2) is False
        assert guards == [Guard(n, 4, True), Guard(n + 2, 4, False)]
        with pytest.raises(SizeError, match="whether n < 4 depends on sizes"):
            decide(m)
    different = pytest.raises(SizeError, match="n < 4 is not the same for all examples")
    with known_sizes([{N: 3}, {N: 4}]), different:
        decide(n)
    assert len(sizes._GUARDS) == 1


def test_the_size_of_an_array_by_itself_is_not_that_of_examples():
    n = size_of(N)
    with known_sizes([{N: 3}]):
        assert not differs_by_example(n) and not differs_by_example(3)
    with known_sizes([{N: 3}], of_examples=True):
        assert differs_by_example(n)


def test_sizes_of_examples_differ():
    n = size_of(N)
    assert differs_by_example(n) and not differs_by_example(3)
    with known_sizes([{N: 2}]):
        assert not differs_by_example(n)
    with known_sizes([{N: 2}], of_examples=True):
        assert differs_by_example(n)


def test_names_inside_differ_from_those_outside():
    with varying_sizes() as outer, varying_sizes() as inner, varying_sizes() as innermost:
        assert (outer, inner, innermost) == ("", "'", "''")
    with varying_sizes() as mark:
        assert mark == ""
