"""``sweep``: many configurations of hyperparameters and architectures, trained as one ensemble.

It chooses which configurations to try, and which function takes each of their values. With
``Halving`` those that are behind are dropped, at a few epochs: what is dropped leaves its pack as a
member does that has stopped early, so that the others go on in a smaller program. ``Sweep`` has the
configurations that were tried, how good each was, and the members; it draws scores against
hyperparameters.
"""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from rich.console import Console

import stretto.numpy as snp
from stretto._engine.core import integers
from stretto._engine.core.boundary import bounded
from stretto._engine.core.errors import meant
from stretto._engine.core.typing import ArrayLike, Key, Tree
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.groups import M_co
from stretto.ensemble.training.checkpoints import Checkpoints
from stretto.ensemble.training.fit_callbacks import (
    Callback,
    DivergenceWarning,
    EarlyStopping,
    Event,
)
from stretto.ensemble.training.fitted import Fitted
from stretto.ensemble.training.train_state import TrainState, read
from stretto.nn.module import Module
from stretto.optim.base import GradientTransformation
from stretto.random.keys import as_key, fold_in, key_data
from stretto.random.streams import next_key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Sweep", "sweep"]

ModuleT = TypeVar("ModuleT", bound=Module)


def cuts_of(count: int, epochs: int, factor: int, first: int) -> dict[int, int]:
    """Say after which epochs how many configurations go on: one in ``factor``, each time.

    After ``first`` epochs, and whenever ``factor`` times as many are done (Jamieson and Talwalkar,
    "Non-stochastic best arm identification and hyperparameter optimization", 2016).

    >>> cuts_of(200, 27, 3, 1)
    {1: 67, 3: 23, 9: 8}
    """
    cuts = {}
    epoch = first
    while epoch < epochs and count > 1:
        count = -(-count // factor)
        cuts[epoch] = count
        epoch *= factor
    return cuts


class Clock(Callback):
    """A callback that keeps how long each epoch took, and how many members it trained."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.members: list[int] = []
        self._last = 0.0

    def on_start(self, event: Event) -> None:
        """Begin the first epoch."""
        self._last = time.monotonic()

    def on_entry(self, event: Event) -> None:
        """End an epoch, and begin the next."""
        now = time.monotonic()
        self.seconds.append(now - self._last)
        self.members.append(int(np.isfinite(event.entry["loss"]).sum()))
        self._last = now

    def cost(self, cuts: Sequence[int]) -> str | None:
        """Say what halving cost, where that is more than it can have saved.

        After these epochs members were dropped, and the next compiled a smaller program. An epoch
        of all members takes at most as many times as long as there are more of them.

        >>> clock = Clock()
        >>> clock.seconds, clock.members = [2.0, 3.0, 0.1, 0.1], [60, 20, 20, 20]
        >>> clock.cost([1])
        'halving took 2.9 s to compile smaller programs, and saved 0.6 s of steps at most...
        >>> clock.seconds[1:] = [1.2, 1.0, 1.0]
        >>> clock.cost([1]) is None
        True
        """
        took = saved = 0.0
        ends = [*cuts[1:], len(self.seconds)]
        for start, end in zip(cuts, ends):
            stage = self.seconds[start:end]
            if len(stage) < 2:  # a single epoch does not tell compiling from steps
                return None
            usual = min(stage)
            took += stage[0] - usual
            saved += len(stage) * usual * (self.members[0] / max(self.members[start], 1) - 1)
        if took <= saved:
            return None
        return (
            f"halving took {took:.1f} s to compile smaller programs, and saved {saved:.1f} s of "
            f"steps at most: without halving= this sweep is faster, and trains all to the end"
        )


@dataclasses.dataclass(frozen=True)
class Halving(EarlyStopping):
    """Early stopping, and the end of all but the best configurations at each of the cuts."""

    cuts: tuple[tuple[int, int], ...] = ()
    """Pairs: after this epoch, so many configurations go on."""
    members: tuple[int, ...] = ()
    """The configuration of each member; its score is the mean of its members'."""

    @property
    def stages(self) -> tuple[int, ...]:
        """The epochs of the cuts."""
        return tuple([epoch for epoch, _ in self.cuts])

    def observe(self, state: TrainState, score: ArrayLike) -> TrainState:
        """Stop members as ``EarlyStopping`` does; then drop what is behind.

        Args:
            state: a state begun with ``early_stopping=True``.
            score: (members,), the smaller the better.

        Returns:
            The new state.
        """
        return self.after_stage(super().observe(state, score))

    def after_stage(self, state: TrainState) -> TrainState:
        """Drop what is behind, where the state is that of a cut.

        Args:
            state: the state after its last evaluation was observed.

        Returns:
            The new state.
        """
        count = dict(self.cuts).get(state.epoch)
        if count is None:
            return state
        best = np.full(state.size, np.inf)
        for pack in state.all_packs():
            assert pack.rows.best is not None
            best[list(pack.group.places)] = read(pack.rows.best.score)
        best[state.each("failed") >= 0] = np.inf
        # What was dropped before has a worse best than all that went on, and stays behind.
        owners = np.asarray(self.members)
        means = np.bincount(owners, best) / np.bincount(owners)
        kept = np.isin(owners, np.argsort(means, kind="stable")[:count])
        packs = []
        for pack in state.packs:
            here = snp.asarray(kept[list(pack.group.places)])
            stops = snp.logical_and(pack.rows.active, snp.logical_not(here))
            packs.append(
                pack.replace(
                    active=snp.logical_and(pack.rows.active, here),
                    stopped=snp.where(stops, pack.step, pack.rows.stopped),
                )
            )
        return state.replace(packs=tuple(packs))


_COLORS = {"finished": "#1f5f8b", "stopped": "#b0b8bf"}


def _figure_of(sweep: Sweep) -> Figure:
    """Draw a panel a hyperparameter, with a point for each configuration that did not diverge."""
    try:
        import_module("matplotlib.backends.backend_agg")
        figures: Any = import_module("matplotlib.figure")
    except ModuleNotFoundError as error:
        raise ImportError(
            "Sweep.plot: drawing needs matplotlib: pip install 'stretto[demo]'"
        ) from error
    rows = [row for row in sweep.table() if np.isfinite(row["score"])]
    names = list(sweep.configurations[0])
    figure = figures.Figure(figsize=(3.2 * len(names) + 0.6, 3.2), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for panel, name in zip(panels, names, strict=True):
        values = [row[name] for row in rows]
        for status, color in _COLORS.items():
            here = [(x, row["score"]) for x, row in zip(values, rows) if row["status"] == status]
            if here:
                xs, ys = zip(*_at(here, values), strict=True)
                panel.plot(xs, ys, "o", color=color, markersize=4, label=status)
        if rows:
            ((x, y),) = _at([(values[0], rows[0]["score"])], values)
            panel.plot([x], [y], "*", color="#c7602a", markersize=12, label="best")
        if not _numbers(values):
            labels = _labels(values)
            panel.set_xticks(range(len(labels)), labels)
        elif _wide(values):
            panel.set_xscale("log")
        panel.set_xlabel(name)
    panels[0].set_ylabel(sweep.monitor)
    if _wide([row["score"] for row in rows]):
        panels[0].set_yscale("log")  # of all, which share it
    panels[-1].legend(framealpha=0.8, edgecolor="none")
    return figure


def _wide(numbers: list[float]) -> bool:
    return bool(numbers) and min(numbers) > 0 and max(numbers) / min(numbers) > 100


def _numbers(values: list[Any]) -> bool:
    return all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in values)


def _labels(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(x) for x in values))


