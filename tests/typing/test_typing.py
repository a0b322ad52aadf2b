"""What type checkers see of the package: ``user.py`` under pyright strict and mypy strict.

Beside it, a file that uses every public name; and the code of the tutorials, as pyright sees it in
an editor.
"""

import doctest
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


PAGES = ("README.md", "docs/index.md", "docs/start.md", "docs/tutorials/*.md", "docs/howto/*.md")
USUAL = (
    "# pyright: standard\n# pyright: reportRedeclaration=none, reportUnusedExpression=none\n"
    "# pyright: reportPossiblyUnboundVariable=none\n"
)
"""As strict as an editor; a page may define a name again, and fill one in a loop."""


def code_of_pages():
    """The code of each page by the name of a file, without what is shown to fail.

    Pages that use scikit-learn, which has no types, are left out.
    """
    root = Path(__file__).parents[2]
    for path in sorted(path for pattern in PAGES for path in root.glob(pattern)):
        text = path.read_text(encoding="utf-8")
        examples = [e for e in doctest.DocTestParser().get_examples(text) if not e.exc_msg]
        if examples and "from sklearn" not in text:
            code = USUAL + "".join([e.source for e in examples])
            yield f"page_{path.stem.replace('-', '_')}.py", code


def test_pyright(tmp_path):
    pytest.importorskip("pyright")
    pages = dict(code_of_pages())
    assert len(pages) > 15
    settings = {
        "include": ["user.py", "names.py", *pages],
        "extraPaths": [str(SOURCE)],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,  # those are for mypy
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportUnusedExpression": "none",
    }
    shutil.copy(USER, tmp_path)  # pyright looks only below its settings
    (tmp_path / "names.py").write_text(every_name())
    for name, code in pages.items():
        (tmp_path / name).write_text(code)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    out = run("pyright", "--project", str(tmp_path), "--pythonpath", sys.executable, "--stats")
    assert f"Found {len(pages) + 2} source files" in out


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
