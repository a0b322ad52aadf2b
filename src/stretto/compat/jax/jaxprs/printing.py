"""The text of jaxprs: on one line where that is short enough, and otherwise indented.

It is laid out as JAX's, whose users read it; variables are named in the order of the text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

__all__ = ["text_of"]

WIDTH = 80
"""What has more characters is broken into lines."""

CALLS = {"inline": False, "keep_unused": False}
"""Parameters of compiled calls that are not printed with these values; nor are options, shardings,
layouts and donations of which there are none. Their names are printed first."""


def text_of(shown: Any) -> str:
    """The text of a jaxpr, or of an equation."""
    return _Printer().jaxpr(shown, 0) if _is_jaxpr(shown) else _Printer().equation(shown, 0)


class _Printer:
    """Names variables, those of inner jaxprs too, each when it is first printed."""

    def __init__(self) -> None:
        self._fresh = _letters()
        self._names: dict[Any, str] = {}

    def jaxpr(self, jaxpr: Any, indent: int) -> str:
        """The text of a jaxpr whose later lines are indented so far."""
        first = " ".join(map(self.declared, jaxpr.constvars))
        inputs = " ".join(map(self.declared, jaxpr.invars))
        # Laid out for lines of their own; whether all of it fits on one is seen afterwards.
        equations = [self.equation(e, indent + 4) for e in jaxpr.eqns]
        outs = ", ".join(map(self.used, jaxpr.outvars))
        head = f"{{ lambda {first}; {inputs}. let"
        tail = f"in ({outs}{',' if len(jaxpr.outvars) == 1 else ''}) }}"
        line = f"{head} {'; '.join(equations)} {tail}"
        if "\n" not in line and indent + len(line) <= WIDTH:
            return line
        inner, outer = "\n" + " " * (indent + 4), "\n" + " " * (indent + 2)
        return head + "".join(inner + e for e in equations) + outer + tail

    def equation(self, e: Any, indent: int) -> str:
        """The text of an equation that begins so far from the left."""
        outs = " ".join(map(self.declared, e.outvars))
        operands = "".join(f" {self.used(a)}" for a in e.invars)
        start = f"{outs} = {e.primitive}" if outs else f"{e.primitive}"
        params = _printed_params(e.params)
        if not params:
            return start + operands
        parts = [self._parameter(name, value, indent + 2) for name, value in params]
        line = f"{start}[{' '.join(parts)}]{operands}"
        if "\n" not in line and indent + len(line) <= WIDTH:
            return line
        inner = "\n" + " " * (indent + 2)
        return f"{start}[" + "".join(inner + p for p in parts) + f"\n{' ' * indent}]{operands}"

    def _parameter(self, name: str, value: Any, indent: int) -> str:
        if _is_jaxpr(value):
            return f"{name}={self.jaxpr(value.jaxpr, indent)}"
        if isinstance(value, tuple) and value and all(map(_is_jaxpr, value)):
            inner = "\n" + " " * (indent + 2)
            texts = "".join(inner + self.jaxpr(part.jaxpr, indent + 2) for part in value)
            return f"{name}=({texts}\n{' ' * indent})"
        return f"{name}={getattr(value, '__name__', value)}"

    def declared(self, v: Any) -> str:
        """A variable with its type, where it is assigned."""
        return f"{self._named(v)}:{v.aval.str_short(short_dtypes=True)}"

    def used(self, atom: Any) -> str:
        """A variable, or a literal with its type."""
        if hasattr(atom, "val"):
            # A float in as many digits as its own dtype needs.
            value = np.asarray(atom.val, atom.aval.dtype) if type(atom.val) is float else atom.val
            return f"{value}:{atom.aval.str_short(short_dtypes=True)}"
        return self._named(atom)

    def _named(self, v: Any) -> str:
        if repr(v) == "_":
            return "_"
        if v not in self._names:
            self._names[v] = next(self._fresh)
        return self._names[v]


def _is_jaxpr(value: Any) -> bool:
    return hasattr(value, "jaxpr") and hasattr(value, "eqns")


def _printed_params(params: dict[str, Any]) -> Sequence[tuple[str, Any]]:
    """The parameters that say something, in the order of the text."""
    params = {name: value for name, value in sorted(params.items()) if value is not None}
    if "donated_invars" not in params:
        return list(params.items())
    said = {
        name: value
        for name, value in params.items()
        if name not in ("name", "jaxpr")
        and not (name in CALLS and value is CALLS[name])
        and not (isinstance(value, tuple) and not any(value))
    }
    front = [(name, params[name]) for name in ("name", "jaxpr") if name in params]
    return [*front, *said.items()]


def _letters() -> Iterator[str]:
    """``a`` to ``z``, ``ba``, ``bb``, …: numbers to the base of 26."""
    digits = "abcdefghijklmnopqrstuvwxyz"
    written: Callable[[int], str] = lambda n: (written(n // 26) if n >= 26 else "") + digits[n % 26]
    return map(written, itertools.count())
