"""What each member has of its own, in arguments and in results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Array
from stretto.ensemble.training.reading import read
from stretto.ensemble.training.state import Pack

__all__ = ["in_places", "is_row", "of_each"]


def is_row(x: object) -> bool:
    """Whether a hyperparameter has an entry for each member."""
    return isinstance(x, (list, tuple)) or (isinstance(x, (Value, np.ndarray)) and bool(x.ndim))


def of_each(
    arguments: Mapping[str, Any], size: int, argument: str, every: bool = False
) -> dict[str, Array]:
    """Those of the arguments that have an entry for each member, as arrays."""
    columns = {}
    for name, x in arguments.items():
        if not (every or is_row(x)):
            continue
        value = as_value(np.asarray(x) if isinstance(x, (list, tuple)) else x, "fit", name)
        if not value.ndim or value.shape[0] != size:
            raise ValueError(
                f"fit: {argument}[{name!r}] must have an entry for each of {size} members along "
                f"axis 0, got {value.type}"
            )
        columns[name] = value
    return columns


def in_places(
    packs: Sequence[Pack], results: Sequence[Mapping[str, Array]], size: int
) -> dict[str, Array]:
    """What each pack gives for its members, as one array by name in the order of all members."""
    if len(packs) == 1 and packs[0].group.size == size:
        return dict(results[0])
    out: dict[str, Any] = {}
    for pack, values in zip(packs, results, strict=True):
        for name, x in values.items():
            here = out.get(name, np.full(size, np.nan, np.float32))
            here[list(pack.group.places)] = read(x)
            out[name] = here
    return {name: snp.asarray(x) for name, x in out.items()}
