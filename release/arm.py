"""A Python of Linux on ARM, run by an emulator: for ``make test-arm``, and for the wheel.

Below ``build/arm`` it makes a root of Debian's arm64, whose programs the emulator runs one by one,
and environments for its Python, of wheels that the index has for ARM. Nothing of it needs an ARM
processor, a container or the right to change the system. Each environment's ``python`` is a script
that starts the emulator, so it can be used as any other: programs that start ``sys.executable``,
virtual environments and pip's builds find it. A compiler runs as it is, for ARM as its target.
Next, read ``build_wheels``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from release.pythons import ROOT, dependencies, run

__all__ = ["TESTS", "compiling", "environment", "install", "main", "missing", "tested"]

HOME = ROOT / "build" / "arm"

SUITE = os.environ.get("ARM_SUITE", "bookworm")
"""The Debian release; its Python is the one that is tried."""

MIRROR = os.environ.get("ARM_MIRROR", "http://deb.debian.org/debian")

EMULATOR, COMPILER = "qemu-aarch64-static", "aarch64-linux-gnu-gcc"
NEEDED = {
    "debootstrap": "debootstrap",
    "dpkg": "dpkg",
    EMULATOR: "qemu-user-static",
    COMPILER: "gcc-aarch64-linux-gnu",
}
"""Programs, and the Debian packages that have them."""

PACKAGES = "python3,libpython3-dev,ca-certificates"
_OLDEST, _NEWEST = 17, 36
"""The minor versions of the C library whose wheels are taken: Debian 12 has 2.36."""

TESTS = (
    # What XLA's options and our passes make of a program, and what the planner chooses.
    "tests/_engine/xla/test_options.py",
    "tests/_engine/xla/test_nan.py",
    "tests/_engine/xla/test_pjrt_misreads.py",
    "tests/_engine/xla/test_small_loops.py",
    "tests/_engine/core/test_cost.py",
    "tests/_engine/core/test_machine.py",
    "tests/_engine/passes/formulations",
)
"""The tests of what a processor decides."""


def missing() -> list[str]:
    """Return the Debian packages that this machine lacks for all this."""
    needed = {**NEEDED, **({} if os.geteuid() == 0 else {"fakeroot": "fakeroot"})}
    return [
        package for program, package in needed.items() if shutil.which(program, path=_PATH) is None
    ]


_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def root() -> Path:
    """Make the root, unless it is there: unpacked packages, of which no script has been run."""
    folder = HOME / SUITE
    done = folder / ".unpacked"
    if done.exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    as_root = () if os.geteuid() == 0 else ("fakeroot",)
    run(*as_root, "debootstrap", "--arch=arm64", "--foreign", "--variant=minbase",
        f"--include={PACKAGES}", SUITE, folder, MIRROR, PATH=_PATH)  # fmt: skip
    for archive in sorted(folder.glob("var/cache/apt/archives/*.deb")):
        subprocess.run(["dpkg", "-x", archive, folder], check=True)
        archive.unlink()
    done.touch()
    return folder


def version() -> str:
    """Return the version of the root's Python: ``3.11``."""
    (python,) = [p for p in root().glob("usr/bin/python3.*") if re.fullmatch(r"3\.\d+", p.name[6:])]
    return python.name.removeprefix("python")


def environment(folder: Path, *requirements: str) -> Path:
    """Make a virtual environment of the root's Python, with these packages; return its ``python``.

    ``venv`` would link to the foreign program. Here ``python`` is a script, and Python takes its
    name for the place where it is, and looks for ``pyvenv.cfg`` there.
    """
    base, python = root() / "usr" / "bin", folder / "bin" / "python"
    shutil.rmtree(folder, ignore_errors=True)
    python.parent.mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text(
        f"home = {base}\ninclude-system-site-packages = false\nversion = {version()}\n"
    )
    foreign = base / f"python{version()}"
    python.write_text(f'#!/bin/sh\nexec {EMULATOR} -0 {python} -L {root()} {foreign} "$@"\n')
    python.chmod(0o755)
    _site(python).mkdir(parents=True)
    install(python, *requirements)
    return python


def install(python: Path, *what: object) -> None:
    """Put packages into such an environment; pip runs here, and takes wheels for ARM alone."""
    linux = [f"--platform=manylinux_2_{n}_aarch64" for n in range(_OLDEST, _NEWEST + 1)]
    run(sys.executable, "-m", "pip", "install", "--quiet", "--target", _site(python),
        *linux, "--platform=manylinux2014_aarch64", "--implementation=cp",
        f"--python-version={version()}", f"--abi=cp{version().replace('.', '')}", "--abi=abi3",
        "--abi=none", "--only-binary=:all:", *what)  # fmt: skip


def kept(name: str, *requirements: str) -> Path:
    """Make an environment below ``build/arm``, unless it is there with these very packages."""
    folder, wanted = HOME / f"{SUITE}-{name}", "\n".join(requirements)
    stamp, python = folder / ".installed", folder / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted:
        environment(folder, *requirements)
        stamp.write_text(wanted)
    return python


def _site(python: Path) -> Path:
    return python.parents[1] / "lib" / f"python{version()}" / "site-packages"


def compiling() -> dict[str, str]:
    """Return the environment variables with which the extension is built for ARM.

    Debian's Python names the cross compiler already; part of the headers are beside Python's.
    """
    return {"CC": COMPILER, "CFLAGS": f"-idirafter {root()}/usr/include"}


def tested() -> Path:
    """Return the ``python`` of the environment for tests, with the extension beside its sources."""
    python = kept("tests", *dependencies("test"), "setuptools>=77")
    (_site(python) / "stretto-sources.pth").write_text(f"{ROOT / 'src'}\n")
    run(python, "setup.py", "--quiet", "build_ext", "--inplace", cwd=ROOT, **compiling())
    run(python, "-c", "from stretto._engine.native import WITHOUT; assert not WITHOUT, WITHOUT")
    return python


def main(arguments: list[str] | None = None) -> None:
    """Run the tests of ``TESTS``, or those given instead, with more options of pytest's."""
    lacking = missing()
    if lacking:
        sys.exit(f"Linux on ARM is tried by Debian's packages: apt install {' '.join(lacking)}")
    given = sys.argv[1:] if arguments is None else arguments
    chosen = () if any(not a.startswith("-") for a in given) else TESTS
    done = subprocess.run([tested(), "-m", "pytest", "-p", "no:cacheprovider", *given, *chosen],
                          cwd=ROOT, check=False)  # fmt: skip
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
