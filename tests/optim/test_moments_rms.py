"""Sums and means of squares, against NumPy element by element; figures are in the optimizers'.

Adafactor's second moment: which axes are factored, its memory, a matrix of rank one.
"""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_stable, flat, run, run_scan, slowly


def rms(t, g, p, v):
    v = 0.9 * v + 0.1 * g * g
    return p + g / np.sqrt(v + 1e-8), v


def rms_corrected(t, g, p, v):
    v = 0.9 * v + 0.1 * g * g
    return p + g / (np.sqrt(v / (1 - 0.9 ** (t + 1))) + 1e-8), v


def rss(t, g, p, s):
    s = s + g * g
    return p + g / np.sqrt(s + 1e-7), s


CASES = [
    (optim.scale_by_rms(), rms, 1),
    (optim.scale_by_rms(eps_in_sqrt=False, bias_correction=True), rms_corrected, 1),
    (optim.scale_by_rss(0.0), rss, 1),
]


@pytest.mark.parametrize(("tx", "step", "moments"), CASES, ids=["rms", "corrected", "rss"])
def test_values_by_definition(tx, step, moments):
    expected = slowly(step, moments, np.float64)
    np.testing.assert_allclose(flat(run(tx)[0]), expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(flat(run_scan(tx)[0]), expected, rtol=0, atol=1e-5)
    assert_stable(tx)


def test_states_count_only_where_that_is_needed():
    assert isinstance(optim.scale_by_rms().init({}), optim.ScaleByRmsState)
    counted = optim.scale_by_rms(bias_correction=True).init({})
    assert isinstance(counted, optim.ScaleByRmsWithCountState)
    assert isinstance(optim.scale_by_stddev().init({}), optim.ScaleByRStdDevState)
    counted = optim.scale_by_stddev(bias_correction=True).init({})
    assert isinstance(counted, optim.ScaleByRStdDevWithCountState)


def test_what_is_refused():
    with pytest.raises(ValueError, match="scale_by_stddev: decay must be at least 0 and below 1"):
        optim.scale_by_stddev(1.0)
    with pytest.raises(
        ValueError, match="scale_by_rss: initial_accumulator_value must be at least"
    ):
        optim.scale_by_rss(-1.0)


def test_memory_is_that_of_rows_and_columns():
    tx = optim.scale_by_factored_rms(min_dim_size_to_factor=4)
    params = {
        "matrix": snp.ones((6, 4)),
        "kernel": snp.ones((3, 3, 8, 4)),
        "narrow": snp.ones((6, 3)),
        "bias": snp.ones(6),
    }
    state = tx.init(params)
    shapes = lambda tree: {k: v.shape for k, v in tree.items()}
    assert shapes(state.v_row) == {
        "matrix": (4,),
        "kernel": (3, 3, 4),
        "narrow": (1,),
        "bias": (1,),
    }
    assert shapes(state.v_col) == {
        "matrix": (6,),
        "kernel": (3, 3, 8),
        "narrow": (1,),
        "bias": (1,),
    }
    assert shapes(state.v) == {"matrix": (1,), "kernel": (1,), "narrow": (6, 3), "bias": (6,)}
    whole = optim.scale_by_factored_rms(factored=False).init(params)
    assert shapes(whole.v) == shapes(params)


def test_squares_of_rank_one_are_kept_exactly():
    # g² = a bᵀ is the product of its rows' and columns' means over its mean: the update is ±1.
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.5, 2, 6), rng.uniform(0.5, 2, 4)
    signs = np.sign(rng.normal(size=(6, 4)))
    g = snp.asarray((signs * np.sqrt(np.outer(a, b))).astype(np.float32))
    for tx in (
        optim.scale_by_factored_rms(min_dim_size_to_factor=2),
        optim.scale_by_factored_rms(),
    ):
        for update in (tx.update, st.jit(tx.update)):
            updates, _ = update(g, tx.init(g), g)
            np.testing.assert_allclose(updates, signs, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_states_are_stable(dtype):
    assert_stable(optim.scale_by_factored_rms(min_dim_size_to_factor=2), snp.dtype(dtype))
    assert_stable(optim.adafactor(0.1, min_dim_size_to_factor=2, momentum=0.9), snp.dtype(dtype))


def test_decay_of_ones_own():
    seen = []

    def half(count, rate):
        seen.append(rate)
        return 0.5

    tx = optim.scale_by_factored_rms(decay_rate=0.7, decay_rate_fn=half)
    g = snp.array([2.0])
    _, state = tx.update(g, tx.init(g), g)
    np.testing.assert_allclose(state.v, [2.0])
    assert seen == [0.7]


def test_offset_counts_updates_as_not_done():
    plain, later = (optim.scale_by_factored_rms(step_offset=n) for n in (0, 5))
    g = snp.array([2.0, 0.5])
    state = plain.init(g)
    for _ in range(2):
        _, state = plain.update(g, state, g)
    moved = state._replace(count=state.count + 5)
    np.testing.assert_allclose(
        later.update(3 * g, moved, g)[0], plain.update(3 * g, state, g)[0], rtol=1e-6
    )


def test_errors():
    tx = optim.scale_by_factored_rms(min_dim_size_to_factor=2)
    params = {"w": snp.ones((3, 2))}
    state = tx.init(params)
    with pytest.raises(ValueError, match="scale_by_factored_rms: its update needs the parameters"):
        tx.update(params, state)
    other = {"w": snp.ones((5, 3, 2))}
    with pytest.raises(
        ValueError,
        match=r"state\.v_row\['w'\] has shape \(2,\), but for updates\['w'\] of shape \(5, 3",
    ):
        tx.update(other, state, other)
    with pytest.raises(ValueError, match=r"updates\['w'\] has shape \(3, 2\), but params\['w'\]"):
        tx.update(params, state, other)
    with pytest.raises(ValueError, match="decay_rate must be at least 0, got -1"):
        optim.scale_by_factored_rms(decay_rate=-1)
