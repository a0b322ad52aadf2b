"""Calls of ``fit`` that it cannot take: errors that say what was meant.

Names that other libraries have for its arguments, arguments in another order, and those of another
kind.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from stretto._engine.core.boundary import hide_frames
from stretto._engine.core.errors import meant
from stretto.ensemble.score_arguments import is_table
from stretto.ensemble.training.training_data import is_examples
from stretto.optim.base import GradientTransformation

F = TypeVar("F", bound=Callable[..., Any])

_ORDER = "ensemble.fit(loss, (x, y), optim.adam(1e-3), epochs=10)"
_ORDERS = (
    "order= says it: 'own', the default, shuffles for each member, 'same' for all alike, 'given' "
    "does not shuffle"
)
_VALIDATION = "it is validation=(x, y)"
_HYPERPARAMS = (
    "the optimizer has it, as in optim.adam(1e-3); for a value for each member give the function, "
    "optim.adam, and hyperparams={'learning_rate': rates}"
)
_ELSEWHERE = {
    "optimiser optim opt": "it is optimizer=",
    "shared_optimiser": "it is shared_optimizer=",
    "lr learning_rate": _HYPERPARAMS,
    "hyperparameters hyperparam": "it is hyperparams=",
    "validation_data val_data valid_data eval_set val validation_set": _VALIDATION,
    "validation_split val_split": f"split the data, and give the rest: {_VALIDATION}",
    "shuffle": _ORDERS,
    "bootstrap": "it is order='bootstrap'",
    "n_epochs num_epochs max_epochs epoch nb_epoch": "it is epochs=",
    "max_steps num_steps n_steps": "it is steps=",
    "bs batch": "it is batch_size=",
    "val_batch_size eval_batch_size": "it is validation_batch_size=",
    "seed random_state rng rngs generator": "it is key=, as in key=st.random.key(0)",
    "verbose progress_bar": "it is progress=",
    "callback hooks": "it is callbacks=, a list",
    "logger loggers log": "loggers are callbacks: callbacks=[st.ensemble.CSVLogger('losses.csv')]",
    "patience": "it is early_stopping=",
    "x y X targets labels": "data are one argument, a tuple: (x, y)",
    "loss_fn criterion objective": "the loss is the first argument, or loss=",
    "scheduler lr_scheduler schedule": "the optimizer takes a schedule as its learning rate",
    "sample_weight sample_weights class_weight": "weights are data: (x, y, weight), and the loss "
    "uses them",
    "device devices": "it is mesh=, or st.device_put(ensemble, device) before",
    "checkpoint_dir ckpt save_dir": "it is checkpoint=, a directory",
}
_MEANT = {name: words for names, words in _ELSEWHERE.items() for name in names.split()}
"""What to write, by a name that is no argument here."""


def answering(function: F) -> F:
    """``fit``, with errors for calls that it cannot take which say what was meant.

    Errors of all kinds show the user's frames alone.

    Raises ``TypeError`` for an unknown name, too many or too few arguments, or another order.
    """
    parameters = inspect.signature(function).parameters
    first = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]

    @functools.wraps(function)
    def answers(*args: Any, **named: Any) -> object:
        for name in named:
            if name not in parameters:
                raise TypeError(f"fit: there is no argument {name!r}{_hint(name, parameters)}")
        given = dict(zip(first, args)) | named
        twice = [n for n in first[: len(args)] if n in named]
        if len(args) > len(first) or twice:
            extra = twice[0] if twice else f"{len(args) - 1} arguments"
            raise TypeError(
                f"fit: got {extra}{' twice' if twice else ''}; without a name there are loss, data "
                f"and optimizer, and data are one argument, as in {_ORDER}"
            )
        _refuse_other_order(given)
        missing = [n for n in first if n not in given]
        if missing:
            raise TypeError(f"fit: {' and '.join(missing)} must be given, as in {_ORDER}")
        try:
            return function(**given)
        except Exception as error:
            hide_frames(error)
            raise

    wrapped: Any = answers
    return wrapped


def _hint(name: str, parameters: Mapping[str, Any]) -> str:
    """What was meant by a name, as far as it can be guessed."""
    if name in _MEANT:
        return f": {_MEANT[name]}"
    guess = meant(name, list(parameters)[1:])
    return f"; did you mean {guess!r}?" if guess else f"; it has {', '.join(list(parameters)[1:])}"


def _refuse_other_order(given: Mapping[str, Any]) -> None:
    """Raise ``TypeError`` where one of the first arguments stands in the place of another."""
    loss = given.get("loss")
    if "loss" in given and not callable(loss):
        raise TypeError(
            f"fit: loss must be a function of a member and a batch, got {type(loss).__name__}; the "
            f"arguments are loss, data, optimizer, as in {_ORDER}"
        )
    data = given.get("data")
    if isinstance(data, GradientTransformation) or inspect.isroutine(data):
        kind = "a function" if inspect.isroutine(data) else "an optimizer"
        raise TypeError(
            f"fit: data is {kind}; the arguments are loss, data, optimizer, as in {_ORDER}"
        )
    optimizer = given.get("optimizer")
    if not isinstance(optimizer, GradientTransformation) and (
        is_examples(optimizer) or is_table(optimizer)
    ):
        raise TypeError(
            f"fit: optimizer: expected a GradientTransformation, got {type(optimizer).__name__}; "
            f"data are one argument, a tuple, as in {_ORDER}"
        )


def refuse_others_than_mappings(**arguments: Any) -> None:
    """Raise ``TypeError`` for an argument that should have values by name, and has not."""
    for name, value in arguments.items():
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(
                f"fit: {name} must be a dictionary, which has them by name, got "
                f"{type(value).__name__}"
            )
