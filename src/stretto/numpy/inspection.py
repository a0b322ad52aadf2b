"""Answer what a program can ask this namespace, by the array API standard.

Source: the Python array API standard, 2024.12, "Inspection" and "Versioning".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.types import canonical_dtype, default_dtype
from stretto._engine.eager.interpreter import default_sharding
from stretto._engine.xla.device import Device, as_device, default_device, devices
from stretto.numpy.dtypes import isdtype

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
