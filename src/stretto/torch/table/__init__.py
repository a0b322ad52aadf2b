"""The functions here for PyTorch's operations, by PyTorch's names and with its arguments.

One file a family, and each has a ``TABLE``. A function takes what PyTorch's schema says, with
tuples of Python numbers for sizes, and may give a result in another dtype than PyTorch's: ``run``
brings it to that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto.torch.table import (
    arithmetic,
    indexing,
    layers,
    linear_algebra,
    losses,
    numbers,
    products,
    randomness,
    reductions,
    shapes,
    subgraphs,
)

TABLE: dict[str, Callable[..., Any]] = {
    name: function
    for family in (
        arithmetic,
        indexing,
        layers,
        linear_algebra,
        losses,
        numbers,
        products,
        randomness,
        reductions,
        shapes,
        subgraphs,
    )
    for name, function in family.TABLE.items()
}
"""The function for each operation."""
