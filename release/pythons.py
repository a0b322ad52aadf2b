"""The Pythons that wheels are built for: which the package supports, and where they are here.

``pyproject.toml`` says which, in its classifiers. One that is not on this machine is left out, with
a word: a wheel is built and tried by the Python that it is for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["ROOT", "build_requirements", "dependencies", "found", "project", "run", "supported"]

ROOT = Path(__file__).parents[1]


def project() -> dict:
    """The table ``[project]`` of ``pyproject.toml``."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def supported() -> list[str]:
    """The versions of Python that the classifiers name: ``3.11`` and so on."""
    named = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    return [m[1] for m in map(named.fullmatch, project()["classifiers"]) if m]


def build_requirements() -> list[str]:
    """What must be there to build the package."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]


def dependencies(*extras: str) -> list[str]:
    """What the package needs, and what these extras of it do, and the extras that these name."""
    about = project()
    own = re.compile(rf"{about['name']}\[(.*)\]")

    def needed_by(extra: str) -> Iterator[str]:
        for requirement in about["optional-dependencies"][extra]:
            named = own.fullmatch(requirement)
            if named:
                for other in named[1].split(","):
                    yield from needed_by(other)
            else:
                yield requirement

    return [*about["dependencies"], *(x for extra in extras for x in needed_by(extra))]


def found() -> dict[str, Path]:
    """The supported Pythons of this machine, by version; says which are missing."""
    pythons = {}
    for version in supported():
        python = next(filter(_runs, _candidates(version)), None)
        if python is None:
            print(f"Python {version} is not on this machine: left out", flush=True)
        else:
            pythons[version] = python
    return pythons


def _candidates(version: str) -> Iterator[Path]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield Path(on_path)
    launcher = shutil.which("py")  # of Windows, which knows where Pythons are
    if launcher:
        asked = [launcher, f"-{version}", "-c", "import sys; print(sys.executable)"]
        told = subprocess.run(asked, capture_output=True, text=True, check=False)
        if not told.returncode:
            yield Path(told.stdout.strip())
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(home.glob(f"versions/{version}.*/bin/python"), reverse=True)


def _runs(python: Path) -> bool:
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def run(*command: object, **environment: str) -> None:
    """Run a command, beside the tools, and away from what the environment says of Python."""
    print("$", *command, flush=True)
    environment.setdefault("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    subprocess.run([*map(str, command)], check=True, env={**kept, **environment})
