"""Which configurations a sweep tries, and which function takes each of their values."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.spelling import meant

__all__ = ["configurations", "takers"]

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
    names: Sequence[str],
    make: Callable[..., Any],
    optimizer: object,
    loss: Callable[..., Any],
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
