"""Something set for the time of one call, and set back whatever ends the call.

Layer 1 (core). An interrupt may raise its exception between nearly any two instructions. A ``with``
block is left as it is where that happens as an ``__exit__`` written in Python begins, so what a
thread goes by, such as its current interpreter, is set through here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["holding", "restoring"]


def holding(holder: Any, name: str, value: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """What ``fun(*args)`` gives while the attribute of the holder has this value.

    It has the former one afterwards, wherever one exception comes from outside.
    """
    outer = getattr(holder, name)
    try:
        try:
            setattr(holder, name, value)
            return fun(*args)
        finally:
            setattr(holder, name, outer)
    finally:  # once more: the exception may have come in the clause above
        setattr(holder, name, outer)


def restoring(restore: Callable[[], Any], fun: Callable[..., Any], *args: Any) -> Any:
    """What ``fun(*args)`` gives; ``restore()`` is called afterwards, perhaps twice."""
    try:
        try:
            return fun(*args)
        finally:
            restore()
    finally:
        restore()
