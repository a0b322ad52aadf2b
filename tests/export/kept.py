"""Files that each version has written, which later ones read: ``python -m tests.export.kept``.

It writes the folder of this version, ``kept/0.1.0``: functions as an artifact and as files of
``jax.export``, and what the functions gave. A version is released with its folder, which is never
written again; those of the last ten are kept. Models in ONNX's format are read by others alone.
"""

import sys
from pathlib import Path

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine import VERSION
from tests.export.exchange import score

FOLDER = Path(__file__).parent / "kept"
SUFFIXES = {"Artifact": ".stretto", "StableHLO": ".jax"}


def function():
    """A function with a parameter of every kind, and its arguments."""
    own = st.custom_jvp(snp.sin)
    own.defjvp(lambda p, t: (own(*p), 2 * snp.cos(*p) * t[0]))
    table = snp.array(np.arange(12.0).reshape(4, 3))
    weights = snp.array(np.linspace(-1, 1, 18).reshape(3, 3, 1, 2), "bfloat16")
    policy = st.checkpoint_policies.save_only_these_names("kept")
    kept = st.checkpoint(lambda x: st.checkpoint_name(snp.exp(-x), "kept") * x, policy=policy)

    def f(x, n, images):
        y, rows = lax.scan(lambda c, row: (snp.tanh(c + row), c), own(x), table)
        y = kept(lax.cond(n > 0, snp.cos, snp.sin, y))
        small = lax.while_loop(lambda c: c[0] > 1, lambda c: c / 2, lax.stop_gradient(x) + 9)
        maps = lax.conv_general_dilated(
            images.astype("bfloat16"), weights, (1, 1), "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )  # fmt: skip
        pools = lax.reduce_window(
            maps.astype("float32"), -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        )
        products = st.vmap(snp.dot)(snp.ones((2, 3)), table[:2])
        return {
            "y": y, "small": small, "rows": rows[:, ::2].at[0].set(1.0), "pools": pools.sum((1, 2)),
            "fft": snp.abs(snp.fft.rfft(x)), "sorted": snp.sort(x), "products": products,
            "bits": st.random.bits(st.random.key(3), (2,), "uint32") >> 8,
            "root": snp.linalg.cholesky(snp.outer(x, x) + snp.eye(3)),
        }  # fmt: skip

    images = np.linspace(-1, 1, 75, dtype="float32").reshape(3, 5, 5, 1)
    return f, (np.array([0.25, -1.5, 2.0], np.float32), np.int32(1), images)


def sized():
    """A function of any number of rows, and its argument."""

    def f(rows):
        return {"mixed": st.nn.functional.softmax(rows @ rows.T, -1) @ rows, "sum": rows.sum(0)}

    return f, (np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3),)


def main():
    """Write the folder of this version; 1 if it is there."""
    here = FOLDER / VERSION
    if here.exists():
        print(f"{here} is there: a file that was released is never written again")
        return 1
    here.mkdir(parents=True)
    f, args = function()
    keep(
        st.export.program(f, *args, dynamic_axes=(None, None, {0: "n"})), here / "program", f, args
    )
    keep(st.export.stablehlo(f, *args, vjp_order=1), here / "function", f, args)
    f, args = sized()
    file = st.export.stablehlo(f, *args, dynamic_axes=({0: "n"},), vjp_order=1)
    keep(file, here / "sized", f, args)
    return 0


def keep(file, path, f, args):
    """Write a file, and beside it what the function gives, and its slopes."""
    file.save(path.with_suffix(SUFFIXES[type(file).__name__]))
    arrays = {f"arg{k}": x for k, x in enumerate(args)}
    arrays |= {f"out{k}": np.asarray(x) for k, x in enumerate(st.tree.leaves(f(*args)))}
    with st.config(enable_x64=True):
        of, moving = score(f, [*args], {})
        grads = st.grad(of, tuple(range(len(moving))))(*moving)
    arrays |= {f"grad{k}": np.asarray(x) for k, x in enumerate(grads)}
    np.savez_compressed(path.with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    sys.exit(main())
