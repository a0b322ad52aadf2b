"""``fit``: training an ensemble, as its users call it, by a ``Loop`` here or by workers."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from stretto._engine.core import integers
from stretto._engine.core.errors import DonatedArrayError
from stretto._engine.core.mesh import Mesh
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Key, Tree
from stretto._engine.xla.device import process_index
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.snapshots import Snapshots
from stretto.ensemble.training.checkpoints import Checkpoints, configuration_of
from stretto.ensemble.training.evaluation import Evaluator
from stretto.ensemble.training.executors.driver import LoopOnWorkers
from stretto.ensemble.training.executors.engines import Workers, workers_of
from stretto.ensemble.training.fit_arguments import (
    Looks,
    answering,
    planned,
    refuse_others_than_mappings,
    types_of,
)
from stretto.ensemble.training.fit_callbacks import (
    Callback,
    Calls,
    EarlyStopping,
    Event,
    copy_arrays,
    divergences,
)
from stretto.ensemble.training.fitted import Fitted
from stretto.ensemble.training.loggers import Reporter
from stretto.ensemble.training.loop import Loop
from stretto.ensemble.training.step import modes_of, put_state, trains
from stretto.ensemble.training.train_state import (
    TrainState,
    same_everywhere,
    with_room,
)
from stretto.ensemble.training.trainer import Trainer
from stretto.ensemble.training.training_data import (
    DataOrder,
    Own,
    examples_of,
    own_examples_of,
)
from stretto.nn.functional.checks import watch_classes

if TYPE_CHECKING:
    from stretto.ensemble.ensemble import Ensemble
    from stretto.optim.base import GradientTransformation


M = TypeVar("M")

_USUAL_PART = 256


@answering
def fit(
    ensemble: Ensemble[M],
    loss: Callable[..., Any],
    data: Tree,
    optimizer: GradientTransformation | Callable[..., GradientTransformation],
    *,
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    order: str | None = None,
    fraction: float = 1.0,
    drop_last: bool | None = None,
    each: bool = False,
    key: Key | None = None,
    hyperparams: Mapping[str, Any] | None = None,
    per_member: Mapping[str, Any] | None = None,
    shared_optimizer: GradientTransformation | None = None,
    validation: Tree = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
    evaluate_every: int | None = None,
    validation_batch_size: int | None = None,
    early_stopping: EarlyStopping | int | None = None,
    snapshots: Snapshots | None = None,
    on_divergence: str = "raise",
    checkpoint: Checkpoints | str | os.PathLike[str] | None = None,
    resume: bool | str = "auto",
    progress: bool | None = None,
    callbacks: Sequence[Callback | Callable[[Event], object]] | None = None,
    mesh: Mesh | None = None,
    executor: object = None,
) -> Fitted[M]:
    """Train all members, each with its own shuffle, optimizer state and random numbers.

    One compiled program is a step of all members of an architecture; it picks each member's batch
    from data that lie on the device. Members that have stopped are computed beside the others and
    left as they are, until at most half of an architecture's still train: these are then put
    together, and compiled again. Members are trained in train mode, and are in evaluation mode
    afterwards; some layers of members in train mode that are in evaluation mode stay so, as long as
    it is trained. The ensemble is changed, even where training ends by an error or by Ctrl-C: it
    has what was reached, all members after the same step. Only where an interruption
    falls into a step itself, which has taken the arrays, is it left as it was before the training;
    checkpoints are whole in any case.

    Args:
        ensemble: the ensemble.
        loss: ``loss(member, *batch)``, a scalar, or a scalar and a dictionary of scalar metrics.
            The member is a module, or can be called with what the ensemble's function takes after
            the parameters.
        data: an array, or a tuple or dictionary of arrays, with examples along axis 0 (a dictionary
            is one argument of the loss); or any other iterable, which gives the batches of an epoch
            each time it is iterated over: for data larger than the device. The examples of a ragged
            array differ in length, and the loss gets those of a batch as a ragged array.
        optimizer: a transformation such as ``optim.adamw(1e-3)``, applied to each member alone;
            with ``hyperparams``, the function that makes one: ``optim.adamw``.
        epochs: how often to go through the data, or
        steps: how many steps to do; the sooner of the two, if both are given.
        batch_size: examples of a member in a step; by default 32, or all if there are fewer.
        order: as for ``DataOrder``: ``"own"`` (the default), ``"same"``, ``"bootstrap"`` or
            ``"given"``. For an iterable of batches: ``"same"`` (the default), all members get the
            batch, or ``"own"``, its arrays have the members along axis 0.
        fraction: the size of a bootstrap sample, relative to the data.
        drop_last: leave out examples that do not fill a whole batch at an epoch's end. Otherwise
            there is a smaller batch, and a second program. By default ``True``, but not where
            members have different numbers of examples.
        each: whether each member has data of its own, for training and validation: arrays have the
            members along axis 0 and their examples along axis 1, or are ragged, with an array of
            examples for each member. Where they have different numbers, an epoch has as many steps
            as the most need; a member that has seen all of its own rests until the next, and none
            is repeated.
        key: where order and random numbers come from; ``None`` draws from the ambient stream.
        hyperparams: arguments of ``optimizer``; arrays and lists have an entry for each member.
        per_member: arrays with an entry for each member, which the loss gets by name.
        shared_optimizer: for parts that members share; by default ``optimizer``. They get the mean
            of the gradients of the members that still train.
        validation: data as ``data``, to measure the loss and ``metrics`` on, in evaluation mode.
        metrics: by name, functions ``f(member, *batch)`` that give a scalar, a mean over the batch;
            one whose signature has names of ``per_member`` gets these values, too. They, and the
            loss, are tried on the shapes of the validation data before the training.
        evaluate_every: how many steps between entries of the history; by default an epoch.
        validation_batch_size: examples at a time; by default 256.
        early_stopping: an ``EarlyStopping``, or its patience.
        snapshots: ``Snapshots(period, size, start)`` keeps each member's weights and buffers after
            the last step of each cycle, from step ``start`` on, the last ``size`` of them: draws of
            a sampler such as ``optim.sghmc``, or a snapshot ensemble. A member that has stopped
            takes no more. ``Fitted.snapshots`` has them.
        on_divergence: a member whose loss, gradients or next parameters are not finite stays as it
            was before that step; then ``"raise"`` a ``DivergenceError``, or warn and ``"freeze"``
            it, or ``"drop"`` it from the ensemble in the end. ``"ignore"`` checks nothing. Before
            the first step data and validation are looked at once, of an iterable the first batch.
        checkpoint: ``Checkpoints``, or a directory for one after every epoch.
        resume: go on from the last checkpoint of the directory: ``"auto"`` if there is one,
            ``True`` if there must be one; ``False`` if there must be none. A damaged one is
            skipped for the one before it, with a warning. The result has the same bits as that of a
            run that was never interrupted. An iterable of batches is iterated over again up to
            that place.
        progress: ``True`` shows a bar, and, where there is neither a terminal nor a notebook, a
            line for each entry; ``None`` the bar only; ``False`` nothing.
        callbacks: functions of an ``Event``, which are called after each entry of the history; or
            objects such as a ``Callback``, with any of ``on_start``, ``on_entry`` and ``on_end``.
            ``CSVLogger`` and other loggers are such. They do not change the training, but can end
            it: ``event.stop()``. A resumed training does not repeat entries.
        mesh: devices to train on: its axis "members" splits the members, as ``Ensemble.shard``
            does; its axis "data" the examples of each batch, of which every device computes its
            part: the loss must be a mean over the examples, as losses and gradients of the parts
            are averaged; layers that look at a whole batch look at a part, and layers that draw
            random numbers draw others for each. By default the mesh that the ensemble is on, if it
            is on one. Where it can be split evenly, the result does not depend on the number of
            devices, but for the rounding of sums over "data".
        executor: ``Workers``, or an executor, whose workers train parts of the ensemble, without
            the user's code: see ``Workers``. Each part is checkpointed in the folder of
            ``checkpoint``, which all must reach; without one its files travel, and it begins anew
            where its worker is lost. Results have the same bits for the same parts, however many
            workers there are and whatever is lost; for other parts they differ by rounding.
            Callbacks are told of entries when all parts have ended. Not for data that are iterated
            over, nor where members train parts that they share.

    Returns:
        A ``Fitted``: the ensemble, the history, which members were stopped or diverged, and the
            state to go on from.

    Raises:
        ValueError: data do not match, or are not finite where the loss uses them, or have labels
            that are not among the classes of a loss of ``stretto.nn``; a batch is larger than the
            data, the loss is not a scalar, an argument is out of range, or a checkpoint is of
            another configuration.
        TypeError: an argument is unknown, ``optimizer`` is not an optimizer, or ``data`` is of none
            of the kinds named.
        DivergenceError: see ``on_divergence``.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 4.0}])
    >>> x = snp.linspace(-1, 1, 64)
    >>> loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    >>> fitted = ensemble.fit(loss, (x, 2 * x), st.optim.sgd(0.5), epochs=20, batch_size=8)
    >>> fitted.history["loss"].shape
    (20, 2)
    >>> ensemble(1.0).round(3)
    Array([2., 2.], dtype=float32)
    """
    refuse_others_than_mappings(hyperparams=hyperparams, per_member=per_member, metrics=metrics)
    if epochs is None and steps is None:
        raise ValueError("fit: give epochs= or steps=, how long to train")
    _check_counts(0, epochs=epochs, steps=steps)
    _check_counts(
        1,
        batch_size=batch_size,
        evaluate_every=evaluate_every,
        validation_batch_size=validation_batch_size,
    )
    stopping = _stopping(early_stopping)
    _refuse_without(validation, early_stopping=stopping, metrics=metrics)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoints):
        checkpoint = Checkpoints(checkpoint)
    over = _put_on(mesh, ensemble)
    on = None if over is None else over.mesh
    _refuse_clock(checkpoint, together := on is not None and on.is_multi_process)
    calls = Calls(callbacks, together)
    trainer = Trainer(
        loss,
        optimizer,
        hyperparams=hyperparams,
        per_member=per_member,
        shared_optimizer=shared_optimizer,
        on_divergence=on_divergence,
        early_stopping=stopping is not None,
    )
    plan, first, data = planned(
        loss, data, order, batch_size, len(ensemble), fraction, drop_last, each, over
    )
    if validation is not None:
        own = each and own_examples_of(validation, len(ensemble), "validation")
        validation = own or examples_of(validation, "validation")[0]
    each = order == "own" if plan is None else plan.each
    part = validation_batch_size or _USUAL_PART
    total = _total(steps, epochs, plan)
    _check_snapshots(snapshots, total)
    state = with_room(trainer.start(_in_train_mode(ensemble), key), snapshots)
    examples = [types_of(first, p.group.size if each else None) for p in state.packs]
    with watch_classes() as watched:
        sums = [trainer.no_sums(p, x, each) for p, x in zip(state.packs, examples, strict=True)]
    state = state.replace(sums=tuple(sums))
    if on_divergence != "ignore" and not together:
        looks = Looks(loss, state, watched.has_classes)
        _look(looks, first, data, plan, validation, part, on_divergence)
    evaluator = None if validation is None else Evaluator(loss, metrics)
    if evaluator is not None:
        names = evaluator.names(state, validation, part)
        if stopping is not None:
            stopping.check(names)
    configuration: dict[str, str] = {}
    if checkpoint is not None or executor is not None:
        configuration = configuration_of(
            trainer,
            state,
            examples,
            each,
            data if plan else None,
            validation,
            order=plan or f"batches, {order or 'same'}",
            evaluate_every=evaluate_every,
            validation_batch_size=part,
            early_stopping=stopping,
            metrics=sorted(metrics or {}),
            **({} if snapshots is None else {"snapshots": snapshots}),
        )
    if checkpoint is not None and executor is None:
        state = checkpoint.resume(state, configuration, resume)
        same_everywhere(on, state.step, "the step of the last whole checkpoint")
    shows = False if together and process_index() != 0 else progress
    with Reporter(shows, total, together=together) as reporter:
        common: dict[str, Any] = {
            "epochs": epochs,
            "steps": steps,
            "evaluator": evaluator,
            "validation": validation,
            "evaluate_every": evaluate_every,
            "validation_batch_size": part,
            "early_stopping": stopping,
            "snapshots": snapshots,
            "checkpoints": checkpoint,
            "configuration": configuration,
            "reporter": reporter,
            "calls": calls,
        }
        loop = _loop_of(_workers(executor, over), state, trainer, data, plan, each, resume, common)
        if state.step:
            reporter.resumed(state, checkpoint)
        with calls.ending(ensemble, lambda: loop.state):
            _run(loop, state, ensemble)
            return _finished(ensemble, loop.state, stopping, on_divergence, trainer)


def _workers(executor: object, over: OverMesh | None) -> Workers | None:
    """Return the workers that an executor has, if one is given."""
    if executor is None:
        return None
    if over is not None:
        raise ValueError(
            "fit: executor= and mesh= are two ways to spread members: workers train parts of the "
            "ensemble, each on its own devices; give one of them"
        )
    return workers_of(executor)


def _loop_of(
    workers: Workers | None,
    state: TrainState,
    trainer: Trainer,
    data: Tree,
    plan: DataOrder | None,
    each: bool,
    resume: bool | str,
    common: Mapping[str, Any],
) -> Loop | LoopOnWorkers:
    """Return the loop of a training, here or by workers, who have none of the user's code."""
    if workers is None:
        return Loop(trainer, data, plan, each=each, **common)
    if plan is None:
        raise ValueError(
            "fit: executor= needs data as arrays: what is iterated over is Python of this process, "
            "which workers do not have. Give arrays, or train here"
        )
    for pack in state.packs:
        if pack.shared:
            raise ValueError(
                f"fit: executor= trains members apart, and {', '.join(pack.shared)} are trained by "
                f"all of them together: freeze them, or train here, over a mesh if on many devices"
            )
    return LoopOnWorkers(workers, trainer, data, plan, resume=resume, **common)


