"""Run a command, and say what it took: processor time of all its processes, time, memory.

A script without this package, since the system counts the memory of the process that starts another
as that one's, until it has more:

    python -I -S benchmarks/merging/measured.py COMMAND...

The last line of the output is JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time

__all__ = ["main"]


def main(command: list[str]) -> int:
    """Run the command, print what it took, and return its status."""
    begun = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    said = {
        "cpu": usage.ru_utime + usage.ru_stime,
        "wall": time.perf_counter() - begun,
        "memory": usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    print(json.dumps(said), flush=True)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
