"""The extension in C and its twins in Python: the same tests pass with both."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine import native as package
from stretto._engine.native import native

ROOT = Path(__file__).parents[3]
BOTH = (
    "tests/_engine/api/jit/test_dispatch.py",
    "tests/_engine/api/sharding/test_placement_waiting.py",
    "tests/_engine/eager/test_interpreted.py",
    "tests/_engine/eager/test_table.py",
    "tests/_engine/xla/test_array.py",
    "tests/_engine/eager/test_twins_binary.py",
)


def run(*command, **environment):
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_twins_pass_the_same_tests():
    if native is None:
        pytest.skip("this run is without the extension")
    done = run("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *BOTH,
               STRETTO_NATIVE="0")  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "passed" in done.stdout


def test_it_can_be_left_out():
    code = "from stretto._engine.native import native; print(native is None)"
    assert run("-c", code, STRETTO_NATIVE="0").stdout.strip() == "True"


def test_a_python_without_the_lock_is_refused():
    off = "import sys; sys._is_gil_enabled = lambda: False; import stretto.numpy"
    done = run("-c", off)
    assert done.returncode == 1 and "free-threaded build" in done.stderr
    assert "set PYTHON_GIL=1, or start it as python -X gil=1" in done.stderr
    on = off.replace("False", "True") + "; print(stretto.numpy.ones(2) + 1)"
    assert run("-c", on).stdout == "[2. 2.]\n"


@pytest.mark.parametrize("takes_turns", [True, False, None])
def test_whether_threads_take_turns(takes_turns, monkeypatch):
    """Python below 3.13 says nothing of it, and has no other threads."""
    if takes_turns is None:
        monkeypatch.delattr(sys, "_is_gil_enabled", raising=False)
    else:
        monkeypatch.setattr(sys, "_is_gil_enabled", lambda: takes_turns, raising=False)
    if takes_turns is False:
        with pytest.raises(ImportError, match="expected a Python with its global interpreter lo"):
            package._check_threads()
    else:
        package._check_threads()


@pytest.mark.parametrize(
    ("error", "build", "why"),
    [
        (ModuleNotFoundError("no"), "3.11.1 (main)", "it was not built for this Python"),
        (ModuleNotFoundError("no"), "3.14.1 free-threading build", "free-threaded builds of Pyth"),
        (ImportError("no file"), "3.11.1 (main)", "it cannot be loaded (no file)"),
    ],
)
def test_why_it_is_not_there(error, build, why, monkeypatch):
    def import_module(name):
        raise error

    monkeypatch.delenv("STRETTO_NATIVE", raising=False)
    monkeypatch.setattr(package, "importlib", SimpleNamespace(import_module=import_module))
    monkeypatch.setattr(sys, "version", build)
    module, said = package._load()
    assert module is None and said.startswith(why)


def test_it_is_not_built_without_the_lock():
    compiler = shutil.which("cc")
    headers = Path(sysconfig.get_path("include"))
    if compiler is None or not (headers / "Python.h").exists():
        pytest.skip("there is no compiler, or no header of Python")
    source = ROOT / "src" / "stretto" / "_engine" / "native" / "module.c"
    command = [compiler, "-fsyntax-only", f"-I{headers}"]
    assert not subprocess.run([*command, source], capture_output=True, check=False).returncode
    done = subprocess.run(
        [*command, "-DPy_GIL_DISABLED=1", source], capture_output=True, text=True, check=False
    )
    assert done.returncode and "free-threaded builds of Python are not supported" in done.stderr
    hidden = HIDDEN.replace(
        "; import stretto", "; sys.version += ' free-threading build'; import stretto"
    )
    assert "free-threaded builds of Python are not supported by it" in run("-c", hidden).stderr


HIDDEN = "import sys; sys.modules['stretto._engine.native._native'] = None; import stretto; "


def test_a_package_without_it_says_so_once():
    done = run("-c", HIDDEN + "stretto.debug.print_environment_info()", STRETTO_NATIVE="1")
    assert done.returncode == 0
    assert done.stderr.count("RuntimeWarning: the extension in C of stretto is not used") == 1
    assert "--no-cache-dir" in done.stderr
    assert ", without its extension in C: it was not built for this Python\n" in done.stdout


def test_where_it_is_turned_off_nothing_warns():
    done = run("-c", HIDDEN + "stretto.debug.print_environment_info()", STRETTO_NATIVE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert ", without its extension in C: STRETTO_NATIVE=0 turns it off\n" in done.stdout


@pytest.mark.skipif(native is None, reason="the extension was not built")
def test_operators_are_those_of_c():
    assert type(st.Array.__dict__["__add__"]).__name__ == "EagerCall"
    assert snp.ones(2).__add__(snp.ones(2)).shape == (2,)
    assert st.Array.__add__.__name__ == "__add__"
    assert issubclass(st.Array, native.Holder)


@pytest.mark.skipif(native is None, reason="the extension was not built")
def test_another_revision_is_not_used(monkeypatch):
    from stretto._engine import native as module  # noqa: PLC0415

    monkeypatch.setattr(module, "_REVISION", -1)
    assert module._load() == (None, "it was built from another version of the package")
    with pytest.warns(RuntimeWarning, match="small operations take about twice as long"):
        module._warn("it was built from another version of the package")


@pytest.mark.skipif(native is None, reason="the extension was not built")
def test_wrong_use_is_refused():
    with pytest.raises(TypeError):
        native.EagerCall()
    with pytest.raises(AttributeError, match="__name__"):
        native.EagerCall(1, {})
    with pytest.raises(TypeError):
        native.EagerRecord()
    about = dict.fromkeys(["state", "eager", "quiet", "ndarray", "asarray"], 1)
    with pytest.raises(TypeError, match="subclass of Holder"):
        native.attach_eager(array=int, placed=[], absent=int, **about)
    with pytest.raises(RuntimeError, match="attached already"):
        native.attach_eager(array=st.Array, placed=[], absent=int, **about)
    with pytest.raises(TypeError):
        native.attach_eager(st.Array, [], int, 1, 1, 1, 1, 1)
    with pytest.raises(RuntimeError, match="once"):
        native.attach_jit(settings=1, apart={}, leaf_of=1, as_array=1)
    with pytest.raises(TypeError):
        native.Holder()
    with pytest.raises(TypeError):
        native.unfinished()
    holder = native.Holder(None, "type")
    assert holder._host is None and holder._buffer is None and holder.type == "type"
    np.testing.assert_array_equal(snp.ones(1), 1)


STANDARD = ("-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Wvla", "-Werror")
PYTHONS = ("-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Wno-cast-function-type")
"""What Python's own conventions for methods and types need."""


def test_the_sources_are_standard_c():
    """Other compilers than GCC have no extensions of the language, or arrays of variable length."""
    compiler, headers = shutil.which("gcc"), sysconfig.get_paths()["include"]
    if compiler is None or not (Path(headers) / "Python.h").exists():
        pytest.skip("there is no compiler, or there are no headers of Python")
    sources = sorted((ROOT / "src/stretto/_engine/native").glob("*.c"))
    command = [compiler, *STANDARD, *PYTHONS, "-fsyntax-only", "-isystem", headers, *sources]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stderr) == (0, "")
    assert not [path.name for path in sources if "__builtin" in path.read_text(encoding="utf-8")]


def test_python_takes_the_revision_that_is_in_the_sources():
    source = (ROOT / "src/stretto/_engine/native/module.c").read_text("utf-8")
    assert f"#define REVISION {sys.modules['stretto._engine.native']._REVISION} " in source
