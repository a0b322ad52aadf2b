"""Build the sdist, and of it a wheel for each Python: ``make wheels``, which puts them in ``dist``.

Every wheel is made of the sdist, so what that lacks is missed here. On Linux it is then repaired:
auditwheel gives it the tag of the oldest Linux that its extension runs on, and refuses one without
extension. Elsewhere the tag is that of the Python which builds it.
A wheel for Linux on ARM is built by a Python of ARM's, which the emulator runs, and compiled by a
cross compiler. Where the Pythons are on several systems, ``--add`` on the second and later ones
adds their wheels to those that are there, out of the same sdist. Next, read ``check_wheels``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release import arm
from release.pythons import ROOT, build_requirements, found, run

__all__ = ["main"]

DIST = ROOT / "dist"

APART = (".gitignore", ".pre-commit-config.yaml")
"""Files that only a checkout needs."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, repair and check all of them."""
    parser = argparse.ArgumentParser(prog="release.build_wheels", description=main.__doc__)
    parser.add_argument(
        "--add", action="store_true", help="keep what is in dist, and make wheels of its sdist"
    )
    if not parser.parse_args(arguments).add:
        shutil.rmtree(DIST, ignore_errors=True)
    if not any(DIST.glob("*.tar.gz")):
        run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    (sdist,) = DIST.glob("*.tar.gz")
    complete(sdist)
    with tempfile.TemporaryDirectory() as scratch:
        for version, python in found().items():
            build(python, sdist, Path(scratch, version))
        for debian in arm.found():
            python, raw = debian.kept("wheels", *build_requirements()), Path(scratch, debian.suite)
            build(python, sdist, raw, "--no-build-isolation", **debian.compiling())
    wheels = sorted(DIST.glob("*.whl"))
    run(sys.executable, "-m", "twine", "check", "--strict", sdist, *wheels)
    run("check-wheel-contents", *wheels)
    for file in (sdist, *wheels):
        print(f"{file.stat().st_size / 1e6:6.2f} MB  {file.relative_to(ROOT)}")


def build(python: Path, sdist: Path, raw: Path, *flags: str, **environment: str) -> None:
    """Have this Python make a wheel of the sdist, and put it into ``dist`` with its tag."""
    run(sys.executable, "-m", "pip", "--python", python, "wheel", "--quiet", "--no-deps",
        "--no-cache-dir", *flags, "--wheel-dir", raw, sdist, **environment)  # fmt: skip
    (wheel,) = raw.glob("*.whl")
    if sys.platform == "linux":
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel)
    elif wheel.stem.endswith("-none-any"):
        sys.exit(f"{wheel.name} has no extension: the compiler failed")
    else:
        shutil.move(wheel, DIST)


def complete(sdist: Path) -> None:
    """Stop if a file of the checkout is missing from the sdist; outside of one, say nothing."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    tracked = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    missing = sorted(set(tracked) - inside - set(APART))
    if missing:
        sys.exit(f"the sdist lacks {len(missing)} files, such as {missing[:5]}: see MANIFEST.in")


if __name__ == "__main__":
    main()
