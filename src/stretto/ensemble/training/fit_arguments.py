"""Arguments of ``fit``: errors that say what was meant, checks of the data, and the plan made.

Calls that ``fit`` cannot take have names that other libraries have for its arguments, arguments in
another order, or those of another kind.

Before the first step it is seen that data are finite, and that labels are classes. Either would
make a loss NaN, and look like a learning rate that is too high.

The plan is the order of the examples, and the types of a member's batch.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.api.varying_sizes.sizes import equal_lengths, share_lengths
from stretto._engine.core import tree
from stretto._engine.core.boundary import hide_frames
from stretto._engine.core.config import config
from stretto._engine.core.errors import meant
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.higher_order.scan import scan
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.score_arguments import is_table
from stretto.ensemble.training.step import batch_at, check_examples, loss_of
from stretto.ensemble.training.train_state import Pack, TrainState, read
from stretto.ensemble.training.training_data import (
    ORDERS,
    DataOrder,
    Own,
    batches_of,
    examples_of,
    is_examples,
    own_examples_of,
    refuse_list,
    refuse_table,
    with_rectangles,
)
from stretto.nn.functional.checks import Classes, watch_classes
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
"""Advice on what to write, by a name that is no argument here."""


def answering(function: F) -> F:
    """Decorate ``fit``: calls that it cannot take raise errors that say what was meant.

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
    """Return what was meant by a name, as far as it can be guessed."""
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


_USUAL_BATCH = 32


def planned(
    loss: Callable[..., Any],
    data: Tree,
    order: str | None,
    batch_size: int | None,
    members: int,
    fraction: float,
    drop_last: bool | None,
    each: bool,
    over: OverMesh | None,
) -> tuple[DataOrder | None, Tree, Tree]:
    """Return the order of examples, if it is ours; the types of a member's batch; and the data."""
    if is_examples(data):
        if each:
            data = own_examples_of(data, members, "data")
            count: Any = data.counts
        else:
            data, count = examples_of(data, "data")
        if drop_last is None:
            drop_last = not (each and len(set(count)) > 1)
        plan = _order(count, batch_size, order or "own", members, fraction, drop_last)
        for step in (0, plan.steps - 1):
            check_examples(over, plan.batch_size_of(step), "fit")
        if plan.uneven:
            _refuse_starved(plan)
            _refuse_parts(over, plan)
        return plan, _batch_of(plan, data.data if each else data), data
    if each:
        raise ValueError(
            f"fit: each=True is for arrays with the members along axis 0, or ragged ones; for an "
            f"iterable whose batches have them say order='own'; got {type(data).__name__}"
        )
    first, data = _first_batch(_iterable(loss, data, order, batch_size))
    if order == "own":
        first = with_rectangles(first)
        _refuse_others_than_members(first, members)
        first = tree.map(lambda x: x[0], first)
    if over is not None:
        check_examples(over, min([x.shape[0] if x.ndim else 1 for x in tree.leaves(first)]), "fit")
    return None, first, data


def _batch_of(plan: DataOrder, data: Tree) -> Tree:
    """Return the types of a member's batch."""
    size, of = plan.batch_size, ShapeDtypeStruct
    left = of((), np.int32)

    def one(x: Tree) -> Tree:
        if is_ragged(x):
            wide = of((size, x._most, *x._inner), x.dtype)
            return Ragged._of(wide, of((size,), x.lengths.dtype), x._most, True, x._least)
        rows = of((size, *x.shape[1:]), x.dtype)
        return Ragged._of(rows, left, size, True, 1) if plan.uneven else rows

    leaves, structure = tree.flatten(data)
    types = tree.map(one, data, is_leaf=is_ragged)
    return tree.unflatten(
        tree.structure(types), share_lengths(tree.leaves(types), equal_lengths(structure, leaves))
    )


def _refuse_starved(plan: DataOrder) -> None:
    """Raise ``ValueError`` where a member would never have a whole batch."""
    for member, n in enumerate(plan.counts):
        if not n:
            raise ValueError(
                f"fit: member {member} has {plan.sizes[member]} examples, which do not fill a "
                f"batch of {plan.batch_size}, and drop_last=True: give drop_last=False, or a "
                f"batch_size of at most {min(plan.sizes)}"
            )


def _refuse_parts(over: OverMesh | None, plan: DataOrder) -> None:
    """Raise ``NotImplementedError`` where devices would have parts of batches that differ."""
    if over is not None and over.data is not None:
        raise NotImplementedError(
            f"fit: members have different numbers of examples, {plan.sizes}, whose batches the "
            f"axis {over.data!r} of {over.mesh} cannot split evenly: leave the axis out, and split "
            f"the members alone"
        )


