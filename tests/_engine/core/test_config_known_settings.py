"""Which settings there are, which values they take, and where their defaults come from."""

import os
import subprocess
import sys

import pytest

from stretto._engine.core.config import config
from stretto._engine.core.errors import ConfigError

UNKNOWN = "config has no setting 'x64'; there are: enable_x64, integer_overflow, threefry_partition"


@pytest.mark.parametrize(
    "use", [lambda: config.x64, lambda: setattr(config, "x64", True), lambda: config(x64=True)]
)
def test_unknown_names_are_refused_listing_what_there_is(use):
    with pytest.raises(ConfigError, match=UNKNOWN):
        use()


def test_unknown_attributes_are_absent_to_python():
    assert not hasattr(config, "x64")
    assert {"enable_x64", "numpy_dtype_promotion"} <= set(dir(config))


@pytest.mark.parametrize("value", [1, 0, None, "True"])
def test_bad_values_are_refused(value):
    with pytest.raises(ConfigError, match=r"config.enable_x64 must be one of False, True; got "):
        config.enable_x64 = value
    with pytest.raises(ConfigError, match="must be one of 'standard', 'strict'; got 'loose'"):
        config(numpy_dtype_promotion="loose")


@pytest.mark.parametrize("value", [-1, 2.0, True, "8", None])
def test_numbers(value):
    assert config.recompilation_warning == 16
    with config(recompilation_warning=0):
        assert config.recompilation_warning == 0
        with config(recompilation_warning=100):
            assert config.recompilation_warning == 100
    with pytest.raises(
        ConfigError, match=r"config.recompilation_warning must be an int, 0 or more; got"
    ):
        config.recompilation_warning = value


def in_environment(code, **variables):
    # the interpreter's own way to this source, and nothing that would be started with it
    environment = {**os.environ, **variables, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", f"from stretto._engine.core.config import config; {code}"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_from_the_environment():
    done = in_environment(
        "print(config)",
        STRETTO_ENABLE_X64="1",
        STRETTO_NUMPY_DTYPE_PROMOTION="strict",
        STRETTO_RECOMPILATION_WARNING="40",
        STRETTO_TRACEBACK_FILTERING="off",
    )
    assert "recompilation_warning=40" in done.stdout
    assert "traceback_filtering='off'" in done.stdout
    assert "enable_x64=True" in done.stdout
    assert "numpy_dtype_promotion='strict'" in done.stdout
    assert "threefry_partitionable=False" in done.stdout


def test_bad_values_in_the_environment():
    done = in_environment("", STRETTO_ENABLE_X64="maybe")
    assert "STRETTO_ENABLE_X64 must be one of False, True; got 'maybe'" in done.stderr
    for text in ("-1", "many", "1.5", ""):
        done = in_environment("", STRETTO_RECOMPILATION_WARNING=text)
        wanted = f"STRETTO_RECOMPILATION_WARNING must be an int, 0 or more; got {text!r}"
        assert wanted in done.stderr
