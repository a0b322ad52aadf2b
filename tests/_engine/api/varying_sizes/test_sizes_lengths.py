"""Ragged arguments of equal lengths are of one size, in whatever transformation."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.api.varying_sizes.sizes import equal_lengths, same_lengths, share_lengths

PARTS = [np.ones(2, np.float32), np.ones(3, np.float32) * 2]


def pair():
    return st.ragged(PARTS), st.ragged([x + 1 for x in PARTS])


def total(w, x, y):
    return st.vmap(lambda x, y: (w * x * y).sum())(x, y).sum()


WANTED = 2.0 * (2 * 1 * 2 + 3 * 2 * 3)

WAYS = {
    "eager": lambda x, y: total(2.0, x, y),
    "jit": lambda x, y: st.jit(total)(2.0, x, y),
    "jit by keyword": lambda x, y: st.jit(total)(2.0, y=y, x=x),
    "a tree": lambda x, y: st.jit(lambda xy: total(2.0, *xy))((x, y)),
    "checkpoint": lambda x, y: st.checkpoint(total)(2.0, x, y),
    "gradient": lambda x, y: 2 * st.jit(st.grad(total))(2.0, x, y),
    "value and gradient by all": lambda x, y: st.jit(st.value_and_grad(total, (0, 1, 2)))(
        2.0, x, y
    )[0],
    "checkpoint in jit": lambda x, y: st.jit(st.grad(st.checkpoint(total)))(2.0, x, y) * 2,
    "traced": lambda x, y: st.jit(total).trace(2.0, x, y).lower().compile()(2.0, x, y),
    "any size": lambda x, y: st.jit(
        lambda w, x, y: total(w.sum(), x, y), dynamic_axes=({0: "n"}, None, None)
    )(snp.ones(2), x, y),
    "jit in jit": lambda x, y: st.jit(lambda x: st.jit(total)(2.0, x, y.like(x)))(x),
}


@pytest.mark.parametrize("way", WAYS)
def test_they_can_be_combined(way):
    np.testing.assert_allclose(WAYS[way](*pair()), WANTED)


def test_shapes_alone():
    x, y = pair()
    assert st.eval_shape(total, 2.0, x, y).shape == ()


def test_a_program_for_equal_lengths_is_not_used_for_others():
    f = st.jit(st.vmap(lambda x, y: x.sum() * y.sum()))
    x, y = pair()
    np.testing.assert_allclose(f(x, y), [2 * 4, 6 * 9])
    other = st.ragged([np.ones(1, np.float32), np.ones(4, np.float32)])
    assert other._values.shape == x._values.shape
    np.testing.assert_allclose(f(x, other), [2 * 1, 6 * 4])
    g = st.jit(total)
    g(2.0, x, y)
    with pytest.raises(ValueError, match=r"shapes \(n,\) and \(m,\)"):
        g(2.0, x, other)


def test_that_they_are_equal_can_be_said():
    x, y = pair()
    one = st.jit(lambda x, y: total(2.0, x, st.vmap(lambda y: y * 1)(y)))
    np.testing.assert_allclose(one(x, y), WANTED)  # of the size of an argument
    with pytest.raises(ValueError, match="like: the lengths of"):
        x.like(st.ragged(PARTS[::-1]))
    twice = st.vmap(lambda x: snp.concatenate([x, x])[::2])
    said = st.jit(lambda x, y: total(2.0, x, twice(y).like(x)))
    np.testing.assert_allclose(said(x, st.ragged([np.full(2, 2.0), np.full(3, 3.0)])), WANTED)


def test_which_are_alike():
    x, y = pair()
    leaves, structure = st.tree.flatten((x, 1.0, [y, st.ragged(PARTS[:1])]))
    assert equal_lengths(structure, leaves) == ((4, 1),)
    assert share_lengths(leaves, ((4, 1),))[4] is leaves[1]
    assert share_lengths(leaves, ()) is leaves
    assert same_lengths(x.lengths, y.lengths) and not same_lengths(x.lengths, x.lengths[:1])
    assert not same_lengths(x.lengths, None)


def test_ragged_arrays_over_devices():
    mesh = st.make_mesh((1,), ("data",))
    x, y = pair()
    split = st.device_put(x, st.sharding.NamedSharding(mesh, st.sharding.PartitionSpec("data")))
    np.testing.assert_allclose(st.jit(total)(2.0, split, y), WANTED)
    np.testing.assert_allclose(split[1], PARTS[1])
    sums = st.vmap(snp.sum)
    by_all = st.sharding.PartitionSpec()
    whole = st.shard_map(sums, mesh=mesh, in_specs=by_all, out_specs=by_all)
    np.testing.assert_allclose(whole(x), [2.0, 6.0])
    parts = st.sharding.PartitionSpec("data")
    for f in (sums, lambda r: r):
        taken = by_all if f is not sums else parts
        run = st.shard_map(f, mesh=mesh, in_specs=taken, out_specs=parts)
        with pytest.raises(NotImplementedError, match="a ragged array is one row of elements"):
            run(x)


def test_nodes_of_other_classes_are_not_built():
    class Checked:
        def __init__(self, x):
            assert isinstance(x, st.Array)
            self.x = x

    st.tree.register_pytree_node(Checked, lambda c: ((c.x,), None), lambda _, xs: Checked(*xs))
    rows = st.ragged([snp.ones(2), snp.ones(3)])
    f = st.jit(lambda c, rows: st.vmap(lambda row: row.sum())(rows) * c.x)
    assert f(Checked(snp.array(2.0)), rows).tolist() == [4, 6]
