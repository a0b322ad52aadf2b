"""Snapshots at the ends of cycles."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import Snapshots


def tree(step):
    return {"w": snp.full(2, snp.float32(step)), "n": snp.asarray(step, dtype=int)}


@pytest.mark.parametrize(
    ("steps", "kept"), [(3, [2]), (8, [2, 5]), (12, [5, 8, 11]), (14, [5, 8, 11])], ids=str
)
def test_the_ends_of_cycles_are_kept(steps, kept):
    snapshots = Snapshots(period=3, size=3)
    at_rest = compiled = begin = snapshots.init(tree(0))
    update = st.jit(snapshots.update)
    for step in range(steps):
        at_rest = snapshots.update(at_rest, step, tree(step))
        compiled = update(compiled, step, tree(step))
    scanned, _ = st.lax.scan(
        lambda s, i: (snapshots.update(s, i, tree(i)), None), begin, snp.arange(steps)
    )
    for state in (at_rest, compiled, scanned):
        members = snapshots.members(state)
        assert members["n"].tolist() == kept and members["w"].tolist() == [[k, k] for k in kept]
        assert int(state.count) == steps // 3


def test_each_member_of_an_ensemble_has_its_own():
    snapshots = Snapshots(period=1, size=2)
    state = st.vmap(snapshots.init)(st.stack([tree(0), tree(0)]))
    state = st.vmap(snapshots.update, (0, None, 0))(state, 0, st.stack([tree(5), tree(6)]))
    assert state.stacked["n"].tolist() == [[5, 0], [6, 0]]


def test_the_factor_falls_in_each_cycle():
    snapshots = Snapshots(period=4, size=1)
    want = [0.5 * (1 + np.cos(np.pi * (t % 4) / 4)) for t in range(9)]
    np.testing.assert_allclose([snapshots.factor(t) for t in range(9)], want, rtol=1e-6)
    np.testing.assert_allclose(st.vmap(snapshots.factor)(snp.arange(9)), want, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Snapshots(0, 1), "period and size must be at least 1, got 0 and 1"),
        (lambda: Snapshots(1, 0), "got 1 and 0"),
        (lambda: Snapshots(2, 2).members(Snapshots(2, 2).init(tree(0))), "no cycle has ended"),
        (
            lambda: Snapshots(2, 2).update(Snapshots(2, 2).init({"w": snp.ones(2)}), 0, {"w": 1.0}),
            r"Snapshots.update: member 1 differs from member 0 at member\['w'\]",
        ),
    ],
    ids=["period", "size", "early", "shape"],
)
def test_mistakes_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
