"""Files that real JAX has written, read here: values and derivatives against those that it gave."""

import pathlib
from typing import Any

import ml_dtypes
import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.types import is_inexact

FILES = pathlib.Path(__file__).parent / "files"
NAMES = sorted([path.stem for path in FILES.glob("*.jax")])


def stored(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Arrays of an archive; those of bfloat16 are float32 in it, under another name."""
    found = {}
    with np.load(path) as archive:
        for name in archive.files:
            plain, _, odd = name.partition(":")
            found[plain] = archive[name].astype(ml_dtypes.bfloat16) if odd else archive[name]
    return found


def numbered(values: dict[str, np.ndarray], kind: str) -> list[np.ndarray]:
    """The arrays of a kind, in order."""
    count = sum([name.startswith(kind) for name in values])
    return [values[f"{kind}{k}"] for k in range(count)]


def close(got: Any, expected: np.ndarray) -> None:
    """Hold an array to another: same type, and elements within some units in the last place."""
    got = np.asarray(got)
    assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
    if not is_inexact(got.dtype):
        np.testing.assert_array_equal(got, expected)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    relative = {2: 1e-2, 4: 2e-5}.get(got.dtype.itemsize, 1e-5)
    got, expected = got.astype(wide), expected.astype(wide)
    largest = np.max(np.abs(expected), initial=0.0)
    np.testing.assert_allclose(got, expected, rtol=relative, atol=relative * largest)


def score(fun: Any, args: list[Any], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The sum of all real results, each times a number of its own, by the arguments that move."""
    moving = [k for k, x in enumerate(args) if np.asarray(x).dtype.kind in "fV"]

    def of(*values: Any) -> Any:
        full = list(args)
        for k, v in zip(moving, values, strict=True):
            full[k] = v
        total: Any = 0.0
        for k, leaf in enumerate(tree.leaves(fun(*full, **kwargs))):
            if is_inexact(leaf.dtype) and leaf.dtype.kind != "c":
                total = total + (k + 1) * snp.sum(snp.asarray(leaf).astype("float64"))
        return total

    return of, [snp.asarray(args[k]) for k in moving]


def check(path: pathlib.Path) -> None:
    """Read a file of JAX's, call it, and differentiate it once if it can be."""
    values = stored(path.with_suffix(".npz"))
    with st.config(enable_x64=True):
        fun = st.export.load(path)
        agrees(fun, values, derivatives=fun.vjp_order > 0)


def agrees(fun: Any, values: dict[str, np.ndarray], derivatives: bool) -> None:
    """Hold a function's results and slopes to those that are on record."""
    args = numbered(values, "arg")
    kwargs = {n.removeprefix("kwarg_"): v for n, v in values.items() if n.startswith("kwarg_")}
    outs = tree.leaves(fun(*args, **kwargs))
    for got, expected in zip(outs, numbered(values, "out"), strict=True):
        close(got, expected)
    if derivatives and numbered(values, "grad"):
        of, moving = score(fun, args, kwargs)
        grads = st.jit(st.grad(of, tuple(range(len(moving)))))(*moving)
        for got, expected in zip(grads, numbered(values, "grad"), strict=True):
            close(got, expected)
