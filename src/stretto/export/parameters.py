"""Static parameters of operations as JSON, and back, by the annotation of their field.

What is read is what the annotation says, or ``Damaged`` is raised: numbers, text, dtypes, members
of enumerations and records of ours by name, sizes that vary, and programs and arrays by their
number in the tables of the file. Nothing is called that the file names.
"""

from __future__ import annotations

import collections.abc
import operator
import types
import typing
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto import export
from stretto._engine import higher_order
from stretto._engine.core.errors import ExportError
from stretto._engine.core.program import Program
from stretto._engine.core.sizes import Floor, Size, SizeVariable, greater
from stretto._engine.core.types import DTYPES, ArrayType
from stretto._engine.ops.iota import Held
from stretto.export.operations import parameters_of
from stretto.files.names import Damaged

_RECORDS = {
    "AxisWindow": "stretto._engine.ops.reducing.window",
    "ConvDimensionNumbers": "stretto._engine.ops.convolution.geometry",
    "GatherDimensionNumbers": "stretto._engine.ops.index.geometry",
    "ScatterDimensionNumbers": "stretto._engine.ops.index.geometry",
    **dict.fromkeys(("BackwardRule", "JvpRule", "RefusedRule", "VjpRule"), "stretto.export.rules"),
}
"""The classes of records that a file may have, and their modules."""

_ENUMS = {
    "FftType": "stretto._engine.ops.fft",
    "Plan": "stretto._engine.passes.formulations.forms",
    "RandomAlgorithm": "stretto._engine.ops.random_bits",
}

_POLICIES = ("everything_saveable", "nothing_saveable", "dots_saveable",
             "dots_with_no_batch_dims_saveable")  # fmt: skip
_POLICIES_OF_NAMES = ("save_anything_except_these_names", "save_any_names_but_these",
                      "save_only_these_names")  # fmt: skip

_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
_LONGEST_TEXT = 1 << 12
_MOST_TERMS, _MOST_POWER, _DEEPEST = 64, 16, 8
"""The most terms of a size, the greatest power in it, and the most sizes inside of each other."""


# To the file


def to_data(value: Any, hint: Any, w: Any) -> Any:
    """Return a parameter as JSON; the writer ``w`` numbers programs, types and arrays.

    Raises ``ExportError`` for a Python function and what else no file has.
    """
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else to_data(value, _chosen(hint, isinstance(value, tuple)), w)
    if origin is tuple:
        return [to_data(x, h, w) for x, h in _each(value, typing.get_args(hint))]
    if origin is collections.abc.Callable:
        return _function_data(value, w)
    write = _WRITTEN.get(hint)
    if write is not None:
        return write(value, w)
    if _is_one_of(hint, _ENUMS):
        return hint(value).name
    if _is_one_of(hint, _RECORDS):
        return [to_data(getattr(value, name), h, w) for name, h in parameters_of(hint).items()]
    raise ExportError(f"{w.caller}: a parameter is {value!r}, which no file has")


def _is_one_of(hint: Any, homes: dict[str, str]) -> bool:
    return homes.get(getattr(hint, "__name__", "")) == getattr(hint, "__module__", None)


def _chosen(hint: Any, is_tuple: bool) -> Any:
    """Return the alternative that a value, or its JSON, is of."""
    others = [h for h in typing.get_args(hint) if h is not type(None)]
    return next((h for h in others if (typing.get_origin(h) is tuple) == is_tuple), others[0])


def _each(values: Any, hints: tuple[Any, ...]) -> Any:
    if hints[-1] is Ellipsis:
        return [(x, hints[0]) for x in values]
    return zip(values, hints, strict=True)


