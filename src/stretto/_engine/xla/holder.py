"""What an array holds: a NumPy array, a device buffer, or both, and a type.

The base class of ``Array``; the C extension has its own version, since every result is one. In the
place of a buffer there may be something that says why there is none (``Absent``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from stretto._engine.core.errors import DonatedArrayError
from stretto._engine.native import native

if TYPE_CHECKING:
    import numpy as np

    from stretto._engine.core.position import Position
    from stretto._engine.core.types import ArrayType


class _Holder:
    """The three attributes, as slots."""

    __slots__ = ("_buffer", "_host", "type")

    _host: np.ndarray | None
    _buffer: Any
    type: ArrayType

    def __init__(self, host: np.ndarray | None, type: ArrayType, buffer: Any = None) -> None:
        self._host = host
        self._buffer = buffer
        self.type = type


if TYPE_CHECKING:
    Holder = _Holder
else:
    Holder = _Holder if native is None else native.Holder


class Absent:
    """What stands where a buffer was, or will be."""

    __slots__ = ()

    def arrived(self, type: ArrayType) -> Any:
        """The buffer, once it is there; an error if it will not be."""
        raise NotImplementedError


class Donated(Absent):
    """Takes the place of an array's buffer once a call has taken that; says so at each use.

    ``function`` is the call that took it, or None if the array was deleted.
    """

    __slots__ = ("argument", "function", "position")

    def __init__(
        self, function: str | None, argument: str = "", position: Position | None = None
    ) -> None:
        self.function = function
        self.argument = argument
        self.position = position

    def arrived(self, type: ArrayType) -> NoReturn:
        """Raise ``DonatedArrayError``, which names the call."""
        if self.function is None:
            raise DonatedArrayError(
                f"this {type} was deleted by its delete(): use it before, or delete a copy of it"
            )
        where = f" at {self.position}" if self.position else ""
        raise DonatedArrayError(
            f"this {type} was donated to {self.function} as its argument {self.argument}{where}, "
            f"and its memory holds a result of that call now: use the result; or donate a copy, "
            f"{self.function}(snp.copy(...)); or leave {self.argument} out of donate_argnums and "
            f"donate_argnames"
        )
