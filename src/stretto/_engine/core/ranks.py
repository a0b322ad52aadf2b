"""Say whether arrays of different ranks may broadcast: ``config.numpy_rank_promotion``.

The functions of ``ops/broadcast`` check their arguments here. Fast paths that skip the check are
taken only where ``differ`` says that there is nothing to report.
"""

from __future__ import annotations

import warnings

from stretto._engine.core.config import config, settings
from stretto._engine.core.position import user_stack_level


def differ(*shapes: tuple[int, ...]) -> bool:
    """Say whether shapes, but for rank 0, differ in rank, and the setting objects to it."""
    return settings.ranks != "allow" and len({len(shape) for shape in shapes if shape}) > 1


def check_ranks(caller: str, *shapes: tuple[int, ...]) -> None:
    """Warn, or raise ``ValueError``, where the shapes ``differ``."""
    if settings.ranks == "allow" or not differ(*shapes):
        return
    shape_list = " and ".join(map(str, shapes))
    message = (
        f"{caller}: shapes {shape_list} differ in rank, and config.numpy_rank_promotion is "
        f"{config.numpy_rank_promotion!r}; give them one rank first, such as by x[None, :] or "
        f"snp.expand_dims(x, axis)"
    )
    if config.numpy_rank_promotion == "raise":
        raise ValueError(message)
    warnings.warn(message, stacklevel=user_stack_level())
