"""The kernel for updates: values against float64, and what elements do not depend on."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import tree
from stretto._engine.kernels import kernels

pytestmark = pytest.mark.skipif(kernels is None, reason="needs the kernels")


@pytest.fixture(autouse=True)
def _wide(request):
    """Have float64 where a test is for it."""
    with st.enable_x64(request.node.callspec.params.get("dtype") == "float64"):
        yield


def update(w, m, g, rate):
    m = 0.9 * m + 0.1 * g
    return w - rate * m / (snp.sqrt(snp.square(g)) + 1e-3), m


def updates(ws, ms, gs, rate):
    return [update(w, m, g, rate) for w, m, g in zip(ws, ms, gs, strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(8))
def test_values(seed, dtype):
    rng = np.random.default_rng(seed)
    sizes = [int(n) for n in np.exp(rng.uniform(0, 11, 7))] + [16384, 16384 * 2 + 1]
    shapes = [*sizes, (90, 30, 30)]
    ws, ms, gs = [[rng.standard_normal(s).astype(dtype) for s in shapes] for _ in range(3)]
    rate = np.asarray(0.25, dtype)
    run = st.jit(updates, donate_argnums=(0, 1))
    got = run(*[[snp.array(x) for x in xs] for xs in (ws, ms)], gs, rate)
    eps = np.finfo(dtype).eps
    for (w, m), *xs in zip(got, ws, ms, gs, strict=True):
        x, y, g = [x.astype(np.float64) for x in xs]
        expected = 0.9 * y + 0.1 * g
        np.testing.assert_allclose(m, expected, rtol=4 * eps, atol=4 * eps)
        new = x - 0.25 * expected / (np.abs(g) + 1e-3)
        scale = 1 + np.abs(expected / (np.abs(g) + 1e-3))
        assert np.all(np.abs(w - new) <= 8 * eps * scale * (1 + np.abs(x)))


@pytest.mark.parametrize("dtype", ["float32"])
@pytest.mark.parametrize("shapes", [[(3,), (700,)], [(5000,), (2, 40)], [(1,), (20000,)]])
def test_members_are_as_one_alone(shapes, dtype):
    rng = np.random.default_rng(0)
    shapes = [(6, *shape) for shape in (*shapes, *shapes, (60, 3, 3), (20, 30, 30))]
    ws, ms, gs = [[rng.standard_normal(s).astype(dtype) for s in shapes] for _ in range(3)]
    rates = np.linspace(0.1, 1, 6, dtype=dtype)
    together = st.jit(st.vmap(updates))(ws, ms, gs, rates)
    for k in (0, 5):
        one = tree.map(lambda x, k=k: x[k], (ws, ms, gs, rates))
        with st.config(kernels=True):
            alone = st.jit(updates)(*one)
        for x, y in zip(tree.leaves(together), tree.leaves(alone), strict=True):
            np.testing.assert_allclose(x[k], y, rtol=1e-5, atol=1e-5)