def _at(points: list[tuple[Any, float]], values: list[Any]) -> list[tuple[float, float]]:
    """Place points at their number, or at the place of their label."""
    if _numbers(values):
        return points
    labels = _labels(values)
    return [(float(labels.index(str(x))), y) for x, y in points]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Sweep(Generic[M_co]):
    """The result of ``sweep``.

    >>> import stretto as st
    >>> from stretto import nn, optim
    >>> x = st.random.normal(st.random.key(0), (32, 2))
    >>> swept = st.ensemble.sweep(
    ...     lambda key: nn.Linear(2, 2, key=key),
    ...     lambda member, x: ((member(x) - x) ** 2).mean(),
    ...     x,
    ...     optim.sgd,
    ...     {"learning_rate": [1e-4, 0.1]},
    ...     validation=x,
    ...     epochs=100,
    ...     seeds=2,
    ...     progress=False,
    ... )
    >>> swept.best, len(swept.best_ensemble), swept.scores.shape
    ({'learning_rate': 0.1}, 2, (2, 2))
    >>> [row["learning_rate"] for row in swept.table()]
    [0.1, 0.0001]
    """

    configurations: list[dict[str, Any]]
    """The configurations tried, in the order in which they were drawn."""
    fitted: Fitted[M_co]
    """The result of ``Ensemble.fit``: members, the history, and who was stopped or diverged."""
    members: tuple[int, ...]
    """The number of each member's configuration."""
    monitor: str
    """The name of what was compared."""
    mode: str
    """``"min"`` or ``"max"``."""

    @property
    def ensemble(self) -> Ensemble[M_co]:
        """All members, each as it was at its best evaluation."""
        return self.fitted.ensemble

    @property
    def scores(self) -> np.ndarray:
        """(configurations, seeds): the best evaluation of each member; NaN where it diverged."""
        rows = self.fitted.history[f"validation_{self.monitor}"]
        worst = np.inf if self.mode == "min" else -np.inf
        filled = np.where(np.isnan(rows), worst, rows)
        best = filled.min(axis=0) if self.mode == "min" else filled.max(axis=0)
        best = np.where(np.isfinite(best), best, np.nan)
        best[list(self.fitted.diverged)] = np.nan
        return np.stack([best[self._places(i)] for i in range(len(self.configurations))])

    def _places(self, number: int) -> list[int]:
        """Return the members of a configuration."""
        return [place for place, owner in enumerate(self.members) if owner == number]

    def _ranked(self) -> list[int]:
        """List the numbers of the configurations, the best first, and in the end what diverged."""
        means = self.scores.mean(axis=1) * (1 if self.mode == "min" else -1)
        return np.argsort(means, kind="stable").tolist()  # NaN comes last

    @property
    def best(self) -> dict[str, Any]:
        """The best configuration."""
        return dict(self.configurations[self._ranked()[0]])

    @property
    def best_ensemble(self) -> Ensemble[M_co]:
        """The members of the best configuration, one for each seed."""
        return self.top(1)

    def top(self, count: int) -> Ensemble[M_co]:
        """Take the members of the best configurations, as an ensemble.

        Args:
            count: how many configurations.

        Returns:
            An ensemble of their members, the best configuration first.
        """
        return self.ensemble[[p for i in self._ranked()[:count] for p in self._places(i)]]

    def table(self) -> list[dict[str, Any]]:
        """List the configurations, the best first.

        Returns:
            For each a dictionary of its values, and of ``score``, the mean over its seeds;
            ``deviation``, the standard deviation over these; ``epochs``, how many it was trained;
            ``status``: ``"finished"``, ``"stopped"`` (dropped, or stopped early) or ``"diverged"``,
            if one of its members was; and ``configuration``, its number.
        """
        scores = self.scores
        trained = (~np.isnan(self.fitted.history[f"validation_{self.monitor}"])).sum(axis=0)
        rows = []
        for i in self._ranked():
            places = self._places(i)
            status = "finished"
            if any(p in self.fitted.stopped for p in places):
                status = "stopped"
            if any(p in self.fitted.diverged for p in places):
                status = "diverged"
            rows.append(
                {
                    **self.configurations[i],
                    "score": float(scores[i].mean()),
                    "deviation": float(scores[i].std()),
                    "epochs": int(trained[places].max()),
                    "status": status,
                    "configuration": i,
                }
            )
        return rows

    def to_frame(self, library: str | None = None) -> Tree:
        """Make a table of pandas or polars of ``table()``.

        Args:
            library: ``"pandas"`` or ``"polars"``; by default the first of them that is installed.

        Returns:
            Its DataFrame.

        Raises:
            ValueError: ``library`` is neither.
            ImportError: it is not installed.
        """
        if library not in (None, "pandas", "polars"):
            raise ValueError(
                f"Sweep.to_frame: library must be 'pandas' or 'polars', got {library!r}"
            )
        wanted: Sequence[str] = ("pandas", "polars") if library is None else (library,)
        for name in wanted:
            try:
                return import_module(name).DataFrame(self.table())
            except ModuleNotFoundError as error:
                if error.name != name:
                    raise
        raise ImportError(
            f"Sweep.to_frame: {' or '.join(wanted)} is not installed; table() gives a list of "
            f"dictionaries without it"
        )

    def plot(self) -> Figure:
        """Draw the score against each of the hyperparameters.

        Returns:
            A figure of matplotlib, to be saved (``savefig``) or shown by a notebook.

        Raises:
            ImportError: matplotlib is not installed.
        """
        return _figure_of(self)

    def __repr__(self) -> str:
        row = self.table()[0]
        return (
            f"Sweep of {len(self.configurations)} configurations, {len(self.members)} members; "
            f"best {self.monitor} {row['score']:.4g} of {self.best}"
        )


