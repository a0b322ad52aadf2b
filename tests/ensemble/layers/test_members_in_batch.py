"""``MultiHead``: heads run as one are the heads one by one."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble.layers import MultiHead

KEYS = st.random.split(st.random.PRNGKey(0), 4)
X = st.random.normal(st.random.PRNGKey(1), (5, 6))


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(1.0)

    def forward(self, x):
        if not self.training:
            return self.w * x
        return self.w * x * st.random.uniform(st.random.next_key("Noisy"), x.shape)


def model(heads=None):
    trunk = nn.Linear(6, 3, key=KEYS[0])
    return MultiHead(trunk, heads or [nn.Linear(3, 2, key=k) for k in KEYS])


def test_the_loop_over_heads():
    heads = [nn.Linear(3, 2, key=k) for k in KEYS]
    m = model(heads)
    expected = np.stack([h(m.trunk(X)) for h in heads])
    for out in (m(X), st.jit(lambda m, x: m(x))(m, X)):
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)
    assert list(m.state_dict()) == ["trunk.weight", "trunk.bias", "heads.weight", "heads.bias"]
    assert m.heads.weight.shape == (4, 2, 3) and m.num_estimators == 4
    for one, head in zip(m.members(), heads, strict=True):
        np.testing.assert_array_equal(one.weight, head.weight)

    def looped(trunk, heads):
        return sum((h(trunk(X)) ** 2).sum() for h in heads)

    slopes = st.jit(st.grad(lambda m: (m(X) ** 2).sum()))(m)
    by_trunk, by_heads = st.grad(looped, (0, 1))(m.trunk, heads)
    np.testing.assert_allclose(slopes.trunk.weight, by_trunk.weight, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        slopes.heads.weight, np.stack([h.weight for h in by_heads]), rtol=1e-4, atol=1e-5
    )
    two = st.stack([m, model()])
    np.testing.assert_allclose(st.vmap(lambda m: m(X))(two)[0], expected, rtol=1e-5, atol=1e-6)


def test_running_statistics_of_heads():
    heads = [nn.Sequential(nn.Linear(3, 2, key=k), nn.BatchNorm1d(2)) for k in KEYS]
    m = model(heads)
    features = m.trunk(X)
    expected = [nn.stateful_call(h, features) for h in heads]
    before = np.asarray(m.heads[1].running_mean)
    out, after = st.jit(nn.stateful_call)(m, X)
    np.testing.assert_allclose(out, np.stack([o for o, _ in expected]), rtol=1e-4, atol=1e-4)
    means = np.stack([h[1].running_mean for _, h in expected])
    np.testing.assert_allclose(after.heads[1].running_mean, means, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(m.heads[1].running_mean, before)
    with pytest.raises(RuntimeError, match="stateful_call"):
        st.jit(m)(X)
    m(X)
    np.testing.assert_allclose(m.heads[1].running_mean, means, rtol=1e-4, atol=1e-5)
    m.eval()
    one = st.jit(lambda m, x: m(x))(m, X)
    np.testing.assert_allclose(one[2], m.members()[2](m.trunk(X)), rtol=1e-4, atol=1e-5)


def test_heads_draw_numbers_of_their_own():
    m = model([Noisy() for _ in range(3)])
    with nn.keys(KEYS[0]):
        out = np.asarray(m(X))
    assert not np.allclose(out[0], out[1])

    @st.jit
    def jitted(key, m, x):
        with nn.keys(key):
            return m(x)

    np.testing.assert_allclose(jitted(KEYS[0], m, X), out, rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="Noisy draws random numbers"):
        st.jit(m)(X)
    assert st.jit(m.eval())(X).shape == (3, 5, 3)


def test_refused():
    with pytest.raises(ValueError, match="expected at least one head"):
        MultiHead(nn.Linear(2, 2), [])
    with pytest.raises(TypeError, match="MultiHead: expected modules, got function"):
        MultiHead(nn.Linear(2, 2), [snp.tanh])
    with pytest.raises(ValueError, match=r"member 1 .*out_features=2 and one with out_features=3"):
        MultiHead(nn.Linear(2, 2), [nn.Linear(2, 2), nn.Linear(2, 3)])