def _function_data(value: Any, w: Any) -> Any:
    if isinstance(value, export.rules.RULES):
        return [type(value).__name__, to_data(value, type(value), w)]
    made_by = getattr(value, "made_by", None)
    if made_by is not None:
        maker, names = made_by
        if maker in _POLICIES_OF_NAMES:
            return ["policy", maker, *names]
        return ["policies", *[_function_data(part, w) for part in names]]
    name = getattr(value, "__name__", type(value).__name__)
    if name in _POLICIES and getattr(higher_order.checkpoint, name) is value:
        return ["policy", name]
    raise ExportError(
        f"{w.caller}: a checkpoint has the policy {name}, which is a Python function, and no file "
        f"has one: use a policy of stretto.checkpoint_policies"
    )


def size_data(n: Any, w: Any) -> Any:
    """Return a size as JSON: an integer, or terms, each a coefficient with factors and powers."""
    if not isinstance(n, Size):
        return int(operator.index(n))
    return [
        [coefficient, [[_factor_data(factor, w), power] for factor, power in monomial]]
        for monomial, coefficient in n.terms
    ]


def _printable(x: str, w: Any) -> str:
    if not x.isprintable() or len(x) > _LONGEST_TEXT:
        raise ExportError(f"{w.caller}: {x[:100]!r} has characters that cannot be printed")
    return x


def _factor_data(factor: Any, w: Any) -> Any:
    if isinstance(factor, SizeVariable):
        return w.variable(factor)
    if isinstance(factor, Floor):
        return {"floor": [size_data(factor.size, w), factor.by]}
    return {"positive": size_data(factor.size, w)}


_WRITTEN: dict[Any, Callable[[Any, Any], Any]] = {
    bool: lambda x, w: bool(x),
    int: size_data,
    str: _printable,
    bytes: lambda x, w: x.hex(),
    np.dtype: lambda x, w: x.name,
    Size: size_data,
    SizeVariable: lambda x, w: w.variable(x),
    ArrayType: lambda x, w: w.type(x),
    Program: lambda x, w: w.program(x),
    Held: lambda x, w: w.constant(x),
}


# From the file


def from_data(data: Any, hint: Any, r: Any) -> Any:
    """Return a parameter, which is as its annotation says; the reader ``r`` has the tables.

    Raises ``Damaged``.
    """
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        if data is None and type(None) in typing.get_args(hint):
            return None
        return from_data(data, _chosen(hint, isinstance(data, list)), r)
    if origin is tuple:
        return tuple(_list(data, typing.get_args(hint), r))
    if origin is collections.abc.Callable:
        return _function(data, r)
    read = _READ.get(hint)
    if read is not None:
        return read(data, r)
    if _is_one_of(hint, _ENUMS):
        if not isinstance(data, str) or data not in hint.__members__:
            raise Damaged(f"there is no {hint.__name__} {_short(data)}")
        return hint[data]
    if _is_one_of(hint, _RECORDS):
        fields = parameters_of(hint)
        return hint(*_list(data, (*fields.values(),), r))
    raise Damaged("no file has a parameter of this kind")


def _list(data: Any, hints: tuple[Any, ...], r: Any) -> list[Any]:
    if not isinstance(data, list):
        raise Damaged(f"expected a list, got {_short(data)}")
    if hints[-1:] != (Ellipsis,) and len(hints) != len(data):
        raise Damaged(f"expected a list of {len(hints)}, got one of {len(data)}")
    return [from_data(x, h, r) for x, h in _each(data, hints)] if data else []


def _function(data: Any, r: Any) -> Any:
    if not (isinstance(data, list) and data and all(isinstance(x, (str, list)) for x in data)):
        raise Damaged(f"expected a rule or a policy, got {_short(data)}")
    kind, *rest = data
    if kind == "policy" and rest and all(isinstance(x, str) for x in rest):
        name, *names = rest
        if name in _POLICIES and not names:
            return getattr(higher_order.checkpoint, name)
        if name in _POLICIES_OF_NAMES:
            return getattr(higher_order.checkpoint, name)(*names)
    if kind == "policies" and len(rest) == 2:
        return higher_order.checkpoint.save_from_both_policies(
            *[_function(part, r) for part in rest]
        )
    for cls in export.rules.RULES:
        if kind == cls.__name__ and len(rest) == 1:
            return from_data(rest[0], cls, r)
    raise Damaged(f"there is no rule or policy {_short(data)}")


