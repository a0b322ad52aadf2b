"""Complete docstrings from a table: arguments that mean the same in every function of a family.

A family says once what ``key`` or ``learning_rate`` is. The docstring of each function describes
the arguments that are its own, and gets the others when it is defined, so that ``help`` and the
reference are whole.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
"""A function, or a class whose docstring describes the parameters of its constructor."""

_SECTION = re.compile(r"^(Args|Returns|Raises):\n((?: .*\n|\n(?= ))*)", re.MULTILINE)
_AFTER = re.compile(r"\n\n(?=>>> |As (?:NumPy|PyTorch)'s |Source: )")
"""Where the sections are, in a docstring that has none of its own."""
_ENTRY = re.compile(r"^    (\*{0,2}\w+):", re.MULTILINE)


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
            defaults = {"Returns": returns, "Raises": raises}
            function.__doc__ = _completed(function.__doc__, _names(function), arguments, defaults)
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
    defaults: Mapping[str, str | None],
) -> str:
    doc = inspect.cleandoc(doc) + "\n"
    sections = {m[1]: m[2].strip("\n") for m in _SECTION.finditer(doc)}
    first = _SECTION.search(doc)
    head, rest = (doc, "") if first is None else (doc[: first.start()], doc[first.start() :])
    if first is None:
        found = _AFTER.search(doc)
        head, rest = (doc, "") if found is None else (doc[: found.start()], doc[found.end() :])
    rest = _SECTION.sub("", rest).strip("\n")
    parts = _ENTRY.split(f"{sections.get('Args', '')}")
    own = dict(zip(parts[1::2], parts[2::2]))
    entries = {name: own.pop(name, arguments.get(name)) for name in names} | own
    described = [f"    {n}: {text.strip()}" for n, text in entries.items() if text is not None]
    if described:
        sections["Args"] = "\n".join(described)
    for section, text in defaults.items():
        if text is not None:
            sections.setdefault(section, f"    {text}")
    order = [name for name in ("Args", "Returns", "Raises") if name in sections]
    written = [f"{name}:\n{sections[name]}" for name in order]
    return "\n\n".join([head.strip("\n"), *written, *([rest] if rest else [])])
