"""``jax._src.distributed``."""

from __future__ import annotations

import stretto

__all__ = ["global_state"]


class _State:
    """Which process of several this is."""

    client = None

    @property
    def process_id(self) -> int:
        return stretto.distributed.process_index()

    @property
    def num_processes(self) -> int:
        return stretto.distributed.process_count()


global_state = _State()