def whole(data: Any, least: int = _LEAST, most: int = _MOST) -> int:
    """Return an integer between the two. Raises ``Damaged``."""
    if data.__class__ is not int or not least <= data <= most:
        raise Damaged(f"expected an integer from {least} to {most}, got {_short(data)}")
    return data


def text(data: Any) -> str:
    """Return text that can be printed, of some length. Raises ``Damaged``."""
    if data.__class__ is not str or len(data) > _LONGEST_TEXT or not data.isprintable():
        raise Damaged(
            f"expected text of at most {_LONGEST_TEXT} characters that can be printed, got "
            f"{_short(data)}"
        )
    return data


def flag(data: Any) -> bool:
    """Return true or false. Raises ``Damaged``."""
    if data.__class__ is not bool:
        raise Damaged(f"expected true or false, got {_short(data)}")
    return data


def dtype(data: Any) -> np.dtype:
    """Return the dtype of a name. Raises ``Damaged``."""
    if data.__class__ is not str or data not in DTYPES:
        raise Damaged(f"there is no dtype {_short(data)}")
    return DTYPES[data]


def octets(data: Any) -> bytes:
    """Return bytes, which are written as hexadecimal digits. Raises ``Damaged``."""
    try:
        return bytes.fromhex(text(data))
    except ValueError:
        raise Damaged(f"expected hexadecimal digits, got {_short(data)}") from None


def size(data: Any, r: Any, depth: int = 0) -> Any:
    """Return a size: an integer, or one that varies, in normal form. Raises ``Damaged``."""
    if data.__class__ is int:
        return whole(data)
    if data.__class__ is not list or not 0 < len(data) <= _MOST_TERMS or depth > _DEEPEST:
        raise Damaged(f"expected a size, got {_short(data)}")
    total: Any = 0
    for term in data:
        coefficient, factors = _pair(term)
        product: Any = whole(coefficient)
        if factors.__class__ is not list or len(factors) > _MOST_POWER:
            raise Damaged(f"expected factors of a size, got {_short(factors)}")
        for entry in factors:
            factor, power = _pair(entry)
            value = _factor(factor, r, depth)
            for _ in range(whole(power, 1, _MOST_POWER)):
                product = _bounded(product * value)
        total = _bounded(total + product)
    return total


def _factor(data: Any, r: Any, depth: int) -> Any:
    if data.__class__ is int:
        return r.variable(data)
    if data.__class__ is dict and data.keys() == {"floor"}:
        n, by = _pair(data["floor"])
        return size(n, r, depth + 1) // whole(by, 1)
    if data.__class__ is dict and data.keys() == {"positive"}:
        return greater(size(data["positive"], r, depth + 1), 0)
    raise Damaged(f"expected a factor of a size, got {_short(data)}")


def _pair(data: Any) -> Any:
    if data.__class__ is not list or len(data) != 2:
        raise Damaged(f"expected a pair, got {_short(data)}")
    return data


def _bounded(n: Any) -> Any:
    if isinstance(n, Size):
        if len(n.terms) > _MOST_TERMS or any([abs(c) > _MOST for _, c in n.terms]):
            raise Damaged(f"a size has more than {_MOST_TERMS} terms, or too large numbers")
        return n
    return whole(n)


def _short(data: Any) -> str:
    """Return the beginning of what was read, for a message."""
    shown = repr(data) if not isinstance(data, (list, dict)) else f"a {type(data).__name__}"
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


_READ: dict[Any, Callable[[Any, Any], Any]] = {
    bool: lambda data, r: flag(data),
    int: size,
    str: lambda data, r: text(data),
    bytes: lambda data, r: octets(data),
    np.dtype: lambda data, r: dtype(data),
    Size: size,
    SizeVariable: lambda data, r: r.declared(data),
    ArrayType: lambda data, r: r.type(data),
    Program: lambda data, r: r.program(data),
    Held: lambda data, r: r.constant(data),
}
