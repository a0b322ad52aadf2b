"""Named scopes: which part of a model an operation belongs to, such as ``layer1/attention``.

Each equation keeps the names of the ``with`` blocks around it, relative to the program that it is
in; they appear in the lowered and the compiled text.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Scope(threading.local):
    """The path of the scopes that this thread is in; empty outside any."""

    path: str = ""


scope = _Scope()


class _Scopes:
    """Hold what is known about the scopes of all threads."""

    __slots__ = ("entered",)

    def __init__(self) -> None:
        self.entered = False
        """Whether any scope was ever entered: until then hot paths need not read ``scope.path``."""


scopes = _Scopes()


def joined(outer: str, inner: str) -> str:
    """Return the path of one scope inside another."""
    return f"{outer}/{inner}" if outer and inner else outer or inner


class named_scope(contextlib.ContextDecorator):
    """Give the operations of a ``with`` block, or of a decorated function, a name; scopes nest.

    The name shows where a compiled program's time goes: in the ``op_name`` of its instructions, and
    in profiles. It changes nothing else.

    Args:
        name: the scope's name.

    Raises:
        TypeError: ``name`` is not a string.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def f(x):
    ...     with st.named_scope("layer1"):
    ...         return snp.sin(x)
    >>> "layer1/sin" in f.lower(1.0).as_text()
    True
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope: name must be a string, got {type(name).__name__}")
        self.name = name
        self._outer: list[str] = []

    def _recreate_cm(self) -> named_scope:
        """Return a new one for each call of a decorated function, since threads may share it."""
        return named_scope(self.name)

    def __enter__(self) -> named_scope:
        scopes.entered = True
        self._outer.append(scope.path)
        scope.path = joined(scope.path, self.name)
        return self

    def __exit__(self, *error: object) -> None:
        scope.path = self._outer[-1]  # first, as an interrupt may come in the call of pop
        self._outer.pop()


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Give the operations of a function a scope of its name, or of ``name``.

    Args:
        fun: the function.
        name: the scope's name; by default that of ``fun``.

    Returns:
        A function of the same arguments and values.

    Raises:
        TypeError: ``name`` is not a string.

    >>> import stretto as st, stretto.numpy as snp
    >>> def layer(x):
    ...     return snp.sin(x)
    >>> "layer/sin" in st.jit(named_call(layer)).lower(1.0).as_text()
    True
    """
    within = named_scope(getattr(fun, "__name__", "function") if name is None else name)
    return functools.wraps(fun)(within(fun))
