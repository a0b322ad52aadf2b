"""What functions of networks share: numbers per axis, reductions, probabilities, keys, elements."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.nn.functional import checks
from stretto.nn.functional.checks import (
    add_batch_axis,
    as_float,
    drop_batch_axis,
    numbers,
    per_axis,
)


def test_numbers():
    assert numbers(3, "f", "size") == (3,) and numbers([2, np.int64(4)], "f", "size") == (2, 4)
    assert per_axis(3, 2, "f", "size") == (3, 3)
    assert per_axis((3,), 2, "f", "size") == (3, 3)
    assert per_axis([1, 2], 2, "f", "size") == (1, 2)
    for given in ((1, 2, 3), 0, (1, -1), 1.5, "ab", None):
        with pytest.raises(ValueError, match="f: size must be an integer of at least 1, or 2"):
            per_axis(given, 2, "f", "size")
    assert per_axis(0, 2, "f", "padding", 0) == (0, 0)


def test_batches():
    x = snp.ones((3, 5))
    one, single = add_batch_axis(x, 1, "f")
    assert one.shape == (1, 3, 5) and single
    assert drop_batch_axis(one, single).shape == (3, 5)
    many, single = add_batch_axis(one, 1, "f")
    assert many is one and not single and drop_batch_axis(many, single) is one
    with pytest.raises(ValueError, match=r"f: input must have 3 axes .* or 2 .* got float32\[5\]"):
        add_batch_axis(x[0], 1, "f")


def test_floats():
    assert as_float(3, "f").dtype == snp.float32
    assert as_float(snp.ones(2, snp.bfloat16), "f").dtype == snp.bfloat16


def test_reductions():
    loss = snp.array([1.0, 3.0])
    assert checks.reduce_losses(loss, "none", "f") is loss
    assert (
        checks.reduce_losses(loss, "mean", "f") == 2 and checks.reduce_losses(loss, "sum", "f") == 4
    )
    with pytest.raises(ValueError, match="f: reduction must be 'none', 'mean' or 'sum', got None"):
        checks.reduce_losses(loss, None, "f")


def test_probability():
    assert [checks.probability(p, "f") for p in (0, 0.5, 1)] == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match=r"f: rate must be from 0 to 1, got -0\.1"):
        checks.probability(-0.1, "f", "rate")
    with pytest.raises(ValueError, match="from 0 to 1, got nan"):
        checks.probability(np.nan, "f")
    for other in (True, "0.5", snp.array(0.5)):
        with pytest.raises(TypeError, match="f: p must be a Python number"):
            checks.probability(other, "f")


def test_known_elements():
    checks.check_known(snp.array([True, True]), "wrong")
    with pytest.raises(ValueError, match="wrong"):
        checks.check_known(snp.array([True, False]), "wrong")

    def traced(x):
        checks.check_known(x > 0, "wrong")
        return x

    assert st.jit(traced)(snp.array(-1.0)) == -1


def test_keys():
    key = st.random.PRNGKey(1)
    assert checks.key_or_next(key, "f") is key
    with st.random.keys(key):
        first = checks.key_or_next(None, "f")
    with st.random.keys(key):
        np.testing.assert_array_equal(st.random.next_key(), first)


def test_positive_part_has_slope_one_at_zero():
    slopes = st.vmap(st.grad(checks.positive_part))(snp.array([-1.0, 0.0, 1.0]))
    assert slopes.tolist() == [0, 1, 1]
