"""Write the file of the first format that tests keep: ``python -m tests.export.first_format``.

Run once, by the version that wrote the format first; later versions read what it wrote.
"""

import json
from pathlib import Path

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax

HERE = Path(__file__).parent


def function():
    """A function with a parameter of every kind, and its arguments."""
    own = st.custom_jvp(snp.sin)
    own.defjvp(lambda p, t: (own(*p), 2 * snp.cos(*p) * t[0]))
    table = snp.array(np.arange(12.0).reshape(4, 3))
    weights = snp.array(np.linspace(-1, 1, 18).reshape(3, 3, 1, 2), "bfloat16")
    policy = st.checkpoint_policies.save_only_these_names("kept")
    kept = st.checkpoint(lambda x: st.checkpoint_name(snp.exp(-x), "kept") * x, policy=policy)

    def f(state, images):
        x, n = state["x"], state["n"]
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
        }  # fmt: skip

    x = snp.array([0.25, -1.5, 2.0])
    return f, ({"x": x, "n": 1}, snp.ones((2, 5, 5, 1)))


def main():
    f, args = function()
    artifact = st.export.program(f, *args, dynamic_axes=(None, {0: "batch"}))
    artifact.save(HERE / "format_1.stretto")
    slopes = st.grad(lambda x: snp.sum(f({"x": x, "n": 1}, args[1])["y"]))(args[0]["x"])
    expected = {
        "x": np.asarray(args[0]["x"]).tolist(),
        "outputs": list(artifact.outputs),
        "values": [np.asarray(x, np.float64).tolist() for x in st.tree.leaves(f(*args))],
        "slopes": np.asarray(slopes).tolist(),
    }
    (HERE / "format_1.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()
