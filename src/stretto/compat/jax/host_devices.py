"""How many devices the processors are: also as a flag of XLA's says, ``XLA_FLAGS``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from stretto._engine.core.config import config
from stretto._engine.xla.clients import started

__all__ = ["STARTED", "Backend", "follow_flags", "read_flags"]

_FLAG = re.compile(r"--xla_force_host_platform_device_count=(\d+)")


class Backend:
    """A kind of devices."""

    def __init__(self, platform: str) -> None:
        self.platform = platform


class _Started(Mapping[str, Backend]):
    """The kinds of devices in use, by name: there are none until a program needs them."""

    def __init__(self) -> None:
        self.asked = False
        self.flagged = 1

    def _names(self) -> tuple[str, ...]:
        return ("cpu",) if self.asked or started() else ()

    def __getitem__(self, name: str) -> Backend:
        if name not in self._names():
            raise KeyError(name)
        return Backend(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())


STARTED: Any = _Started()


def read_flags() -> None:
    """Set the number of devices that ``XLA_FLAGS`` says, unless another was set already."""
    flag = _FLAG.search(os.environ.get("XLA_FLAGS", ""))
    count = int(flag[1]) if flag else 1
    if count != config.num_cpu_devices == STARTED.flagged:
        config.num_cpu_devices = STARTED.flagged = count


def follow_flags() -> None:
    """Read the flags a last time: devices are needed now, and do not change any more."""
    if not STARTED:
        STARTED.asked = True
        read_flags()
