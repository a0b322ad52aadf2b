"""Docstrings are completed from tables, in the order of the signature; what is there stays."""

import inspect

from stretto._engine.core.functions import described, described_like

add = described({"key": "a key.", "shape": "of the result.", "x": "never used."}, "Numbers.")


def test_own_words_stay_and_the_order_is_that_of_the_signature():
    @add
    def f(key, scale, shape=(), *, mode="low"):
        """Draw.

        More is said here.

        Args:
            mode: one of two,
                both of them good.
            scale: the scale.
            shape: by default none.

        Raises:
            ValueError: it is so.

        Source: a book.

        >>> 1
        1
        """

    assert (
        inspect.cleandoc(f.__doc__)
        == """Draw.

More is said here.

Args:
    key: a key.
    scale: the scale.
    shape: by default none.
    mode: one of two,
        both of them good.

Returns:
    Numbers.

Raises:
    ValueError: it is so.

Source: a book.

>>> 1
1"""
    )
    assert f.__name__ == "f" and [*inspect.signature(f).parameters] == [
        "key",
        "scale",
        "shape",
        "mode",
    ]


def test_a_docstring_without_sections():
    @add
    def f(key):
        """Draw.

        >>> 1
        1
        """

    assert f.__doc__ == "Draw.\n\nArgs:\n    key: a key.\n\nReturns:\n    Numbers.\n\n>>> 1\n1"

    @add
    def one(shape):
        """Draw."""

    assert one.__doc__ == "Draw.\n\nArgs:\n    shape: of the result.\n\nReturns:\n    Numbers."


def test_what_stands_behind_a_section_stays_there():
    """Also what does not begin as last paragraphs do, and one that follows such a paragraph."""

    @add
    def f(key):
        """Draw.

        Args:
            key: of its own.

        More of it.
        """

    head = "Draw.\n\nArgs:\n    key: of its own.\n\nReturns:\n    Numbers."
    assert f.__doc__ == f"{head}\n\nMore of it."

    @add
    def g(key):
        """Draw.

        >>> 1
        1

        More of it.
        """

    head = "Draw.\n\nArgs:\n    key: a key.\n\nReturns:\n    Numbers."
    assert g.__doc__ == f"{head}\n\n>>> 1\n1\n\nMore of it."


def test_what_is_said_stays_and_what_is_unknown_is_left_out():
    @described({})
    def f(key, *more):
        """Draw.

        Args:
            *more: others.

        Returns:
            Two of them.
        """

    assert f.__doc__ == "Draw.\n\nArgs:\n    *more: others.\n\nReturns:\n    Two of them."


def test_without_docstrings():
    f = lambda key: key
    assert add(f) is f and f.__doc__ is None


def test_what_is_raised_and_a_class():
    @described({"key": "a key."}, "Numbers.", raises="ValueError: it is odd.")
    def f(key):
        """Draw.

        As PyTorch's ``f``.
        """

    said = "Draw.\n\nArgs:\n    key: a key.\n\nReturns:\n    Numbers.\n\nRaises:\n"
    assert f.__doc__ == f"{said}    ValueError: it is odd.\n\nAs PyTorch's ``f``."

    @described({"key": "a key."})
    class Layer:
        """Draw.

        Args:
            size: how many.
        """

        def __init__(self, size, *, key=None):
            pass

    assert Layer.__doc__ == "Draw.\n\nArgs:\n    size: how many.\n    key: a key."


def test_the_source_stays_last_and_further_arguments_stand_where_they_are_given():
    shared = {"key": "a key.", "*sizes": "how many.", "mode": "one of two.", "**more": "other."}

    @described(shared)
    def f(key, *sizes, mode, **more):
        """Draw.

        Source: a book.
        """

    args = "Args:\n    key: a key.\n    *sizes: how many.\n    mode: one of two."
    assert f.__doc__ == f"Draw.\n\n{args}\n    **more: other.\n\nSource: a book."


def test_what_another_function_says():
    @add
    def f(key, shape, mode="low"):
        """Draw.

        Args:
            mode: one of two,
                both of them good.

        Raises:
            TypeError: it is no key,

                or none that is left.
            ValueError: it is so.

        As NumPy's ``f``.
        """

    @described_like(f)
    def g(key, size, *, mode="low"):
        """Draw again.

        Args:
            size: how many.

        As NumPy's ``g``.
        """

    assert (
        g.__doc__
        == """Draw again.

Args:
    key: a key.
    size: how many.
    mode: one of two,
        both of them good.

Returns:
    Numbers.

Raises:
    TypeError: it is no key,

        or none that is left.
    ValueError: it is so.

As NumPy's ``g``."""
    )

    @described_like(g)
    def alone():
        """Draw nothing.

        Returns:
            None.

        Raises:
            LookupError: always.
        """

    said = "Draw nothing.\n\nReturns:\n    None.\n\nRaises:\n    LookupError: always."
    assert alone.__doc__ == said


def test_another_function_without_a_docstring():
    @described_like(lambda key: key)
    def f(key):
        """Draw."""

    assert f.__doc__ == "Draw."


def test_a_section_of_several_paragraphs_stays_as_it_is():
    @add
    def f(key):
        """Draw.

        Returns:
            One.

            And another.

        Source: a book.
        """

    assert f.__doc__ == (
        "Draw.\n\nArgs:\n    key: a key.\n\nReturns:\n    One.\n\n    And another."
        "\n\nSource: a book."
    )
