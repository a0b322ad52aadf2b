"""Read a state as NumPy's arrays, and what has to be equal where processes train together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stretto import distributed
from stretto._engine.core.typing import ArrayLike

if TYPE_CHECKING:
    from stretto._engine.core.mesh import Mesh

__all__ = ["read", "same_everywhere"]


def read(x: ArrayLike) -> np.ndarray:
    """The array, put together from the processes that have parts of it.

    All of these have to call it, in the same order.
    """
    there: Any = x
    if getattr(there, "is_fully_addressable", True) or there.is_fully_replicated:
        return np.asarray(x)
    return distributed.process_allgather(x)


def same_everywhere(mesh: Mesh | None, number: int, what: str) -> None:
    """Raise ``ValueError`` unless all processes of a mesh have the same number."""
    if mesh is None or not mesh.is_multi_process:
        return
    numbers = distributed.process_allgather(np.int32(number)).tolist()
    if len(set(numbers)) > 1:
        raise ValueError(
            f"fit: the processes must go on from the same place, and {what} is {numbers} in them, "
            f"in order: see that all of them can read the same files, and that these are whole"
        )
