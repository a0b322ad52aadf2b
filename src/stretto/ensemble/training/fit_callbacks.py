"""Callbacks of ``fit``, called at its start, after each entry of the history, and at its end.

``EarlyStopping`` stops members whose evaluations get no better. Those whose values diverged are
named by member, step, and path of the parameter.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto import distributed
from stretto._engine.api.jit.jit import jit
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.errors import DonatedArrayError, NonFiniteError, StrettoError, meant
from stretto._engine.core.integers import count
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.xla.device import process_index
from stretto.ensemble.training.train_state import Best, Pack, TrainState, read

if TYPE_CHECKING:
    from stretto.ensemble.ensemble import Ensemble

_METHODS = ("on_start", "on_entry", "on_end")
_ELSEWHERE = {
    "on_train_begin": "on_start",
    "on_train_start": "on_start",
    "on_fit_start": "on_start",
    "on_epoch_end": "on_entry",
    "on_train_epoch_end": "on_entry",
    "on_validation_end": "on_entry",
    "on_validation_epoch_end": "on_entry",
    "on_train_end": "on_end",
    "on_fit_end": "on_end",
    "on_exception": "on_end",
}
"""Methods of callbacks in Keras, Lightning and skorch, and ours."""


class Event:
    """The progress of a training, for a callback.

    All of it may be kept, but for an ``ensemble`` that was not asked for in the callback. Nothing
    that is done with it changes the training, but ``stop``.
    """

    step: int
    """The number of steps done."""
    epoch: int
    """The number of epochs done."""
    error: BaseException | None
    """The error, or Ctrl-C, that ended the training; to be read at the end."""
    is_first_process: bool
    """True where this is to be logged: false in all but the first of processes that train together,
    in each of which callbacks are called."""

    def __init__(
        self,
        state: TrainState,
        stop: Callable[[], None],
        together: bool = False,
        ensemble: Ensemble | None = None,
        error: BaseException | None = None,
    ) -> None:
        self.step, self.epoch, self.error = state.step, state.epoch, error
        self.is_first_process = not together or process_index() == 0
        self._state, self._stop, self._ensemble = state, stop, ensemble

    @functools.cached_property
    def history(self) -> Mapping[str, np.ndarray]:
        """All entries until now, as in ``Fitted.history``."""
        return {n: _fixed(x) for n, x in self._state.history.items()}

    @functools.cached_property
    def entry(self) -> Mapping[str, np.ndarray]:
        """The last entry, by name: losses and metrics, (members,). Empty where there is none."""
        names = [n for n in self._state.history if n not in ("step", "epoch")]
        return {n: _fixed(self._state.history[n][-1]) for n in names}

    @property
    def ensemble(self) -> Ensemble:
        """The ensemble as it stands: a copy, made when it is first asked for.

        At the end, the ensemble itself. Where several processes train together, all have to ask.

        Raises:
            RuntimeError: it is first asked for when the callback has returned.
        """
        if self._ensemble is None:
            made = self._state.ensemble
            try:
                made._arrays = copy_arrays(made._arrays)
            except DonatedArrayError:
                raise RuntimeError(
                    "fit: the ensemble of an event must be asked for while the callback runs; the "
                    "training has gone on since"
                ) from None
            self._ensemble = made
        return self._ensemble

    def stop(self) -> None:
        """Ask for the training to end here.

        All callbacks are still called for this entry, and a checkpoint is written. A training that
        is resumed from it goes on.
        """
        self._stop()


class Callback:
    """A callback of ``fit``: a class to derive from, each of whose methods does nothing.

    Deriving from it is not needed: any object with some of these methods will do, and a function is
    called as ``on_entry``.

    >>> import stretto as st, stretto.numpy as snp
    >>> class Until(st.ensemble.Callback):
    ...     def __init__(self, loss):
    ...         self.loss = loss
    ...
    ...     def on_entry(self, event):
    ...         if event.entry["loss"].max() < self.loss:
    ...             event.stop()
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 4.0}])
    >>> loss = lambda member, x: ((member(x) - x) ** 2).mean()
    >>> fitted = ensemble.fit(
    ...     loss, snp.ones(8), st.optim.sgd(0.4), epochs=50, callbacks=[Until(0.1)]
    ... )
    >>> fitted.history["epoch"].tolist()
    [1, 2, 3]
    """

    def on_start(self, event: Event) -> None:
        """Do what there is to do before the first step, or the first after a resumption.

        Args:
            event: how far the training is: the step and the history of the checkpoint, if it was
                resumed.
        """

    def on_entry(self, event: Event) -> None:
        """Do what there is to do after an entry of the history.

        Args:
            event: with the ``entry``.
        """

    def on_end(self, event: Event) -> None:
        """Do what there is to do at the end, also where an error ends the training.

        Args:
            event: with the ``error``, and the ensemble that ``fit`` leaves.
        """


class Calls:
    """The callbacks of a training.

    Where several processes train together, they agree after each entry on whether to stop, and all
    fail where a callback of one does.
    """

    def __init__(self, callbacks: Sequence[Any] | None, together: bool) -> None:
        self._callbacks = _checked(callbacks)
        self._together, self._any, self._started = together, bool(self._callbacks), 0
        self.stopping = False
        """True once a callback asked for the end."""

    def start(self, state: TrainState) -> None:
        """Call callbacks before the first step."""

        def work() -> None:
            event = self._event(state)
            for callback in self._callbacks:
                self._started += 1
                _call(callback, "on_start", event)

        if self._together:
            self._any = bool(distributed.process_allgather(np.int32(self._any)).any())
        self._agreed(work)

    def entry(self, state: TrainState) -> None:
        """Call callbacks after an entry of the history."""

        def work() -> None:
            event = self._event(state)
            for callback in self._callbacks:
                _call(callback, "on_entry", event)

        self._agreed(work)

    @contextmanager
    def ending(self, ensemble: Ensemble, reached: Callable[[], TrainState]) -> Iterator[None]:
        """Run what ends a training; tell those that were started of the end, come what may."""
        try:
            yield
        except BaseException as error:
            self._end(0, ensemble, reached, error)
            raise
        self._end(0, ensemble, reached, None)

    def _end(
        self,
        first: int,
        ensemble: Ensemble,
        reached: Callable[[], TrainState],
        error: BaseException | None,
    ) -> None:
        if first == self._started:
            return
        try:
            event = Event(reached(), lambda: None, self._together, ensemble, error)
            _call(self._callbacks[first], "on_end", event)
        finally:
            self._end(first + 1, ensemble, reached, error)

    def _event(self, state: TrainState) -> Event:
        return Event(state, self._stop, self._together)

    def _stop(self) -> None:
        self.stopping = True

    def _agreed(self, work: Callable[[], None]) -> None:
        if not self._any:
            return
        if not self._together:
            work()
            return
        error = None
        try:
            work()
        except Exception as caught:  # the others would wait for this process
            error = caught
        codes = distributed.process_allgather(np.int32(self.stopping if error is None else 2))
        if error is not None:
            raise error
        if codes.max() == 2:
            raise RuntimeError(f"fit: a callback of process {codes.argmax()} raised an error")
        self.stopping = bool(codes.max())


def _checked(callbacks: Sequence[Any] | None) -> list[Any]:
    if callbacks is None:
        return []
    if not isinstance(callbacks, (list, tuple)):
        raise TypeError(
            f"fit: callbacks must be a list, such as callbacks=[f]; got {type(callbacks).__name__}"
        )
    for x in callbacks:
        name = x.__name__ if isinstance(x, type) else type(x).__name__
        if isinstance(x, type):
            raise TypeError(f"fit: callbacks has the class {name}; make one of it: {name}(...)")
        for method in dir(x):
            if method.startswith("on_") and method not in _METHODS:
                ours = _ELSEWHERE.get(method) or meant(method, _METHODS)
                raise TypeError(
                    f"fit: the callback {name} has a method {method!r}, which would not be called"
                    f"{f' (did you mean {ours!r}?)' if ours else ''}; there are "
                    f"{', '.join(_METHODS)}"
                )
        if not callable(x) and not any([hasattr(x, m) for m in _METHODS]):
            raise TypeError(
                f"fit: a callback is a function of an event, or an object with some of the methods "
                f"{', '.join(_METHODS)}; got {name}"
            )
    return list(callbacks)


def _call(callback: Any, method: str, event: Event) -> None:  # noqa: ANN401
    """Call the method, if there is one; a function is called for each entry."""
    function = getattr(callback, method, None)
    if function is None and method == "on_entry" and callable(callback):
        if any([hasattr(callback, m) for m in _METHODS]):
            return
        function = callback
    if function is not None:
        function(event)


def _fixed(x: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be changed."""
    x = np.array(x)
    x.flags.writeable = False
    return x


