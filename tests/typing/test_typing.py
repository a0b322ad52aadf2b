"""What type checkers see of the package: ``user.py`` under pyright strict and mypy strict."""

import json
import os
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


def test_pyright(tmp_path):
    pytest.importorskip("pyright")
    settings = {
        "include": [str(USER)],
        "extraPaths": [str(SOURCE)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,  # those are for mypy
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportUnusedExpression": "none",
    }
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps(settings))
    run("pyright", "--project", str(project), "--pythonpath", sys.executable)


def test_mypy(tmp_path):
    pytest.importorskip("mypy")
    run(
        *("mypy", "--strict", "--config-file=", "--follow-imports=silent"),
        *("--python-executable", sys.executable, "--cache-dir", str(tmp_path), str(USER)),
        MYPYPATH=str(SOURCE),
    )
