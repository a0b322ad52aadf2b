"""What wheels are built for, and the script that tries them."""

import subprocess
import sys

from release import pythons, smoke
from stretto._engine.native import native


def test_the_pythons_are_those_that_the_package_allows():
    lowest, highest = pythons.supported()[0], pythons.supported()[-1]
    after = f"3.{int(highest.partition('.')[2]) + 1}"
    assert pythons.project()["requires-python"] == f">={lowest},<{after}"


def test_requirements_include_those_of_extras():
    needed = " ".join(pythons.dependencies("demo"))
    assert "jaxlib" in needed and "matplotlib" in needed
    assert "stretto" not in needed
    assert "matplotlib" not in " ".join(pythons.dependencies())


def test_a_python_that_is_missing_is_said(monkeypatch, capsys):
    monkeypatch.setattr(pythons, "supported", lambda: ["3.999"])
    assert pythons.found() == {}
    assert capsys.readouterr().out == "Python 3.999 is not on this machine: left out\n"


def test_the_smoke_test_passes_here():
    extension = "without" if native is None else "with"
    done = subprocess.run(
        [sys.executable, smoke.__file__, extension], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{extension} the extension" in done.stdout
