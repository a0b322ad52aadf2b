"""Which settings there are, which values they take, and where their defaults come from."""

import os
import subprocess
import sys

import numpy as np
import pytest

from stretto._engine.core.config import SETTINGS, config, from_environment, settings, shaping
from stretto._engine.core.errors import ConfigError
from stretto._engine.core.mesh import Mesh
from stretto._engine.xla.device import Device

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


SHAPING = {
    "enable_x64": (False, True),
    "threefry_partitionable": (False, True),
    "numpy_dtype_promotion": ("standard", "strict"),
    "default_matmul_precision": (None, "highest"),
    "numpy_rank_promotion": ("allow", "raise"),
    "check_static_indices": (False, True),
    "default_prng_impl": ("threefry2x32", "rbg"),
    "plan": ("auto", "in turn"),
    "tuned": (False, True),
    "memory_budget": (0, 1 << 20),
    "simplify": (True, False),
    "stable_forms": (True, False),
    "kernels": (True, False),
    "roll_loops": (True, False),
    "interpret_small": (True, False),
    "mesh": (None, Mesh(np.array([Device("cpu", 0)]), ("x",))),
    "debug_nans": (False, True),
    "debug_infs": (False, True),
    "disable_jit": (False, True),
}
"""The settings that change what a function becomes when it is traced or compiled: the default of
each, and another value."""

OTHERS = {
    "integer_overflow": ("raise", "wrap"),
    "eager_compiled": (True, False),
    "tiers": (False, True),
    "compile_in_background": (True, False),
    "disk_cache": (True, False),
    "disk_cache_size": (1_073_741_824, 0),
    "log_compiles": (False, True),
    "slow_compile_warning": (10, 0),
    "recompilation_warning": (16, 0),
    "traceback_filtering": ("hide", "off"),
}
WITHOUT_A_BLOCK_HERE = {
    "keep_memory": False,
    "huge_pages": True,
    "num_cpu_devices": 1,
    "default_device": None,
}
"""Those that cannot be set in a block, or want a device that need not be there."""


def test_what_holds_unless_it_is_set(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(f"STRETTO_{name.upper()}", raising=False)
    found = {name: from_environment(name, setting) for name, setting in SETTINGS.items()}
    defaults = {name: default for name, (default, _) in {**SHAPING, **OTHERS}.items()}
    assert found == {**defaults, **WITHOUT_A_BLOCK_HERE}


@pytest.mark.parametrize("name", {**SHAPING, **OTHERS})
def test_which_settings_have_functions_traced_anew(name):
    """What stands for those in force is part of the key of everything that is kept."""
    default, other = {**SHAPING, **OTHERS}[name]
    with config(**{name: default}):
        key = settings.key
        with config(**{name: other}):
            assert (settings.key is not key) is (name in SHAPING) is (name in shaping())
        assert settings.key is key
    assert WITHOUT_A_BLOCK_HERE.keys().isdisjoint(shaping())


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


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        *[("enable_x64", text, True) for text in ("1", "true", "True", "TRUE")],
        *[("simplify", text, False) for text in ("0", "false", "False", "")],
        ("numpy_rank_promotion", "warn", "warn"),
        ("default_matmul_precision", "highest", "highest"),
        ("slow_compile_warning", "0", 0),
        ("memory_budget", "1048576", 1 << 20),
        ("default_device", "cpu:1", "cpu:1"),
        ("default_device", "", None),
        *[("enable_x64", text, ConfigError) for text in ("yes", "2", "on")],
        *[("numpy_rank_promotion", text, ConfigError) for text in ("", "Warn", "1")],
        *[("slow_compile_warning", text, ConfigError) for text in ("-1", "many", "1.5", "")],
        ("mesh", "x", ConfigError),
    ],
)
def test_words_of_the_environment(monkeypatch, name, text, value):
    monkeypatch.setenv(f"STRETTO_{name.upper()}", text)
    if value is ConfigError:
        with pytest.raises(ConfigError, match=f"STRETTO_{name.upper()} must be .*; got '{text}'"):
            from_environment(name, SETTINGS[name])
    else:
        found = from_environment(name, SETTINGS[name])
        assert (type(found), found) == (type(value), value)


def test_ranks_are_checked_from_the_beginning_behind_a_block_that_allows_them():
    """Where operators meet different ranks they keep a short way, unless these are checked."""
    code = """import stretto.numpy as snp
x, y = snp.ones((2, 3)), snp.ones(3)
with config(numpy_rank_promotion="allow"):
    print((x + y + y).sum())
x + y"""
    done = in_environment(code, STRETTO_NUMPY_RANK_PROMOTION="raise")
    assert done.stdout.strip() == "18.0"
    assert "numpy_rank_promotion is 'raise'" in done.stderr


def test_bad_values_in_the_environment():
    done = in_environment("", STRETTO_ENABLE_X64="maybe")
    assert "STRETTO_ENABLE_X64 must be one of False, True; got 'maybe'" in done.stderr
    for text in ("-1", "many", "1.5", ""):
        done = in_environment("", STRETTO_RECOMPILATION_WARNING=text)
        wanted = f"STRETTO_RECOMPILATION_WARNING must be an int, 0 or more; got {text!r}"
        assert wanted in done.stderr