def _order(
    count: int | tuple[int, ...],
    batch_size: int | None,
    order: str,
    members: int,
    fraction: float,
    drop_last: bool,
) -> DataOrder:
    try:
        plan = DataOrder(count, 1, order, members, fraction, drop_last)
        size = min(_USUAL_BATCH, plan.size) if batch_size is None else batch_size
        return dataclasses.replace(plan, batch_size=size)
    except ValueError as error:
        raise ValueError(str(error).replace("DataOrder", "fit", 1)) from None


def _iterable(
    loss: Callable[..., Any], data: Tree, order: str | None, batch_size: int | None
) -> Iterable[Any]:
    refuse_table(data, "data")
    if not isinstance(data, Iterable):
        raise TypeError(
            f"fit: data must be an array, a tuple or dictionary of arrays, or an iterable of "
            f"batches; got {type(data).__name__}"
        )
    if order not in (None, "same", "own"):
        raise ValueError(
            f"fit: an iterable of batches has its own order: order must be 'same' or 'own', got "
            f"{order!r} (of {ORDERS})"
        )
    if batch_size is not None:
        raise ValueError("fit: an iterable of batches has its own sizes; leave out batch_size")
    refuse_list(loss, data)
    return data


def _first_batch(data: Tree) -> tuple[Any, Any]:
    """Return the first batch, and the data with that still in it."""
    batches = iter(data)
    for batch, _ in batches_of(itertools.islice(batches, 1), 0):
        return batch, itertools.chain([batch], batches) if batches is data else data
    raise ValueError("fit: data has no batches")


def types_of(batch: Tree, each: int | None) -> Tree:
    """Return the types of a batch; with ``each``, where the members are to be put along axis 0."""
    front = () if each is None else (each,)
    leaves, structure = tree.flatten(batch)
    types = [ShapeDtypeStruct((*front, *x.shape), x.dtype) for x in leaves]
    return tree.unflatten(structure, share_lengths(types, equal_lengths(structure, leaves)))


def _refuse_others_than_members(batch: Tree, members: int) -> None:
    for path, x in zip(tree.paths(batch, "batch"), tree.leaves(batch), strict=True):
        if not x.ndim or x.shape[0] != members:
            raise ValueError(
                f"fit: with order='own' the arrays of a batch have the {members} members along "
                f"axis 0; got {path}: {x.type}"
            )


_BLOCK = 1 << 20  # elements that are added up at a time


@dataclasses.dataclass(frozen=True)
class Looks:
    """A look at data as members of this state see them.

    Labels are those that the losses of ``stretto.nn`` are given, as they are given, so that it does
    not matter how the loss made them from the data. Whatever else the loss does is dead code in the
    program that finds them.
    """

    loss: Callable[..., Any]
    state: TrainState
    has_classes: bool
    """True where the loss calls one that takes classes."""

    def refuse_unsound(self, data: Tree, argument: str, batch_size: int | None) -> None:
        """Raise ``ValueError`` for what would make the loss NaN, with its place and a way out.

        ``batch_size`` is how many examples the loss gets; ``None`` where the data are one batch.
        """
        there = _Data.of(data, argument, batch_size)
        for path, x in zip(there.paths, there.leaves, strict=True):
            found = None if is_ragged(x) else _not_finite(x)
            if found is None:
                continue
            row, place, value = found
            loss = self._loss_at(there, row)
            if np.isfinite(loss):  # it leaves such numbers out
                continue
            inside = f", at {list(place)} in it" if place else ""
            raise ValueError(
                f"fit: {path} has {value} in {there.example(row)}{inside}, of which the loss is "
                f"{loss}. Data must be finite: leave such examples out, "
                f"keep = np.isfinite(x).reshape(len(x), -1).all(1), or fill them in, "
                f"np.nan_to_num(x); or let the loss leave them out by a where="
            )
        if self.has_classes:
            self._refuse_labels(there)

    def _refuse_labels(self, there: _Data) -> None:
        starts = np.arange(0, there.count, there.size)
        starts = np.minimum(starts, there.count - there.size).astype(np.int32)
        known: list[Classes] = []

        def look(first: Tree, arrays: Tree, starts: Tree, key: Key) -> Tree:
            def of_part(carry: Tree, start: Tree) -> tuple[Tree, Tree]:
                with watch_classes() as watched:
                    self._loss_of(first, there.batch(arrays, start), key)
                known[:] = watched.classes
                return carry, [_wrong(found) for found in watched.classes]

            return scan(of_part, 0, starts)[1]

        for (wrong, at, value), found in zip(self._run(look, there, starts), known, strict=True):
            parts = np.flatnonzero(read(wrong))
            if len(parts):
                place = np.unravel_index(int(read(at)[parts[0]]), found.target.shape)
                start, label = int(starts[parts[0]]), int(read(value)[parts[0]])
                raise _no_class(there, found, start, [int(i) for i in place], label)

    def _loss_at(self, there: _Data, row: int) -> float:
        """Return the loss of the first member on a batch with this example."""

        def value(first: Tree, arrays: Tree, start: Tree, key: Key) -> Tree:
            return self._loss_of(first, there.batch(arrays, start), key)

        start = np.int32(min(row, there.count - there.size))
        return float(read(self._run(value, there, start)))

    def _run(self, f: Callable[..., Any], there: _Data, starts: Tree) -> Tree:
        with config(recompilation_warning=0, **dict(self.state.layout.options)):
            return jit(f)(_first_member(self.state.packs[0]), there.arrays, starts, self.state.key)

    def _loss_of(self, first: Tree, batch: Tree, key: Key) -> Array:
        own, extra = first
        return loss_of(self.loss, self.state.packs[0].group, own, batch, extra, key)[0]


