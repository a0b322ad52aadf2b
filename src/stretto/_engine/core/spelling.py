"""Errors for unknown names: they list the known ones and guess which was meant.

Used wherever the user names something in a string or a keyword: settings, static arguments,
options.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``name`` is a misspelling or an abbreviation of, if there is one.

    >>> meant("lr", ["b1", "learning_rate"]), meant("weigth_decay", ["weight_decay"])
    ('learning_rate', 'weight_decay')
    """
    names = list(known)
    matches = difflib.get_close_matches(name, names, 1)
    return matches[0] if matches else next((n for n in names if _abbreviates(name, n)), None)


def _abbreviates(short: str, name: str) -> bool:
    """Say whether both begin alike, and the short one's letters occur in the name in order.

    As ``lr`` does in ``learning_rate``.
    """
    letters = iter(name)
    return short[:1] == name[:1] != "" and all(c in letters for c in short)


def refuse_unknown(
    caller: str, what: str, names: Iterable[str], function: Callable[..., Any], function_name: str
) -> None:
    """Raise ``TypeError`` for the first name that is not a parameter of the function."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name not in parameters:
            guess = meant(name, parameters)
            raise TypeError(
                f"{caller}: {function_name} has no {what} {name!r}"
                f"{'' if guess is None else f' (did you mean {guess!r}?)'}; it has "
                f"{', '.join(parameters)}"
            )
