"""A Python of Linux on ARM, run by an emulator: for ``make test-arm``, and for the wheel.

Below ``build/arm`` it makes a root of Debian's arm64, whose programs the emulator runs one by one,
and environments for its Python, of wheels that the index has for ARM. Nothing of it needs an ARM
processor, a container or the right to change the system. Each environment's ``python`` is a script
that starts the emulator, so it can be used as any other: programs that start ``sys.executable``,
virtual environments and pip's builds find it. A compiler runs as it is, for ARM as its target.
Next, read ``build_wheels``.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from release.pythons import ROOT, build_requirements, dependencies, run

__all__ = ["RUNS", "Debian", "found", "main", "missing", "tested"]

HOME = ROOT / "build" / "arm"

SUITES = tuple(os.environ.get("ARM_SUITES", "bookworm trixie").split())
"""Debian releases, each with a Python of its own: 3.11 on Debian 12, where the tests run, and 3.13
on Debian 13, with a later jaxlib."""

MIRROR = os.environ.get("ARM_MIRROR", "http://deb.debian.org/debian")

PROCESSOR = os.environ.get("ARM_PROCESSOR", "neoverse-n1")
"""The processor that is emulated: one of clouds, with vectors of 128 bits.

On the emulator's own, with vectors of any size, NumPy's products of float32 end with the flag of a
division by zero: a warning, though every number is right (qemu 7.2, NumPy 2.4).
"""

CPUINFO = """\
processor\t: {}
BogoMIPS\t: 50.00
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc \
dcpop asimddp
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x4
CPU part\t: 0xd0c
CPU revision\t: 1

"""
"""What ``/proc/cpuinfo`` of a Neoverse N1 says of each processor.

The emulator (qemu 7.2) has programs read that of the machine it runs on, unless the root has one.
With that of an x86, which tells of no processor of ARM's, the first sum that jaxlib 0.12 gave to
YNNPACK wrote to a null pointer, and the process ended with a segmentation fault.
"""

EMULATOR, COMPILER = "qemu-aarch64-static", "aarch64-linux-gnu-gcc"
NEEDED = {
    "debootstrap": "debootstrap",
    "dpkg": "dpkg",
    EMULATOR: "qemu-user-static",
    COMPILER: "gcc-aarch64-linux-gnu",
}
"""Programs, and the Debian packages that have them."""

PACKAGES = "python3,libpython3-dev,ca-certificates"
PLATFORMS = (
    "manylinux2014",
    "manylinux_2_17",
    "manylinux_2_27",
    "manylinux_2_28",
    "manylinux_2_34",
)
"""The Linuxes whose wheels are taken, by their C library: Debian 12 has 2.36."""

RUNS = (
    (
        "--quick",
        # What XLA is asked for, what passes make of a program, and what the planner chooses.
        "tests/_engine/xla/test_options.py",
        "tests/_engine/xla/test_nan.py",
        "tests/_engine/xla/test_pjrt_misreads.py",
        "tests/_engine/xla/test_small_loops.py",
        "tests/_engine/core/test_cost.py",
        "tests/_engine/core/test_machine.py",
        "tests/_engine/passes/formulations",
        "tests/_engine/passes/test_barriers.py",
        "tests/_engine/passes/rolling",
        # The extension in C, and its twins in Python.
        "tests/_engine/native",
        "tests/native",
        "tests/_engine/eager/test_interpreter.py",
        "tests/_engine/xla/test_array.py",
        "tests/_engine/api/jit/test_dispatch.py",
        "tests/_engine/api/jit/test_jit.py",
        # The order of bytes, narrow floats, rounding, and the order of sums.
        "tests/files",
        "tests/_engine/ops/test_bitcast.py",
        "tests/_engine/ops/test_convert.py",
        "tests/_engine/ops/test_rounding.py",
        "tests/_engine/ops/test_thresholds.py",
        "tests/_engine/ops/test_extrema.py",
        # Layers.
        "tests/nn/test_linear.py",
        "tests/nn/test_convolution.py",
        "tests/nn/test_normalization.py",
        "tests/nn/test_pooling.py",
        "tests/nn/test_recurrent.py",
        "tests/nn/test_transformer.py",
    ),
    # Random networks as ensembles and random sums and products, with every option of XLA's.
    (
        "tests/property/test_plan_storm.py",
        "tests/property/test_library_storm.py",
        "tests/property/test_program_storm.py",
    ),
    # Each primitive, by a law of its own.
    ("-k", "test_laws", "-p", "tests.once", "tests/_engine/ops", "tests/_engine/higher_order"),
)
"""The tests of what a processor decides, as arguments of pytest's for each of its runs."""


def missing() -> list[str]:
    """Return the Debian packages that this machine lacks for all this."""
    needed = NEEDED if _is_root() else {**NEEDED, "fakeroot": "fakeroot"}
    return [
        package for program, package in needed.items() if shutil.which(program, path=_PATH) is None
    ]


def can_be_tried() -> bool:
    """Say whether ARM's Python can be run here by the emulator; if not, print what is missing."""
    lacking = f"for it, apt install {' '.join(missing())}" if missing() else ""
    if sys.platform != "linux":
        lacking = "its emulator needs Linux"
    elif platform.machine() == "aarch64":
        lacking = "this machine is one, and needs no emulator"
    if lacking:
        print(f"Linux on ARM, emulated, is left out: {lacking}", flush=True)
    return not lacking


