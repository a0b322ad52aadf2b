"""What type checkers see of the package: ``user.py`` under pyright strict and mypy strict.

Beside it, a file that uses every public name.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stretto

USER = Path(__file__).with_name("user.py")
SOURCE = Path(stretto.__file__).parents[1]


def run(*command, **environment):
    done = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


PACKAGES = (
    "stretto",
    "stretto.ensemble",
    "stretto.files",
    "stretto.lax",
    "stretto.nn",
    "stretto.nn.functional",
    "stretto.numpy",
    "stretto.random",
    "stretto.scipy",
    "stretto.scipy.stats",
    "stretto.tree",
)


def every_name():
    """A file with a line for each public name."""
    lines = [f"import {package}" for package in PACKAGES]
    for package in PACKAGES:
        names = importlib.import_module(package).__all__
        assert names
        lines += [f"{package}.{name}" for name in names]
    return "\n".join(lines) + "\n"


def test_pyright(tmp_path):
    pytest.importorskip("pyright")
    settings = {
        "include": ["user.py", "names.py"],
        "extraPaths": [str(SOURCE)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,  # those are for mypy
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportUnusedExpression": "none",
    }
    shutil.copy(USER, tmp_path)  # pyright looks only below its settings
    (tmp_path / "names.py").write_text(every_name())
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    out = run("pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--stats")
    assert "Found 2 source files" in out


def test_mypy(tmp_path):
    pytest.importorskip("mypy")
    names = tmp_path / "names.py"
    names.write_text(every_name())
    out = run(
        *("mypy", "--strict", "--config-file=", "--follow-imports=silent"),
        *("--python-executable", sys.executable, "--cache-dir", str(tmp_path)),
        *(str(USER), str(names)),
        MYPYPATH=str(SOURCE),
    )
    assert "no issues found in 2 source files" in out
