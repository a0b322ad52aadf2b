"""Runs code in a process of its own, where Stretto stands for JAX."""

import os
import subprocess
import sys
import textwrap

__all__ = ["START", "fails", "prints"]

START = """
import stretto as st
st.as_jax.install()
import jax, jax.numpy as jnp
import numpy as np
"""


def _run(code, *arguments, **environ):
    return subprocess.run(
        [sys.executable, *arguments, *(["-c", textwrap.dedent(code)] if code else [])],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def prints(code, *arguments, start=START, **environ):
    """The lines that the code prints, after Stretto was installed as ``jax``."""
    done = _run(code and start + textwrap.dedent(code), *arguments, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def fails(code, *arguments, start=START, **environ):
    """The last line of the error that ends the code."""
    done = _run(code and start + textwrap.dedent(code), *arguments, **environ)
    assert done.returncode != 0, done.stdout
    return done.stderr.strip().splitlines()[-1]
