"""The form of transformations, and training with them as users do."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.optim import base
from tests.optim.running import types


def test_transformations_of_optax_form_need_no_extra_arguments():
    tx = base.GradientTransformation(lambda params: 3, lambda g, s, params=None: (g, s + 1))
    assert base.with_extra_args_support(tx).update(1, 3, value=2) == (1, 4)
    extra = optim.scale(2.0)
    assert base.with_extra_args_support(extra) is extra
    assert extra.update(snp.array(1.0), (), None, value=3)[0] == 2


def test_identity_and_zero():
    grads = {"w": snp.ones(2, snp.bfloat16), "n": snp.array(3)}
    assert optim.identity().update(grads, optim.identity().init(grads))[0] is grads
    zeros, _ = optim.set_to_zero().update(grads, ())
    assert types(zeros) == types(grads) and not np.asarray(zeros["w"]).any()


def test_gradients_of_integers_pass_set_to_zero():
    grads = st.grad(lambda n: 1.0 * n, allow_int=True)(3)
    zeros, _ = optim.set_to_zero().update(grads, ())
    assert int(optim.apply_updates(snp.array(3), zeros)) == 3


def test_states_are_trees_with_stable_programs():
    tx = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(optim.linear_schedule(0.1, 0, 5)))
    traced = []

    @st.jit
    def step(params, state):
        traced.append(1)
        grads = st.grad(lambda p: snp.sum(p["w"] ** 2) + p["scale"] ** 2)(params)
        updates, state = tx.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    # One leaf is weak, as what is made of a Python number is: it stays so, and compiles once.
    params = {"w": snp.ones(3), "scale": snp.asarray(2.0)}
    assert params["scale"].weak_type
    state = tx.init(params)
    for _ in range(4):
        before = types((params, state))
        params, state = step(params, state)
        assert types((params, state)) == before
    assert len(traced) == 1


def test_states_have_shapes_without_arrays():
    tx = optim.adamw(0.1)
    params = {"w": snp.ones((3, 2))}
    shapes = st.eval_shape(tx.init, params)
    real = tx.init(params)
    assert st.tree.structure(shapes) == st.tree.structure(real)
    for a, b in zip(st.tree.leaves(shapes), st.tree.leaves(real), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
    from_shapes = tx.init(st.eval_shape(lambda: params))
    assert types(from_shapes) == types(real)


def test_modules_are_trained_as_they_stand():
    with nn.keys(st.random.PRNGKey(0)):
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x = st.random.normal(st.random.PRNGKey(2), (32, 4))
    y = snp.sin(x[:, :1]) + x[:, 1:2]
    loss = lambda model: snp.mean((model(x) - y) ** 2)
    tx = optim.adam(0.02)

    @st.jit
    def step(model, state):
        value, grads = st.value_and_grad(loss)(model)
        updates, state = tx.update(grads, state, model)
        return optim.apply_updates(model, updates), state, value

    state, first = tx.init(model), float(loss(model))
    for _ in range(100):
        model, state, value = step(model, state)
    assert isinstance(model, nn.Sequential) and float(value) < 0.1 * first


def test_derivative_through_training_by_the_learning_rate():
    def trained(rate):
        tx = optim.adam(rate, eps_root=1e-6)

        def step(carry, _):
            w, state = carry
            updates, state = tx.update(st.grad(lambda w: snp.sum((w - 1) ** 2))(w), state, w)
            return (optim.apply_updates(w, updates), state), None

        w = snp.array([0.0, 3.0])
        (w, _), _ = st.lax.scan(step, (w, tx.init(w)), None, length=5)
        return snp.sum((w - 1) ** 2)

    with st.enable_x64():
        difference = (trained(0.1 + 1e-5) - trained(0.1 - 1e-5)) / 2e-5
        for f in (trained, st.jit(trained)):
            np.testing.assert_allclose(st.grad(f)(0.1), difference, rtol=1e-6)


@pytest.mark.parametrize("tx", [None, 3, "adam"])
def test_what_is_no_transformation(tx):
    with pytest.raises(TypeError, match=f"expected a GradientTransformation, got {tx!r}$"):
        base.with_extra_args_support(tx)


def test_buffers_and_frozen_parts_are_no_parameters():
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, affine=False), nn.Linear(3, 1))
    x = np.arange(8, dtype=np.float32).reshape(4, 2) ** 1.5

    def loss(model):
        out, after = nn.stateful_call(model, x)
        return (out**2).sum(), after

    clipped = optim.chain(optim.clip_by_global_norm(1e-2), optim.adamw(0.1, weight_decay=0.5))
    for jitted in (False, True):
        slopes, after = st.grad(loss, has_aux=True)(model)
        state = clipped.init(model)
        update = st.jit(clipped.update) if jitted else clipped.update
        updates, state = update(slopes, state, model)
        assert st.tree.structure(updates) == st.tree.structure(model)
        moved = optim.apply_updates(after, updates)
        assert int(moved[1].num_batches_tracked) == 1
        np.testing.assert_array_equal(moved[1].running_mean, after[1].running_mean)
        assert (np.asarray(moved[0].weight) != model[0].weight).all()

    plain = {n: a for n, a in model.state_dict().items() if not n.startswith("1.")}
    by_name = {n: a for n, a in slopes.state_dict().items() if n in plain}
    expected, _ = clipped.update(by_name, clipped.init(plain), plain)
    for name, value in expected.items():  # the norm to clip by is that of the parameters alone
        np.testing.assert_allclose(updates.state_dict()[name], value, rtol=1e-6)

    ensemble = st.Ensemble([nn.Linear(2, 1), nn.Linear(2, 1)], frozen="bias")
    slopes = st.grad(lambda ensemble: ensemble(x).sum())(ensemble)
    updates, _ = optim.sgd(1.0).update(slopes, optim.sgd(1.0).init(ensemble), ensemble)
    (group,) = updates.state_dict()
    assert not np.asarray(group["bias"]).any() and np.asarray(group["weight"]).all()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: optim.adam(1e-3), "adam(0.001)"),
        (lambda: optim.sgd(0.1, momentum=0.9), "sgd(0.1)"),
        (lambda: optim.lion(lambda step: 0.1), "lion(lambda)"),
        (lambda: optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(0.1)),
         "chain(clip_by_global_norm(1.0), adamw(0.1))"),
        (lambda: optim.per_member(optim.adam(0.1)), "per_member(adam(0.1))"),
        (optim.identity, "identity()"),
        (lambda: optim.sgd(snp.float32(0.5)), "sgd(Array(0.5, dtype=float32))"),
    ],
)  # fmt: skip
def test_the_repr_is_the_call_that_made_it(make, text):
    assert repr(make()) == text and len(text) < 80
