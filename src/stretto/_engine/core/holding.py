"""Set an attribute for the duration of one call, and restore it however the call ends.

An interrupt (Ctrl-C) may raise its exception between nearly any two instructions, also just as an
``__exit__`` method written in Python begins, which then restores nothing. So the state that a
thread depends on, such as its current interpreter, is set through these functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def holding(holder: Any, name: str, value: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``, called while this attribute of ``holder`` has this value.

    Afterwards it has its former value again, even if one interrupt came at the worst moment.
    """
    outer = getattr(holder, name)
    try:
        try:
            setattr(holder, name, value)
            return fun(*args)
        finally:
            setattr(holder, name, outer)
    finally:  # once more: an interrupt may have come in the clause above
        setattr(holder, name, outer)


def restoring(restore: Callable[[], Any], fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``; afterwards ``restore()`` is called, perhaps twice."""
    try:
        try:
            return fun(*args)
        finally:
            restore()
    finally:
        restore()
