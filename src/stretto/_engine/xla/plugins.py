"""GPUs: XLA's plugin for them, which is a package of its own.

The plugin's Python package imports jax, so only its files are used: the library of the compiler and
runtime, and those of NVIDIA's matrix routines
(docs/decisions/0050-gpus-are-devices-beside-the-cpu.md).
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import glob
import importlib
import importlib.util
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

NAME = "stretto_cuda"
"""The plugin's name in this process: jax loads the same library under a name of its own."""

_VERSIONS = (13, 12)
"""The versions of CUDA that there are plugins for, the newest first."""

_NEEDED = (
    "cudart",
    "nvrtc",
    "nvJitLink",
    "cublas",
    "cublasLt",
    "nccl",
    "cupti",
    "cusparse",
    "cusolver",
    "cufft",
    "nvshmem_host",
    "cudnn",
)
"""NVIDIA's libraries by name, each after those that it needs."""


class Plugin(NamedTuple):
    """A plugin that is installed: its library, and the package of its matrix routines.

    ``toolkit`` is the folder of CUDA's compiler, where the system has no other; empty if unknown.
    """

    library: str
    routines: str
    toolkit: str


def _folders(package: str) -> list[str]:
    """Return where a package is; nothing of it is imported, nor of those in it."""
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []


def find() -> Plugin | None:
    """Return the plugin for the newest version of CUDA among those that are installed."""
    for version in _VERSIONS:
        for folder in _folders("jax_plugins"):
            library = os.path.join(folder, f"xla_cuda{version}", "xla_cuda_plugin.so")
            if os.path.exists(library):
                return Plugin(library, f"jax_cuda{version}_plugin", _toolkit())
    return None


def _toolkit() -> str:
    """Return the folder with NVIDIA's functions for compilers, among Python's packages."""
    inner = os.path.join("nvvm", "libdevice")
    for folder in _folders("nvidia"):
        for path in sorted(glob.glob(os.path.join(folder, "*", inner))):
            return path.removesuffix(os.sep + inner)
    return ""


@functools.cache  # a second time it would be refused
def load(plugin: Plugin, xla_client: Any) -> Any:
    """Load the plugin and the libraries that it needs; return its handle."""
    for name in _NEEDED:
        for folder in _folders("nvidia"):
            for path in glob.glob(os.path.join(folder, "*", "lib", f"lib{name}.so.*")):
                # What is missing here may be installed for the whole system; the plugin says so.
                with contextlib.suppress(OSError):
                    ctypes.CDLL(path)
    handle = xla_client.load_pjrt_plugin_dynamically(NAME, plugin.library)
    xla_client.initialize_pjrt_plugin(NAME)
    return handle


def register(begin: str, plugin: Plugin, handle: Any) -> None:
    """Make functions known to the plugin whose names begin so, one of ``REGISTERED``.

    Raises ``ModuleNotFoundError`` if their package is not installed.
    """
    extension = importlib.import_module(f"{plugin.routines}.cuda_plugin_extension")
    for name, function in REGISTERED[begin](plugin, extension, handle).items():
        extension.register_custom_call_target(handle, name, function, "CUDA", 1, 0)


def _solver(plugin: Plugin, extension: Any, handle: Any) -> Mapping[str, Any]:
    """Return cuSOLVER's routines."""
    return importlib.import_module(f"{plugin.routines}._solver").registrations()


def _python(plugin: Plugin, extension: Any, handle: Any) -> Mapping[str, Any]:
    """Return what calls Python; the types that it is handed are made known first."""
    for name, type in extension.ffi_types().items():
        extension.register_custom_type(handle, name, type)
    return extension.ffi_handlers()


REGISTERED = {"cusolver_": _solver, "xla_ffi_python_gpu": _python}
"""Functions that give the registered ones, by how the names of these begin."""
