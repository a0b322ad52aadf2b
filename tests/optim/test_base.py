"""The form of transformations, and training with them as users do.

Errors of an optimizer's parts carry its name, when it is made and when it updates.
"""

import inspect
import threading

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.optim import base, optimizers
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


OPTIMISERS = optimizers.__all__
NUMBERS = [
    (name, argument)
    for name in OPTIMISERS
    for argument, parameter in inspect.signature(getattr(optim, name)).parameters.items()
    if "Scalar" in parameter.annotation
]
# What the parameters are needed for.
LEANING = {
    "adamw": {},
    "nadamw": {},
    "adamaxw": {},
    "adadelta": {"weight_decay": 0.1},
    "lion": {},
    "lamb": {},
    "lars": {},
    "adafactor": {},
}
MASKS = [
    (name, argument)
    for name in OPTIMISERS
    for argument in inspect.signature(getattr(optim, name)).parameters
    if argument.endswith("mask")
]


def made(name, **arguments):
    return getattr(optim, name)(**{"learning_rate": 0.1, **arguments})


@pytest.mark.parametrize(("name", "argument"), NUMBERS)
def test_numbers_out_of_range_name_the_optimizer_and_its_argument(name, argument):
    with pytest.raises(ValueError, match=f"^{name}: {argument} must be .*, got nan"):
        made(name, **{argument: float("nan")})


@pytest.mark.parametrize(("name", "argument"), NUMBERS)
def test_what_is_no_number(name, argument):
    with pytest.raises(TypeError, match=f"^{name}: {argument} must be a number.*, got '0.1'"):
        made(name, **{argument: "0.1"})


FIXED = [
    (name, argument)
    for name, argument in NUMBERS
    if inspect.signature(getattr(optim, name)).parameters[argument].annotation == "Scalar"
]


@pytest.mark.parametrize(("name", "argument"), FIXED)
def test_numbers_that_are_neither_scheduled_nor_left_out(name, argument):
    # A clipping threshold may be left out, as in optax.
    wrong = [len] if argument == "clipping_threshold" else [len, None]
    for x in wrong:
        with pytest.raises(TypeError, match=f"^{name}: {argument} must be a number or an array"):
            made(name, **{argument: x})


DTYPES = [
    (name, argument)
    for name in OPTIMISERS
    for argument, parameter in inspect.signature(getattr(optim, name)).parameters.items()
    if "DTypeLike" in parameter.annotation
]


@pytest.mark.parametrize(("name", "argument"), DTYPES)
@pytest.mark.parametrize("dtype", [int, "float99", "complex64"])
def test_dtypes_that_are_not_floating(name, argument, dtype):
    # Moments in integers would lose every fraction.
    with pytest.raises(TypeError, match=f"^{name}: {argument} must be a floating dtype, got"):
        made(name, **{argument: dtype})


@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_of_integers(name):
    tx = made(name)
    params = {"w": snp.ones(2)}
    with pytest.raises(TypeError, match=f"^{name}: updates must be floating"):
        tx.update({"w": snp.ones(2, int)}, tx.init(params), params)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_state_of_another(name):
    tx = made(name)
    with pytest.raises(ValueError, match=rf"^{name}: the state has 9 parts.*its own init"):
        tx.update({"w": snp.ones(2)}, ((),) * 9)


@pytest.mark.parametrize(("name", "arguments"), LEANING.items())
def test_missing_parameters(name, arguments):
    tx = made(name, **arguments)
    grads = {"w": snp.ones(2)}
    with pytest.raises(ValueError, match=f"^{name}: its update needs the parameters; call update"):
        tx.update(grads, tx.init(grads))


@pytest.mark.parametrize(("name", "argument"), MASKS)
def test_masks(name, argument):
    decay = "weight_decay_rate" if name == "adafactor" else "weight_decay"
    tx = made(name, **{argument: {"w": 1}, decay: 0.1})
    with pytest.raises(TypeError, match=rf"^{name}: mask\['w'\] must be True or False, got 1"):
        tx.init({"w": snp.ones(2)})


def test_masks_of_parts():
    for tx, name in (
        (optim.add_decayed_weights(0.1, {"w": 1}), "add_decayed_weights"),
        (optim.masked(optim.clip(1.0), {"w": 1}), "masked"),
    ):
        with pytest.raises(TypeError, match=rf"^{name}: mask\['w'\] must be True or False"):
            tx.init({"w": snp.ones(2)})


def test_groups_of_other_parameters():
    tx = optim.multi_transform({"a": optim.sgd(0.1)}, "a")
    state = tx.init({"w": snp.ones(2)})
    with pytest.raises(ValueError, match=r"^multi_transform: updates have 1 leaves, but params 2"):
        tx.update({"w": snp.ones(2)}, state, {"w": snp.ones(2), "b": snp.ones(2)})


def test_parts_have_their_own_names_outside():
    with pytest.raises(ValueError, match=r"^adam: b1 must be"):
        optim.adam(0.1, b1=2)
    with pytest.raises(ValueError, match=r"^scale_by_adam: b1 must be"):
        optim.chain(optim.scale_by_adam(b1=2), optim.scale(-1.0))
    # A chain names the part that refuses, and an optimizer in it is one part.
    params = {"w": snp.ones(2, int)}
    for first, name in ((optim.adam(0.1), "adam"), (optim.clip(1.0), "clip")):
        tx = optim.chain(first, optim.scale(2.0))
        with pytest.raises(TypeError, match=f"^{name}: updates must be floating"):
            tx.update(params, tx.init({"w": snp.ones(2)}))


def test_hyperparameters_in_the_state():
    tx = optim.inject_hyperparams(optim.sgd)(0.1, momentum=0.9)
    params = {"w": snp.ones(2)}
    with pytest.raises(TypeError, match=r"^sgd: updates must be floating"):
        tx.update({"w": snp.ones(2, int)}, tx.init(params))


def test_names_of_other_threads(monkeypatch):
    messages = []

    def elsewhere(*_):
        try:
            optim.scale_by_adam(b1=2)
        except ValueError as error:
            messages.append(str(error))

    def from_adam(*arguments, **settings):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return optim.identity()

    monkeypatch.setattr(optimizers.moments, "scale_by_adam", from_adam)
    optim.adam(0.1)
    assert messages[0].startswith("scale_by_adam: b1 must be")
