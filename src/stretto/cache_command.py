"""The command ``stretto cache``: shows which compiled programs are kept on disk, or clears them."""

from __future__ import annotations

import argparse
import sys
import time

from stretto._engine.core.config import config
from stretto._engine.xla import disk, store

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Show them, or clear them if ``options.action`` says so; 2 where files are not safe."""
    folder = disk.folder()
    if folder is None:
        print("Compiled programs are not kept: there is no home directory, nor STRETTO_CACHE_DIR.")
        return 0
    try:
        programs = store.clear(folder) if options.action else store.kept(folder)
    except OSError as error:
        print(f"stretto cache: {error}", file=sys.stderr)
        return 2
    size = f"{sum(file.size for file in programs):,} bytes"
    if options.action:
        print(f"Removed {len(programs)} compiled programs, {size}, from {folder}")
        return 0
    print(f"directory  {folder}")
    print(f"programs   {len(programs)}")
    print(f"size       {size} of at most {config.disk_cache_size:,}")
    if programs:
        times = [file.used for file in programs]
        print(f"last used  {_date(min(times))} (the oldest) to {_date(max(times))}")
    if not config.disk_cache:
        print("off        by STRETTO_DISK_CACHE")
    return 0


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
