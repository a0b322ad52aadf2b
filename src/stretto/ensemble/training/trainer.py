"""``Trainer``: the compiled step of training, and the state that it begins with.

It is for training loops of your own; the loop of ``Ensemble.fit`` is in ``fit``.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import ShapeDtypeStruct, eval_shape
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.config import settings
from stretto._engine.core.errors import refuse_unknown
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.ops.convert import convert
from stretto.ensemble.groups import Group
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.training.fit_callbacks import naming_member
from stretto.ensemble.training.step import (
    COUNT,
    OPTIMIZER_STREAM,
    Rules,
    advance_pack,
    batch_at,
    check_elementwise,
    check_examples,
    modes_of,
    on_each_device,
    part_of_data,
    put_state,
    settings_of,
)
from stretto.ensemble.training.train_state import (
    Best,
    Pack,
    Rows,
    TrainState,
    in_places,
    is_row,
    of_each,
)
from stretto.ensemble.training.training_data import with_rectangles
from stretto.optim.base import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    VariationalTransformation,
    as_transformation,
    for_members,
)
from stretto.optim.combining import per_member as of_members
from stretto.random.key_arrays import KeyArray
from stretto.random.keys import PRNGKey, as_key, fold_in, key_data
from stretto.random.streams import next_key

if TYPE_CHECKING:  # it is above, and trains by this
    from stretto.ensemble.ensemble import Ensemble


M = TypeVar("M")

REACTIONS = ("raise", "freeze", "drop", "ignore")


class _Steps(NamedTuple):
    """The jitted functions of one architecture."""

    batch: Any
    """A step on a batch."""
    batch_sums: Any
    """The same, with sums of what steps gave."""
    order_sums: Any
    """The same, on the next examples of an order."""


class Trainer:
    """The step of training for all members of an ensemble: compiled once for an architecture.

    A member whose loss, gradients or next parameters are not finite takes no more steps. What
    members share gets the mean of the gradients of those that still train.

    Args:
        loss: ``loss(member, *batch)``, a scalar, or a scalar and a dictionary of scalar metrics.
        optimizer: transforms the gradients of one member: norms, counts and schedules are each
            member's own. With ``hyperparams``, the function that makes one, such as
            ``optim.adamw``.
        hyperparams: arguments of ``optimizer``; arrays have an entry for each member.
        per_member: arrays with an entry for each member, which the loss gets by name.
        shared_optimizer: for the parts that members share; by default ``optimizer``.
        on_divergence: ``"raise"``, ``"freeze"`` or ``"drop"`` say what ``fit`` does about a member
            that diverged; with ``"ignore"`` nothing is checked.
        early_stopping: whether the state keeps what ``EarlyStopping`` needs.

    Raises:
        TypeError: ``loss`` is not a function, or ``optimizer`` is not an optimizer.
        ValueError: ``on_divergence`` is none of these; or, in ``start``, ``hyperparams`` or
            ``per_member`` do not have one entry for each member.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 4.0}])
    >>> loss = lambda member, x, y: ((member(x) - y) ** 2).mean()
    >>> trainer = st.ensemble.Trainer(loss, st.optim.sgd(0.5))
    >>> state = trainer.start(ensemble, st.random.PRNGKey(0))
    >>> state, metrics = trainer.step(state, (snp.ones(3), snp.ones(3)))
    >>> metrics["loss"], state.ensemble(1.0)
    (Array([1., 9.], dtype=float32), Array([1., 1.], dtype=float32))
    """

    resizes = True
    """Whether packs may lose members that have stopped, for which a program is compiled."""

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: GradientTransformation | Callable[..., GradientTransformation],
        *,
        hyperparams: Mapping[str, Any] | None = None,
        per_member: Mapping[str, Any] | None = None,
        shared_optimizer: GradientTransformation | None = None,
        on_divergence: str = "raise",
        early_stopping: bool = False,
    ) -> None:
        if not callable(loss):
            raise TypeError(
                f"fit: loss must be a function of a member and a batch, got {type(loss).__name__}"
            )
        if on_divergence not in REACTIONS:
            raise ValueError(
                f"fit: on_divergence must be one of {REACTIONS}, got {on_divergence!r}"
            )
        self.loss, self.optimizer = loss, optimizer
        self.hyperparams: dict[str, Any] = {}
        self.per_member = dict(per_member or {})
        given: Mapping[str, Any] = hyperparams or {}
        for name, x in given.items():  # a state keeps the words of keys
            words: Any = x
            self.hyperparams[name] = key_data(words) if isinstance(x, KeyArray) else x
        self.on_divergence, self._early_stopping = on_divergence, early_stopping
        if self.hyperparams:
            if isinstance(optimizer, GradientTransformation) or not callable(optimizer):
                raise TypeError(
                    "fit: hyperparams go with a function that makes an optimizer, as in "
                    "fit(..., optimizer=optim.adam, hyperparams={'learning_rate': rates}); got "
                    f"{type(optimizer).__name__}"
                )
            name = name_of(optimizer)
            refuse_unknown("fit: hyperparams", "argument", self.hyperparams, optimizer, name)
        else:
            _checked(optimizer, "optimizer")
        self._shared_optimizer = shared_optimizer
        self._chunk_size: int | str | None = None
        self._options: dict[str, Any] = {}
        self._over: OverMesh | None = None
        self._compiled: dict[Group, _Steps] = {}

    def _steps(self, pack: Pack) -> _Steps:
        """Return the jitted functions of an architecture; compiled for each size of its packs."""
        architecture = dataclasses.replace(pack.group, places=())
        if architecture not in self._compiled:
            self._compiled[architecture] = _Steps(
                jit(self._batch_step, static_argnums=(2,), donate_argnums=0),
                jit(self._sums, static_argnums=(3,), donate_argnums=(0, 1)),
                jit(self._next_in_order, static_argnums=(7, 8), donate_argnums=(0, 1)),
            )
        return self._compiled[architecture]

    # Beginning

    @bounded
    def start(self, ensemble: Ensemble[M], key: Key | None = None) -> TrainState[M]:
        """Return the state before the first step; the ensemble's arrays are copied, and stay.

        Args:
            ensemble: the ensemble.
            key: what the layers' random numbers come from; ``None`` draws one from the ambient
                stream.

        Returns:
            The state.

        Raises:
            ValueError: nothing can be trained, or all modules are in evaluation mode.
        """
        key = as_key(next_key("fit") if key is None else key, "fit")
        layout = ensemble._layout
        size = len(ensemble)
        self._chunk_size, self._options = layout.chunk_size, dict(layout.options)
        self._over = layout.over
        hyperparams = of_each(self.hyperparams, size, "hyperparams")
        extra = of_each(self.per_member, size, "per_member", every=True)
        packs = []
        for group, arrays in zip(layout.groups, ensemble._arrays, strict=True):
            self._refuse(group)
            begin = jit(functools.partial(self._begin_with_key, group))
            rows_of = lambda columns, group=group: {
                n: snp.take(x, np.asarray(group.places, np.int32), 0) for n, x in columns.items()
            }
            packs.append(begin(key, list(arrays), rows_of(hyperparams), rows_of(extra)))
        return put_state(
            TrainState(
                tuple(packs),
                tuple(() for _ in packs),
                key,
                sums=tuple({} for _ in packs),
                going=tuple(True for _ in packs),
                ensemble_class=type(ensemble),
                layout=layout,
            )
        )

    def _refuse(self, group: Group) -> None:
        if not any(group.trained):
            raise ValueError(
                f"fit: member {group.places[0]} has nothing to train: all of "
                f"{', '.join(group.names)} are frozen, buffers, or not of an inexact dtype"
            )
        modes = modes_of(group)
        if modes and not any(modes):
            raise ValueError(
                f"fit: member {group.places[0]} is in evaluation mode; call ensemble.train() first "
                f"(members that come from PyTorch need from_torch(..., train=True) for that)"
            )

    def _begin_with_key(self, group: Group, key: Key, *columns: Any) -> Pack:
        """Return the first pack of a group, of whose optimizers each draws from this key."""
        key = fold_in(key, OPTIMIZER_STREAM)
        return for_members(group.places, key, self._begin, group, *columns)

    def _begin(
        self,
        group: Group,
        arrays: Sequence[Array],
        hyperparams: Mapping[str, Array],
        extra: dict[str, Array],
    ) -> Pack:
        parts: dict[tuple[bool, bool], dict[str, Any]] = {
            (s, t): {} for s in (True, False) for t in (True, False)
        }
        for n, x, s, t in zip(group.names, arrays, group.shared, group.trained, strict=True):
            parts[s, t][n] = convert(x, x.dtype)  # of a strong dtype
        own, kept, shared = parts[False, True], parts[False, False], parts[True, True]
        if shared and self._early_stopping:
            raise ValueError(
                f"fit: early stopping of members that train {', '.join(shared)} together: these "
                f"would still change after a member has stopped. Freeze them, or stop all members "
                f"by epochs="
            )
        size = group.size
        rows = Rows(
            number=snp.asarray(np.asarray(group.places, np.int32)),
            own=own,
            kept=kept,
            optimizer=self._own(hyperparams).init(own) if own else None,
            extra=extra,
            active=snp.ones(size, bool),
            failed=snp.full(size, -1, np.int32),
            fault=snp.zeros(size, np.int32),
            stopped=snp.full(size, -1, np.int32),
            best=Best(
                snp.full(size, np.inf, np.float32), snp.zeros(size, np.int32), {**own, **kept}
            )
            if self._early_stopping
            else None,
        )
        together = self._together().init(shared) if shared else None
        if self._over is not None and self._over.split and own:
            types = rows.own, rows.optimizer, ShapeDtypeStruct((size,), np.float32)
            check_elementwise(self._own(hyperparams), *types)
        return Pack(group, rows, shared, parts[True, False], together, snp.zeros((), np.int32))

    def _own(self, rows: Mapping[str, Any]) -> GradientTransformationExtraArgs:
        """Return the transformation of a pack's members, with their rows of hyperparameters."""
        if not self.hyperparams:
            return of_members(self.optimizer)
        return of_members(self.optimizer, **{**self.hyperparams, **rows})

    def _together(self) -> GradientTransformationExtraArgs:
        """Return the transformation of what members share."""
        if self._shared_optimizer is None and self.hyperparams:
            raise TypeError(
                "fit: members share parts that are trained, and hyperparams may differ between "
                "members; give shared_optimizer=, which is for the shared parts"
            )
        optimizer = self.optimizer if self._shared_optimizer is None else self._shared_optimizer
        return _checked(optimizer, "shared_optimizer")

    # Steps

    @bounded
    def step(
        self, state: TrainState[M], batch: Tree, *, each: bool = False
    ) -> tuple[TrainState[M], dict[str, Array]]:
        """Take a step on a batch.

        Args:
            state: the state before; its arrays are donated, so it cannot be used again.
            batch: a tree of arrays, the same for all members.
            each: whether each member has its own batch, with the members along axis 0 of the
                arrays; ragged arrays have one for each member.

        Returns:
            The state after it; and by name, of shape (members,), the loss before it and the
                metrics, NaN for members that no longer run.
        """
        size = state.size
        batch = tree.map(lambda x: as_value(x, "Trainer.step", "the batch"), batch)
        if each:
            batch = with_rectangles(batch)
        packs, results = [], []
        for pack in state.packs:
            own = batch
            if each and pack.group.size != size:
                places = np.asarray(pack.group.places, np.int32)
                own = tree.map(lambda x, places=places: snp.take(x, places, 0), batch)
            own = self.put_batch(own, each, "Trainer.step")
            with settings_of(self._options):
                run = self._steps(pack).batch
                pack, metrics, _ = naming_member(pack, run, pack, own, each, state.key)
            packs.append(pack)
            results.append(metrics)
        state = state.replace(packs=tuple(packs), step=state.step + 1)
        return state, in_places(state.packs, results, size)

    def put_batch(self, batch: Tree, each: bool, caller: str) -> Tree:
        """Put a batch on the devices of the mesh, if there is one, each part where it is used.

        Args:
            batch: a tree of arrays.
            each: as for ``step``.
            caller: what messages begin with.

        Returns:
            The batch.

        Raises:
            ValueError: its examples cannot be split evenly.
        """
        if self._over is None:
            return batch
        for x in tree.leaves(batch):
            check_examples(self._over, x.shape[int(each)] if x.ndim > each else 1, caller)
        return tree.map(self._over.put, batch, self._of_batch(batch, each))

    def drawing(self, pack: Pack) -> bool:
        """Say whether the optimizer has a distribution of the pack's weights.

        Args:
            pack: members of one architecture.

        Returns:
            A boolean.
        """
        return isinstance(self._rules(pack, {}).own, VariationalTransformation)

    def draw(self, pack: Pack, keys: Key) -> dict[str, Array]:
        """Draw the weights of each member from its optimizer's distribution, with each key.

        Args:
            pack: members of one architecture, for whom ``drawing`` is true.
            keys: (draws,), keys.

        Returns:
            By name, arrays of shape (members, draws, ...).
        """
        own: Any = self._rules(pack, {}).own

        def once(key: Key) -> Tree:
            of_members = vmap(lambda number: fold_in(key, number))(pack.rows.number)
            return own.sample(pack.rows.optimizer, pack.rows.own, of_members)

        return jit(vmap(once, out_axes=1))(keys)

    def _rules(self, pack: Pack, shapes: Mapping[str, Sequence[int]]) -> Rules:
        rows = {}
        for n in self.hyperparams:
            if is_row(self.hyperparams[n]):
                rows[n] = snp.zeros(pack.group.size)  # the values are in the state
        return Rules(
            self.loss,
            self._own(rows) if pack.rows.own else None,
            self._together() if pack.shared else None,
            self._chunk_size,
            # While debugging, what is not finite stays in the results, where it is looked for.
            self.on_divergence != "ignore" and not settings.key.debugged,
            self._over,
            shapes,
        )

    def _batch_step(
        self, pack: Pack, batch: Tree, each: bool, key: Key
    ) -> tuple[Pack, dict[str, Array], Array]:
        pack, (metrics, moves) = self._advanced(
            pack,
            None,
            key,
            each,
            lambda pack, batch: (batch, None),
            (batch, self._of_batch(batch, each)),
        )
        return pack, metrics, moves

    def _of_batch(self, batch: Tree, each: bool) -> Tree:
        """Say how each array of a batch is split."""
        spec = PartitionSpec() if self._over is None else self._over.of_batch(each)
        return tree.map(lambda x: PartitionSpec(*spec[: x.ndim]), batch)

    def _advanced(
        self,
        pack: Pack,
        sums: dict[str, Array] | None,
        key: Key,
        each: bool,
        draw: Callable[..., Any],
        *inputs: tuple[Tree, Tree],
    ) -> tuple[Pack, Any]:
        """Return the pack after a step on what ``draw`` makes of the inputs, and the sums after it.

        ``draw`` gives a batch, and which members have one (``None``: all). Without sums, what
        the step gave instead, and which members took it. Over a mesh each device does this with
        its members, and its part of the inputs.
        """
        shapes = {n: x.shape[1:] for n, x in pack.rows.own.items()}

        def step(pack: Pack, sums: Tree, key: Key, *inputs: Tree) -> tuple[Pack, Any]:
            batch, some = draw(pack, *inputs)
            pack, metrics, moves = advance_pack(
                self._rules(pack, shapes), pack, batch, each, key, some
            )
            if sums is None:
                return pack, (metrics, moves)
            more = {n: sums[n] + snp.where(moves, x, 0) for n, x in metrics.items()}
            more[COUNT] = sums[COUNT] + convert(moves, sums[COUNT].dtype)
            return pack, more

        if self._over is None:
            return step(pack, sums, key, *[x for x, _ in inputs])
        rows = self._over.rows
        return on_each_device(self._over, step, pack, (sums, rows), (key, PartitionSpec()), *inputs)

    # The steps of the loop of ``fit``, which keeps sums on the device

    def no_sums(self, pack: Pack, batch: Tree, each: bool) -> dict[str, Array]:
        """Return zeros for the sums of what steps on such a batch give, and for their count.

        Args:
            pack: the members of an architecture.
            batch: a tree of arrays, or of their types.
            each: as for ``step``.

        Returns:
            By name, zeros of shape (members,).
        """
        key = PRNGKey(0)
        shapes = eval_shape(lambda p, b: self._batch_step(p, b, each, key)[1], pack, batch)
        kind = lambda x: np.float64 if x.dtype == np.float64 else np.float32
        zeros = {n: snp.zeros(x.shape, kind(x)) for n, x in shapes.items()}
        return {**zeros, COUNT: snp.zeros(pack.group.size, np.int32)}

    def program(self, pack: Pack, sums: dict[str, Array], batch: Tree, each: bool) -> str:
        """Return the typed program of a step on such a batch, as text.

        Args:
            pack: the members of an architecture.
            sums: what ``no_sums`` gave.
            batch: a tree of types of arrays.
            each: as for ``step``.

        Returns:
            The text.
        """
        alone = copy.copy(self)  # the program of a step is the same over any mesh
        alone._over, alone._compiled = None, {}
        types = tree.map(lambda x: ShapeDtypeStruct(x.shape, x.dtype), (pack, sums))
        with settings_of(self._options):
            return str(alone._steps(pack).batch_sums.trace(*types, batch, each, PRNGKey(0)))

    def on_batch(
        self, pack: Pack, sums: dict[str, Array], batch: Tree, each: bool, key: Key
    ) -> tuple[Pack, dict[str, Array]]:
        """Take a step on a batch, and add up what it gave.

        Args:
            pack: the members of an architecture.
            sums: the sums before.
            batch: a tree of arrays.
            each: as for ``step``.
            key: the key of the training.

        Returns:
            The pack after it, and the sums.
        """
        with settings_of(self._options):
            run = self._steps(pack).batch_sums
            return naming_member(pack, run, pack, sums, batch, each, key)

    def in_order(
        self,
        pack: Pack,
        sums: dict[str, Array],
        data: Tree,
        order: Array,
        counts: Array | None,
        first: ArrayLike,
        key: Key,
        sizes: tuple[int, int],
    ) -> tuple[Pack, dict[str, Array]]:
        """Take a step on the next examples of an epoch's order.

        Args:
            pack: the members of an architecture.
            sums: the sums before.
            data: a tree of arrays with the examples along axis 0.
            order: what ``DataOrder.epoch`` gave, as places in ``data``.
            counts: ``DataOrder.counts`` of these members where they differ, else ``None``.
            first: the step that the epoch began with.
            key: the key of the training.
            sizes: the usual size of a batch, and that of this one.

        Returns:
            The pack after it, and the sums.
        """
        with settings_of(self._options):
            run = self._steps(pack).order_sums
            return naming_member(pack, run, pack, sums, data, order, counts, first, key, *sizes)

    def _sums(
        self, pack: Pack, sums: dict[str, Array], batch: Tree, each: bool, key: Key
    ) -> tuple[Pack, dict[str, Array]]:
        inputs = batch, self._of_batch(batch, each)
        return self._advanced(pack, sums, key, each, lambda pack, batch: (batch, None), inputs)

    def _next_in_order(
        self,
        pack: Pack,
        sums: dict[str, Array],
        data: Tree,
        order: Array,
        counts: Array | None,
        first: ArrayLike,
        key: Key,
        usual: int,
        size: int,
    ) -> tuple[Pack, dict[str, Array]]:
        over, each, same = self._over, order.ndim == 2, PartitionSpec()
        part = size if over is None else size // over.data_parts

        def draw(
            pack: Pack, data: Tree, order: Array, counts: Array | None, first: Array
        ) -> tuple[Tree, Array | None]:
            start = (pack.step - first) * usual + part_of_data(over) * part
            return batch_at(data, order, start, part, counts)

        rows = over.rows if over and each else same
        inputs = (data, same), (order, rows), (counts, rows), (first, same)
        return self._advanced(pack, sums, key, each, draw, *inputs)


def _checked(optimizer: object, argument: str) -> GradientTransformationExtraArgs:
    return as_transformation(optimizer, f"fit: {argument}")
