"""The part of the build that pyproject.toml cannot say: the optional extension in C."""

from glob import glob

from setuptools import Extension, setup

# Where there is no compiler, or no header of Python, the package is installed without it: all that
# it does is done by twins in Python as well (docs/decisions/0033-an-extension-in-c.md).
NATIVE = "src/stretto/_engine/native"
setup(
    ext_modules=[
        Extension(
            "stretto._engine.native._native",
            sorted(glob(f"{NATIVE}/*.c")),
            depends=[f"{NATIVE}/native.h"],
            optional=True,
        )
    ]
)