def _run(loop: Loop | LoopOnWorkers, state: TrainState, ensemble: Ensemble) -> None:
    """Train; where that ends by an error, leave the ensemble with what was reached."""
    try:
        loop.run(put_state(state))
    except BaseException:
        # An interruption can fall where a step has taken the arrays and not yet given others.
        with contextlib.suppress(DonatedArrayError):
            _reached(ensemble, loop.state.ensemble)
        raise


def _look(
    looks: Looks,
    first: Tree,
    data: Tree,
    plan: DataOrder | None,
    validation: Tree,
    part: int,
    on_divergence: str,
) -> None:
    """Refuse data that would make losses NaN."""
    if plan is None:  # of batches the first alone, which is at hand
        looks.refuse_unsound(first, "batch", None)
    elif on_divergence == "raise" or not isinstance(data, Own):  # else they end one member alone
        looks.refuse_unsound(data, "data", plan.batch_size)
    if validation is not None:
        looks.refuse_unsound(validation, "validation", part)


def _in_train_mode(ensemble: Ensemble[M]) -> Ensemble[M]:
    """Return the ensemble as it is trained: in train mode, where all its layers are in the other.

    Raises ``ValueError`` for members that have no such mode.
    """
    modes = [mode for group in ensemble._layout.groups for mode in modes_of(group)]
    training = ensemble._of(ensemble._layout, ensemble._arrays)
    if any(modes) or not modes:
        return training
    training.train()
    for group in training._layout.groups:
        if not trains(group):
            raise ValueError(
                f"fit: member {group.places[0]} is in evaluation mode, and has no other: members "
                f"that come from PyTorch need from_torch(..., train=True) to be trained"
            )
    return training


