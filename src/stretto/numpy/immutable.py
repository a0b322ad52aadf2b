"""Refuse in words what NumPy's and PyTorch's arrays have and ours lack, which never change.

Each error says what to use instead; for PyTorch's names, ``migration`` in the engine's core has the
words.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from stretto._engine.core.migration import ARRAYS
from stretto._engine.core.typing import Array
from stretto.numpy.indexing import show

if TYPE_CHECKING:
    from stretto._engine.core.array_updates import Index

# By the method that would change the array: what returns a changed copy.
_METHODS = {
    "fill": "snp.full_like(x, value)",
    "itemset": "x.at[index].set(value)",
    "partition": "snp.partition(x, kth)",
    "put": "x.ravel().at[indices].set(values).reshape(x.shape)",
    "resize": "snp.resize(x, shape)",
    "setfield": "x.at[index].set(value)",
    "setflags": "a NumPy copy, numpy.array(x), to write to",
}
# The same by the attribute that can be set in NumPy.
_SETTABLE = {
    "shape": "x.reshape(shape)",
    "dtype": "x.view(dtype), or x.astype(dtype) to convert",
    "real": "snp.asarray(value) + 1j * x.imag",
    "imag": "x.real + 1j * snp.asarray(value)",
    "flat": "snp.reshape(value, x.shape)",
}
# By the attribute that exposes or writes an array's memory: what to use instead.
_MEMORY = {
    "base": "numpy.asarray(x).base",
    "ctypes": "numpy.asarray(x).ctypes",
    "data": "memoryview(numpy.asarray(x)), or x itself in place of PyTorch's",
    "dump": "pickle.dump(x, file)",
    "dumps": "pickle.dumps(x)",
    "flags": "numpy.asarray(x).flags",
    "getfield": "x.view(dtype)",
    "strides": "numpy.asarray(x).strides",
}


def _method(name: str, instead: str) -> Callable[..., NoReturn]:
    def method(self: Array, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"arrays are immutable: instead of x.{name}(...) use {instead}")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Raise ``TypeError``: arrays are immutable; use ``{instead}``."
    return method


def _setter(name: str, instead: str) -> Callable[[Any, Any], NoReturn]:
    def set_(self: Array, value: object) -> NoReturn:
        raise AttributeError(
            f"arrays are immutable: instead of x.{name} = ... use {instead}", name=name, obj=self
        )

    return set_


def absent(name: str, advice: str) -> property:
    """A property that cannot be read or written, and says what to do instead."""

    def refuse(self: object, value: object = None) -> NoReturn:
        problem = f"{type(self).__name__!r} has no attribute {name!r}: {advice}"
        raise AttributeError(problem, name=name, obj=self)

    return property(refuse, refuse, doc=f"Raise ``AttributeError``: {advice}.")


def _delete_item(self: Array, index: Index) -> NoReturn:
    at = show(index)
    raise TypeError(f"arrays are immutable: instead of del x[{at}] write x = snp.delete(x, {at})")


def _dir(self: object) -> list[str]:
    """Return what arrays have, and not what they only answer in words."""
    return sorted({*object.__dir__(self)} - ARRAYS.keys() - _MEMORY.keys())


def refuse_changes(cls: type) -> None:
    """Give a class of values the methods and attributes that say it cannot be changed.

    Args:
        cls: the class, once it has its properties.
    """
    for name, instead in _METHODS.items():
        setattr(cls, name, _method(name, instead))
    for name, instead in _SETTABLE.items():
        setattr(cls, name, getattr(cls, name).setter(_setter(name, instead)))
    for name, instead in _MEMORY.items():
        setattr(cls, name, absent(name, f"use {instead}"))
    for name, advice in ARRAYS.items():
        setattr(cls, name, absent(name, advice))
    cls.__dir__ = _dir  # type: ignore[method-assign]
    cls.__delitem__ = _delete_item  # type: ignore[attr-defined]
