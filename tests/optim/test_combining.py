"""Transformations in a row and for groups: values of optax, errors."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim
from tests.optim.figures import gradients, start
from tests.optim.running import assert_figures, assert_stable, flat, run, run_scan

PARTS = (
    ("clip", optim.clip_by_global_norm(1.0)),
    ("adam", optim.scale_by_adam()),
    ("decay", optim.add_decayed_weights(0.1)),
    ("rate", optim.scale_by_learning_rate(optim.cosine_decay_schedule(0.1, 5))),
)
GROUPS = {"fast": optim.adam(0.1), "slow": optim.sgd(0.01, 0.9)}


def test_values_of_optax():
    assert_figures("chain", optim.chain(*[tx for _, tx in PARTS]))
    assert_figures("chain", optim.named_chain(*PARTS))
    labels = {"b": "slow", "layer": "fast"}
    assert_figures("multi_transform", optim.multi_transform(GROUPS, labels))


def test_state_of_a_named_chain_is_by_name():
    state = optim.named_chain(*PARTS).init(start())
    assert list(state) == ["clip", "adam", "decay", "rate"]
    assert isinstance(state["adam"], optim.ScaleByAdamState)


def test_labels_may_be_a_function():
    by_rank = lambda params: st.tree.map(lambda x: "slow" if x.ndim == 1 else "fast", params)
    tx = optim.multi_transform(GROUPS, by_rank)
    expected = run(optim.multi_transform(GROUPS, {"b": "slow", "layer": "fast"}))[0]
    np.testing.assert_array_equal(flat(run(tx)[0]), flat(expected))
    np.testing.assert_allclose(flat(run_scan(tx)[0]), flat(expected), rtol=0, atol=3e-6)
    assert_stable(tx)


def test_frozen_leaves_stay_bit_by_bit():
    tx = optim.multi_transform(
        {"train": optim.adamw(0.1), "freeze": optim.set_to_zero()},
        {"b": "train", "layer": "freeze"},
    )
    params, _ = run_scan(tx)
    np.testing.assert_array_equal(params["layer"]["w"], start(np.float32)["layer"]["w"])
    assert not (np.asarray(params["b"]) == start(np.float32)["b"]).any()


def test_extra_arguments_reach_those_that_take_them():
    def update(updates, state, params=None, *, value, **extra):
        return st.tree.map(lambda g: g * value, updates), state

    takes = optim.GradientTransformationExtraArgs(lambda params: (), update)
    plain = optim.GradientTransformation(lambda p: (), lambda u, s, params=None: (u, s))
    tx = optim.chain(plain, optim.masked(takes, True), optim.scale(2.0))
    assert tx.update(snp.array(1.0), tx.init(snp.array(1.0)), value=3.0)[0] == 6


def test_what_is_no_transformation():
    with pytest.raises(TypeError, match=r"expected a GradientTransformation, got adam; call it"):
        optim.chain(optim.clip(1.0), optim.adam)
    steps = optim.MultiSteps(optim.adam(0.1), 2)
    with pytest.raises(TypeError, match=r"got a MultiSteps; call its gradient_transformation\(\)"):
        optim.chain(steps)
    with pytest.raises(TypeError, match=r"got 0\.1$"):
        optim.chain(0.1)


def test_a_state_of_another_chain():
    one, other = optim.chain(optim.scale(1.0)), optim.chain(optim.scale(1.0), optim.scale(1.0))
    with pytest.raises(ValueError, match="chain: the state has 1 parts, but there are 2"):
        other.update(snp.ones(1), one.init(None))


def test_names_that_come_twice():
    with pytest.raises(ValueError, match=r"names must differ, got \['a', 'a'\]"):
        optim.named_chain(("a", optim.scale(1.0)), ("a", optim.scale(1.0)))


def test_a_label_without_a_transformation_is_named():
    tx = optim.multi_transform(GROUPS, {"b": "slow", "layer": {"w": "quick"}})
    with pytest.raises(ValueError, match=r"param_labels\['layer'\]\['w'\] is 'quick', but there"):
        tx.init(start())
    tx = optim.multi_transform(GROUPS, {"b": "slow"})
    with pytest.raises(ValueError, match=r"multi_transform: param_labels must be a prefix"):
        tx.init(start())


def test_state_of_other_parameters_names_the_path():
    tx = optim.adam(0.1)
    other = {"b": snp.ones(2), "layer": {"v": snp.ones((3, 2))}}
    with pytest.raises(
        ValueError, match=r"updates and state\.mu differ in structure; .* at updates\['layer'\]"
    ):
        tx.update(gradients(0), tx.init(other))
    wide = {"b": snp.ones(2), "layer": {"w": snp.ones((5, 3, 2))}}
    with pytest.raises(
        ValueError, match=r"updates\['layer'\]\['w'\] has shape \(3, 2\), but state\.mu\['layer'\]"
    ):
        tx.update(gradients(0), tx.init(wide))


def test_what_is_no_transformation_is_refused_by_the_function_that_was_called():
    cases = {
        "chain": lambda: optim.chain(3),
        "named_chain": lambda: optim.named_chain(("a", 3)),
        "multi_transform": lambda: optim.multi_transform({"a": 3}, "a"),
        "masked": lambda: optim.masked(3, True),
        "apply_if_finite": lambda: optim.apply_if_finite(3, 1),
        "MultiSteps": lambda: optim.MultiSteps(3, 2),
        "per_member": lambda: optim.per_member(3),
    }
    for name, call in cases.items():
        with pytest.raises(TypeError, match=f"^{name}: expected a GradientTransformation, got 3"):
            call()
