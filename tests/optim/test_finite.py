"""``apply_if_finite``: steps left out, counts, the end of patience, members, derivatives."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.running import assert_stable, flat, run, run_scan

BAD, GOOD = snp.array([snp.nan, 1.0]), snp.array([1.0, 1.0])


def counts(state):
    return int(state.notfinite_count), bool(state.last_finite), int(state.total_notfinite)


def test_a_bad_step_changes_nothing():
    inner = optim.adam(0.1)
    tx = optim.apply_if_finite(inner, 5)
    for update in (tx.update, st.jit(tx.update)):
        state = tx.init(GOOD)
        _, state = update(GOOD, state)
        for bad in (BAD, snp.array([1.0, -snp.inf])):
            updates, after = update(bad, state)
            np.testing.assert_array_equal(updates, [0, 0])
            np.testing.assert_array_equal(flat(after.inner_state), flat(state.inner_state))
        assert counts(after) == (1, False, 1)
        _, state = update(GOOD, after)
        assert counts(state) == (0, True, 1)


def test_patience_ends():
    tx = optim.apply_if_finite(optim.sgd(0.1), 2)
    state, seen = tx.init(GOOD), []
    for _ in range(4):
        updates, state = tx.update(BAD, state)
        seen.append(bool(np.isnan(np.asarray(updates)).any()))
    assert seen == [False, False, True, True]
    assert counts(state) == (4, False, 4)


def test_finite_steps_are_those_of_the_transformation():
    inner = optim.adamw(0.1)
    expected = flat(run(inner)[0])
    np.testing.assert_array_equal(flat(run(optim.apply_if_finite(inner, 0))[0]), expected)
    np.testing.assert_allclose(
        flat(run_scan(optim.apply_if_finite(inner, 0))[0]), expected, rtol=0, atol=3e-6
    )
    assert_stable(optim.apply_if_finite(inner, 0))


def test_only_the_member_that_went_wrong_waits():
    tx = optim.per_member(optim.apply_if_finite(optim.sgd(0.5), 3))
    grads = {"w": snp.stack([GOOD, BAD, GOOD])}
    for update in (tx.update, st.jit(tx.update)):
        updates, state = update(grads, tx.init(grads))
        np.testing.assert_array_equal(updates["w"][:, 1], [-0.5, 0, -0.5])
        np.testing.assert_array_equal(state.total_notfinite, [0, 1, 0])


def test_no_nan_in_derivatives_of_a_step_left_out():
    tx = optim.apply_if_finite(optim.adam(0.1), 3)

    def stepped(scale):
        return snp.sum(tx.update(scale * BAD, tx.init(GOOD))[0])

    for f in (stepped, st.jit(stepped)):
        # The zeros in place of the step do not depend on the scale, although that of BAD is NaN.
        assert [float(x) for x in st.jvp(f, (2.0,), (1.0,))] == [0, 0]


def test_what_is_refused():
    with pytest.raises(ValueError, match="max_consecutive_errors must be at least 0"):
        optim.apply_if_finite(optim.sgd(0.1), -1)
    with pytest.raises(TypeError, match="expected a GradientTransformation, got adam"):
        optim.apply_if_finite(optim.adam, 1)
