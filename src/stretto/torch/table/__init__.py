"""The functions here for PyTorch's operations, by PyTorch's names and with its arguments.

One file a family, and each has a ``TABLE``. A function takes what PyTorch's schema says, with
tuples of Python numbers for sizes, and may give a result in another dtype than PyTorch's: ``run``
brings it to that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto.torch.table import aten_arithmetic
from stretto.torch.table import aten_indexing
from stretto.torch.table import aten_layers
from stretto.torch.table import aten_linear_algebra
from stretto.torch.table import aten_randomness
from stretto.torch.table import aten_reductions
from stretto.torch.table import aten_subgraphs

TABLE: dict[str, Callable[..., Any]] = {
    **aten_arithmetic.TABLE,
    **aten_indexing.TABLE,
    **aten_layers.TABLE,
    **aten_linear_algebra.TABLE,
    **aten_randomness.TABLE,
    **aten_reductions.TABLE,
    **aten_subgraphs.TABLE,
}
"""The function for each operation."""
