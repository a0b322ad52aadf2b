"""Where what is kept between processes lies, and which processor it was made for.

Layer 1 (core). Next, read ``plan/measured`` and ``runtime/disk``, which keep something.
"""

from __future__ import annotations

import os
import platform

__all__ = ["cache_directory", "processor"]

_SAYS_THE_KIND = ("vendor_id", "cpu", "model", "stepping", "flags", "CPU", "Features", "isa")
"""How the lines of ``/proc/cpuinfo`` begin that say what a processor is, on several of them."""

_CHANGING = ("cpu MHz", "cpu cores")


def cache_directory() -> str | None:
    """This user's folder for caches, which need not exist yet: ``STRETTO_CACHE_DIR``, if it is set.

    Else ``stretto`` below ``XDG_CACHE_HOME``, by the XDG base directory specification, or below
    ``~/.cache``. ``None`` where there is no home either.
    """
    given = os.environ.get("STRETTO_CACHE_DIR")
    if given:
        return os.path.abspath(given)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification: any other is to be ignored
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "stretto") if os.path.isabs(base) else None


def processor() -> str:
    """The architecture, and what the system says of the processor's kind, its features included."""
    about = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():  # the first processor's lines end
                    break
                if line.startswith(_SAYS_THE_KIND) and not line.startswith(_CHANGING):
                    about.append(line)
    except OSError:
        pass
    # platform.processor() takes tens of milliseconds.
    return "\n".join([platform.machine(), *(about or [platform.processor()])])