def _is_root() -> bool:
    return getattr(os, "geteuid", int)() == 0


_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


class Debian(NamedTuple):
    """A release of Debian, whose Python is the one that is tried."""

    suite: str

    def root(self) -> Path:
        """Make the root, unless it is there: unpacked packages, of which no script has been run."""
        folder = HOME / self.suite
        if not (folder / ".unpacked").exists():
            self._unpack(folder)
        cpuinfo = folder / "proc" / "cpuinfo"
        if not cpuinfo.exists():
            cpuinfo.parent.mkdir(exist_ok=True)
            cpuinfo.write_text("".join(CPUINFO.format(i) for i in range(os.cpu_count() or 1)))
        return folder

    def _unpack(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        as_root = () if _is_root() else ("fakeroot",)
        run(*as_root, "debootstrap", "--arch=arm64", "--foreign", "--variant=minbase",
            f"--include={PACKAGES}", self.suite, folder, MIRROR, PATH=_PATH)  # fmt: skip
        for archive in sorted(folder.glob("var/cache/apt/archives/*.deb")):
            subprocess.run(["dpkg", "-x", archive, folder], check=True)
            archive.unlink()
        (folder / ".unpacked").touch()

    def version(self) -> str:
        """Return the version of the root's Python: ``3.11``."""
        names = [path.name for path in self.root().glob("usr/bin/python3.*")]
        (version,) = [m[1] for m in map(re.compile(r"python(3\.\d+)").fullmatch, names) if m]
        return version

    def environment(self, folder: Path, *requirements: str) -> Path:
        """Make a virtual environment of the root's Python, with these; return its ``python``.

        ``venv`` would link to the foreign program. Here ``python`` is a script, and Python takes
        its name for the place where it is, and looks for ``pyvenv.cfg`` there.
        """
        base, python = self.root() / "usr" / "bin", folder / "bin" / "python"
        shutil.rmtree(folder, ignore_errors=True)
        python.parent.mkdir(parents=True)
        (folder / "pyvenv.cfg").write_text(
            f"home = {base}\ninclude-system-site-packages = false\nversion = {self.version()}\n"
        )
        foreign = base / f"python{self.version()}"
        emulated = [EMULATOR, "-cpu", PROCESSOR, "-0", python, "-L", self.root(), foreign]
        python.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, emulated))} "$@"\n')
        python.chmod(0o755)
        self.site(python).mkdir(parents=True)
        self.install(python, *requirements)
        return python

    def install(self, python: Path, *what: object) -> None:
        """Put packages into such an environment; pip runs here, and takes wheels for ARM alone."""
        linux = [f"--platform={name}_aarch64" for name in PLATFORMS]
        abis = (f"cp{self.version().replace('.', '')}", "abi3", "none")
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", self.site(python),
            *linux, "--implementation=cp", f"--python-version={self.version()}",
            *[f"--abi={abi}" for abi in abis], "--only-binary=:all:", *what)  # fmt: skip

    def kept(self, name: str, *requirements: str) -> Path:
        """Make an environment below ``build/arm``, unless it is there and has just this."""
        folder, wanted = HOME / f"{self.suite}-{name}", "\n".join([PROCESSOR, *requirements])
        stamp, python = folder / ".installed", folder / "bin" / "python"
        if not stamp.exists() or stamp.read_text() != wanted:
            self.environment(folder, *requirements)
            stamp.write_text(wanted)
        return python

    def site(self, python: Path) -> Path:
        """Return the folder of an environment's packages."""
        return python.parents[1] / "lib" / f"python{self.version()}" / "site-packages"

    def compiling(self) -> dict[str, str]:
        """Return the environment variables with which the extension is built for ARM.

        Python's headers come first, since Debian's Python may name those of the machine that it
        runs on, and the system's last, behind the cross compiler's own.
        """
        headers = self.root() / "usr" / "include"
        flags = [f"-I{headers}/python{self.version()}", "-idirafter", str(headers)]
        return {"CC": COMPILER, "CFLAGS": shlex.join(flags)}


def found() -> list[Debian]:
    """Return the releases, if this machine has what they take; say what is missing if not."""
    return [Debian(suite) for suite in SUITES] if can_be_tried() else []


def tested(debian: Debian) -> Path:
    """Return the ``python`` of the environment for tests, with the extension beside its sources."""
    python = debian.kept("tests", *dependencies("test"), *build_requirements())
    (debian.site(python) / "stretto-sources.pth").write_text(f"{ROOT / 'src'}\n")
    run(python, "setup.py", "--quiet", "build_ext", "--inplace", **debian.compiling())
    for part in ("native", "kernels"):
        code = f"from stretto._engine.{part} import WITHOUT; assert not WITHOUT, WITHOUT"
        run(python, "-c", code)
    return python


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tests of ``RUNS``; or, instead, pytest with these arguments."""
    parser = argparse.ArgumentParser(prog="release.arm", description=main.__doc__)
    parser.add_argument("--numprocesses", default="auto", help="how many tests to run at a time")
    known, given = parser.parse_known_args(arguments)
    if not can_be_tried():
        sys.exit(1)
    os.chdir(ROOT)  # for setup.py, and the paths of tests
    pytest = [
        tested(Debian(SUITES[0])),
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-n",
        known.numprocesses,
    ]
    codes = [
        subprocess.run([*pytest, *run], check=False).returncode
        for run in ([given] if given else RUNS)
    ]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
