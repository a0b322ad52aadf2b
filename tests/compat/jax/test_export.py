"""``jax.export`` on Stretto: the cases of ``benchmarks/export_jax``, which JAX passes as well."""

import functools
import pathlib
import re
import subprocess
import sys

import pytest

CASES = pathlib.Path(__file__).parents[3] / "benchmarks" / "export_jax" / "cases.py"
NAMES = re.findall(r"^@case\ndef (\w+)\(", CASES.read_text("utf-8"), re.MULTILINE)


@functools.cache
def outcomes():
    done = subprocess.run(
        [sys.executable, str(CASES), "ours"], capture_output=True, text=True, check=True
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_a_case(name):
    assert outcomes()[name] == "ok"
