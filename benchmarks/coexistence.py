"""Stretto and JAX in one process, imported in either order: do both still compute?

Both drive the same jaxlib. This starts the peers' interpreter, once for each order, with Stretto's
dependencies after its own packages; run by `make bench`, or by hand:

    python -m benchmarks.coexistence --peer-python .venv-bench/bin/python
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig

from benchmarks.process import ROOT, environment

PATIENCE = 180.0

PROGRAM = """
import sys
sys.path.append(sys.argv[1])
import numpy as np

def use_jax():
    import jax, jax.numpy as jnp
    f = lambda x: jnp.sin(x) * x
    x = jnp.arange(4.0)
    for y in (f(x), jax.jit(f)(x), jax.vmap(jax.jit(f))(x), jax.device_put(f(x))):
        assert y.dtype == np.float32, y.dtype
        np.testing.assert_allclose(y, np.sin(np.arange(4.0)) * np.arange(4.0), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: f(x).sum()))(x), slope(), rtol=1e-5)
    assert not jax.config.jax_enable_x64
    return x

def use_stretto():
    import stretto as st, stretto.numpy as snp
    f = lambda x: snp.sin(x) * x
    x = snp.arange(4.0)
    for y in (f(x), st.jit(f)(x), st.vmap(st.jit(f))(x)):
        assert y.dtype == np.float32, y.dtype
        np.testing.assert_allclose(y, np.sin(np.arange(4.0)) * np.arange(4.0), rtol=1e-6)
    np.testing.assert_allclose(st.jit(st.grad(lambda x: f(x).sum()))(x), slope(), rtol=1e-5)
    with st.enable_x64():
        assert st.jit(f)(snp.arange(4.0)).dtype == np.float64
    assert not st.config.enable_x64
    return x

def slope():
    x = np.arange(4.0)
    return np.cos(x) * x + np.sin(x)

def exchange():
    import jax, jax.numpy as jnp, stretto as st, stretto.numpy as snp
    there, here = jnp.arange(5.0) * 2, snp.arange(5.0) * 3
    np.testing.assert_array_equal(st.jit(lambda x: x + 1)(np.asarray(there)), there + 1)
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(np.asarray(here)), here + 1)
    np.testing.assert_array_equal(jnp.from_dlpack(here), here)
    with jax.enable_x64(True):
        assert jax.jit(lambda x: x * 2)(jnp.arange(3.0)).dtype == np.float64
        assert st.jit(lambda x: x * 2)(snp.arange(3.0)).dtype == np.float32

import importlib
uses = {"jax": use_jax, "stretto": use_stretto}
first, second = sys.argv[2:4]
if sys.argv[4] == "imported":
    importlib.import_module(first), importlib.import_module(second)
for name in (first, second, first):
    uses[name]()
exchange()
import jax, jaxlib, stretto
print(f"jax {jax.__version__}, jaxlib {jaxlib.__version__}, stretto {stretto.__version__}")
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0 if both computed right results in every order."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coexistence", description=__doc__)
    parser.add_argument(
        "--peer-python", default=".venv-bench/bin/python", help="interpreter that has jax"
    )
    python = os.path.abspath(parser.parse_args(arguments).peer_python)
    ours = sys.version_info[:2]
    theirs = _run(python, "-c", "import sys; print(*sys.version_info[:2])").stdout.split()
    if [*map(str, ours)] != theirs:
        # Compiled dependencies serve one version of Python.
        print(f"coexistence: not checked, the peers run on Python {'.'.join(theirs)}")
        return 0
    failed = False
    for first, second in (("jax", "stretto"), ("stretto", "jax")):
        for when in ("imported", "used"):
            site = sysconfig.get_paths()["purelib"]
            done = _run(python, "-c", PROGRAM, site, first, second, when)
            failed = failed or done.returncode != 0
            lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
            verdict = "both compute" if done.returncode == 0 else "FAILED"
            print(f"coexistence: {first} {when} before {second}: {verdict} ({lines[-1]})")
    return 1 if failed else 0


def _run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {**environment(), "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [python, *arguments],
        check=False,
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


if __name__ == "__main__":
    sys.exit(main())
