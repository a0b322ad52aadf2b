"""Names that are not known: what there is, and which of it was probably meant.

Layer 1 (core).
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["meant", "refuse_unknown"]


def meant(name: str, known: Iterable[str]) -> str | None:
    """The name of those known that ``name`` is a slip or an abbreviation of, if there is one.

    >>> meant("lr", ["b1", "learning_rate"]), meant("weigth_decay", ["weight_decay"])
    ('learning_rate', 'weight_decay')
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, 1)
    return near[0] if near else next((n for n in names if _abbreviates(name, n)), None)


def _abbreviates(short: str, name: str) -> bool:
    """Whether it begins as the name, and its letters come in the name in that order."""
    letters = iter(name)
    return short[:1] == name[:1] != "" and all(c in letters for c in short)


def refuse_unknown(
    caller: str, what: str, names: Iterable[str], function: Callable[..., Any], function_name: str
) -> None:
    """Raise ``TypeError`` for names that are not of arguments of the function."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name not in parameters:
            near = meant(name, parameters)
            raise TypeError(
                f"{caller}: {function_name} has no {what} {name!r}"
                f"{'' if near is None else f' (did you mean {near!r}?)'}; it has "
                f"{', '.join(parameters)}"
            )