_OURS = ("configuration", "deviation", "epochs", "score", "status")
"""Columns of the table beside those of the space."""


def configurations(
    space: Mapping[str, Any], n: int | None, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """List all combinations of the values, or ``n`` drawn from these and from distributions."""
    if not space:
        raise ValueError("sweep: space is empty; give what to vary, as {'learning_rate': [...]}")
    for name, values in space.items():
        if name in _OURS:
            raise ValueError(
                f"sweep: space has the name {name!r}, which is a column of the table of results; "
                f"call the argument otherwise"
            )
        if not _is_list(values) and not callable(getattr(values, "rvs", values)):
            raise TypeError(
                f"sweep: space[{name!r}] must be a list of values, a distribution with a method "
                f"rvs, such as scipy.stats.loguniform(1e-4, 1e-1), or a function of a NumPy "
                f"generator; got {type(values).__name__}"
            )
        if _is_list(values) and not len(values):
            raise ValueError(f"sweep: space[{name!r}] has no values")
    drawn = [name for name, values in space.items() if not _is_list(values)]
    if n is None and drawn:
        raise ValueError(
            f"sweep: {', '.join(drawn)} {'is' if len(drawn) == 1 else 'are'} drawn from a "
            f"distribution, so say how many configurations to draw: n=200"
        )
    if drawn:
        assert n is not None
        return [{name: _drawn(x, rng) for name, x in space.items()} for _ in range(n)]
    sizes = [len(values) for values in space.values()]
    total = math.prod(sizes)
    places: Sequence[int] = range(total)
    if n is not None:
        if n > total:
            raise ValueError(
                f"sweep: n={n} configurations are more than the {total} that space has; leave out "
                f"n, or give a distribution"
            )
        places = np.sort(rng.choice(total, n, replace=False)).tolist()
    chosen = [np.unravel_index(p, sizes) for p in places]
    return [
        {name: _plain(x[int(i)]) for i, (name, x) in zip(row, space.items(), strict=True)}
        for row in chosen
    ]


def _is_list(values: object) -> bool:
    return isinstance(values, (list, tuple, np.ndarray, range))


def _drawn(values: Any, rng: np.random.Generator) -> object:  # noqa: ANN401 (a list, or a source)
    if _is_list(values):
        return _plain(values[int(rng.integers(len(values)))])
    if hasattr(values, "rvs"):
        return _plain(values.rvs(random_state=rng))
    return _plain(values(rng))


def _plain(x: object) -> object:
    """Return Python's number for NumPy's."""
    if isinstance(x, (np.generic, np.ndarray)) and not x.ndim:
        return x.item()
    return x


def takers(
    names: Sequence[str], make: Callable[..., Any], optimizer: object, loss: Callable[..., Any]
) -> dict[str, str]:
    """Say by name who takes it: ``"make"``, ``"optimizer"`` or ``"loss"``."""
    known = {
        "make": _parameters(make, 1),
        "optimizer": [] if not callable(optimizer) else _parameters(optimizer, 0),
        "loss": _parameters(loss, 1, named=True),
    }
    found = {}
    for name in names:
        taken = [who for who, parameters in known.items() if name in parameters]
        if len(taken) > 1:
            raise ValueError(
                f"sweep: {name!r} is an argument of both {taken[0]} and {taken[1]}; rename one of "
                f"them"
            )
        if not taken:
            everything = list(itertools.chain(*known.values()))
            guess = meant(name, everything)
            raise ValueError(
                f"sweep: nothing takes {name!r}: not make ({_listed(known['make'])}), not "
                f"the optimizer ({_listed(known['optimizer'])}), and not the loss by "
                f"keyword ({_listed(known['loss'])})"
                f"{'' if guess is None else f'; did you mean {guess!r}?'}"
            )
        found[name] = taken[0]
    return found


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"


def _parameters(f: Callable[..., Any], skip: int, named: bool = False) -> list[str]:
    """List the arguments behind the first ones; with ``named``, those that go by keyword alone."""
    try:
        parameters = list(inspect.signature(f).parameters.values())[skip:]
    except (TypeError, ValueError):
        return []
    kinds = {inspect.Parameter.KEYWORD_ONLY}
    if not named:
        kinds.add(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds]


_NEVER = 2**31 - 1


@bounded
def sweep(
    make: Callable[..., ModuleT],
    loss: Callable[..., Any],
    data: Tree,
    optimizer: GradientTransformation | Callable[..., GradientTransformation],
    space: Mapping[str, Any],
    *,
    validation: Tree,
    epochs: int,
    n: int | None = None,
    seeds: int = 1,
    halving: int | None = None,
    first: int = 1,
    early_stopping: int | None = None,
    metrics: Mapping[str, Callable[..., Any]] | None = None,
    monitor: str = "loss",
    mode: str = "min",
    batch_size: int | None = None,
    order: str = "same",
    chunk_size: int | None = None,
    key: Key | None = None,
    progress: bool | None = None,
    executor: object = None,
    checkpoint: Checkpoints | str | os.PathLike[str] | None = None,
) -> Sweep[ModuleT]:
    """Train a network for each of many configurations, all of one architecture as one program.

    A name in ``space`` is an argument of ``make``, of ``optimizer`` or, by keyword, of ``loss``,
    and its values go there. What the optimizer and the loss take are numbers, of which each member
    has its own; what ``make`` takes may be anything, and configurations that differ in it are
    groups of the ensemble, each with a program of its own, unless their modules have the same
    structure.

    Where the loss itself depends on what is varied, as on the strength of a penalty, its values do
    not compare: give a metric, and its name as ``monitor``.

    Args:
        make: ``make(key, **values)``, a module.
        loss: ``loss(member, *batch, **values)``, as in ``Ensemble.fit``.
        data: as in ``Ensemble.fit``.
        optimizer: a function that makes a transformation, such as ``optim.adamw``; or one, where
            ``space`` has nothing for it.
        space: for each name a list of values; a distribution with a method ``rvs``, such as those
            of ``scipy.stats``; or a function of a NumPy generator that draws a value.
        validation: held-out examples, by which configurations are compared.
        epochs: how often to go through the data.
        n: how many configurations to draw; by default all combinations of lists.
        seeds: how many members each configuration has, with initial weights of their own. Its score
            is the mean of theirs.
        halving: successive halving: after ``first`` epochs, and whenever so many times as many are
            done, only one configuration in so many goes on. By default all are trained to the end.
            Each cut compiles a smaller program, which small networks and few epochs do not pay
            back: then a line on the terminal says so.
        first: the number of epochs before the first of these cuts.
        early_stopping: how many epochs without a better score stop a member.
        metrics: as in ``Ensemble.fit``.
        monitor: what is compared: ``"loss"``, or the name of a metric.
        mode: ``"min"`` where smaller is better, ``"max"`` where larger is.
        batch_size: as in ``Ensemble.fit``.
        order: as in ``Ensemble.fit``; by default all see the same batches.
        chunk_size: members run at a time, which bounds memory; all by default.
        key: what configurations, weights and the order of the data come from; ``None`` draws one
            from the ambient stream.
        progress: as in ``Ensemble.fit``.
        executor: as in ``Ensemble.fit``: workers train parts of the configurations; those that are
            dropped are so in all of them.
        checkpoint: as in ``Ensemble.fit``.

    Returns:
        A ``Sweep``: the table of results, the best configuration, and the members, each as it was
        at its best evaluation. Members that diverged are at the end of the table.

    Raises:
        ValueError: nothing takes a name, or two do; there are no values, or fewer than ``n``; a
            value for the optimizer or the loss is not a number; an argument is out of range.
        TypeError: an entry of ``space`` is none of what is named there.

    >>> import numpy as np, stretto as st
    >>> from stretto import nn, optim
    >>> x = st.random.normal(st.random.key(0), (64, 3))
    >>> y = x @ np.array([[1.0], [-2.0], [0.5]], np.float32)
    >>> make = lambda key, bias: nn.Linear(3, 1, bias, key=key)
    >>> loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    >>> space = {"learning_rate": [1e-3, 1e-2, 1e-1], "bias": [True, False]}
    >>> swept = st.ensemble.sweep(
    ...     make, loss, (x, y), optim.adam, space, validation=(x, y), epochs=10, progress=False
    ... )
    >>> len(swept.table()), swept.best["learning_rate"]
    (6, 0.1)
    """
    for name, value in {"epochs": epochs, "seeds": seeds, "first": first}.items():
        integers.count(value, "sweep", name, 1)
    for name, value, least in (("n", n, 1), ("halving", halving, 2), ("stop", early_stopping, 1)):
        if value is not None:
            integers.count(value, "sweep", "early_stopping" if name == "stop" else name, least)
    key = as_key(next_key("sweep") if key is None else key, "sweep")
    rng = np.random.default_rng(np.asarray(key_data(key)).ravel().tolist())
    found = configurations(space, n, rng)
    takes = takers(list(space), make, optimizer, loss)
    ensemble, owners = _made(make, found, takes, seeds, fold_in(key, 0), chunk_size)
    own = {who: _columns(found, owners, takes, who) for who in ("optimizer", "loss")}
    cuts = {} if halving is None else cuts_of(len(found), epochs, halving, first)
    stopping = Halving(
        early_stopping or _NEVER,
        monitor=monitor,
        mode=mode,
        cuts=tuple(cuts.items()),
        members=tuple(owners),
    )
    clock = Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # the table says which did
        fitted = ensemble.train().fit(
            loss,
            data,
            optimizer,
            epochs=epochs,
            batch_size=batch_size,
            order=order,
            key=fold_in(key, 1),
            hyperparams=own["optimizer"],
            per_member=own["loss"],
            validation=validation,
            metrics=metrics,
            early_stopping=stopping,
            on_divergence="freeze",
            progress=progress,
            callbacks=[clock] if executor is None else None,
            executor=executor,
            checkpoint=checkpoint,
        )
    cost = clock.cost(list(cuts)) if executor is None else None
    if cost is not None and progress is not False:
        Console(stderr=True, highlight=False).print(f"sweep: {cost}", soft_wrap=True)
    fitted.ensemble.eval()
    return Sweep(found, fitted, tuple(owners), monitor, mode)


def _made(
    make: Callable[..., ModuleT],
    found: Sequence[Mapping[str, Any]],
    takes: Mapping[str, str],
    seeds: int,
    key: Key,
    chunk_size: int | None,
) -> tuple[Ensemble[ModuleT], list[int]]:
    """Return members for all configurations, architecture by architecture, and whose each is."""
    architectures: list[tuple[dict[str, Any], list[int]]] = []
    for number, configuration in enumerate(found):
        values = {name: x for name, x in configuration.items() if takes[name] == "make"}
        for known, numbers in architectures:
            if known == values:
                numbers.append(number)
                break
        else:
            architectures.append((values, [number]))
    ensemble: Ensemble[ModuleT] | None = None
    owners: list[int] = []
    for i, (values, numbers) in enumerate(architectures):
        init = lambda key, values=values: make(key, **values)
        here = Ensemble.init(init, fold_in(key, i), seeds * len(numbers), chunk_size=chunk_size)
        ensemble = here if ensemble is None else ensemble + here
        owners += [number for number in numbers for _ in range(seeds)]
    assert ensemble is not None
    return ensemble, owners


def _columns(
    found: Sequence[Mapping[str, Any]], owners: Sequence[int], takes: Mapping[str, str], who: str
) -> dict[str, np.ndarray]:
    """Return the numbers of all members, by name, that go to the optimizer, or to the loss."""
    columns = {}
    for name in [name for name, taker in takes.items() if taker == who]:
        values = [configuration[name] for configuration in found]
        for x in values:
            if isinstance(x, bool) or not isinstance(x, (int, float)):
                raise ValueError(
                    f"sweep: {name!r} goes to the {who}, which has a number for each member; got "
                    f"{x!r}. Sweep over it in several calls, or let make take it"
                )
        columns[name] = np.asarray(values, np.float32)[list(owners)]
    return columns
