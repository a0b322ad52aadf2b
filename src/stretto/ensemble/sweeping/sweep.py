"""``sweep``: many configurations trained as the members of one ensemble.

Which configurations a sweep tries, and which function takes each of their values.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from rich.console import Console

from stretto._engine.core import integers
from stretto._engine.core.boundary import bounded
from stretto._engine.core.errors import meant
from stretto._engine.core.typing import Key, Tree
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.sweeping.halving import Clock, Halving, cuts_of
from stretto.ensemble.sweeping.results import Sweep
from stretto.ensemble.training.stopping import DivergenceWarning
from stretto.nn.module import Module
from stretto.optim.base import GradientTransformation
from stretto.random.keys import as_key, fold_in, key_data
from stretto.random.streams import next_key

_OURS = ("configuration", "deviation", "epochs", "score", "status")
"""Columns of the table beside those of the space."""


def configurations(
    space: Mapping[str, Any], n: int | None, rng: np.random.Generator
) -> list[dict[str, Any]]:
    """All combinations of the values listed, or ``n`` drawn from these and from distributions."""
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
    """Python's number for NumPy's."""
    if isinstance(x, (np.generic, np.ndarray)) and not x.ndim:
        return x.item()
    return x


def takers(
    names: Sequence[str], make: Callable[..., Any], optimizer: object, loss: Callable[..., Any]
) -> dict[str, str]:
    """By name, who takes it: ``"make"``, ``"optimizer"`` or ``"loss"``."""
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
    """The arguments behind the first ones; with ``named``, those that go by keyword alone."""
    try:
        parameters = list(inspect.signature(f).parameters.values())[skip:]
    except (TypeError, ValueError):
        return []
    kinds = {inspect.Parameter.KEYWORD_ONLY}
    if not named:
        kinds.add(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds]


ModuleT = TypeVar("ModuleT", bound=Module)

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
            callbacks=[clock],
        )
    cost = clock.cost(list(cuts))
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
    """Members for all configurations, architecture by architecture, and whose each is."""
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
    """The numbers of all members, by name, that go to the optimizer, or to the loss."""
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
