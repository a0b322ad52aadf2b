"""``Sweep``: the configurations that were tried, how good each was, and the members."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from stretto._engine.core.typing import Tree
from stretto.ensemble import sweeping
from stretto.ensemble.ensemble import Ensemble
from stretto.ensemble.groups import M_co
from stretto.ensemble.training.fit import Fitted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    ...     epochs=5,
    ...     seeds=2,
    ...     progress=False,
    ... )
    >>> swept.best, len(swept.best_ensemble), swept.scores.shape
    ({'learning_rate': 0.1}, 2, (2, 2))
    >>> [row["learning_rate"] for row in swept.table()]
    [0.1, 0.0001]
    """

    configurations: list[dict[str, Any]]
    """What was tried, in the order in which it was drawn."""
    fitted: Fitted[M_co]
    """What ``Ensemble.fit`` gave: all members, the history, and who was stopped or diverged."""
    members: tuple[int, ...]
    """For each member of the ensemble, the number of its configuration."""
    monitor: str
    """What was compared."""
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
        """The members of a configuration."""
        return [place for place, owner in enumerate(self.members) if owner == number]

    def _ranked(self) -> list[int]:
        """The numbers of the configurations, the best first, and in the end what diverged."""
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
                return importlib.import_module(name).DataFrame(self.table())
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
        return sweeping.picture.drawn(self)

    def __repr__(self) -> str:
        row = self.table()[0]
        return (
            f"Sweep of {len(self.configurations)} configurations, {len(self.members)} members; "
            f"best {self.monitor} {row['score']:.4g} of {self.best}"
        )
