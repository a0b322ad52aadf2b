"""``Fitted``: what ``fit`` gives, and its history as a table and as a picture.

The history of a training: what was measured, entry after entry, of each member.

A dictionary: ``step`` and ``epoch`` of each entry, and everything else by name as an array
(entries, members).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

import stretto.ensemble
from stretto._engine.core import integers
from stretto._engine.core.errors import meant
from stretto._engine.core.lazy import shown
from stretto._engine.core.typing import Key
from stretto.ensemble.groups import M_co
from stretto.ensemble.optional import axes_of, first_of
from stretto.ensemble.training.fit_callbacks import Divergence
from stretto.ensemble.training.train_state import TrainState
from stretto.random.keys import PRNGKey, as_key, split

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from stretto.ensemble.ensemble import Ensemble


def with_entry(
    history: Mapping[str, Any], step: int, epoch: int, entry: Mapping[str, np.ndarray], size: int
) -> dict[str, np.ndarray]:
    """Return the history with one more entry. What is not in it is NaN there."""
    count = len(history.get("step", ()))
    out: dict[str, Any] = {
        "step": np.append(np.asarray(history.get("step", ()), np.int32), np.int32(step)),
        "epoch": np.append(np.asarray(history.get("epoch", ()), np.int32), np.int32(epoch)),
    }
    for name in [*(n for n in history if n not in out), *(n for n in entry if n not in history)]:
        nothing = np.full(size, np.nan, np.float32)
        before = history.get(name, np.broadcast_to(nothing, (count, size)))
        row = np.asarray(entry.get(name, nothing), np.float32)
        out[name] = np.concatenate([np.asarray(before), row[None]])
    return out


def columns_of(history: Mapping[str, np.ndarray], form: str, caller: str) -> dict[str, np.ndarray]:
    """Return the history as columns of a table.

    ``"long"``: a row for each member of each entry, with ``step``, ``epoch``, ``member``, and a
    column for each of the rest. ``"wide"``: a row for each entry, and columns such as ``loss/0``
    for member 0. Raises ``ValueError`` for another form.
    """
    if form not in ("long", "wide"):
        raise ValueError(f"{caller}: form must be 'long' or 'wide', got {form!r}")
    measured = {n: x for n, x in history.items() if n not in ("step", "epoch")}
    step, epoch = (np.asarray(history.get(n, ()), np.int32) for n in ("step", "epoch"))
    if form == "wide":
        each = {f"{n}/{i}": column for n, x in measured.items() for i, column in enumerate(x.T)}
        return {"step": step, "epoch": epoch, **each}
    size = next((x.shape[1] for x in measured.values()), 0)
    return {
        "step": np.repeat(step, size),
        "epoch": np.repeat(epoch, size),
        "member": np.tile(np.arange(size, dtype=np.int32), len(step)),
        **{n: x.ravel() for n, x in measured.items()},
    }


@shown("stretto.ensemble.cards", "card_of_fitted", "fitted_text")
@dataclasses.dataclass(frozen=True)
class Fitted(Generic[M_co]):
    """The result of a training."""

    ensemble: Ensemble[M_co]
    """The ensemble that was trained."""
    history: dict[str, np.ndarray]
    """``step`` and ``epoch`` of each entry; ``loss``, metrics, ``validation_loss``, … of shape
    (entries, members). Losses of training are means since the entry before; NaN for members that
    no longer trained."""
    stopped: dict[int, int]
    """The step at which members were stopped early, by member."""
    diverged: dict[int, Divergence]
    """Members that diverged: step, and path of the parameter."""
    state: TrainState[M_co]
    """All that was reached, to go on from."""
    _snapshots: Ensemble[M_co] | None = dataclasses.field(default=None, repr=False)
    _sample: Callable[[Key], Ensemble[M_co] | None] | None = dataclasses.field(
        default=None, repr=False
    )

    @property
    def snapshots(self) -> Ensemble[M_co]:
        """The snapshots of all members as one ensemble, in evaluation mode.

        All members after the oldest cycle that is kept, then all after the next: members × cycles,
        less those that a member had stopped or diverged before. Parts that members share and train
        are each snapshot's own.

        Raises:
            ValueError: there are none.
        """
        if self._snapshots is None:
            raise ValueError(
                "Fitted.snapshots: there are none: give fit snapshots=Snapshots(period, size), "
                "with a cycle that ends before all members have stopped"
            )
        return self._snapshots

    def sample(self, key: Key | int, n: int = 1) -> Ensemble[M_co]:
        """Draw weights of each member from the distribution that an optimizer such as ``ivon`` has.

        Args:
            key: a PRNG key or a seed.
            n: how many draws of each member.

        Returns:
            The draws as one ensemble of n × members, in evaluation mode: the first draw of each
            member that was not dropped, then the second, …. ``ensemble`` has the means.

        Raises:
            ValueError: the optimizer has no distribution, or ``n`` is less than 1.

        Source: Shen et al., "Variational learning is effective for large deep networks", 2024.

        >>> import stretto as st, stretto.numpy as snp
        >>> ensemble = st.Ensemble(lambda w, x: w * x, snp.zeros(2))
        >>> loss = lambda member, x: ((member(x) - x) ** 2).mean()
        >>> ivon = st.optim.ivon(0.1, data_size=8)
        >>> fitted = ensemble.fit(loss, snp.ones(8), ivon, steps=3, batch_size=8)
        >>> fitted.sample(st.random.key(1), 5)(snp.ones(1)).shape
        (10, 1)
        """
        if self._sample is None:
            raise ValueError(
                "Fitted.sample: the optimizer has no distribution of weights: train with "
                "optim.ivon, or take fit_laplace of the ensemble"
            )
        count = integers.count(n, "Fitted.sample", "n", 1)
        words = PRNGKey(key) if isinstance(key, (int, np.integer)) else as_key(key, "Fitted.sample")
        drawn = self._sample(split(words, count))
        if drawn is None:
            raise ValueError("Fitted.sample: all members were dropped")
        return drawn

    def to_frame(self, form: str = "long", library: str | None = None) -> Any:  # noqa: ANN401
        """Return the history as a DataFrame of pandas or polars.

        Args:
            form: ``"long"``: a row for each member of each entry, with the columns ``step``,
                ``epoch``, ``member``, and one for each of what was measured; ``"wide"``: a row for
                each entry, with columns such as ``loss/0`` for the loss of member 0.
            library: ``"pandas"`` or ``"polars"``; by default the first that is installed.

        Returns:
            The DataFrame.

        Raises:
            ValueError: ``form`` or ``library`` is neither.
            ModuleNotFoundError: the library is not installed.

        >>> import stretto as st, stretto.numpy as snp
        >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 4.0}])
        >>> loss = lambda member, x: ((member(x) - x) ** 2).mean()
        >>> fitted = ensemble.fit(loss, snp.ones(8), st.optim.sgd(0.1), epochs=3)
        >>> fitted.to_frame().groupby("member")["loss"].min()  # doctest: +SKIP
        """
        libraries = ("pandas", "polars")
        if library not in (None, *libraries):
            raise ValueError(
                f"Fitted.to_frame: library must be 'pandas' or 'polars', got {library!r}"
            )
        columns = columns_of(self.history, form, "Fitted.to_frame")
        wanted = libraries if library is None else (library,)
        module: Any = first_of(wanted, "Fitted.to_frame", wanted[0])
        return module.DataFrame(columns)

    def plot(self, name: str = "loss", *, ax: Axes | None = None) -> Axes:
        """Draw what was measured against the number of steps, in training and in validation.

        Of each, a thin line for each member, their mean, and a band of a standard deviation; what
        is measured in one alone is drawn alone. Where a member was stopped early there is a dot,
        and where one diverged a cross. It needs matplotlib: ``pip install 'stretto[plots]'``.

        Args:
            name: of what was measured: ``"loss"``, or a metric.
            ax: where to draw; by default in a new figure.

        Returns:
            The axes. The picture is not shown.

        Raises:
            ValueError: nothing was measured by this name.
            ModuleNotFoundError: matplotlib is not installed.

        >>> import stretto as st, stretto.numpy as snp
        >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 4.0}])
        >>> loss = lambda member, x: ((member(x) - x) ** 2).mean()
        >>> fitted = ensemble.fit(loss, snp.ones(8), st.optim.sgd(0.1), epochs=3)
        >>> ax = fitted.plot()
        >>> ax.get_xlabel(), ax.get_ylabel()
        ('step', 'loss')
        """
        kinds = {"training": name, "validation": f"validation_{name}"}
        kinds = {kind: n for kind, n in kinds.items() if n in self.history}
        if not kinds or name in ("step", "epoch"):
            names = {n.removeprefix("validation_"): None for n in self.history}
            known = [n for n in names if n not in ("step", "epoch")]
            guess = meant(name, known)
            raise ValueError(
                f"Fitted.plot: nothing was measured by the name {name!r}"
                f"{f' (did you mean {guess!r}?)' if guess else ''}; there is "
                f"{', '.join(known) or 'no entry'}"
            )
        ax = axes_of(ax, "Fitted.plot")
        steps = self.history["step"]
        for kind, n in kinds.items():
            stretto.ensemble.plots.member_curves(steps, self.history[n], label=kind, ax=ax)
        # Where a member ended, at the last that is known of it, or else at the bottom.
        last = self.history[list(kinds.values())[-1]]
        ends = {"stopped": self.stopped, "diverged": {m: d.step for m, d in self.diverged.items()}}
        for (what, by_member), marker in zip(ends.items(), "ox", strict=True):
            label: str | None = what
            for member, step in by_member.items():
                known = last[np.isfinite(last[:, member]), member]
                style: dict[str, Any] = {"color": "black", "marker": marker, "zorder": 3}
                if not len(known):
                    style |= {"transform": ax.get_xaxis_transform(), "clip_on": False}
                ax.plot([step], [*known[-1:], 0][:1], label=label, linestyle="", **style)
                label = None
        ax.set(xlabel="step", ylabel=name)
        ax.legend()
        return ax