_COPY = jit(lambda arrays: arrays)


def copy_arrays(arrays: Tree) -> Tree:
    """Return the same values in arrays of their own, since the state's may be donated later."""
    with config(recompilation_warning=0):  # one program for each ensemble is meant
        return _COPY(arrays)


R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class EarlyStopping:
    """Stop a member after ``patience`` evaluations in a row without a better score.

    A member that has stopped is left as it is.

    Args:
        patience: how many evaluations in a row without a better score stop a member.
        min_delta: by how much a score must be better; NaN is never better.
        monitor: the score: ``"loss"``, the validation loss, or the name of a metric.
        mode: ``"min"`` where smaller is better, ``"max"`` where larger is.
        restore_best: leave each member in the end as it was at its best evaluation, even one that
            never stopped.

    Raises:
        ValueError: ``patience`` is below 1, ``min_delta`` is negative, or ``mode`` is neither.

    Source: Prechelt, "Early stopping, but when?", 1998.

    >>> EarlyStopping(patience=3).monitor
    'loss'
    """

    patience: int
    min_delta: float = 0.0
    monitor: str = "loss"
    mode: str = "min"
    restore_best: bool = True

    def __post_init__(self) -> None:
        count(self.patience, "EarlyStopping", "patience", 1)
        if not self.min_delta >= 0:
            raise ValueError(f"EarlyStopping: min_delta must be at least 0, got {self.min_delta}")
        if self.mode not in ("min", "max"):
            raise ValueError(f"EarlyStopping: mode must be 'min' or 'max', got {self.mode!r}")

    @property
    def stages(self) -> tuple[int, ...]:
        """The epochs after which members are compared with each other: none here."""
        return ()

    def after_stage(self, state: TrainState) -> TrainState:
        """Return the state after one of the ``stages``, without what is dropped there.

        Args:
            state: the state after its last evaluation was observed.

        Returns:
            The new state.
        """
        return state

    def check(self, names: Iterable[str]) -> None:
        """Refuse to watch what is not evaluated.

        Args:
            names: those of what is.

        Raises:
            ValueError: ``monitor`` is not among them.
        """
        names = list(names)
        if self.monitor not in names:
            raise ValueError(
                f"EarlyStopping: monitor={self.monitor!r} is not among what is evaluated: "
                f"{', '.join(names)}"
            )

    def score(self, found: dict[str, np.ndarray]) -> np.ndarray:
        """Pick what is watched from an evaluation's results; the smaller the better.

        Args:
            found: by name, arrays of shape (members,).

        Returns:
            (members,).

        Raises:
            ValueError: ``monitor`` is not among the results.
        """
        self.check(found)
        return found[self.monitor] if self.mode == "min" else -found[self.monitor]

    def observe(self, state: TrainState, score: ArrayLike) -> TrainState:
        """Return the state after an evaluation with these scores.

        Args:
            state: a state begun with ``early_stopping=True``.
            score: (members,), the smaller the better.

        Returns:
            The new state.
        """
        score = np.asarray(score, np.float32)
        with config(recompilation_warning=0):  # one program for each pack is meant
            packs = [
                _OBSERVED(p, score[list(p.group.places)], self.patience, self.min_delta)
                for p in state.packs
            ]
        return state.replace(packs=tuple(packs))


