"""Parameters changed: dtypes kept, errors, means."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.running import types


def test_dtypes_and_weakness_of_parameters_stay():
    params = {"h": snp.ones(2, snp.bfloat16), "w": snp.ones(2), "s": snp.asarray(1.0)}
    updates = {"h": snp.full(2, 0.5), "w": snp.full(2, 0.5, snp.bfloat16), "s": snp.ones(())}
    for f in (optim.apply_updates, st.jit(optim.apply_updates)):
        assert types(f(params, updates)) == types(params)


def test_sums_are_computed_in_float32():
    # 1 + 3/512 is no bfloat16; rounded once it is 1 + 1/128, and 3/512 is one.
    params, update = snp.ones((), snp.bfloat16), snp.array(3 / 512, snp.bfloat16)
    assert float(optim.apply_updates(params, update)) == 1 + 1 / 128


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ({"w": {"v": 1.0}}, r"params and updates differ in structure; they part at params\['w'\]"),
        (
            {"w": snp.ones(3)},
            r"params\['w'\] has shape \(2,\), but updates\['w'\] has shape \(3,\)",
        ),
    ],
)
def test_trees_that_differ(updates, message):
    with pytest.raises(ValueError, match=r"apply_updates: " + message):
        optim.apply_updates({"w": snp.ones(2)}, updates)


def test_incremental_update():
    old, new = {"w": snp.array([1.0, 2.0])}, {"w": snp.array([3.0, 6.0])}
    for f in (optim.incremental_update, st.jit(optim.incremental_update)):
        np.testing.assert_allclose(f(new, old, 0.25)["w"], [1.5, 3.0])
    narrow = {"w": snp.ones(2, snp.bfloat16)}
    kept = optim.incremental_update(new, narrow, 0.25)["w"]
    assert kept.dtype == ml_dtypes.bfloat16
    np.testing.assert_allclose(np.asarray(kept, np.float32), [1.5, 2.25])


def test_incremental_update_of_members_at_rates_of_their_own():
    old, new = {"w": snp.zeros((2, 3))}, {"w": snp.ones((2, 3))}
    mixed = st.vmap(optim.incremental_update)(new, old, snp.array([0.1, 0.5]))
    np.testing.assert_allclose(mixed["w"], [[0.1] * 3, [0.5] * 3])


def test_periodic_update():
    f = st.jit(optim.periodic_update)
    seen = [float(f(snp.ones(()), snp.zeros(()), snp.array(t), 3)) for t in range(5)]
    assert seen == [1, 0, 0, 1, 0]
    old, new = snp.ones(1, snp.bfloat16), snp.ones(1)
    assert optim.periodic_update(new, old, 0, 2).dtype == ml_dtypes.bfloat16