@dataclasses.dataclass(frozen=True)
class _Data:
    """Data, and how a batch is drawn from them in order."""

    arrays: Tree
    paths: list[str]
    leaves: list[Any]
    argument: str
    counts: tuple[int, ...] | None
    """The number of examples of each member, where each has its own."""
    is_batch: bool
    """True where they are one batch, as it comes."""
    count: int
    """The number of examples."""
    size: int
    """The number of them that make a batch."""

    @classmethod
    def of(cls, data: Tree, argument: str, batch_size: int | None) -> _Data:
        own = isinstance(data, Own)
        arrays = data.data if own else data
        leaves, structure = tree.flatten(arrays, is_ragged)
        paths = tree.paths(tree.unflatten(structure, range(len(leaves))), argument)
        is_batch = batch_size is None
        count = 1 if is_batch else len(leaves[0])
        size = min(batch_size or 1, count)
        counts = data.counts if own else None
        return cls(arrays, paths, leaves, argument, counts, is_batch, count, size)

    def batch(self, arrays: Tree, start: Tree) -> Tree:
        """Take so many examples from a place."""
        if self.is_batch:
            return arrays
        order = snp.arange(self.count, dtype=np.int32)
        return batch_at(arrays, order, start, self.size)[0]

    def example(self, row: int) -> str:
        """Say which example it is, in words."""
        if self.counts is None:
            return f"example {row}{' of the first batch' if self.is_batch else ''}"
        ends = np.cumsum(self.counts)
        member = int(np.searchsorted(ends, row, side="right"))
        return f"example {row - int(ends[member] - self.counts[member])} of member {member}"

    def holder(self, row: int, label: int) -> str:
        """Return the path of the array that has this label in this example, if one alone has."""
        found = [
            path
            for path, x in zip(self.paths, self.leaves, strict=True)
            if not is_ragged(x) and x.ndim and (read(x[row]) == label).any()
        ]
        return found[0] if len(found) == 1 else self.argument


def _no_class(there: _Data, found: Classes, start: int, place: list[int], label: int) -> ValueError:
    """Return the error for a label at this place of the target of the batch that begins there."""
    shape = found.target.shape
    path, where = there.argument, "a batch"
    if shape and (there.is_batch or shape[0] == there.size):
        row = start + place[0]
        path, where = there.holder(row, label), there.example(row)
        where += f", at {place[1:]} in it" if place[1:] else ""
    return ValueError(
        f"fit: {path} has the class {label} in {where}, and {found.caller} got {found.count} "
        f"classes, which are numbered from 0 to {found.count - 1}. Number the classes from 0, "
        f"labels = np.unique(labels, return_inverse=True)[1], or give the model as many outputs as "
        f"there are classes; what is not to count is {found.ignore_index} (ignore_index)"
    )


def _first_member(pack: Pack) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of the first member, by name, and its own arguments of the loss."""
    rows = pack.rows
    own = {n: x[0] for n, x in {**rows.own, **rows.kept}.items()}
    return {**own, **pack.shared, **pack.fixed}, {n: x[0] for n, x in rows.extra.items()}


def _wrong(found: Classes) -> tuple[Any, Any, Any]:
    """Say whether a target is no class, and the place and the value of the first that is none."""
    t = found.target.reshape(-1)
    outside = snp.logical_or(snp.less(t, 0), snp.greater_equal(t, found.count))
    wrong = snp.logical_and(outside, snp.not_equal(t, found.ignore_index))
    if not t.size:
        return snp.any(wrong), snp.int32(0), snp.int32(0)
    at = snp.argmax(wrong)
    return snp.any(wrong), at, t[at]


def _not_finite(x: Array) -> tuple[int, tuple[int, ...], Any] | None:
    """Return the example, the place in it and the value of the first number that is not finite."""
    if not is_inexact(x.dtype) or not x.size:
        return None
    flat = read(x).reshape(-1)
    wide = np.complex128 if flat.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            # The sum of finite numbers is, in 64 bits, unless they are 64 bits wide themselves.
            if np.isfinite(block.sum(dtype=wide)):
                continue
            wrong = np.flatnonzero(~np.isfinite(block))
            if len(wrong):
                place = tuple(map(int, np.unravel_index(start + wrong[0], x.shape)))
                return place[0] if place else 0, place[1:], block[wrong[0]].item()
    return None
