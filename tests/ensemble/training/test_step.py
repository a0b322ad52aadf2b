"""Batches picked from an order, and the test that all is finite."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble.training.step import _finite_rows, batch_at, noise_key


def test_batches_from_an_order():
    data = {"x": snp.arange(12.0).reshape(6, 2)}
    own = snp.array([[5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]])
    picked = st.jit(batch_at, static_argnums=3)(data, own, 2, 3)[0]["x"]
    np.testing.assert_array_equal(picked[..., 0] // 2, [[3, 2, 1], [2, 3, 4]])
    same = batch_at(data, own[0], 4, 2)[0]["x"]
    np.testing.assert_array_equal(same[:, 0] // 2, [1, 0])


def test_what_is_left_of_members_with_different_numbers():
    data, order = {"x": snp.arange(12.0)}, snp.array([[5, 4, 3, 0], [0, 1, 2, 7]])
    batch, some = batch_at(data, order, 2, 2, snp.array([3, 4]))
    assert [x.tolist() for x in batch["x"]] == [[3.0], [2.0, 7.0]] and some.tolist() == [True] * 2
    batch, some = batch_at(data, order, 2, 2, snp.array([2, 4]))
    assert batch["x"].lengths.tolist() == [1, 2] and some.tolist() == [False, True]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_found(dtype, bad):
    largest = float(np.finfo(np.float16).max) if dtype == "float16" else 3e38
    # All as large as can be: their sum would overflow.
    x, y = snp.full((3, 50, 40), largest, dtype), snp.ones((3, 50, 40), dtype)
    broken = x.at[1, 20, 7].set(bad)
    for run in (_finite_rows, st.jit(_finite_rows)):
        assert run(x).tolist() == [True, True, True]
        assert run(x, y).tolist() == [True, True, True]
        for pair in [(broken, y), (y, broken), (broken, -broken)]:
            assert run(*pair).tolist() == [True, False, True]
    assert _finite_rows(snp.array([1.0, bad])).tolist() == [True, False]


def test_keys_differ_by_step_and_member():
    key = st.random.PRNGKey(0)
    keys = {tuple(noise_key(key, s, m).tolist()) for s in range(3) for m in range(3)}
    assert len(keys) == 9
