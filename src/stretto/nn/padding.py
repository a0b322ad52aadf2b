"""Layers that pad: with zeros or a constant, reflected, replicated, circular.

Arguments and attributes are PyTorch's; the function is ``functional.pad``. Those of signals, images
and volumes differ in ``_axes`` alone, and their docstrings are made of their base's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn.functional.checks import numbers
from stretto.nn.functional.padding import pad
from stretto.nn.inputs import check_signal
from stretto.nn.module import Module

_INPUTS = {
    1: "signals (batch, channels, length)",
    2: "images (batch, channels, height, width)",
    3: "volumes (batch, channels, depth, height, width)",
}


def _docstring(cls: type[_Pad]) -> str:
    """Return the docstring of a layer of this number of axes."""
    n, constant = cls._axes, issubclass(cls, _ConstantPad)
    first, _, more = cls._words.partition("\n\n")
    sizes, padded = (str(s[: n + 1]) for s in ((1, 4, 5, 6), (1, 6, 7, 8)))
    lines = [
        f"{first} {_INPUTS[n]}, or one.",
        *(["", more] if more else []),
        "",
        "Args:",
        "    padding: a number for all ends, or (before, after)"
        + ("" if n == 1 else " of each axis, the last first")
        + "; negative",
        "        ones take elements away.",
        *(["    value: the constant."] if constant else []),
        "",
        "Raises:",
        "    ValueError: ``padding`` has another length, an input has another rank, or an axis has",
        "        too few elements.",
        "",
        f"As PyTorch's ``nn.{cls.__name__}``; see ``functional.pad``.",
        "",
        ">>> import stretto as st",
        f">>> st.nn.{cls.__name__}(1{', 2.0' if constant else ''})(st.numpy.ones({sizes})).shape",
        padded,
    ]
    return "\n".join(lines)


class _Pad(Module):
    """``padding`` is a number for all ends, or (before, after) for each axis, the last first."""

    _axes: ClassVar[int]
    _mode: ClassVar[str] = "constant"
    _words: ClassVar[str] = "Put zeros around"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_axes" in vars(cls):
            cls.__doc__ = _docstring(cls)

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        n, ends = self._axes, numbers(padding, type(self).__name__, "padding")
        self.padding = ends * (2 * n) if len(ends) == 1 else ends
        if len(self.padding) != 2 * n:
            raise ValueError(
                f"{type(self).__name__}: padding must be a number or {2 * n}, (before, after) of "
                f"each axis, the last first; got {padding!r}"
            )

    def forward(self, input: ArrayLike) -> Array:
        """Pad the input.

        Args:
            input: (batch, channels, *space), or without the batch.

        Returns:
            The same axes with the padding around them.
        """
        x = check_signal(self, input, self._axes)
        return pad(x, self.padding, self._mode)

    def extra_repr(self) -> str:
        """Return the padding."""
        return str(self.padding)


class _ConstantPad(_Pad):
    _words = "Put a constant around"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    @described_like(_Pad.forward)
    def forward(self, input: ArrayLike) -> Array:
        """Pad the input."""
        x = check_signal(self, input, self._axes)
        return pad(x, self.padding, value=self.value)

    def extra_repr(self) -> str:
        """Return the padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad):
    _mode = "reflect"
    _words = "Reflect the ends of\n\nThe end elements themselves are not repeated."


class _ReplicationPad(_Pad):
    _mode = "replicate"
    _words = "Repeat the end elements of"


class _CircularPad(_Pad):
    _mode = "circular"
    _words = "Wrap around the ends of"


class ConstantPad1d(_ConstantPad):
    _axes = 1


class ConstantPad2d(_ConstantPad):
    _axes = 2


class ConstantPad3d(_ConstantPad):
    _axes = 3


class ZeroPad1d(_Pad):
    _axes = 1


class ZeroPad2d(_Pad):
    _axes = 2


class ZeroPad3d(_Pad):
    _axes = 3


class ReflectionPad1d(_ReflectionPad):
    _axes = 1


class ReflectionPad2d(_ReflectionPad):
    _axes = 2


class ReflectionPad3d(_ReflectionPad):
    _axes = 3


class ReplicationPad1d(_ReplicationPad):
    _axes = 1


class ReplicationPad2d(_ReplicationPad):
    _axes = 2


class ReplicationPad3d(_ReplicationPad):
    _axes = 3


class CircularPad1d(_CircularPad):
    _axes = 1


class CircularPad2d(_CircularPad):
    _axes = 2


class CircularPad3d(_CircularPad):
    _axes = 3