def _reached(ensemble: Ensemble, result: Ensemble) -> None:
    """Give the ensemble the members that training has reached, in evaluation mode."""
    if ensemble._captured:
        object.__setattr__(ensemble, "_captured", False)
        warnings.warn(
            "fit: a compiled function has the weights that this ensemble had before as constants, "
            "and goes on with them: it used the ensemble from outside. Hand it over instead: "
            "f = st.jit(lambda ensemble, x: ensemble(x)), f(ensemble, x)",
            stacklevel=user_stack_level(),
        )
    ensemble._layout, ensemble._arrays = result._layout, copy_arrays(result._arrays)
    ensemble.eval()


def _stopping(early_stopping: EarlyStopping | int | None) -> EarlyStopping | None:
    """Return what stops members: from its patience, where that is what was given."""
    if early_stopping is None or isinstance(early_stopping, EarlyStopping):
        return early_stopping
    _check_counts(1, early_stopping=early_stopping)
    return EarlyStopping(early_stopping)


def _total(steps: int | None, epochs: int | None, plan: DataOrder | None) -> int | None:
    """Return how many steps there are in all; ``None`` where batches are iterated over."""
    if plan is None or epochs is None:
        return steps
    return min(epochs * plan.steps, steps or epochs * plan.steps)


def _check_snapshots(snapshots: Snapshots | None, total: int | None) -> None:
    """Refuse what is not ``Snapshots``, and cycles that do not end within so many steps."""
    if snapshots is None:
        return
    if not isinstance(snapshots, Snapshots):
        raise TypeError(
            f"fit: snapshots must be Snapshots(period, size), got {type(snapshots).__name__}"
        )
    if total is not None and snapshots.first >= total:
        raise ValueError(
            f"fit: the first cycle of {snapshots} that counts ends with step {snapshots.first}, "
            f"and training has {total}, from 0: give a smaller period or start, or train longer"
        )


