"""Errors of an optimizer's parts carry its name, when it is made and when it updates."""

import inspect
import threading

import pytest

import stretto.numpy as snp
from stretto import optim
from stretto.optim import adams, optimizers

OPTIMISERS = [*adams.__all__, *optimizers.__all__]
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

    monkeypatch.setattr(adams, "scale_by_adam", from_adam)
    optim.adam(0.1)
    assert messages[0].startswith("scale_by_adam: b1 must be")
