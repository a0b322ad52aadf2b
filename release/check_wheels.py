"""Install each wheel of ``dist`` into a bare environment and use it: ``make wheels-check``.

The package itself comes from ``dist`` alone (``--no-index``), so that no other project of its name
can; only its dependencies come from the index. Then the sdist is installed where there is no
compiler: it has to work, and to say what it lacks. Wheels for ARM are tried under emulation.
Next, read ``smoke``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from release import arm
from release.build_wheels import DIST
from release.pythons import dependencies, found, project, run

__all__ = ["main"]

SMOKE = Path(__file__).with_name("smoke.py")
FROM_DIST = ("--no-index", "--find-links", DIST, f"stretto[demo]=={project()['version']}")
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
DEMO = ("demo", "--digits", "--members", "2", "--epochs", "1")


def main() -> None:
    """Check them all; the first that fails ends it."""
    pythons = found()
    for version, python in pythons.items():
        with tempfile.TemporaryDirectory() as scratch:
            check(python, Path(scratch))
            if version == next(iter(pythons)):
                without_compiler(Path(scratch))
    checked = [*pythons]
    for debian in arm.found():
        with tempfile.TemporaryDirectory() as scratch:
            check_arm(debian, Path(scratch))
        checked.append(f"{debian.version()} for ARM")
    print(f"checked on Python {', '.join(checked)}")


def check(python: Path, scratch: Path) -> None:
    """A wheel in a new environment: the smoke test, the command and the demo."""
    ours = scratch / "venv" / SCRIPTS / "python"
    run(python, "-m", "venv", "--without-pip", scratch / "venv")
    install(ours, "pip", *dependencies("demo"))
    install(ours, "--only-binary=stretto", *FROM_DIST)
    use(ours, scratch)
    run(ours.with_name("stretto"), "--version")


def check_arm(debian: arm.Debian, scratch: Path) -> None:
    """Try a wheel for ARM in the same way, in an environment of the emulated Python."""
    ours = debian.environment(scratch / "venv", *dependencies("demo"))
    debian.install(ours, "--no-deps", *FROM_DIST)
    use(ours, scratch)


def use(ours: Path, scratch: Path) -> None:
    """Run the smoke test, the command and the demo."""
    cache = {"STRETTO_CACHE_DIR": str(scratch / "cache")}
    run(ours, "-I", "-W", "error", SMOKE, "with", **cache)
    run(ours, "-I", "-m", "stretto", "info", **cache)
    run(ours, "-I", "-m", "stretto", *DEMO, "--picture", scratch / "demo.png", **cache)


def without_compiler(scratch: Path) -> None:
    """The sdist in the same environment, built where the compiler fails."""
    ours = scratch / "venv" / SCRIPTS / "python"
    (sdist,) = DIST.glob("*.tar.gz")
    install(ours, "--no-deps", "--no-cache-dir", "--force-reinstall", sdist, CC="false")
    run(ours, "-I", SMOKE, "without")


def install(python: Path, *what: object, **environment: str) -> None:
    """Pip's ``install`` for that environment."""
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    run(*pip, *what, **environment)


if __name__ == "__main__":
    main()
