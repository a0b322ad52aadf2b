"""What importing the package loads, and that all else is there when it is first asked for."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import stretto
from tests.exports import PACKAGES, table_of
from tests.pytorch import needs_pytorch

NEED_PYTORCH = tuple(
    [
        ".".join(path.relative_to(Path(stretto.__file__).parents[1]).with_suffix("").parts)
        for path in sorted((Path(stretto.__file__).parent / "torch").rglob("*.py"))
        if needs_pytorch(path)
    ]
)
"""Modules of ``stretto.torch`` that import PyTorch, which need not be there."""

ELSEWHERE = (
    "asyncio",
    "decimal",
    "email",
    "hashlib",
    "importlib.metadata",
    "jax",
    "jaxlib",
    "json",
    "logging",
    "multiprocessing",
    "numpy.fft",
    "numpy.polynomial",
    "numpy.random",
    "numpy.testing",
    "opt_einsum",
    "pathlib",
    "rich",
    "safetensors",
    "scipy",
    "statistics",
    "subprocess",
    "tempfile",
    "urllib",
)
"""Modules of others that only some programs need."""

LATER = ("api", "control", "ensemble", "func", "lax", "nn", "optim", "random", "scipy", "special")
"""Parts of the package that the functions of arrays do without."""


def run(code):
    """What another process prints, which runs this code."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code):
    return set(run(f"import sys\n{code}\nprint(*sys.modules)").split())


def parts(modules):
    """The second name of each of the package's modules that does something."""
    return {name.split(".")[1] for name in modules if name.startswith("stretto.") and "." in name}


def test_importing_the_package_loads_little():
    before = loaded_by("import numpy")
    loaded = loaded_by("import stretto, stretto.numpy") - before
    assert not loaded & set(ELSEWHERE)
    assert not {f"stretto.{part}" for part in LATER} & loaded
    # A bound, and no more: a module, or a folder of them, costs some 0.3 ms.
    assert len([name for name in loaded if name.startswith("stretto")]) < 166


def test_arrays_at_rest_need_no_compiler():
    loaded = loaded_by(
        "import stretto.numpy as snp\n"
        "x = snp.ones((3, 3)) @ snp.arange(3.0)\n"
        "print(snp.where(x > 1, x, 0).sum(), x[0].at[()].add(1), file=sys.stderr)"
    )
    engine = {f"stretto._engine.{part}" for part in ("api.jit.jit", "higher_order.scan")}
    assert not ({"jaxlib", "scipy"} | engine) & loaded


def test_to_show_an_array_needs_no_compiler():
    loaded = loaded_by(
        "import stretto.numpy as snp\nx = snp.ones((50, 50))\nx._repr_html_(), repr(x)"
    )
    engine = {f"stretto._engine.{part}" for part in ("api.jit.jit", "xla.sharded")}
    assert not ({"jaxlib", "rich", "scipy"} | engine) & loaded


def test_an_ensemble_needs_no_training():
    loaded = loaded_by(
        "import stretto as st\n"
        "st.Ensemble([st.nn.Sequential(st.nn.Linear(2, 2, key=k), st.nn.ReLU())\n"
        "             for k in st.random.split(st.random.key(0))])"
    )
    unneeded = ("ensemble.training", "files.reading", "lax", "nn.transformer", "optim", "scipy")
    assert not {f"stretto.{name}" for name in unneeded} & loaded
    assert not {"jaxlib", "json", "rich", "safetensors", "scipy"} & loaded


IN_CHILDREN = """
import os, sys
import stretto

failed = []
for line in sys.stdin.read().splitlines():
    child = os.fork()
    if child == 0:
        try:
            exec(line)
        except BaseException as error:
            print(line, repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        failed.append(line)
sys.exit(bool(failed))
"""


def each_in_a_process(lines):
    """Run each line in a process where nothing was used before."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IN_CHILDREN],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_truncated_normals_are_traced_without_scipy():
    code = "st.make_graph(lambda k: st.random.truncated_normal(k, -2, 2, (3,)))(st.random.key(0))"
    assert "scipy" not in loaded_by(f"import stretto as st; {code}")


def test_each_name_is_found_whichever_comes_first():
    each_in_a_process([f"assert stretto.{name} is not None" for name in stretto.__all__])


def test_each_public_module_is_imported_alone():
    public = [f"stretto.{name}" for name in stretto.__all__ if modules_of(stretto, name)]
    below = [
        f"{package}.{name}"
        for package in PACKAGES[1:]
        for name in table_of(package).get(package, ())
    ]
    assert "stretto.nn" in public and "stretto.scipy.stats" in below
    each_in_a_process(
        [
            f"import {name} as m; assert m.__name__ == {name!r}; "
            f"assert (stretto.numpy.ones(2) + 1).tolist() == [2, 2]"
            for name in (*public, *below)
        ]
    )


def modules_of(package, name):
    return importlib.util.find_spec(f"{package.__name__}.{name}") is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_is_what_its_module_says_whatever_is_loaded(package):
    """No module of the package hides a function of the same name."""
    module = importlib.import_module(package)
    for info in pkgutil.iter_modules(module.__path__):
        name = f"{package}.{info.name}"
        if info.name not in ("cli", "demo") and name not in NEED_PYTORCH:
            importlib.import_module(name)
    for home, names in table_of(package).items():
        for name in names:
            source = importlib.import_module(home)
            expected = sys.modules[f"{home}.{name}"] if home == package else getattr(source, name)
            assert getattr(module, name) is expected
            assert name in dir(module)


def test_a_module_that_is_loaded_inside_a_trace_leaves_nothing_in_it():
    """Nor does it keep a traced value, or what a setting of the moment made."""
    code = """
import importlib, pkgutil, sys
import stretto as st
from stretto._engine.core.interpreter import Tracer

names = [m.name for m in pkgutil.walk_packages(st.__path__, "stretto.") if ".demo" not in m.name]
pytorch = PYTORCH
names = [name for name in names if name not in pytorch]

def load(x):
    for name in names:
        importlib.import_module(name)
    return x

with st.enable_x64(True):
    print(len(st.make_graph(load)(1.0).equations))
print([(n, k) for n in names for k, v in vars(sys.modules[n]).items() if isinstance(v, Tracer)])
import stretto.numpy as snp
print(snp.pi * snp.hanning(4)[0], st.nn.init, st.random.normal(st.random.key(0)).dtype)
"""
    first, second, third = run(code.replace("PYTORCH", repr(NEED_PYTORCH))).splitlines()
    assert (first, second) == ("0", "[]")
    assert third.endswith("float32")


def test_star_imports_give_every_name():
    code = """
from stretto.numpy import *
print(polyfit.__name__, linalg.norm.__name__, add.__name__, "exports" in globals())
from stretto.nn import *
print(Linear.__name__, functional.relu.__name__)
from stretto.lax import *
print(scan.__name__, exp_p.name)
"""
    assert run(code) == "polyfit norm add False\nLinear relu\nscan exp\n"
