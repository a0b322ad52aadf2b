"""Kernels in C, where they were built: what XLA calls in compiled programs on this processor.

``kernels`` is the module ``_kernels`` of this package, or None where it could not be built, where
the processor has no vectors that it has code for, or where ``STRETTO_KERNELS=0`` turns it off;
``WITHOUT`` then says why. Programs are then written as XLA's own operations, with the same results
within rounding. ``LEVEL`` names the vectors that the kernels use: the best of the processor, unless
``STRETTO_KERNELS_LEVEL`` or XLA's own ``--xla_cpu_max_isa`` asks for less.

``extension`` is the module also where the processor has no such vectors: what calls LAPACK for
batches (``lapack.c``) needs none.
"""

from __future__ import annotations

import importlib
import os
import re
from typing import Any

import ml_dtypes
import numpy as np

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
"""The dtypes that there are kernels for."""

NARROW = (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))
"""Those whose products and convolutions there are kernels for, with sums in float32."""


def multiplies(x: np.dtype, y: np.dtype, out: np.dtype) -> bool:
    """Say whether kernels multiply arrays of these dtypes, with results of another.

    >>> multiplies(np.dtype(np.float16), np.dtype(np.float16), np.dtype(np.float32))
    True
    >>> multiplies(np.dtype(np.int8), np.dtype(np.int8), np.dtype(np.int32))
    True
    """
    if x.kind in "iu":
        return x == y and _adds_up(x, out)
    return convolves(x, y, out)


def convolves(x: np.dtype, y: np.dtype, out: np.dtype) -> bool:
    """Say whether kernels convolve arrays of these dtypes, with results of another.

    >>> convolves(np.dtype(np.int8), np.dtype(np.int8), np.dtype(np.int32))
    False
    """
    return x == y and (out == x if x in DTYPES else x in NARROW and out in (x, DTYPES[0]))


def _adds_up(x: np.dtype, out: np.dtype) -> bool:
    """Say whether kernels add up products of integers of a dtype in another."""
    if out.kind not in "iu" or not x.itemsize <= out.itemsize <= 4:
        return False
    return x.name != "uint16" or out.itemsize == 2  # there are words for signed halves alone


_LEVELS = {"AVX512": "avx512", "AVX2": "avx2", "NEON": "neon"}
"""What XLA calls the vectors that there are kernels for."""


def _asked() -> str:
    """Return the vectors that the environment asks for; empty for the best."""
    level = os.environ.get("STRETTO_KERNELS_LEVEL", "")
    if level:
        return level.lower()
    most = re.search(r"--xla_cpu_max_isa=(\w+)", os.environ.get("XLA_FLAGS", ""))
    return _LEVELS.get(most[1].upper().partition("_")[0], most[1].lower()) if most else ""


def _find() -> tuple[Any, str]:
    """Return the module, and nothing; or None, and why."""
    if os.environ.get("STRETTO_KERNELS", "").lower() in ("0", "false"):
        return None, "STRETTO_KERNELS=0 turns them off"
    try:
        module = importlib.import_module("stretto._engine.kernels._kernels")
    except ModuleNotFoundError:
        return None, "they were not built for this Python"
    except ImportError as error:
        return None, f"they cannot be loaded ({error})"
    if module.REVISION != _REVISION:
        return None, "they were built from another version of the package"
    return module, ""


def _load() -> tuple[Any, str, str]:
    """Return the module, the level that it runs at, and nothing; or None, and why."""
    module, why = _find()
    if module is None:
        return None, "", why
    levels = module.levels()
    level = _asked() or (levels or ["none"])[0]
    if level not in levels:
        return None, "", f"there are none for vectors of {level} here, only for {levels}"
    module.use(level)
    return module, level, ""


_REVISION = 13
"""The revision that this package calls; kernels built from another source are not used."""

extension = _find()[0]
kernels, LEVEL, WITHOUT = _load()

LAPACK = "lapack_", "tridiagonal_"
"""The names of jaxlib's functions for LAPACK begin so."""

IN_PARTS = "_in_parts"
"""The end of the names by which programs call them through the extension."""


def in_parts(target: str) -> str:
    """Return the name by which a function is called on this processor.

    jaxlib's functions for LAPACK wait for threads of XLA's pool that may not come
    (``kernels/lapack.c``).
    """
    return target + IN_PARTS if extension is not None and target.startswith(LAPACK) else target


def advise_huge_pages(value: bool) -> None:
    """Say whether kernels advise the system to map large memory in huge pages (``pages.c``)."""
    if kernels is not None:
        kernels.huge_pages(value)
