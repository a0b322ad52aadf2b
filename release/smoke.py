"""Use an installed package, its extension in C ``with`` or ``without``: a script by itself.

It imports nothing from beside it, so that what it finds is what was installed.
"""

from __future__ import annotations

import sys
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import stretto as st
    import stretto.numpy as snp


def main(extension: str) -> None:
    """Try what a first program uses, and look whether the extension is there."""
    info = st.debug.print_environment_info(return_string=True) or ""
    words = [str(w.message) for w in caught if "extension in C" in str(w.message)]
    assert f"{extension} its extension in C" in info, info
    assert len(words) == (extension == "without"), words

    def loss(w: st.Array, x: st.Array) -> st.Array:
        return snp.mean(snp.tanh(x @ w) ** 2)

    x = st.random.normal(st.random.key(0), (5, 3))
    slope = st.jit(st.grad(loss))(snp.ones(3), x)
    each = st.vmap(st.grad(loss), in_axes=(None, 0))(snp.ones(3), x[:, None])
    assert bool(snp.allclose(each.mean(0), slope, atol=1e-5))
    keys = st.random.split(st.random.key(1), 4)
    ensemble = st.Ensemble([st.nn.Linear(3, 2, key=key) for key in keys])
    assert ensemble(x).shape == (4, 5, 2)
    print(f"Python {sys.version.split()[0]}: jit, grad, vmap, Ensemble; {extension} the extension")


if __name__ == "__main__":
    main(sys.argv[1])
