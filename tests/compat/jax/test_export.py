"""``jax.export`` on Stretto: the cases of ``exporting``, which real JAX passes as well."""

import functools
import pathlib
import re
import subprocess
import sys

import pytest

CASES = pathlib.Path(__file__).with_name("exporting.py")
NAMES = re.findall(r"^@case\ndef (\w+)\(", CASES.read_text("utf-8"), re.MULTILINE)
DIFFER = {
    "over_devices": "shardings are not written into files",
}
"""The cases that are otherwise here, and why."""


@functools.cache
def outcomes():
    done = subprocess.run(
        [sys.executable, str(CASES), "ours"], capture_output=True, text=True, check=True
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_a_case(name):
    if name in DIFFER:
        assert outcomes()[name] != "ok", f"{name} does as in JAX now: take it off the list"
    else:
        assert outcomes()[name] == "ok"
