"""Snapshots at the ends of cycles."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
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


def test_snapshots_of_an_ensemble_are_one_ensemble():
    ensemble = st.Ensemble([nn.Linear(2, 2, key=k) for k in st.random.split(st.random.key(0), 2)])
    snapshots = Snapshots(period=1, size=2)
    state = snapshots.init(ensemble)
    for step in range(3):
        state = snapshots.update(state, step, st.tree.map(lambda x, n=step: x + n, ensemble))
    made = snapshots.members(state)
    assert isinstance(made, st.Ensemble) and len(made) == 4
    x = snp.ones((3, 2))
    for i, shift in enumerate((1, 1, 2, 2)):  # the first snapshot was overwritten
        moved = st.tree.map(lambda p, n=shift: p + n, ensemble[i % 2])
        np.testing.assert_allclose(made(x)[i], moved(x), rtol=1e-6)


def test_snapshots_of_members_that_share_what_is_trained():
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=r"Snapshots\.init: the members share weight, bias, which"):
        Snapshots(1, 2).init(st.Ensemble([layer, layer], shared="*"))
    frozen = st.Ensemble([layer, layer], shared="weight", frozen="weight")
    state = Snapshots(1, 2).update(Snapshots(1, 2).init(frozen), 0, frozen)
    assert len(Snapshots(1, 2).members(state)) == 2
