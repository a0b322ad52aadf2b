"""``jax.experimental.shard_map``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import stretto

__all__ = ["shard_map"]


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Any:
    """``stretto.shard_map`` with the parameters of the older function."""
    names = {"axis_names": frozenset(mesh.axis_names) - auto} if auto else {}
    return stretto.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, **names
    )
