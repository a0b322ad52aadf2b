"""Measuring all members on held-out data: the loss and metrics in evaluation mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.varying_sizes.ragged import is_ragged
from stretto._engine.api.varying_sizes.sizes import equal_lengths, share_lengths
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.functions import name_of
from stretto._engine.core.typing import Key, Tree
from stretto.ensemble.over_mesh import OverMesh, map_members
from stretto.ensemble.training import step
from stretto.ensemble.training.train_state import Pack, TrainState, read
from stretto.ensemble.training.training_data import Own, rows_of
from stretto.random.keys import fold_in

_STREAM = 4  # beside those of DataOrder and of the steps


class Evaluator:
    """The loss, and further metrics, of every member on the same data, by compiled programs.

    All are averaged over batches by their numbers of examples. Members are in evaluation mode.

    Args:
        loss: ``loss(member, *batch)``, a scalar, or a scalar and a dictionary of scalar metrics.
        metrics: by name, functions ``f(member, *batch)`` that give a scalar, a mean over the batch;
            one whose signature has names of ``per_member`` gets these values, too.

    Raises:
        TypeError: a metric is not a function, or is called ``"loss"``.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 1.0}, {"w": 4.0}])
    >>> loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    >>> state = st.ensemble.Trainer(loss, st.optim.sgd(0.1)).start(ensemble)
    >>> evaluate = st.ensemble.Evaluator(loss)
    >>> evaluate(state, (snp.ones(5), snp.ones(5)), batch_size=2)
    {'loss': array([0., 9.], dtype=float32)}
    """

    def __init__(
        self, loss: Callable[..., Any], metrics: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        self._loss, self._metrics = loss, dict(metrics or {})
        for name, f in self._metrics.items():
            if not callable(f) or name == "loss":
                raise TypeError(
                    f"fit: metrics must be functions of a member and a batch, by names other than "
                    f"'loss'; got {name!r}: {type(f).__name__}"
                )
        self.on_part = jit(self._on_part, static_argnums=(4, 5))

    def __call__(self, state: TrainState, data: Tree, batch_size: int) -> dict[str, np.ndarray]:
        """Return means by name, for all members in order; NaN for those not trained any more."""
        own, over = isinstance(data, Own), state.layout.over
        total = self.sizes(data)
        scores: dict[str, np.ndarray] = {}
        for pack in state.packs:
            active = read(pack.rows.active)
            if not active.any():
                continue
            here: Any = total[list(pack.group.places)] if own else total
            sums: Any = None
            for start in range(0, np.max(here), batch_size):
                sizes = np.clip(here - start, 0, batch_size)
                with config(recompilation_warning=0, **dict(state.layout.options)):
                    size = int(np.max(sizes))
                    part = self.on_part(pack, data, np.int32(start), state.key, size, over)
                # A member with none left was computed on one that is not its own.
                more = {
                    n: np.where(sizes > 0, read(x).astype(np.float64), 0) * sizes
                    for n, x in part.items()
                }
                sums = more if sums is None else {n: sums[n] + more[n] for n in sums}
            for name, x in (sums or {}).items():
                scored = scores.setdefault(name, np.full(state.size, np.nan, np.float32))
                scored[list(pack.group.places)] = np.where(active, x / here, np.nan)
        return scores

    def names(self, state: TrainState, data: Tree, batch_size: int) -> list[str]:
        """Trace the first evaluation, so that what is wrong with it is said before a training.

        Args:
            state: the state of a training.
            data: the examples, as for a call.
            batch_size: how many at a time.

        Returns:
            The names of what it measures.
        """
        names: dict[str, None] = {}
        for pack in state.packs:
            total = self.sizes(data)
            here = total[list(pack.group.places)] if isinstance(data, Own) else total
            size, over = min(batch_size, int(np.max(here))), state.layout.over
            with config(recompilation_warning=0, **dict(state.layout.options)):
                shapes = self.on_part.eval_shape(pack, data, np.int32(0), state.key, size, over)
            names |= dict.fromkeys(shapes)
        return list(names)

    def sizes(self, data: Tree) -> Any:  # noqa: ANN401 (a number, or an array)
        """Return the number of examples, or that of each member where each has its own.

        Args:
            data: the examples, as for a call.

        Returns:
            A number, or an array (members,).
        """
        if isinstance(data, Own):
            return np.asarray(data.counts)
        return len(tree.leaves(data, is_ragged)[0])

    def _on_part(
        self, pack: Pack, data: Tree, start: Tree, key: Key, size: int, over: OverMesh | None
    ) -> dict[str, Any]:
        arrays, axis = _part_of(pack, data, start, size)
        parts, structure = tree.flatten(arrays, lambda x: axis == 0 and is_ragged(x))
        pairs = equal_lengths(structure, parts)
        group = dataclasses.replace(pack.group, structure=step.in_mode(pack.group, False))
        key = fold_in(fold_in(key, _STREAM), start)

        def of_one(own: Tree, number: Tree, extra: Tree, parts: list[Any]) -> dict[str, Any]:
            batch = tree.unflatten(structure, share_lengths(parts, pairs))
            by_name = {**own, **pack.shared, **pack.fixed}
            noise = fold_in(key, number)
            value, beside, _ = step.loss_of(self._loss, group, by_name, batch, extra, noise)
            metrics = {"loss": value, **beside}
            member = group.of([by_name[n] for n in group.names])
            for name, f in self._metrics.items():
                caller = f"fit: metrics[{name!r}] ({name_of(f)})"
                arguments = member, *step.arguments_of(batch)
                named = step.named_of(f, extra, len(arguments))
                metrics[name] = step.scalar(f(*arguments, **named), caller, "gives")
            return metrics

        rows = pack.rows
        run = map_members(of_one, (0, 0, 0, axis), 0, pack.group.size, None, over)
        return run({**rows.own, **rows.kept}, rows.number, rows.extra, parts)


def _part_of(pack: Pack, data: Tree, start: Tree, size: int) -> tuple[Tree, int | None]:
    """Take so many examples from a place, and the axis of the members where each has its own."""
    if not isinstance(data, Own):
        places = start + snp.arange(size, dtype=np.int32)
        return rows_of(data, places), None
    members = np.asarray(pack.group.places, np.int32)
    counts = np.asarray(data.counts, np.int32)[members]
    first = snp.take(data.starts, members, 0)[:, None]
    places = start + snp.arange(size, dtype=np.int32)
    picked = first + snp.minimum(places, counts[:, None] - 1)
    uneven = len(set(data.counts)) > 1
    left = snp.asarray(counts) if uneven else None
    return step.batch_at(data.data, picked, np.int32(0), size, left - start if uneven else None)[
        0
    ], 0
