"""The tests that need several devices, run by a process that has eight."""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent
MARK = "pytest.mark.devices"


def test_with_eight_devices():
    marked = [path for path in TESTS.rglob("test_*.py") if MARK in path.read_text("utf-8")]
    files = [path for path in marked if path.name != "test_devices.py"]
    files.append(TESTS.parent / "docs" / "devices.md")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "devices", "-p", "no:cacheprovider", *files],
        env={**os.environ, "STRETTO_NUM_CPU_DEVICES": "8"},
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 100
