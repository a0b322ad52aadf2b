"""Random bits from a counter: the Threefry-2x32 block cipher.

Layer 2 (ops). Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3",
SC 2011; 20 rounds, rotations from its table 2. What counters a key is used with is the matter of
``stretto.random``.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.interpreter import as_value
from stretto.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto.core.program import Equation, Program
from stretto.core.recorder import record
from stretto.core.types import ArrayType, array_type
from stretto.ops.arithmetic import ADD
from stretto.ops.broadcast import broadcast_to
from stretto.ops.comparison import OR, SHIFT_LEFT, SHIFT_RIGHT_LOGICAL, XOR, full
from stretto.ops.elementwise import align_mapped, broadcast_shapes

__all__ = ["threefry2x32"]

_UINT32 = np.dtype(np.uint32)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_BLOCK = 1 << 13


class Threefry2x32(Primitive):
    """The cipher of pairs of counters under pairs of keys, element by element."""

    name = "threefry2x32"
    multiple = True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ArrayType]:
        """Two words of the operands' one shape."""
        first = types[0]
        if any(t.shape != first.shape or t.dtype != _UINT32 for t in types):
            raise TypeError(
                f"threefry2x32: expected uint32 arrays of one shape, got "
                f"{', '.join(map(str, types))}"
            )
        out = array_type(first.shape, _UINT32)
        return out, out

    def reference(
        self, k0: np.ndarray, k1: np.ndarray, c0: np.ndarray, c1: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """NumPy's integers, in blocks that stay in the cache."""
        if c0.size <= _BLOCK:
            return _cipher(k0, k1, c0, c1)
        flat = [_scalar_or_flat(x) for x in (k0, k1, c0, c1)]
        out0, out1 = np.empty(c0.size, _UINT32), np.empty(c0.size, _UINT32)
        for start in range(0, c0.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            out0[part], out1[part] = _cipher(*[x[part] if x.ndim else x for x in flat])
        return out0.reshape(c0.shape), out1.reshape(c0.shape)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """From where NumPy takes longer than compiling."""
        return types[0].size >= 1 << 22

    def lower(self, b: Any, k0: Any, k1: Any, c0: Any, c1: Any) -> list[Any]:
        """A call of a function that holds the rounds, written once a shape."""
        if not c0.type.size:
            return [b.splat(0, out) for out in b.outs]
        return b.call(_rounds(c0.type.shape), (k0, k1, c0, c1))

    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Mapped axes to one place."""
        values, axis = align_mapped(size, args, axes)
        return self(*values), (axis, axis)


THREEFRY2X32 = Threefry2x32()


def _scalar_or_flat(x: np.ndarray) -> np.ndarray:
    """One element where all are that one (a broadcast view), else the elements in a row."""
    return x.reshape(-1) if any(x.strides) else x[(0,) * x.ndim]


def _cipher(
    k0: np.ndarray, k1: np.ndarray, c0: np.ndarray, c1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Five groups of four rounds, a word of the key added after each group."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0, x1 = np.add(c0, k0), np.add(c1, k1)
    if not x0.ndim:
        x0, x1 = np.asarray(x0), np.asarray(x1)
    spare = np.empty_like(x1)
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            np.add(x0, x1, out=x0)
            np.left_shift(x1, np.uint32(r), out=spare)
            np.right_shift(x1, np.uint32(32 - r), out=x1)
            np.bitwise_or(x1, spare, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        np.add(x0, keys[(group + 1) % 3], out=x0)
        np.add(x1, keys[(group + 2) % 3] + np.uint32(group + 1), out=x1)
    return x0, x1


@functools.lru_cache(256)
def _rounds(shape: tuple[int, ...]) -> Program:
    """The cipher written with other operations."""

    def cipher(k0: Any, k1: Any, c0: Any, c1: Any) -> Any:
        word = lambda n: full(shape, n, _UINT32)
        keys = (k0, k1, XOR(XOR(k0, k1), word(_PARITY)))
        x0, x1 = ADD(c0, k0), ADD(c1, k1)
        for group in range(5):
            for r in _ROTATIONS[group % 2]:
                x0 = ADD(x0, x1)
                turned = OR(SHIFT_LEFT(x1, word(r)), SHIFT_RIGHT_LOGICAL(x1, word(32 - r)))
                x1 = XOR(x0, turned)
            x0 = ADD(x0, keys[(group + 1) % 3])
            x1 = ADD(x1, ADD(keys[(group + 2) % 3], word(group + 1)))
        return [x0, x1], None

    program, _, _ = record(cipher, [array_type(shape, _UINT32)] * 4)
    # Without the position of whoever asked first.
    equations = [Equation(e.primitive, e.inputs, e.outputs) for e in program.equations]
    return Program(program.inputs, equations, program.outputs, "threefry2x32")


def threefry2x32(k0: Any, k1: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """The two words that Threefry-2x32 makes of counter words ``c0, c1`` under key ``k0, k1``.

    All uint32; broadcast to one shape. Source: Salmon et al., SC 2011.

    >>> import stretto.numpy as snp
    >>> zero = snp.uint32(0)
    >>> [hex(int(word)) for word in threefry2x32(zero, zero, zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    values = [
        as_value(x, "threefry2x32", name)
        for x, name in zip((k0, k1, c0, c1), ("k0", "k1", "c0", "c1"), strict=True)
    ]
    shape = broadcast_shapes("threefry2x32", *[x.shape for x in values])
    return THREEFRY2X32(*[broadcast_to(x, shape) for x in values])
