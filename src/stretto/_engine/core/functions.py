"""Functions: their names and signatures, and docstrings whose arguments are said once for a family.

What wraps a user's function asks here what it is called in programs and messages, and what its
signature is; see ``higher_order/custom_function`` and ``api/argument_leaves``.

A family says in a table, or in the docstring of its first function, what ``key`` or
``learning_rate`` is. The docstring of each function describes the arguments that are its own, and
gets the others when it is defined, so that ``help`` and the reference are whole. Functions cannot
have a docstring that is made when it is read, so this is on the way of each import: some 8 µs for
a function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import CellType, FunctionType
from typing import Any, TypeVar


def name_of(fun: Callable[..., Any]) -> str:
    """Return the function's name; of a partial one, that of the function inside.

    >>> name_of(functools.partial(max, 1)), name_of(lambda x: x)
    ('max', 'function')
    """
    while isinstance(fun, functools.partial):
        fun = fun.func
    name = getattr(fun, "__name__", None) or type(fun).__name__
    return "function" if name == "<lambda>" else name


def signature_of(fun: Callable[..., Any]) -> inspect.Signature | None:
    """Give the function's signature; None if Python does not know it, as for some written in C."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def likeness_of(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a likeness with a function's signature that does not keep it alive."""
    if fun.__class__ is not FunctionType:
        return fun
    cells = tuple([CellType() for _ in fun.__code__.co_freevars])
    like = FunctionType(fun.__code__, {}, fun.__name__, fun.__defaults__, cells)
    like.__kwdefaults__ = fun.__kwdefaults__
    for name in ("__wrapped__", "__signature__"):
        if name in vars(fun):
            setattr(like, name, vars(fun)[name])
    return like


F = TypeVar("F", bound=Callable[..., Any])
"""A function, or a class whose docstring describes the parameters of its constructor."""

_SECTIONS = ("Args", "Returns", "Raises")
_LAST = (">>> ", "As NumPy's ", "As PyTorch's ", "As SciPy's ", "Source: ")
"""Beginnings of the paragraph that the sections stand before, in a docstring that has none."""


def described(
    arguments: Mapping[str, str],
    returns: str | None = None,
    raises: str | None = None,
    names: tuple[str, ...] | None = None,
) -> Callable[[F], F]:
    """Return a decorator that adds what a docstring leaves out.

    Args:
        arguments: what an argument of a name is; it may be several lines.
        returns: what a function returns that does not say it.
        raises: what a function raises that does not say it: classes, colons and words.
        names: the arguments in their order; by default those of the signature.

    Returns:
        The decorator, which gives the function itself.

    >>> @described({"key": "a key."}, "The numbers.")
    ... def draw(key, size):
    ...     '''Draw some.
    ...
    ...     Args:
    ...         size: how many.
    ...
    ...     They are not independent.
    ...     '''
    >>> print(draw.__doc__)
    Draw some.
    <BLANKLINE>
    Args:
        key: a key.
        size: how many.
    <BLANKLINE>
    Returns:
        The numbers.
    <BLANKLINE>
    They are not independent.
    """
    defaults = {"Returns": returns, "Raises": raises}

    def complete(function: F) -> F:
        if function.__doc__:  # there is none under python -OO
            function.__doc__ = _complete(
                function.__doc__, names or _names(function), arguments, defaults
            )
        return function

    return complete


def described_like(other: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that completes a docstring from that of another function.

    Args:
        other: its docstring says what arguments of its names are, and what is returned and raised.

    Returns:
        The decorator, which gives the function itself.

    >>> def least(x):
    ...     '''Find the least.
    ...
    ...     Args:
    ...         x: numbers.
    ...     '''
    >>> @described_like(least)
    ... def greatest(x):
    ...     '''Find the greatest.'''
    >>> print(greatest.__doc__)
    Find the greatest.
    <BLANKLINE>
    Args:
        x: numbers.
    """
    return described(*_sections_of(other))


@functools.cache
def _sections_of(function: Callable[..., Any]) -> tuple[dict[str, str], str | None, str | None]:
    """Return what the docstring of a function says of arguments, the result and errors."""
    _, sections, _ = _parse(function.__doc__ or "")
    returns, raises = sections.get("Returns"), sections.get("Raises")
    return _entries(sections.get("Args", "")), returns and returns[4:], raises and raises[4:]


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters, in the order of the signature."""
    own = isinstance(function, type)
    called: Any = inspect.unwrap(function.__init__ if own else function)  # type: ignore[misc]
    code = called.__code__
    names, count = code.co_varnames, code.co_argcount
    named = last = count + code.co_kwonlyargcount
    positional, options = (), ()
    if code.co_flags & inspect.CO_VARARGS:
        positional, last = (f"*{names[last]}",), last + 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        options = (f"**{names[last]}",)
    return names[int(own) : count] + positional + names[count:named] + options


def _parse(doc: str) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the paragraphs before the sections, the sections by name, and the other paragraphs."""
    second = doc.partition("\n")[2].lstrip("\n")
    margin = "\n" + " " * (len(second) - len(second.lstrip(" ")))
    before: list[str] = []
    after: list[str] = []
    sections: dict[str, str] = {}
    name = ""
    for paragraph in doc.strip().replace(margin, "\n").split("\n\n"):
        if name and paragraph.startswith(" "):
            sections[name] += f"\n\n{paragraph}"
            continue
        name, _, text = paragraph.partition(":\n")
        if name in _SECTIONS:
            sections[name] = text
            continue
        name = ""
        past = bool(sections or after) or paragraph.startswith(_LAST)
        (after if past else before).append(paragraph)
    return before, sections, after


def _entries(section: str) -> dict[str, str]:
    """Return what a section says of each name."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.split("\n"):
        if name and line.startswith("     "):
            entries[name] += f"\n{line}"
        elif line:
            name, _, text = line.partition(":")
            name = name.strip()
            entries[name] = text.strip()
    return entries


def _complete(
    doc: str,
    names: tuple[str, ...],
    arguments: Mapping[str, str],
    defaults: Mapping[str, str | None],
) -> str:
    before, sections, after = _parse(doc)
    own = _entries(sections.get("Args", ""))
    entries = {name: own.pop(name, arguments.get(name)) for name in names} | own
    described = [f"    {name}: {text}" for name, text in entries.items() if text is not None]
    if described:
        sections["Args"] = "\n".join(described)
    for section, text in defaults.items():
        if text is not None:
            sections.setdefault(section, f"    {text}")
    written = [f"{name}:\n{sections[name]}" for name in _SECTIONS if name in sections]
    return "\n\n".join([*before, *written, *after])
