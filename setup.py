"""The part of the build that pyproject.toml cannot say: the optional extension in C."""

from setuptools import Extension, setup

# Where there is no compiler, or no header of Python, the package is installed without it: all that
# it does is done by twins in Python as well (docs/decisions/0033-an-extension-in-c.md).
setup(ext_modules=[Extension("stretto._native", ["src/stretto/_native.c"], optional=True)])
