"""Write down what JAX gives for the expressions of ``tests/compat/jax/described.py``.

    python benchmarks/as_jax_values.py tests/compat/jax/values.json

It needs JAX, of the version that ``stretto.as_jax`` presents, and NumPy.
"""

from __future__ import annotations

import json
import pathlib
import sys
import warnings

import jax
import jax.numpy as jnp
import jax.scipy.signal

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from tests.compat.jax.described import EXPRESSIONS, describe, names

__all__ = ["main"]


def main(path: str) -> None:
    """Write the file, an expression a line."""
    known = names(jax, jnp)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {text: describe(eval(text, known)) for text in EXPRESSIONS}
    lines = [f"{json.dumps(text)}: {json.dumps(value)}" for text, value in found.items()]
    pathlib.Path(path).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