def _observed(pack: Pack, score: ArrayLike, patience: int, min_delta: float) -> Pack:
    rows, best = pack.rows, pack.rows.best
    assert best is not None
    better = snp.logical_and(rows.active, score < best.score - min_delta)
    waited = snp.where(better, 0, best.waited + convert(rows.active, best.waited.dtype))
    stops = snp.logical_and(rows.active, waited >= patience)

    def one(now: Array, before: Array) -> Array:
        return snp.where(better.reshape(-1, *[1] * (now.ndim - 1)), now, before)

    own = tree.map(one, {**rows.own, **rows.kept}, best.own)
    return pack.replace(
        best=Best(snp.where(better, score, best.score), waited, own),
        active=snp.logical_and(rows.active, snp.logical_not(stops)),
        stopped=snp.where(stops, pack.step, rows.stopped),
    )


_OBSERVED = jit(_observed, static_argnums=(2, 3), donate_argnums=0)


class DivergenceError(StrettoError, FloatingPointError):
    """A member's loss, gradients or parameters became infinite or NaN.

    ``divergences`` has the faults by member, ``state`` all that training had reached; the members
    named are in it as they were before that step.
    """

    divergences: dict[int, Divergence]
    state: TrainState


class DivergenceWarning(UserWarning):
    """A member's loss, gradients or parameters became infinite or NaN, and it no longer trains."""


