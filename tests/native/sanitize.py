"""The extensions in C under GCC's address and undefined-behaviour sanitizers.

    python -m tests.native.sanitize [--seconds 60] [pytest arguments]

Builds the extension and the kernels with the checks into a copy of the package under
``build/sanitize``, and runs there the tests of what calls them, then the fuzzer. Python's own
allocator is left out, so that each object is memory of its own, of which the sanitizer knows when
it was freed.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
COPY = ROOT / "build" / "sanitize"
FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
TESTS = (
    "tests/native/test_faults.py",
    "tests/_engine/api/jit/test_dispatch.py",
    "tests/_engine/api/test_donation.py",
    "tests/_engine/eager/test_interpreted.py",
    "tests/_engine/eager/test_table.py",
    "tests/_engine/api/jit/test_jit.py",
    "tests/_engine/api/test_jit_threads.py",
    "tests/_engine/api/sharding/test_placement_waiting.py",
    "tests/_engine/eager/test_twins_binary.py",
    "tests/_engine/xla/test_array.py",
    "tests/_engine/xla/test_callbacks.py",
    "tests/_engine/eager/test_interpreter.py",
    "tests/_engine/kernels",
    "tests/_engine/lowering/test_writer_elements.py",
    "tests/_engine/passes/test_fuse_ragged.py",
    "tests/property/test_kernels_storm.py",
    "tests/property/test_rows_storm.py",
    "tests/property/test_along_storm.py",
    "tests/property/test_attention_storm.py",
    "tests/property/test_updates_storm.py",
    "tests/property/test_gather_storm.py",
)


def build() -> None:
    """Copy the package, and compile its extensions with the checks."""
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(
        ROOT / "src", COPY, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
    )
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (jaxlib,) = importlib.util.find_spec("jaxlib").submodule_search_locations
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{Path(jaxlib) / 'include'}"]
    for name in ("native", "kernels"):
        package = COPY / "stretto" / "_engine" / name
        sources = sorted(map(str, package.glob("*.c")))
        subprocess.run(
            ["gcc", "-shared", "-fPIC", "-g", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter",
             "-Wno-missing-field-initializers", "-Wno-cast-function-type", *FLAGS, *includes,
             *sources, "-o", str(package / f"_{name}{suffix}")],
            check=True,
        )  # fmt: skip


def library(name: str) -> str:
    """The path of one of GCC's libraries."""
    found = subprocess.run(
        ["gcc", f"-print-file-name={name}"], check=True, capture_output=True, text=True
    )
    return found.stdout.strip()


def environment() -> dict[str, str]:
    """What a process needs to run with the checked extension."""
    return {
        **os.environ,
        "PYTHONPATH": str(COPY),
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": f"{library('libasan.so')} {library('libubsan.so')}",
        # Python and jaxlib keep much until the process ends; growth is looked for by `growth`.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "STRETTO_CACHE_DIR": str(COPY / "cache"),
    }


def main() -> int:
    """Build, test, fuzz: 0 where nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to fuzz")
    options, more = parser.parse_known_args()
    build()
    where = (
        "import stretto._engine.native as n, stretto._engine.kernels as k; "
        "print(n.native.__file__, k.kernels.__file__)"
    )
    checked = subprocess.run(
        [sys.executable, "-c", where], env=environment(), check=True, capture_output=True, text=True
    )
    if checked.stdout.count(str(COPY)) != 2:
        print(
            f"sanitize: the extensions that are used are {checked.stdout.strip()}", file=sys.stderr
        )
        return 1
    for command in (
        ["-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, *more],
        ["-m", "tests.native.fuzz", "--seconds", str(options.seconds)],
    ):
        done = subprocess.run([sys.executable, *command], env=environment(), cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
