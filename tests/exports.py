"""What packages export: the names that are loaded when they are asked for."""

import importlib
import importlib.util
from pathlib import Path

PACKAGES = (
    "stretto",
    "stretto.curvature",
    "stretto.ensemble",
    "stretto.export",
    "stretto.files",
    "stretto.merge",
    "stretto.lax",
    "stretto.nn",
    "stretto.nn.functional",
    "stretto.numpy",
    "stretto.optim",
    "stretto.random",
    "stretto.scipy",
    "stretto.scipy.stats",
    "stretto.tree",
    "stretto.torch",
)
"""Those whose names are loaded on demand."""

_spec = importlib.util.spec_from_file_location(
    "make_exports", Path(__file__).parents[1] / "tools" / "make_exports.py"
)
make_exports = importlib.util.module_from_spec(_spec)
"""The tool that writes their tables of names."""
_spec.loader.exec_module(make_exports)


def file_of(package):
    """Return the source of a package or module."""
    return Path(importlib.import_module(package).__file__)


def table_of(package):
    """Return the names of each module that a package imports for type checkers."""
    return make_exports.names_of(file_of(package))
