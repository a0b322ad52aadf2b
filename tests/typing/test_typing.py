"""What type checkers see of the package: ``user.py`` under pyright strict and mypy strict."""

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


def test_pyright(tmp_path):
    pytest.importorskip("pyright")
    settings = {
        "include": ["user.py"],
        "extraPaths": [str(SOURCE)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,  # those are for mypy
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportUnusedExpression": "none",
    }
    shutil.copy(USER, tmp_path)  # pyright looks only below its settings
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    out = run("pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--stats")
    assert "Found 1 source file" in out


def test_mypy(tmp_path):
    pytest.importorskip("mypy")
    out = run(
        *("mypy", "--strict", "--config-file=", "--follow-imports=silent"),
        *("--python-executable", sys.executable, "--cache-dir", str(tmp_path), str(USER)),
        MYPYPATH=str(SOURCE),
    )
    assert "no issues found in 1 source file" in out
