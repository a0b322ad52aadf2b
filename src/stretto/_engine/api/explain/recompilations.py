"""Why a jitted function was compiled again: ``explain_recompilation``.

Each signature is compared with the nearest one before it. What differs, and what to do about it, is
said by ``api/jit/signature``, which the warning goes by, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from stretto._engine.api.explain.explain import near
from stretto._engine.api.jit.jit import Jitted
from stretto._engine.api.jit.signature import Difference, Signature, differences, jitted_at
from stretto._engine.core.boundary import boundary

_WIDTH = 40


@dataclasses.dataclass(frozen=True)
class Change:
    """One thing in which a signature differs from the nearest one before it."""

    what: str
    before: Any
    now: Any
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}: {_short(self.before)} -> {_short(self.now)}"


@dataclasses.dataclass(frozen=True)
class Recompilation:
    """One signature that a function was traced for."""

    number: int
    """The signature's number, from 1, in the order in which they came."""
    nearest: int | None
    """The number of the signature that it is compared with; None for the first."""
    changes: tuple[Change, ...]
    compiled: bool
    """True if XLA compiled it; small programs are interpreted, and need a trace alone."""
    seconds: float
    """The seconds that tracing took."""

    def __str__(self) -> str:
        how = "compiled" if self.compiled else "traced"
        if self.nearest is None:
            return f"{self.number}. {how}, the first"
        what = "; ".join(map(str, self.changes)) or "nothing that is kept; its cache was cleared"
        return f"{self.number}. {how}, as against {self.nearest}: {what}"


@dataclasses.dataclass(frozen=True)
class RecompilationReport:
    """All signatures of a jitted function; prints itself as a short table."""

    function: str
    position: str
    """The file and line of the function."""
    signatures: tuple[Recompilation, ...]
    jitted: int
    """The number of jitted functions that were made of this very code, and traced."""

    @property
    def remedies(self) -> dict[str, str]:
        """The remedies, by what differs; what differs most often comes first."""
        counts: dict[str, int] = {}
        words: dict[str, str] = {}
        for signature in self.signatures:
            for change in signature.changes:
                counts[change.what] = counts.get(change.what, 0) + 1
                words[change.what] = change.remedy
        return {what: words[what] for what in sorted(words, key=lambda what: -counts[what])}

    def __str__(self) -> str:
        count = len(self.signatures)
        lines = [f"{self.function} at {self.position}: {count} signature{'s' * (count != 1)}"]
        lines += [f"  {signature}" for signature in self.signatures]
        if self.jitted > 1:
            lines.append(
                f"jitted anew: {self.jitted} functions of this line were jitted, and each traced "
                f"again: jit it once, outside of the loop or function around it, and pass what it "
                f"takes from there as arguments"
            )
        lines += [f"{what}: {remedy}" for what, remedy in self.remedies.items()]
        return "\n".join(lines)

    __repr__ = __str__


def explain_recompilation(fun: Callable[..., Any], /) -> RecompilationReport:
    """Say for which signatures a jitted function was compiled, and why for each.

    Each signature is compared with the nearest one before it: shapes, dtypes, weak types, static
    values, tree structure, settings and places. With what differs comes the remedy. The report
    also says whether a function of the same line was jitted again and again, as in a loop.

    Args:
        fun: a jitted function that was called, or the function that was jitted, for the latter.

    Returns:
        A report, which prints itself, with all it says in its fields.

    Raises:
        TypeError: ``fun`` is not a function.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def total(x, scale):
    ...     return snp.sum(x) * scale
    >>> for n in (2, 3):
    ...     y = total(snp.ones(n), 1.0)
    >>> y = total(snp.ones(3), snp.ones(()))
    >>> print(st.explain_recompilation(total))
    total at ...: 3 signatures
      1. ..., the first
      2. ..., as against 1: the shape of x: (2,) -> (3,)
      3. ..., as against 2: the weak type of scale: a Python number -> an array of a dtype
    the shape of x: Pad or split x to one shape, or a few; or say which of its axes vary: ...
    the weak type of scale: Pass scale always as a number, or always as an array: ...
    """
    with boundary:
        if isinstance(fun, MethodType):
            fun = fun.__func__
        if not callable(fun):
            raise TypeError(f"explain_recompilation: expected a function, got {type(fun).__name__}")
        entries = list(fun._entries.items()) if isinstance(fun, Jitted) else []
        inner: Any = fun._fun if isinstance(fun, Jitted) else fun
        found = []
        for i, (_key, entry) in enumerate(entries):
            nearest, changes = _nearest(entries, i)
            compiled = entry.is_compiled
            found.append(Recompilation(i + 1, nearest, changes, compiled, entry.seconds))
        name = getattr(inner, "__name__", type(inner).__name__)
        return RecompilationReport(name, _position(inner), tuple(found), jitted_at(inner))


def _nearest(
    entries: Sequence[tuple[Signature, Any]], i: int
) -> tuple[int | None, tuple[Change, ...]]:
    """Return the number of the signature before this one with the fewest differences, and these."""
    best: tuple[int | None, tuple[Change, ...]] = None, ()
    for k in range(i):
        found = [d for d in differences([entries[k], entries[i]]) if len(d.values) > 1]
        changes = tuple([_change(d) for d in found])
        if best[0] is None or len(changes) <= len(best[1]):
            best = k + 1, changes
    return best


def _change(difference: Difference) -> Change:
    before, now = difference.values
    return Change(difference.what, before, now, difference.remedy)


def _position(fun: Any) -> str:
    if isinstance(fun, FunctionType):
        return f"{near(fun.__code__.co_filename)}:{fun.__code__.co_firstlineno}"
    return "an unknown line"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"
