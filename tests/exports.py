"""What packages export: the imports that wait until their names are asked for."""

import ast
import importlib
from pathlib import Path

PACKAGES = (
    "stretto",
    "stretto.ensemble",
    "stretto.files",
    "stretto.func",
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
"""Those with imports on demand."""


def imports_of(package):
    """The imports that wait until their names are asked for."""
    module = importlib.import_module(package)
    for node in ast.parse(Path(module.__file__).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.With) and node.items[0].context_expr.func.id == "imports_on_demand":
            return node.body
    raise AssertionError(f"{package} has no imports on demand")


def table_of(package):
    """The names of each module that they import."""
    table = {}
    for node in imports_of(package):
        names = [alias.name for alias in node.names]
        table[node.module] = importlib.import_module(node.module).__all__ if "*" in names else names
    return table