def _refuse_without(validation: Tree, early_stopping: object, metrics: object) -> None:
    """Raise ``ValueError`` where there are no data for what is measured on them."""
    if validation is not None:
        return
    if early_stopping is not None:
        raise ValueError("fit: early_stopping watches validation data; give validation=(x, y)")
    if metrics:
        raise ValueError("fit: metrics are measured on validation data; give validation=(x, y)")


def _refuse_clock(checkpoint: Checkpoints | None, together: bool) -> None:
    """Raise ``ValueError`` where several processes would write at different steps."""
    if together and checkpoint is not None and checkpoint.every_seconds:
        raise ValueError(
            "fit: every_seconds goes by the clock of each process, and several train together: "
            "give Checkpoints every_steps or every_epochs"
        )


def _put_on(mesh: Mesh | None, ensemble: Ensemble) -> OverMesh | None:
    """Say how the ensemble is over a mesh, after it was put on this one, if one is given."""
    if mesh is not None:
        put = ensemble.shard(mesh)
        ensemble._layout, ensemble._arrays = put._layout, put._arrays
    return ensemble._layout.over


def _check_counts(least: int, **counts: Any) -> None:
    """Refuse numbers that are not counts; ``None`` is the default of each."""
    for name, value in counts.items():
        if value is not None:
            integers.count(value, "fit", name, least)


