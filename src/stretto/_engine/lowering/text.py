"""Spell types, constants and names in StableHLO; hold whole texts, and the facts about them.

Source: the StableHLO specification.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of, real_dtype

_ELEMENT = {
    "bool": "i1",
    "float4_e2m1fn": "f4E2M1FN",
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "complex64": "complex<f32>",
    "complex128": "complex<f64>",
    **{f"int{n}": f"i{n}" for n in (2, 4, 8, 16, 32, 64)},
    **{f"uint{n}": f"ui{n}" for n in (2, 4, 8, 16, 32, 64)},
}
_TENSORS: dict[ArrayType, str] = {}


def element_type(dtype: np.dtype) -> str:
    """Return the MLIR element type: ``f32``, ``i1``, ``f8E4M3FN``."""
    name = dtype.name
    return _ELEMENT.get(name) or "f8" + name.removeprefix("float8_").upper()


def tensor_type(type: ArrayType) -> str:
    """Return the MLIR tensor type: ``tensor<2x3xf32>``."""
    text = _TENSORS.get(type)
    if text is None:
        sizes = "".join(["?x" if is_size(n) else f"{n}x" for n in type.shape])
        text = f"tensor<{sizes}{element_type(type.dtype)}>"
        _TENSORS[type] = text
    return text


@functools.lru_cache(4096)
def function_type(types: tuple[ArrayType, ...], out: ArrayType) -> str:
    """Return the function type of an operation with one result."""
    return f"({', '.join(map(tensor_type, types))}) -> {tensor_type(out)}"


class Operand:
    """An SSA value in the text: its name and type."""

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: ArrayType) -> None:
        self.name = name
        self.type = type


class Decided(Operand):
    """An integer of rank 0 that is known where the text is written."""

    __slots__ = ("number",)

    def __init__(self, name: str, type: ArrayType, number: int) -> None:
        super().__init__(name, type)
        self.number = number


class Element(NamedTuple):
    """An element of an array along its first axis, in a loop."""

    array: Operand
    index: Operand


class HostCall(NamedTuple):
    """A call of a Python function while a program runs."""

    function: Callable[[Sequence[Any]], Sequence[Any]]
    """A function from values of these types to values."""
    types: tuple[ArrayType, ...]
    ordered: bool
    """Says whether a token follows the operands, and another the results; see ``TOKEN``."""


class Text(str):
    """StableHLO, with the facts about it.

    It ends with the positions of the user's source, and with names that stand at these. ``calls``
    are the functions that it calls, by number, and ``arrays`` are passed after the arguments.
    """

    __slots__ = ("_positions", "arrays", "calls", "facts")

    facts: Facts
    calls: tuple[HostCall, ...]
    arrays: tuple[np.ndarray, ...]

    def __new__(
        cls,
        program: str,
        positions: str = "",
        names: str = "",
        facts: Facts | None = None,
        calls: tuple[HostCall, ...] = (),
        arrays: tuple[np.ndarray, ...] = (),
    ) -> Text:
        """Put the parts together."""
        self = super().__new__(cls, program + positions + names)
        self._positions = len(program), len(program) + len(positions)
        self.facts = facts or Facts()
        self.calls, self.arrays = calls, arrays
        return self

    def without_positions(self) -> str:
        """Return the text but for the positions of the user's source."""
        start, end = self._positions
        return self[:start] + self[end:]


TOKEN = array_type((), np.dtype(np.int32))
"""The type of the value that each ordered call of a Python function takes from the one before.

It makes the order a dependency, which the compiler keeps; the value itself has no meaning.
"""


def element_text(value: Any, dtype: np.dtype) -> str:
    """Return the element of a constant, written so that it is read back exactly."""
    kind = kind_of(dtype)
    if kind == "bool":
        return "true" if value else "false"
    if kind in ("int", "uint"):
        return str(int(value))
    if kind == "complex":
        part = real_dtype(dtype)
        return f"({element_text(value.real, part)}, {element_text(value.imag, part)})"
    x = np.asarray(value, dtype)
    number = float(x)
    if number - number == 0:  # finite
        text = repr(number)
        return text if "." in text and "e" not in text else f"{number:.17e}"
    bits = x.view(f"u{dtype.itemsize}")
    return f"0x{int(bits):0{dtype.itemsize * 2}X}"


def identifier(name: str) -> str:
    """Return the name with characters replaced that MLIR would not accept without quotes."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)
    return plain if plain and not plain[0].isdigit() else f"_{plain}"


def escape(text: str) -> str:
    """Escape control characters, quotes and backslashes, for the inside of an MLIR string."""
    return "".join(f"\\{ord(c):02X}" if c < " " or c in '"\\\x7f' else c for c in text)


# Facts about a program, noted while its text is written


class Product(NamedTuple):
    """A ``dot_general`` that was written."""

    left: ArrayType
    right: ArrayType
    out: ArrayType
    summed: tuple[tuple[int, ...], tuple[int, ...]]
    """The axes of each operand that are multiplied and summed, in pairs."""
    is_batch: bool
    """Says whether the operands share axes."""
    swapped: tuple[bool, bool]
    """Says of each operand whether it is a transpose that swaps the last two axes alone."""
    repeats: bool
    """Says whether an operand is a broadcast."""
    in_loop: bool


@dataclass(slots=True)
class Facts:
    """Hold what a program has in it.

    "In a loop" is also what is in a function of the module's own, since a loop may call it.
    """

    name: str = "main"
    """The module's name."""
    results: defaultdict[ArrayType, int] = field(default_factory=lambda: defaultdict(int))
    """Counts the operations with one result that give each type."""
    products: list[Product] = field(default_factory=list)
    """Those that the compiler's libraries compute."""
    kernel_products: int = 0
    """Those that kernels of our own compute."""
    fused_products: int = 0
    """Those of them that have what follows in them."""
    kernel_rows: int = 0
    """The programs over rows that kernels of our own run."""
    kernel_updates: int = 0
    """The updates of many arrays, each one call, that kernels of our own compute."""
    kernel_attention: int = 0
    """The attention, and the gradients of it, that kernels of our own compute."""
    kernel_gathers: int = 0
    """The gathers, and the sums of them, that kernels of our own compute."""
    targets: set[str] = field(default_factory=set)
    """The names of the registered functions that it calls."""
    has_reductions: bool = False
    has_loops: bool = False
    has_barriers: bool = False
    has_barriers_in_loops: bool = False
    has_convolutions_in_loops: bool = False
    largest_call_in_loops: int = 0
    """The elements of the largest real array of a call in a loop that is not to be inlined."""
    may_take_long: bool = False
    """Says whether it may run for a second or longer."""
