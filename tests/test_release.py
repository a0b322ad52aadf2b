"""What wheels are built for, ARM's among it, and the script that tries them."""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from release import arm, build_wheels, pythons, smoke
from stretto._engine.native import native


def test_the_pythons_begin_with_the_first_that_the_package_allows():
    assert pythons.project()["requires-python"] == f">={pythons.supported()[0]}"


def test_what_the_script_of_other_pythons_needs_is_said():
    script = [shutil.which("bash"), pythons.ROOT / "tools" / "in_chroot.sh"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "expected a command, as in: tools/in_chroot.sh" in done.stderr
    # Without root, or as root without the program: nothing was begun.
    nothing = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*script, "true"], env=nothing, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "needs root" in done.stderr or "needs debootstrap: apt-get install" in done.stderr


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


def test_the_sdist_takes_every_folder_of_the_checkout():
    done = subprocess.run(["git", "ls-files"], cwd=pythons.ROOT, capture_output=True, check=False)
    folders = {name.partition("/")[0] for name in done.stdout.decode().split() if "/" in name}
    if not folders:
        pytest.skip("this is no checkout")
    manifest = (pythons.ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    grafted = {line.split()[1] for line in manifest.splitlines() if line.startswith("graft ")}
    assert folders - grafted == {"src"}  # whose packages setuptools finds


@pytest.mark.parametrize(
    ("arguments", "there", "left"),
    [
        ([], ["stretto-1.tar.gz", "stretto-1-cp311.whl"], ["stretto-2.tar.gz"]),
        (["--add"], ["stretto-1.tar.gz", "stretto-1-cp311.whl"],
         ["stretto-1-cp311.whl", "stretto-1.tar.gz"]),
        (["--add"], [], ["stretto-2.tar.gz"]),
    ],
)  # fmt: skip
def test_wheels_are_added_to_those_that_are_there(monkeypatch, tmp_path, arguments, there, left):
    for name in there:
        (tmp_path / name).touch()

    def pretend(*command):
        if "build" in command:
            tmp_path.mkdir(exist_ok=True)
            (tmp_path / "stretto-2.tar.gz").touch()

    built = []
    monkeypatch.setattr(build_wheels, "DIST", tmp_path)
    monkeypatch.setattr(build_wheels, "ROOT", tmp_path)
    monkeypatch.setattr(build_wheels, "run", pretend)
    monkeypatch.setattr(build_wheels, "complete", lambda sdist: None)
    monkeypatch.setattr(build_wheels, "found", lambda: {"3.14": Path("python3.14")})
    monkeypatch.setattr(build_wheels.arm, "found", list)
    monkeypatch.setattr(build_wheels, "build", lambda python, sdist, raw: built.append(sdist.name))
    build_wheels.main(arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert built == [name for name in left if name.endswith(".gz")]


def test_each_environment_in_the_chroot_is_another():
    """A target there would take this machine's, whose Python is not there."""
    make = shutil.which("make")
    if make is None:
        pytest.skip("make is not on this machine")
    done = subprocess.run(
        [make, "-n", "in-chroot", "PYTHON_VERSION=3.14", "TARGET=wheels"], cwd=pythons.ROOT,
        env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    makefile = (pythons.ROOT / "Makefile").read_text(encoding="utf-8")
    names = set(re.findall(r"^(\w*VENV) \?=", makefile, re.MULTILINE))
    given = dict(re.findall(r"(\w*VENV)=(\S+)", done.stdout))
    assert set(given) == names
    assert len(set(given.values())) == len(names)
    assert all(path.startswith("build/pythons/venv-3.14") for path in given.values())


# Linux on ARM, without the packages that it takes


@pytest.fixture
def on_x86(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")


@pytest.fixture
def nothing_installed(monkeypatch, on_x86):
    monkeypatch.setattr(shutil, "which", lambda program, **where: None)


def test_the_packages_that_are_missing_are_named(monkeypatch, capsys, nothing_installed):
    monkeypatch.setattr(arm, "_is_root", lambda: True)
    assert arm.found() == []
    assert capsys.readouterr().out == (
        "Linux on ARM, emulated, is left out: for it, apt install debootstrap dpkg "
        "qemu-user-static gcc-aarch64-linux-gnu\n"
    )
    monkeypatch.setattr(arm, "_is_root", lambda: False)
    assert arm.missing()[-1] == "fakeroot"


def test_nothing_is_missing_where_all_is_there(monkeypatch, capsys, on_x86):
    monkeypatch.setattr(shutil, "which", lambda program, **where: f"/usr/bin/{program}")
    assert [debian.suite for debian in arm.found()] == [*arm.SUITES]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("system", "machine", "why"),
    [("darwin", "arm64", "its emulator needs Linux"), ("linux", "aarch64", "this machine is one")],
)
def test_other_machines_need_no_emulator_or_have_none(monkeypatch, capsys, system, machine, why):
    monkeypatch.setattr(shutil, "which", lambda program, **where: f"/usr/bin/{program}")
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert arm.found() == []
    assert f"left out: {why}" in capsys.readouterr().out


def test_the_python_of_a_release_is_found_by_its_name(monkeypatch, tmp_path):
    monkeypatch.setattr(arm.Debian, "root", lambda debian: tmp_path)
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    for name in ("python3", "python3.13", "python3.13-config", "python3-config"):
        (tmp_path / "usr" / "bin" / name).touch()
    assert arm.Debian("trixie").version() == "3.13"


def test_a_root_tells_of_arms_processors(monkeypatch, tmp_path):
    """With those of an x86, YNNPACK in jaxlib 0.12 writes to a null pointer."""
    monkeypatch.setattr(arm, "HOME", tmp_path)
    unpacked = []

    def unpack(debian, folder):
        unpacked.append(debian.suite)
        folder.mkdir()
        (folder / ".unpacked").touch()

    monkeypatch.setattr(arm.Debian, "_unpack", unpack)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    for _ in range(2):
        told = (arm.Debian("trixie").root() / "proc" / "cpuinfo").read_text().splitlines()
    assert unpacked == ["trixie"]
    assert [line for line in told if line.startswith("processor")] == [
        f"processor\t: {i}" for i in range(3)
    ]
    assert told.count("CPU part\t: 0xd0c") == 3
    assert any(line.split().count("asimddp") for line in told)


def test_without_them_no_test_is_run(monkeypatch, nothing_installed):
    monkeypatch.setattr(arm, "tested", lambda debian: pytest.fail("it was begun"))
    with pytest.raises(SystemExit) as ended:
        arm.main([])
    assert ended.value.code == 1


def test_what_is_run_on_arm_exists():
    paths = [name for run in arm.RUNS for name in run if name.startswith("tests/")]
    assert len(paths) > 20
    assert not [path for path in paths if not (pythons.ROOT / path).exists()]


def test_an_environment_starts_the_emulator(monkeypatch, tmp_path):
    monkeypatch.setattr(arm.Debian, "root", lambda debian: Path("/a root"))
    monkeypatch.setattr(arm.Debian, "version", lambda debian: "3.11")
    asked = []
    monkeypatch.setattr(arm, "run", lambda *command, **how: asked.append(list(map(str, command))))
    python = arm.Debian("bookworm").environment(tmp_path / "an environment", "numpy>=2")
    assert python == tmp_path / "an environment" / "bin" / "python"
    assert "home = /a root/usr/bin" in (tmp_path / "an environment" / "pyvenv.cfg").read_text()
    (pip,) = asked
    assert pip[-1] == "numpy>=2"
    assert "--only-binary=:all:" in pip
    assert "--platform=manylinux_2_28_aarch64" in pip
    assert "--abi=cp311" in pip
    # An emulator that says what it is called with.
    emulator = tmp_path / arm.EMULATOR
    emulator.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    emulator.chmod(0o755)
    said = subprocess.run(
        [python, "-c", "a b"], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True,
        text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert said == ["-cpu", arm.PROCESSOR, "-0", str(python), "-L", "/a root",
                    "/a root/usr/bin/python3.11", "-c", "a b"]  # fmt: skip


def test_an_environment_is_made_once(monkeypatch, tmp_path):
    monkeypatch.setattr(arm, "HOME", tmp_path)
    made = []

    def make(debian, folder, *requirements):
        made.append(requirements)
        folder.mkdir(exist_ok=True)

    monkeypatch.setattr(arm.Debian, "environment", make)
    for wanted in ["numpy"], ["numpy"], ["numpy", "scipy"]:
        assert (
            arm.Debian("bookworm").kept("tests", *wanted)
            == tmp_path / "bookworm-tests" / "bin" / "python"
        )
    assert made == [("numpy",), ("numpy", "scipy")]
