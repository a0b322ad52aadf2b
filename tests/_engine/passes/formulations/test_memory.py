"""Memory by estimate, and chunks that keep to a budget."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.passes.formulations.memory import budget, chunk_within, peak_bytes

KIB = 1 << 10


def ordered(x):
    """Of 256 numbers: a matrix of 256 KiB, which no compiler does without."""
    return snp.sort(snp.sin(snp.outer(x, x)), axis=0)[:100].mean()


def squared(x):
    """The same, with a product; XLA does not count what libraries take for its values."""
    y = snp.sin(snp.outer(x, x))
    return snp.sin(y @ y).mean()


def test_peak_counts_what_is_alive_at_once():
    x = snp.ones(256)
    one = st.make_graph(lambda x: snp.sin(snp.sin(snp.sin(x))))(x)
    assert peak_bytes(one) == KIB  # each in the place of the one before
    turned = st.make_graph(lambda x: snp.sin(x).reshape(16, 16).T @ x[:16])(x)
    assert 2 * KIB <= peak_bytes(turned) < 4 * KIB
    kept = st.make_graph(lambda x: (snp.sin(x), snp.cos(x), snp.tan(x)))(x)
    assert peak_bytes(kept) == 3 * KIB
    inner = st.make_graph(lambda x: st.lax.fori_loop(0, 9, lambda i, x: snp.sin(snp.sin(x)), x))(x)
    assert KIB <= peak_bytes(inner) <= 4 * KIB


def test_chunks_divide_the_members_where_they_can():
    program = st.make_graph(lambda x: x + 1)(snp.ones(256))
    with st.config(memory_budget=7 * 2 * KIB):
        assert chunk_within(program, 1, 100) == 5
        assert chunk_within(program, 1, 11) == 7  # no divisor comes near
        assert chunk_within(program, 1, 3) == 3
    with st.config(memory_budget=1):
        assert chunk_within(program, 1, 100) == 1


def test_without_a_setting_the_budget_is_half_of_what_is_free():
    assert budget() > 1 << 20
    with st.config(memory_budget=12):
        assert budget() == 12


@pytest.mark.parametrize("f", [ordered, st.grad(squared)], ids=["values", "gradients"])
def test_auto_keeps_within_the_budget(f):
    x = snp.asarray(np.random.default_rng(0).standard_normal((64, 256)).astype(np.float32))
    with st.config(memory_budget=8 << 20):
        jitted = st.jit(st.vmap(f, chunk_size="auto"))
        used = jitted.lower(x).compile().memory_analysis().temp_size_in_bytes
        with st.config(plan="at once"):
            at_once = st.jit(st.vmap(f)).lower(x).compile().memory_analysis().temp_size_in_bytes
        np.testing.assert_allclose(jitted(x), st.vmap(f)(x), rtol=2e-4, atol=1e-5)
    assert used <= 8 << 20 < at_once


def test_auto_takes_all_that_fit():
    x = snp.ones((4, 8))
    text = st.jit(st.vmap(snp.sin, chunk_size="auto")).lower(x).as_text()
    assert "while" not in text
