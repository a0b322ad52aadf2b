"""Complete docstrings from a table: arguments that mean the same in every function of a family.

A family says once what ``key`` or ``learning_rate`` is. The docstring of each function describes
the arguments that are its own, and gets the others when it is defined, so that ``help`` and the
reference are whole.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
"""A function, or a class whose docstring describes the parameters of its constructor."""

_SECTIONS = ("Args", "Returns", "Raises")
_LAST = (">>> ", "As NumPy's ", "As PyTorch's ", "Source: ")
"""Beginnings of the paragraph that the sections stand before, in a docstring that has none."""


def described(
    arguments: Mapping[str, str], returns: str | None = None, raises: str | None = None
) -> Callable[[F], F]:
    """Return a decorator that adds what a docstring leaves out.

    Args:
        arguments: what an argument of a name is; it may be several lines.
        returns: what a function returns that does not say it.
        raises: what a function raises that does not say it: classes, colons and words.

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

    def complete(function: F) -> F:
        if function.__doc__:  # there is none under python -OO
            function.__doc__ = _completed(
                function.__doc__, _names(function), arguments, returns, raises
            )
        return function

    return complete


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters, in the order of the signature."""
    own = isinstance(function, type)
    called: Any = inspect.unwrap(function.__init__ if own else function)  # type: ignore[misc]
    code = called.__code__
    names, count = code.co_varnames, code.co_argcount
    named = count + code.co_kwonlyargcount
    rest = (f"*{names[named]}",) if code.co_flags & inspect.CO_VARARGS else ()
    return names[int(own) : count] + rest + names[count:named]


def _completed(
    doc: str,
    names: tuple[str, ...],
    arguments: Mapping[str, str],
    returns: str | None,
    raises: str | None,
) -> str:
    paragraphs = inspect.cleandoc(doc).split("\n\n")
    headers = [k for k, p in enumerate(paragraphs) if p.partition(":\n")[0] in _SECTIONS]
    headers += [k for k, p in enumerate(paragraphs) if p.startswith(_LAST)]
    at = headers[0] if headers else len(paragraphs)
    sections: dict[str, str] = {}
    rest: list[str] = []
    for paragraph in paragraphs[at:]:
        name, _, text = paragraph.partition(":\n")
        if name in _SECTIONS:
            sections[name] = text
        elif sections and not rest and paragraph.startswith(" "):
            sections[next(reversed(sections))] += f"\n\n{paragraph}"
        else:
            rest.append(paragraph)
    own = _entries(sections.get("Args", ""))
    entries = {name: own.pop(name, arguments.get(name)) for name in names} | own
    described = [f"    {n}: {text.strip()}" for n, text in entries.items() if text is not None]
    if described:
        sections["Args"] = "\n".join(described)
    for section, given in (("Returns", returns), ("Raises", raises)):
        if given is not None:
            sections.setdefault(section, f"    {given}")
    written = [f"{name}:\n{sections[name]}" for name in _SECTIONS if name in sections]
    return "\n\n".join([*paragraphs[:at], *written, *rest])


def _entries(section: str) -> dict[str, str]:
    """Return what is said of each argument, by its name."""
    entries: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if not line or line.startswith("     "):
            entries[name] += f"\n{line}"
        else:
            name, _, entries[name] = line[4:].partition(":")
    return entries
