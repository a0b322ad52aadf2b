"""Shapes, ranks, sizes and kinds of arrays; and what a program can ask this namespace.

Source of the latter: the Python array API standard, 2024.12, "Inspection" and "Versioning".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value, type_of
from stretto._engine.core.types import ArrayType, canonical_dtype, default_dtype
from stretto._engine.core.typing import ArrayLike, Tree
from stretto._engine.eager.interpreter import default_sharding
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.xla.device import Device, as_device, default_device, devices
from stretto.numpy.creation import listed
from stretto.numpy.dtypes import isdtype

__all__ = ["iscomplexobj", "isrealobj", "isscalar", "iterable", "ndim", "shape", "size"]

__array_api_version__ = "2024.12"
"""The version of the array API standard that ``stretto.numpy`` follows; ``docs/conformance.md``."""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the standard whose functions are all here."""

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128")  # fmt: skip


class NamespaceInfo:
    """Capabilities, devices and dtypes, as the array API standard's inspection functions.

    >>> import stretto.numpy as snp
    >>> snp.__array_namespace_info__().default_device()
    CpuDevice(id=0)
    """

    def capabilities(self) -> dict[str, Any]:
        """Tell which optional features there are, and the greatest rank.

        Returns:
            Both by name. Shapes that depend on values need concrete arrays: under a transformation
            such as ``jit`` they need a static ``size=``.

        >>> import stretto.numpy as snp
        >>> snp.__array_namespace_info__().capabilities()
        {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 64}
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Give the device on which arrays are made: the first, or that of ``default_device``.

        Returns:
            The device.
        """
        where = default_sharding()
        return default_device() if where is None else where.device_list[0]

    def devices(self) -> list[Device]:
        """Give all devices.

        Returns:
            The devices.
        """
        return devices()

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, np.dtype]:
        """Give the dtypes of Python numbers and of indices.

        Args:
            device: a device, or its name; all have the same.

        Returns:
            The dtypes by kind: of 64 bits if ``enable_x64`` is set, else of 32.

        Raises:
            ValueError: there is no such device.

        >>> import stretto.numpy as snp
        >>> snp.__array_namespace_info__().default_dtypes()["real floating"]
        dtype('float32')
        """
        as_device(device, "default_dtypes")
        return {
            "real floating": default_dtype("float"),
            "complex floating": default_dtype("complex"),
            "integral": default_dtype("int"),
            "indexing": default_dtype("int"),
        }

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """Give the standard's dtypes of a kind.

        Args:
            device: a device, or its name; all have the same.
            kind: a kind as for ``isdtype``, or a tuple of them; all by default.

        Returns:
            The dtypes by name; those of 64 bits only if ``enable_x64`` is set.

        Raises:
            ValueError: there is no such device, or no such kind.

        >>> import stretto.numpy as snp
        >>> list(snp.__array_namespace_info__().dtypes(kind="signed integer"))
        ['int8', 'int16', 'int32']
        """
        as_device(device, "dtypes")
        known = {name: np.dtype(name) for name in _NAMES}
        return {
            name: dtype
            for name, dtype in known.items()
            if canonical_dtype(dtype) is dtype and (kind is None or isdtype(dtype, kind))
        }


def __array_namespace_info__() -> NamespaceInfo:
    """Tell what this namespace supports.

    Returns:
        An object whose methods are the array API standard's inspection functions.

    >>> import stretto.numpy as snp
    >>> snp.__array_namespace_info__().capabilities()["max dimensions"]
    64
    """
    return NamespaceInfo()


def _type_of(x: ArrayLike | Sequence[Any], caller: str, argument: str) -> ArrayType:
    return type_of(
        listed(x, caller, argument) if isinstance(x, (list, tuple)) else x, caller, argument
    )


def _shape_of(x: ArrayLike | Sequence[Any], caller: str) -> tuple[int, ...]:
    """Return the sizes of the axes; NumPy's arrays may have any elements, such as strings."""
    return x.shape if isinstance(x, np.ndarray) else _type_of(x, caller, "a").shape


def shape(a: ArrayLike | Sequence[Any] | None) -> tuple[int, ...]:
    """Give the sizes of the axes.

    Args:
        a: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers; None has no axes.

    Returns:
        A tuple of Python integers.

    As NumPy's ``shape``.

    >>> import stretto.numpy as snp
    >>> snp.shape(snp.ones((2, 3)))
    (2, 3)
    """
    return () if a is None else _shape_of(a, "shape")


def ndim(a: ArrayLike | Sequence[Any] | None) -> int:
    """Give the number of axes.

    Args:
        a: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers; None has no axes.

    Returns:
        A Python integer.

    As NumPy's ``ndim``.

    >>> import stretto.numpy as snp
    >>> snp.ndim(snp.ones((2, 3)))
    2
    """
    return 0 if a is None else len(_shape_of(a, "ndim"))


def size(a: ArrayLike | Sequence[Any], axis: int | Sequence[int] | None = None) -> int:
    """Count the elements, or those along some axes.

    Args:
        a: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers.
        axis: the axes to count along; all by default.

    Returns:
        A Python integer.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``size``.

    >>> import stretto.numpy as snp
    >>> snp.size(snp.ones((2, 3))), snp.size(snp.ones((2, 3)), 1)
    (6, 3)
    """
    shape = _shape_of(a, "size")
    return math.prod([shape[d] for d in canonical_axes(axis, len(shape), "size")])


def isscalar(element: object) -> bool:
    """Say whether something is a number, a string, or an array of rank 0.

    Args:
        element: anything.

    Returns:
        A Python boolean.

    As NumPy's ``isscalar``; for arrays of rank 0 as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.isscalar(3), snp.isscalar(snp.ones(1))
    (True, False)
    """
    if isinstance(element, (Value, np.ndarray)):
        return element.ndim == 0
    return np.isscalar(element)


def iterable(y: Tree) -> bool:
    """Say whether something has elements to iterate over, as all arrays except those of rank 0 do.

    Args:
        y: anything.

    Returns:
        A Python boolean.

    As NumPy's ``iterable``.

    >>> import stretto.numpy as snp
    >>> snp.iterable(snp.ones(2)), snp.iterable(snp.array(1.0)), snp.iterable([])
    (True, False, True)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def iscomplexobj(x: ArrayLike | Sequence[Any]) -> bool:
    """Say whether the dtype is complex.

    Args:
        x: an array, a ``ShapeDtypeStruct``, a number, or nested lists of numbers.

    Returns:
        A Python boolean.

    As NumPy's ``iscomplexobj``.

    >>> import stretto.numpy as snp
    >>> snp.iscomplexobj(snp.array([1j])), snp.iscomplexobj(1.0)
    (True, False)
    """
    return _type_of(x, "iscomplexobj", "x").kind == "complex"


@described_like(iscomplexobj)
def isrealobj(x: ArrayLike | Sequence[Any]) -> bool:
    """Say whether the dtype is not complex.

    As NumPy's ``isrealobj``.

    >>> import stretto.numpy as snp
    >>> snp.isrealobj(snp.array([1j])), snp.isrealobj(1.0)
    (False, True)
    """
    return not iscomplexobj(x)