def _finished(
    ensemble: Ensemble[M],
    state: TrainState[M],
    early_stopping: EarlyStopping | None,
    on_divergence: str,
    trainer: Trainer,
) -> Fitted[M]:
    """Give the ensemble what was reached, and say what happened."""
    best = early_stopping is not None and early_stopping.restore_best
    result = state.best if best else state.ensemble
    diverged = divergences(state)
    stopped = {m: int(s) for m, s in enumerate(state.each("stopped")) if s >= 0}
    _reached(ensemble, result)
    if state.layout.over is not None:
        ensemble._arrays = state.layout.over.put_groups(ensemble._layout.groups, ensemble._arrays)
    dropped = sorted(diverged) if on_divergence == "drop" else []
    if dropped:
        ensemble.drop(dropped)
    snapshots = state.snapshots(dropped)
    return Fitted(
        ensemble,
        dict(state.history),
        stopped,
        diverged,
        state,
        snapshots,
        _sampling(state, dropped, trainer),
    )


def _sampling(
    state: TrainState[M], dropped: Sequence[int], trainer: Trainer
) -> Callable[[Key], Ensemble[M] | None] | None:
    """Return what draws members with each of some keys, if their optimizer has a distribution."""
    if not any([trainer.drawing(pack) for pack in state.packs]):
        return None

    def sample(keys: Key) -> Ensemble[M] | None:
        draw = lambda pack: trainer.draw(pack, keys) if trainer.drawing(pack) else {}
        return state.draws(draw, keys.shape[0], dropped)

    return sample
