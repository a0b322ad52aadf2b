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
from stretto.torch.table import aten_losses
from stretto.torch.table import aten_numbers
from stretto.torch.table import aten_products
from stretto.torch.table import aten_randomness
from stretto.torch.table import aten_reductions
from stretto.torch.table import aten_shapes
from stretto.torch.table import aten_subgraphs

TABLE: dict[str, Callable[..., Any]] = {
    name: function
    for family in (
        aten_arithmetic,
        aten_indexing,
        aten_layers,
        aten_linear_algebra,
        aten_losses,
        aten_numbers,
        aten_products,
        aten_randomness,
        aten_reductions,
        aten_shapes,
        aten_subgraphs,
    )
    for name, function in family.TABLE.items()
}
"""The function for each operation."""
