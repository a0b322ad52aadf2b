"""Compiled programs by what they were compiled from: those used of late, and all that are in use.

A function that is made anew for each call, such as a lambda, finds the program of the one before.
So programs outlive their functions, but only so many bytes of them: the least recently used go
first. One that is let go of stays for as long as its function, or anybody else, has it, and is
found for as long.
"""

from __future__ import annotations

import collections
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.weak import WeakTable
from stretto._engine.xla.pjrt import Executable

if TYPE_CHECKING:  # loaded when the first program is compiled
    import hashlib
else:
    hashlib = LazyModule("hashlib")

E = TypeVar("E", bound=Executable)

MOST = 1 << 25
"""The bytes of programs that are kept though their functions may be gone."""

_EACH, _PER_CHARACTER = 340_000, 70
"""What a program takes, measured: 340 kB where the text has 400 characters, 659 with 5,100, and
6.2 MB with 84,000. XLA tells no size of its code on the CPU."""


def estimated(executable: Executable) -> int:
    """The bytes that a compiled program takes, by estimate."""
    return _EACH + _PER_CHARACTER * len(executable.text)


def digest(text: str) -> bytes:
    """What stands for a text in a table, which then keeps none."""
    return hashlib.blake2b(text.encode(), digest_size=32).digest()


class Recent(Generic[E]):
    """A table of programs; see above. It has what ``once`` asks of a dictionary."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all of them."""
        self._used: collections.OrderedDict[Hashable, E] = collections.OrderedDict()
        self._there: WeakTable[E] = WeakTable()

    def get(self, key: Hashable) -> E | None:
        """The program, which is the most recently used one now; None if it is gone."""
        found = self._used.get(key) or self._there.get(key)
        return None if found is None else self.setdefault(key, found)

    def setdefault(self, key: Hashable, executable: E) -> E:
        """Keep it, unless there is one, and return the one that is kept."""
        executable = self._used.setdefault(key, self._there.keep(key, executable))
        try:
            self._used.move_to_end(key)
            while len(self._used) > 1 and self.bytes() > MOST:
                self._used.popitem(last=False)
        except KeyError:  # another thread has removed it
            pass
        return executable

    def bytes(self) -> int:
        """What those take that were used of late, by estimate."""
        return sum([estimated(executable) for executable in list(self._used.values())])

    def __len__(self) -> int:
        return len(self._used)
