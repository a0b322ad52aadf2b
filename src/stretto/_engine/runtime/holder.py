"""What an array holds: a NumPy array, a device buffer, or both, and a type.

Layer 6 (runtime). The base class of ``Array``; the C extension has its own version, since every
result is one. Next, read ``array``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stretto._engine.core.native import native

if TYPE_CHECKING:
    import numpy as np

    from stretto._engine.core.types import ArrayType

__all__ = ["Holder"]


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