class Divergence(NamedTuple):
    """The step at which a member went wrong, and the parameter."""

    step: int
    """The number of steps it had done."""
    path: str
    """The first parameter whose gradient or next value was not finite; or ``loss``."""


def divergences(state: TrainState) -> dict[int, Divergence]:
    """List the members that diverged.

    Args:
        state: the state of a training.

    Returns:
        By member, the step and the path of the parameter.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 1.0}, {"w": 0.0}])
    >>> trainer = st.ensemble.Trainer(lambda m, x: snp.log(m(x)).mean(), st.optim.sgd(0.1))
    >>> state = trainer.start(ensemble, st.random.PRNGKey(0))
    >>> state, _ = trainer.step(state, snp.ones(3))
    >>> divergences(state)
    {1: Divergence(step=0, path='w')}
    """
    faults_by_member = {}
    for pack in state.all_packs():
        failed = read(pack.rows.failed)
        if (failed < 0).all():
            continue
        names = [*pack.trained, "loss"]
        faults = read(pack.rows.fault)
        for row in np.flatnonzero(failed >= 0):
            faults_by_member[pack.group.places[row]] = Divergence(
                int(failed[row]), names[int(faults[row])]
            )
    return dict(sorted(faults_by_member.items()))


def naming_member(pack: Pack, run: Callable[..., R], *args: Any) -> R:
    """Return ``run(*args)``, a step of these members; a fault in it names the step and the member.

    Steps raise such a fault under ``config.debug_nans`` and ``debug_infs``, whatever
    ``on_divergence`` says.
    """
    try:
        return run(*args)
    except NonFiniteError as error:
        fault, places = error.fault, pack.group.places
        words = f"fit: at step {int(read(pack.step))}"
        if len(places) == 1:
            words += f", of member {places[0]}"
        elif fault.examples and not fault.steps and fault.examples[0] < len(places):
            words += f", of member {places[fault.examples[0]]}"
        fault.note = words
        raise


def report_new(
    state: TrainState, known: dict[int, Divergence], reaction: str
) -> dict[int, Divergence]:
    """Return all that went wrong so far; raises or warns if any of it was not known."""
    faults = divergences(state)
    new = {m: d for m, d in faults.items() if m not in known}
    if not new:
        return faults
    words = "; ".join(
        f"member {m} diverged at step {d.step}: "
        + ("the loss" if d.path == "loss" else f"the gradient or the next value of {d.path}")
        + " is not finite"
        for m, d in new.items()
    )
    if reaction == "raise":
        raise _error(words, faults, state)
    done = {"freeze": "it keeps its last finite parameters", "drop": "it is dropped"}[reaction]
    warnings.warn(f"fit: {words}; {done}", DivergenceWarning, stacklevel=user_stack_level())
    return faults


def _error(words: str, faults: dict[int, Any], state: TrainState) -> DivergenceError:
    error = DivergenceError(
        f"fit: {words}. The ensemble is as it was before that step; a lower learning rate, "
        f"clipping (optim.clip_by_global_norm), or on_divergence='freeze' or 'drop' lets the "
        f"others continue"
    )
    error.divergences, error.state = faults, state
    return error
