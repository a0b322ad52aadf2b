"""What ``print_environment_info`` says, and that it says it whatever is wrong."""

import platform
import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

import stretto as st
from stretto._engine.xla import environment


def found():
    """The lines by name; those of a list are joined."""
    text = st.debug.print_environment_info(return_string=True)
    assert isinstance(text, str)
    return {name: re.sub(r"\n +", " ", said) for name, said in re.findall(LINE, text)}


LINE = re.compile(r"^(\w+): +(.*(?:\n .*)*)", re.MULTILINE)


def test_versions_and_places(monkeypatch, tmp_path):
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    said = found()
    assert list(said) == [
        *("stretto", "jaxlib", "numpy", "python", "platform", "devices", "cache"),
        *("settings", "environment"),
    ]
    assert said["stretto"].startswith(st.__version__) and "extension in C" in said["stretto"]
    assert said["jaxlib"] == metadata.version("jaxlib") and said["numpy"] == np.__version__
    assert said["python"].startswith(platform.python_version())
    assert platform.machine() in said["platform"] and said["devices"] == "[CpuDevice(id=0)]"
    assert said["cache"] == str(tmp_path)


def test_settings_and_variables(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    monkeypatch.setenv("MY_TOKEN", "secret")
    with st.config(enable_x64=True, plan="wide"):
        said = found()
    assert "enable_x64=True" in said["settings"] and "plan='wide'" in said["settings"]
    assert "OMP_NUM_THREADS=3" in said["environment"]
    assert "XLA_FLAGS=--xla_cpu_enable_fast_math=false" in said["environment"]
    assert "secret" not in said["environment"]
    assert "plan" not in found()["settings"]
    monkeypatch.setenv("STRETTO_JOB_SECRET", "0123456789abcdef")
    assert "STRETTO_JOB_SECRET=(not shown)" in found()["environment"]


def test_it_is_printed(capsys):
    assert st.debug.print_environment_info() is None
    out = capsys.readouterr().out
    assert out == f"{st.debug.print_environment_info(return_string=True)}\n"


@pytest.mark.parametrize(
    ("version", "words"), [("0.4.1", "0.4.1, and this Stretto needs >=0.10.2"), (None, "not inst")]
)
def test_a_jaxlib_that_is_none(monkeypatch, version, words):
    def asked(name):
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(environment.metadata, "version", asked)
    assert words in found()["jaxlib"]


def test_no_runtime_is_started():
    code = "import sys; from stretto import debug; debug.print_environment_info()"
    code += "; print('jaxlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\nFalse\n")
