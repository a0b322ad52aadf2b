"""The table of eager calls: by function and types, what computes the result at rest.

The general way of an operation promotes, broadcasts, infers a type and asks the current
interpreter, which costs more than a small array's arithmetic. Once it has computed with operands of
some types, it enters here by which NumPy function, and of which type the result is. Calls in C
(``native``) look there first, be they operators of arrays or the eager interpreter's ``process``.
Without the extension nothing is entered, and all calls are general.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.caches import CAPACITY, room
from stretto._engine.core.config import watch
from stretto._engine.core.types import ArrayType
from stretto._engine.core.typing import ArrayLike, Tree
from stretto._engine.native import native
from stretto._engine.xla.array import Array

_FAR = 1 << 63

TABLE: dict[Any, Any] = {}
"""Records (``native.EagerRecord``) by function, then by the type of each operand in turn.

A function is a primitive, or an ``Operator``; there a Python number's type is its class.
"""


def keep(
    function: Any,
    types: Sequence[Any],
    rule: Callable[..., Any],
    out: ArrayType,
    dtype: np.dtype | None = None,
    between: tuple[int, int] = (0, 0),
) -> None:
    """Let calls with operands of these types take the short way from now on.

    Args:
        function: what the table knows it by.
        types: those of the operands, of Python numbers the classes.
        rule: what computes the result, from NumPy arrays.
        out: the type of the result.
        dtype: that of the result; by default what ``rule`` returns has it for certain.
        between: the least and the greatest Python integer that may be an operand.
    """
    if native is None:
        return
    record = native.EagerRecord(rule, out, dtype, *between)
    row, keys = TABLE, [function, *types]
    if len(TABLE) >= CAPACITY:
        forget()
    for key in keys[:-1]:
        row = row.setdefault(key, {})
        if row.__class__ is not dict:
            return  # there is a record for fewer operands, and only one number of them is supported
        room(row)
    row.setdefault(keys[-1], record)


def forget() -> None:
    """Empty the table. The rows that calls hold are emptied, since these would not see new ones."""
    for function, row in list(TABLE.items()):
        if function in _held:
            row.clear()
        else:
            TABLE.pop(function, None)


_held: set[Any] = set()
"""The functions of which calls hold the row."""


def eager_call(
    general: Callable[..., Any], function: Any = None, reflected: bool = False
) -> Callable[..., Any]:
    """Put the short way, in C, in front of a general one; without the extension there is none.

    Args:
        general: takes any operands.
        function: what the table knows it by; None for the ``process`` of an interpreter, which is
            given primitives.
        reflected: whether the first argument is the right operand.

    Returns:
        A function, or a method, with the arguments of ``general``.
    """
    if native is None:
        return general
    if function is None:
        return native.EagerCall(general, TABLE, by_primitive=True)
    _held.add(function)
    return native.EagerCall(general, TABLE.setdefault(function, {}), reflected=reflected)


class Operator:
    """An operator of two operands, as the table knows it.

    Args:
        name: ``add`` for ``__add__``.
        rule: what computes the result, from NumPy arrays.
    """

    def __init__(self, name: str, rule: Callable[..., Any]) -> None:
        self.rule = rule
        self.apply: Any = None
        """The general way, which enters the types that it met at rest."""
        OPERATORS[name] = self

    def takes_numbers(self, type: ArrayType, out: ArrayType) -> bool:
        """Say whether NumPy's own rules for Python numbers, with this type, are those of here.

        They are for NumPy's own dtypes, except that it compares integers of any size.
        """
        builtin = isinstance(self.rule, np.ufunc) and type.dtype.isbuiltin == 1
        return builtin and (type.kind == "float" or out.dtype is type.dtype)

    def met(self, x: ArrayLike, y: ArrayLike, type: ArrayType, out: ArrayType) -> None:
        """Keep these types, unless a Python number met a dtype that is not NumPy's own."""
        if x.__class__ is y.__class__ or self.takes_numbers(type, out):
            self.keep(x, y, out)

    def keep(self, x: Tree, y: Tree, out: ArrayType) -> None:
        """Note that these operands gave this type."""
        left = x.type if x.__class__ is Array else x.__class__
        right = y.type if y.__class__ is Array else y.__class__
        if right in TABLE.get(self, {}).get(left, ()):
            return  # a function is called in general each time, and only its operator by the table
        between = (0, 0)
        if left is int or right is int:
            between = _integers((y if left is int else x).type.dtype)
        keep(self, (left, right), self.rule, out, between=between)
        if watch.places and y.__class__ is x.__class__ and x.type.ndim != y.type.ndim:
            self.forget_ranks()

    def forget_ranks(self) -> None:
        """Drop what was kept for operands of different ranks."""
        for left, row in list(TABLE.get(self, {}).items()):
            for right in list(row):
                if left.__class__ is right.__class__ and left.ndim != right.ndim:
                    row.pop(right, None)


OPERATORS: dict[str, Operator] = {}
"""The operators by name."""


def _forget_ranks() -> None:
    for operator in OPERATORS.values():
        operator.forget_ranks()


watch.forget.append(_forget_ranks)


@functools.cache
def _integers(dtype: np.dtype) -> tuple[int, int]:
    """Find the least and the greatest Python integer of 64 bits that NumPy takes as this dtype."""
    if dtype.kind not in "iu":
        return -_FAR, _FAR - 1
    info = np.iinfo(dtype)
    return int(info.min), min(int(info.max), _FAR - 1)
