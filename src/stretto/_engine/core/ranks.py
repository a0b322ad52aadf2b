"""Whether arrays of different ranks may broadcast: ``config.numpy_rank_promotion``.

Layer 1 (core). What takes a short way past this check asks ``watch`` whether somebody checks.
"""

from __future__ import annotations

import warnings

from stretto._engine.core.config import config, settings
from stretto._engine.core.position import user_stack_level

__all__ = ["check_ranks", "differ"]


def differ(*shapes: tuple[int, ...]) -> bool:
    """Whether shapes, but those of rank 0, differ in rank, and that is to be said here."""
    return settings.ranks != "allow" and len({len(shape) for shape in shapes if shape}) > 1


def check_ranks(caller: str, *shapes: tuple[int, ...]) -> None:
    """Warn, or raise ``ValueError``, where the shapes ``differ``."""
    if settings.ranks == "allow" or not differ(*shapes):
        return
    several = " and ".join(map(str, shapes))
    said = (
        f"{caller}: shapes {several} differ in rank, and config.numpy_rank_promotion is "
        f"{config.numpy_rank_promotion!r}; give them one rank first, such as by x[None, :] or "
        f"snp.expand_dims(x, axis)"
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(said)
    warnings.warn(said, stacklevel=user_stack_level())
