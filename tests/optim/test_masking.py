"""Masks: values of optax, prefixes, functions, what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.figures import gradients, start
from tests.optim.running import assert_figures, assert_stable, flat, run

MASK = {"b": False, "layer": {"w": True}}


def test_values_of_optax():
    assert_figures("masked", optim.masked(optim.scale_by_adam(), MASK))


@pytest.mark.parametrize(
    "mask",
    [
        {"b": False, "layer": True},
        lambda params: st.tree.map(lambda x: x.ndim > 1, params),
        {"b": np.bool_(False), "layer": {"w": np.bool_(True)}},
    ],
    ids=["prefix", "function", "numpy"],
)
def test_other_ways_to_say_the_same(mask):
    tx = optim.masked(optim.scale_by_adam(), mask)
    expected = run(optim.masked(optim.scale_by_adam(), MASK))[0]
    np.testing.assert_array_equal(flat(run(tx)[0]), flat(expected))
    assert_stable(tx)


def test_one_boolean_for_all():
    for mask, expected in ((True, -1.0), (False, 1.0)):
        tx = optim.masked(optim.scale(-1.0), mask)
        updates, _ = tx.update({"a": snp.array(1.0)}, tx.init({"a": snp.array(0.0)}))
        assert updates["a"] == expected


def test_left_out_leaves_have_no_state():
    state = optim.masked(optim.trace(0.9), MASK).init(start())
    assert state.inner_state.trace["b"] == optim.MaskedNode()
    assert [x.shape for x in st.tree.leaves(state)] == [(3, 2)]


def test_integer_leaves_are_left_out():
    params = {"n": snp.array(3), "w": snp.array([1.0])}
    tx = optim.masked(optim.adam(0.1), {"n": False, "w": True})
    loss = lambda params: snp.sum(params["w"] ** 2)
    grads = st.grad(loss, allow_int=True)(params)
    updates, _ = tx.update(grads, tx.init(params), params)
    after = optim.apply_updates(params, updates)
    assert int(after["n"]) == 3 and after["n"].dtype == snp.int32
    np.testing.assert_allclose(after["w"], [0.9], rtol=1e-5)
    with pytest.raises(TypeError, match=r"^adam: updates must be floating.*\['n'\] is fl"):
        optim.adam(0.1).update(grads, optim.adam(0.1).init(params), params)


def test_a_mask_of_another_structure_names_the_path():
    tx = optim.masked(optim.scale(1.0), {"b": True, "layer": {"v": True}})
    with pytest.raises(ValueError, match=r"masked: mask must be a prefix .* part at mask\['layer'"):
        tx.init(start())
    with pytest.raises(ValueError, match=r"masked: mask must be a prefix"):
        optim.masked(optim.scale(1.0), [True, False]).init(start())


def test_a_leaf_that_is_no_boolean():
    tx = optim.masked(optim.scale(1.0), {"b": True, "layer": {"w": None}})
    with pytest.raises(TypeError, match=r"masked: mask\['layer'\]\['w'\] must be True or False"):
        tx.init(start())


def test_parameters_of_another_size():
    tx = optim.masked(optim.add_decayed_weights(0.1), True)
    state = tx.init(start())
    with pytest.raises(ValueError, match="updates have 2 leaves, but params 1"):
        tx.update(gradients(0), state, {"b": snp.ones(2)})
