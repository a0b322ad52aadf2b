"""What the array API standard lets a program ask of this namespace.

Source: the Python array API standard, 2024.12, "Inspection" and "Versioning".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.types import canonical_dtype, default_dtype
from stretto._engine.runtime.device import CPU, Device, as_device, devices
from stretto.numpy.dtypes import isdtype

__all__ = ["VERSIONS", "NamespaceInfo", "__array_api_version__", "__array_namespace_info__"]

__array_api_version__ = "2024.12"
"""The version of the array API standard that ``stretto.numpy`` follows; ``docs/conformance.md``."""

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")
"""The versions of the standard whose functions are all here."""

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128")  # fmt: skip


class NamespaceInfo:
    """Capabilities, devices and dtypes, as the array API standard's inspection functions."""

    def capabilities(self) -> dict[str, Any]:
        """Whether what the standard leaves open is there, and the greatest rank.

        Shapes that depend on values need concrete arrays: under a transformation such as ``jit``
        they need a static ``size=``.

        >>> import stretto.numpy as snp
        >>> snp.__array_namespace_info__().capabilities()
        {'boolean indexing': True, 'data-dependent shapes': True, 'max dimensions': 64}
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The device on which arrays are made."""
        return CPU

    def devices(self) -> list[Device]:
        """All devices."""
        return devices()

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of Python numbers and of indices: 64 bits if ``enable_x64`` is set, else 32.

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
        self, *, device: Any = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype]:
        """The standard's dtypes of a kind, all by default; those of 64 bits if ``enable_x64``.

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
    """What there is in this namespace: its methods are the standard's inspection functions."""
    return NamespaceInfo()
