"""Complex numbers for those functions of matrices that are found by the complex Schur form.

Next, read ``factorisations``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.ops.convert import convert

__all__ = ["as_complex"]


def as_complex(x: Any) -> Any:
    """The same floating numbers, complex of the same precision."""
    return convert(x, np.result_type(x.dtype, np.complex64))
