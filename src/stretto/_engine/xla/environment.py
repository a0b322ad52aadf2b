"""``print_environment_info``: versions, platform and settings, for bug reports.

It does not start XLA, so that it also helps if XLA does not start.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import numpy as np

from stretto._engine import VERSION
from stretto._engine.core.config import changed_settings
from stretto._engine.core.machine import cache_directory
from stretto._engine.kernels import LEVEL
from stretto._engine.kernels import WITHOUT as WITHOUT_KERNELS
from stretto._engine.native import WITHOUT
from stretto._engine.xla.clients import TESTED, check_version
from stretto._engine.xla.device import devices
from stretto._engine.xla.handshake import SECRET

_PREFIXES = ("STRETTO_", "XLA_", "PJRT_", "TF_CPP_")
_NAMES = (
    *("NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("XDG_CACHE_HOME", "PYTHONPATH"),
)


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, platform, devices, settings and environment variables, for bug reports.

    Settings are those of this thread that are not as by default; environment variables are those
    that Stretto, XLA and NumPy's libraries read.

    Args:
        return_string: whether to return the text rather than print it.

    Returns:
        The text, or None where it was printed.

    >>> import stretto as st
    >>> st.debug.print_environment_info()
    stretto:      ...
    jaxlib:       ...
    numpy:        ...
    ...
    """
    text = "\n".join(f"{f'{name}:':<13} {value}" for name, value in _environment().items())
    if return_string:
        return text
    print(text)
    return None


def _environment() -> dict[str, str]:
    settings = [f"{name}={value!r}" for name, value in changed_settings().items()]
    variables = [
        f"{name}={'(not shown)' if name == SECRET else os.environ[name]}"
        for name in sorted(os.environ)
        if name.startswith(_PREFIXES) or name in _NAMES
    ]
    return {
        "stretto": f"{VERSION}, {_kernels()}, {_extension()}",
        "jaxlib": _jaxlib(),
        "numpy": np.__version__,
        "python": " ".join(sys.version.split()),
        "platform": f"{platform.platform()}, {os.cpu_count()} processors",
        "devices": str(devices()),
        "cache": cache_directory() or "nowhere: there is no home directory",
        "settings": _lines(settings or ["all as by default"]),
        "environment": _lines(variables or ["no variable that matters"]),
    }


def _extension() -> str:
    return f"without its extension in C: {WITHOUT}" if WITHOUT else "with its extension in C"


def _kernels() -> str:
    if WITHOUT_KERNELS:
        return f"without kernels: {WITHOUT_KERNELS}"
    return f"with kernels for {LEVEL}"


def _lines(entries: list[str]) -> str:
    return ("\n" + " " * 14).join(entries)


def _jaxlib() -> str:
    try:
        version = metadata.version("jaxlib")
    except metadata.PackageNotFoundError:
        return "not installed"
    try:
        check_version(version)
    except ImportError:
        low, high = (".".join(map(str, numbers)) for numbers in TESTED)
        return f"{version}, and this Stretto needs >={low},<{high}"
    return version
