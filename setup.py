"""The part of the build that pyproject.toml cannot say: the optional extensions in C."""

import importlib.util
import os
from glob import glob
from pathlib import Path

from setuptools import Extension, setup

# Where there is no compiler, or no header of Python, the package is installed without them: all
# that they do is done without them as well (docs/decisions/0033-an-extension-in-c.md,
# docs/decisions/0080-kernels-in-c.md).
NATIVE = "src/stretto/_engine/native"
KERNELS = "src/stretto/_engine/kernels"


def headers_of_xla() -> list[str]:
    """Return the folder of XLA's headers, which jaxlib has."""
    jaxlib = importlib.util.find_spec("jaxlib")
    folders = jaxlib.submodule_search_locations if jaxlib else None
    return [str(Path(folder) / "include") for folder in folders or ()]


setup(
    ext_modules=[
        Extension(
            "stretto._engine.native._native",
            sorted(glob(f"{NATIVE}/*.c")),
            depends=[f"{NATIVE}/native.h"],
            optional=True,
        ),
        Extension(
            "stretto._engine.kernels._kernels",
            sorted(glob(f"{KERNELS}/*.c")),
            depends=sorted(glob(f"{KERNELS}/*.h")),
            include_dirs=headers_of_xla(),
            libraries=["m"] if os.name == "posix" else [],
            extra_compile_args=["-O3"],
            optional=True,
        ),
    ]
)
