"""Guards: what is asked of the sizes of a call while a function is traced for them.

The algebra of ``core/sizes`` decides a comparison by bounds alone. Where these leave it open, our
own code may have it decided by the sizes of the call that is traced; the outcome is then a guard of
that trace.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stretto._engine.core import sizes
from stretto._engine.core.errors import SizeError
from stretto._engine.core.sizes import Dimension, Size, SizeVariable, refuse, size_of


class Guard(NamedTuple):
    """A comparison of sizes that was taken to hold, or not to, while a function was traced."""

    size: Size
    less_than: int
    holds: bool

    def of(self, sizes: Mapping[SizeVariable, int]) -> bool:
        """Say if it is so for these sizes."""
        return (self.size.known(sizes) < self.less_than) == self.holds

    def most(self, variable: SizeVariable) -> float:
        """Return the greatest that a variable can be where this is so, as far as it says so."""
        rest = self.size - size_of(variable)
        if self.holds and not isinstance(rest, Size):
            return self.less_than - rest - 1
        return math.inf


class _Traces(threading.local):
    depth = 0
    known: Sequence[Mapping[SizeVariable, int]] | None = None
    of_examples: bool = False
    guards: list[Guard]


_TRACES = _Traces()


@contextlib.contextmanager
def known_sizes(
    several: Sequence[Mapping[SizeVariable, int]] | None, of_examples: bool = False
) -> Iterator[list[Guard]]:
    """Let our own code ask about some known sizes while a function is traced for them.

    A comparison that bounds do not decide is decided by these, if all agree, and is in the list of
    what was taken to hold: the trace is good for all sizes of which it does. Of ``None`` nothing is
    known. The user's conditions are refused all the same: what they decide must not depend on which
    sizes came first.
    """
    before = _TRACES.known, _TRACES.of_examples, getattr(_TRACES, "guards", [])
    _TRACES.known, _TRACES.of_examples, _TRACES.guards = several, of_examples, []
    try:
        yield _TRACES.guards
    finally:
        _TRACES.known, _TRACES.of_examples, _TRACES.guards = before


def _decide(size: Any, less_than: int, condition: str) -> bool | None:
    """Say if a size is less than that, as it is for all known sizes; None where it is not asked."""
    if _TRACES.known is None:
        return None
    if not _is_known(size):
        refuse(condition)
    outcomes = {size.known(sizes) < less_than for sizes in _TRACES.known or ()}
    if len(outcomes) > 1:
        raise SizeError(
            f"whether {condition} is not the same for all examples, and the function does one or "
            f"the other: call it for those of which it holds, and for the others"
        )
    (holds,) = outcomes
    _TRACES.guards.append(Guard(size, less_than, holds))
    return holds


@contextlib.contextmanager
def varying_sizes() -> Iterator[str]:
    """Give what is put behind the names of sizes while a function of them is traced.

    So they differ from those of the functions in which it is traced.
    """
    _TRACES.depth += 1
    try:
        yield "'" * (_TRACES.depth - 1)
    finally:
        _TRACES.depth -= 1


def differs_by_example(n: Dimension) -> bool:
    """Say if it is the size of examples: what one of them is too short for is no error then.

    It is not that of an array by itself, whose size is known when the function is traced for it.
    """
    return isinstance(n, Size) and (_TRACES.of_examples or not _is_known(n))


def _is_known(n: Size) -> bool:
    """Say if the variables of a size are known while a function is traced."""
    known = _TRACES.known or ()
    return bool(known) and not any([v not in sizes for sizes in known for v in n.variables()])


def without_elements(n: Dimension, caller: str) -> bool:
    """Say if there is nothing along an axis of this size, for functions that are undefined then.

    ``SizeError`` if that holds of some examples alone, or is known only while the program runs.
    """
    if not isinstance(n, Size):
        return not n
    least, most = n.bounds()
    if least > 0 or most <= 0:
        return most <= 0
    undefined = f"{caller}: {caller} of an array without elements is undefined, and the size {n}"
    if not _is_known(n):
        raise SizeError(
            f"{undefined} may be 0, which is known only while the program runs: give it the value "
            f"then, initial=, where there is one; or a size with a greater bound, such as "
            f"{{0: stretto.dynamic_size('n', least=2)}}; or call it where lengths are known, "
            f"outside of jit"
        )
    empty = {n.known(sizes) < 1 for sizes in _TRACES.known or ()}
    if len(empty) > 1:
        raise SizeError(
            f"{undefined} is 0 for some of the examples: leave these out, ragged[places], or give "
            f"the value that they get, initial=, where there is one"
        )
    (nothing,) = empty
    _TRACES.guards.append(Guard(n, 1, nothing))
    return nothing


sizes._GUARDS.append(_decide)
