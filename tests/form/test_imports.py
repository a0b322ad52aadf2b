"""Nothing here imports JAX: only the benchmarks do, in processes and an environment of their own.

That of the package is a contract of import-linter as well. Code in a string, which a test hands to
a process where Stretto stands for JAX, is no import.
"""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["src", "tests", "examples", "tools", "release"])
def test_no_module_imports_jax(folder):
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names.append(node.module)
            if any([name.partition(".")[0] == "jax" for name in names]):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found, "these import jax: such code belongs in benchmarks/"
