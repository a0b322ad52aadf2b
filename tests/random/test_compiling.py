"""Which draws are compiled as a whole: many, at rest; and with the same numbers."""

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto.random import compiling
from stretto.random.compiling import when_large


def test_many_at_rest_are_compiled(monkeypatch):
    monkeypatch.setattr(compiling, "_LARGE", 10)
    traced = []

    def draw(x, n):
        traced.append(n)
        return x * n

    chosen = when_large(draw, (1,))
    x = snp.arange(4.0)
    np.testing.assert_array_equal(chosen(9, x, 3), 3 * np.arange(4))
    np.testing.assert_array_equal(chosen(9, x, 3), 3 * np.arange(4))
    assert len(traced) == 2  # called each time
    for _ in range(3):
        np.testing.assert_array_equal(chosen(10, x, 3), 3 * np.arange(4))
    assert len(traced) == 3  # traced once
    chosen(10, x, 4)
    assert len(traced) == 4  # a static argument
    np.testing.assert_array_equal(st.vmap(lambda x: chosen(10, x, 3))(x), 3 * np.arange(4))
    names = [e.primitive.name for e in st.make_graph(lambda x: chosen(10, x, 3))(x).equations]
    assert names == ["mul"]  # no call inside a transformation


def test_small_and_large_draws_have_the_same_numbers(monkeypatch):
    key = st.random.key(0)
    small = st.random.gamma(key, 2.0, (50,))
    monkeypatch.setattr(compiling, "_LARGE", 1)
    np.testing.assert_allclose(st.random.gamma(key, 2.0, (50,)), small, rtol=1e-6)
