"""One step of training for all members of a pack: losses, gradients, optimizer, on which devices.

These functions are traced by ``trainer``. The user's loss of one member has a value, metrics
beside it, and buffers that it leaves. A member that has stopped, or whose loss, gradients or next
parameters are not finite, keeps what it has, bit for bit.

States of optimizers, and parameters, can be split over the axis of a mesh that also splits the
data. Every device would have them all otherwise: the states of Adam are twice as large as the
parameters. Split, each device updates its part of every array, and the parts of all are put
together: before the next step, or after this one. An array is split along its first axis that can
be split evenly; one without such an axis stays whole. Source: Rajbhandari et al., "ZeRO: Memory
optimizations toward training trillion parameter models", 2020 (stages 1 and 3).
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine import api
from stretto._engine.api.autodiff.derivatives import value_and_grad
from stretto._engine.api.graph import ShapeDtypeStruct, make_graph
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.api.varying_sizes.sizes import equal_lengths, share_lengths
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.program import Atom, Program
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.higher_order.family import Call
from stretto._engine.ops import collective
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim
from stretto.ensemble.groups import Group, call_module
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.training.train_state import Pack, Rows, TrainState
from stretto.ensemble.training.training_data import rows_of
from stretto.nn.module import Module
from stretto.nn.updating import updates_of
from stretto.optim.base import (
    GradientTransformationExtraArgs,
    VariationalTransformation,
    apply_updates,
)
from stretto.random.keys import fold_in
from stretto.random.streams import keys

COUNT = "number of steps"
"""The name of the number of steps among the sums of metrics."""


def arguments_of(batch: Tree) -> tuple[Any, ...]:
    """Return what a batch gives to the loss: the parts of a tuple or list, else itself."""
    return tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)


def named_of(f: Callable[..., Any], extra: Mapping[str, Any], arguments: int) -> dict[str, Any]:
    """Return the members' own values that a metric takes by name, beside so many arguments.

    A loss gets all; a metric may be anybody's function, and gets what its signature names.
    """
    if not extra:
        return {}
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return {}
    placed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = {p.name for p in placed[:arguments]}
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return {n: x for n, x in extra.items() if n not in taken}
    named = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    return {n: x for n, x in extra.items() if n in named - taken}


def loss_of(
    loss: Callable[..., Any],
    group: Group,
    by_name: Mapping[str, Any],
    batch: Tree,
    extra: Mapping[str, Any],
    key: Key,
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Return the loss of one member, the metrics, and all its arrays after the call, by name.

    Layers draw from ``key``, and buffers may be updated. Raises ``ValueError`` where the loss is no
    scalar, or a buffer that members share would be updated.
    """
    arrays = [by_name[n] for n in group.names]
    member = group.of(arrays)
    with (
        keys(key),
        updates_of(_modules(member if group.function is call_module else member.params)),
    ):
        out = loss(member, *arguments_of(batch), **extra)
    value, metrics = out, {}
    if isinstance(out, tuple) and len(out) == 2 and isinstance(out[1], dict):
        value, metrics = out
    caller = f"fit: {name_of(loss)}"
    value = scalar(value, caller, "gives", real=True)
    for name in {"loss", COUNT} & metrics.keys():
        raise ValueError(f"{caller} gives a metric called {name!r}, which is a name of our own")
    metrics = {n: scalar(x, caller, f"gives the metric {n!r} as") for n, x in metrics.items()}
    after = dict(zip(group.names, group.leaves_of(member), strict=True))
    for name, shared, before in zip(group.names, group.shared, arrays, strict=True):
        if shared and after[name] is not before:
            raise ValueError(
                f"{caller} updates {name}, which the members share, each in its own way; leave "
                f"it out of shared=, or put that layer in evaluation mode"
            )
    return value, metrics, after


def scalar(x: ArrayLike, caller: str, gives: str, real: bool = False) -> Array:
    """Return the value, which must be one number for a member."""
    if isinstance(x, (tuple, list, dict)) or x is None:
        raise ValueError(
            f"{caller} {gives} a {type(x).__name__}; expected a scalar for each member, or a "
            f"pair of a scalar and a dictionary of metrics"
        )
    value = as_value(x, caller, "the result")
    if value.ndim:
        raise ValueError(
            f"{caller} {gives} {value.type} for each member, expected a scalar: take the mean over "
            f"the batch"
        )
    if real and kind_of(value.dtype) != "float":
        raise ValueError(f"{caller} {gives} {value.type}, expected a float, which has a gradient")
    return value


def _modules(member: Tree) -> list[Module]:
    """Return all modules in a member."""
    nodes = tree.leaves(member, lambda x: isinstance(x, Module))
    return [m for node in nodes if isinstance(node, Module) for m in node.modules()]


def in_mode(group: Group, training: bool) -> Tree:
    """Return the structure of a member with all modules in train mode, or in evaluation mode."""
    member = tree.unflatten(group.structure, range(group.structure.num_leaves))
    for module in _modules(member):
        module.training = training
    return tree.structure(member)


def trains(group: Group) -> bool:
    """Say whether all modules of a member can be in train mode; some that were imported cannot."""
    modules = _modules(tree.unflatten(group.structure, group.names))
    return not [0 for m in modules if getattr(m, "training_program", m) is None]


def modes_of(group: Group) -> list[bool]:
    """Say whether each module of a member is in train mode."""
    return [m.training for m in _modules(tree.unflatten(group.structure, group.names))]


_NOISE, _WEIGHTS, OPTIMIZER_STREAM = 3, 4, 5
"""Streams of a training's key: of layers, of weights drawn, of optimizers; those of DataOrder are 0
to 2."""
_INT32 = np.dtype(np.int32)


@dataclasses.dataclass(frozen=True)
class Rules:
    """All that a step needs besides arrays."""

    loss: Callable[..., Any]
    own: Any
    """The transformation of gradients of all members of a pack; ``None`` if they have none."""
    shared: Any
    """The transformation of the gradients of what they share."""
    chunk_size: int | str | None
    check: bool
    """True to check that the values of members are finite."""
    over: OverMesh | None
    """The mesh, of one of whose devices these are the members; ``None`` if they are all."""
    shapes: Mapping[str, Sequence[int]]
    """The whole shapes of one member's trained arrays, by name."""


def settings_of(options: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """Return the settings that an ensemble is run under."""
    return config(**options) if options else nullcontext()


def noise_key(key: Key, step: ArrayLike, member: ArrayLike) -> Key:
    """Return the key that layers of this member draw from at this step, counted from 0."""
    return fold_in(fold_in(fold_in(key, _NOISE), step), member)


def batch_at(
    data: Tree, order: Array, start: ArrayLike, size: int, counts: Array | None = None
) -> tuple[Tree, Array | None]:
    """Take ``size`` examples from place ``start`` of an order, for each member that has its own.

    With ``counts``, how many each member sees in all, each array is ragged: of the examples that
    are left for each, one at least. Second, which members had any left; ``None`` for all.
    """
    picked = dynamic_slice_in_dim(order, start, size, order.ndim - 1)
    batch = rows_of(data, picked)
    if counts is None:
        return batch, None
    left = snp.clip(counts - start, 0, size)
    some = snp.maximum(left, 1)
    return tree.map(lambda x: Ragged._of(x, some, size, True, 1), batch), left > 0


def advance_pack(
    rules: Rules, pack: Pack, batch: Tree, each: bool, key: Key, some: Array | None = None
) -> tuple[Pack, dict[str, Array], Array]:
    """Return the pack after a step, the loss and metrics of each member, and which of them took it.

    With ``each`` the arrays of the batch have the members along axis 0. Over a mesh these are the
    members and the part of the batch of one device. ``some`` says which members have a batch; the
    others rest.
    """
    rows, over = pack.rows, rules.over
    running = rows.active if some is None else snp.logical_and(rows.active, some)
    whole = pack
    if over is not None and over.split == "parameters":
        whole = pack.replace(own=gather_parts(over, rows.own, rules.shapes))
    options: dict[str, Any] = {}
    if isinstance(rules.own, VariationalTransformation):  # the gradient is that at a draw
        drawn = rules.own.sample(rows.optimizer, rows.own, _keys_of_weights(pack, key))
        whole, options = whole.replace(own=drawn), {"at": drawn}
    losses, metrics, after, grads, shared_grads = _gradients(
        rules, whole, batch, each, key, running
    )
    own, optimizer = rows.own, rows.optimizer
    if rows.own:
        own, optimizer, grads = _update_own(rules, pack, grads, losses, options)
    shared, shared_optimizer = pack.shared, pack.shared_optimizer
    if pack.shared:
        count = snp.maximum(everywhere(over, running.sum()), 1)
        shared_grads = tree.map(lambda g: everywhere(over, g), shared_grads)
        mean = tree.map(lambda g: g / count, shared_grads)
        value = everywhere(over, snp.where(running, losses, 0).sum()) / count
        updates, shared_optimizer = rules.shared.update(mean, shared_optimizer, shared, value=value)
        shared = apply_updates(shared, updates)
    moves, active, failed, fault = running, rows.active, rows.failed, rows.fault
    if rules.check:
        finite, first = _finite(pack, running, losses, (grads, own), (shared_grads, shared), over)
        moves = snp.logical_and(running, finite)
        diverged = snp.logical_and(running, snp.logical_not(finite))
        # Who does not move has diverged, or rests.
        active = moves if some is None else snp.logical_and(active, snp.logical_not(diverged))
        failed = snp.where(diverged, pack.step, failed)
        fault = snp.where(diverged, first, fault)
    if pack.shared:
        intact = everywhere(over, moves.sum()) > 0
        if rules.check:
            intact = snp.logical_and(intact, _all_finite((shared_grads, shared)))
        shared, shared_optimizer = tree.map(
            lambda new, old: snp.where(intact, new, old),
            (shared, shared_optimizer),
            (pack.shared, pack.shared_optimizer),
        )
    own, kept = _chosen(moves, (own, after), (rows.own, rows.kept))
    if some is not None:  # who rests goes on with it; who has stopped never does
        optimizer = _chosen(moves, optimizer, rows.optimizer)
    moved = pack.replace(
        own=own,
        kept=kept,
        optimizer=optimizer,
        active=active,
        failed=failed,
        fault=fault,
        shared=shared,
        shared_optimizer=shared_optimizer,
        step=pack.step + 1,
    )
    return moved, {"loss": losses, **metrics}, moves


def _keys_of_weights(pack: Pack, key: Key) -> Array:
    """Return the key that each member draws its weights from at this step."""
    of_step = fold_in(fold_in(key, _WEIGHTS), pack.step)
    return vmap(lambda number: fold_in(of_step, number))(pack.rows.number)


def _update_own(
    rules: Rules, pack: Pack, grads: Tree, losses: Array, options: Mapping[str, Any]
) -> tuple[Tree, Tree, Tree]:
    """Step what members have of their own, and its optimizer; return its gradients as well.

    Where a device has a part of the optimizer alone, it updates that part of each array.
    """
    over, own, optimizer = rules.over, pack.rows.own, pack.rows.optimizer
    split = None if over is None else over.split
    if over is None or split is None:
        updates, optimizer = rules.own.update(grads, optimizer, own, value=losses, **options)
        return apply_updates(own, updates), optimizer, grads
    of_device = functools.partial(part_of, over, part=part_of_data(over))
    own = own if split == "parameters" else tree.map(of_device, own)
    parts = tree.map(of_device, grads)
    updates, optimizer = rules.own.update(parts, optimizer, own, value=losses)
    own = apply_updates(own, updates)
    if split == "parameters":
        return own, optimizer, parts
    return gather_parts(over, own, rules.shapes), optimizer, grads


def _gradients(
    rules: Rules, pack: Pack, batch: Tree, each: bool, key: Key, running: Array
) -> tuple[Any, ...]:
    """Return losses, metrics, buffers, and the gradients of own and of shared parts."""
    rows, over = pack.rows, rules.over
    part = part_of_data(over)
    updated: set[str] = set()
    # A ragged array is mapped as such where each member gets one array of it; else it is a tree.
    arrays, structure = tree.flatten(batch, lambda x: each and is_ragged(x) and x.lengths.ndim == 1)
    pairs = equal_lengths(structure, arrays)

    def of_one(
        own: Tree, shared: Tree, kept: Tree, number: Array, extra: Tree, arrays: list[Array]
    ) -> tuple[Array, Tree]:
        batch = tree.unflatten(structure, share_lengths(arrays, pairs))
        by_name = {**own, **shared, **kept, **pack.fixed}
        noise = noise_key(key, pack.step, number)
        if over is not None and over.data_parts > 1:
            noise = fold_in(noise, part)
        value, metrics, after = loss_of(rules.loss, pack.group, by_name, batch, extra, noise)
        updated.update([n for n in kept if after[n] is not kept[n]])
        return value, (metrics, {n: after[n] for n in kept})

    axes = (0, None, 0, 0, 0, 0 if each else None)
    arguments = (rows.kept, rows.number, rows.extra, arrays)
    size = rows.number.shape[0]
    options: dict[str, Any] = {"axis_size": size, "chunk_size": rules.chunk_size}
    if not pack.shared:
        both = value_and_grad(of_one, has_aux=True)
        (losses, (metrics, after)), grads = vmap(both, axes, **options)(rows.own, {}, *arguments)
        return _over_data(over, (losses, metrics, grads, {}), after, updated)

    # The sum over members, so that the backward pass also goes through what they share only once.
    def total(own: Tree, shared: Tree) -> tuple[Array, Tree]:
        losses, rest = vmap(of_one, axes, **options)(own, shared, *arguments)
        return snp.where(running, losses, 0).sum(), (losses, rest)

    both = value_and_grad(total, argnums=(0, 1), has_aux=True)
    (_, (losses, (metrics, after))), (grads, shared_grads) = both(rows.own, pack.shared)
    return _over_data(over, (losses, metrics, grads, shared_grads), after, updated)


def _over_data(
    over: OverMesh | None, values: tuple[Any, ...], after: dict[str, Array], updated: set[str]
) -> tuple[Any, ...]:
    """Take means over the parts of a batch: of losses, metrics, buffers, and both gradients."""
    if over is None or over.data is None:
        losses, metrics, grads, shared_grads = values
        return losses, metrics, after, grads, shared_grads
    inexact = [n for n in updated if kind_of(after[n].dtype) in ("float", "complex")]
    (losses, metrics, grads, shared_grads), means = over_data(
        over, (values, {n: after[n] for n in inexact})
    )
    return losses, metrics, {**after, **means}, grads, shared_grads


def _finite(
    pack: Pack, running: Array, losses: Array, own: Tree, shared: Tree, over: OverMesh | None
) -> tuple[Array, Array]:
    """Say which members are finite, and the first part that is not, as a place among those trained.

    Where what they share is not finite, though no member's own part is to blame, no member is.
    """
    names = pack.trained
    flags = [snp.isfinite(losses)]
    places = [len(names)]
    for place, name in enumerate(names):
        if name in pack.rows.own:
            flags.append(_finite_rows(*[x[name] for x in own]))
            places.append(place)
    finite = of_all_parts(over, snp.stack(flags))
    # Of the flags that are false, that of the first part; the loss comes last.
    at = np.asarray(places, np.int32)[:, None]
    first = snp.where(finite, np.int32(len(names)), at).min(axis=0)
    good = finite.all(axis=0)
    if pack.shared:
        shared_places = [i for i, n in enumerate(names) if n in pack.shared]
        whole = snp.stack([_all_finite([x[names[i]] for x in shared]) for i in shared_places])
        to_blame = snp.logical_and(running, snp.logical_not(good))
        blameless = everywhere(over, to_blame.sum()) == 0
        shared_only = snp.logical_and(blameless, snp.logical_not(whole.all()))
        part = snp.where(whole, np.int32(len(names)), np.asarray(shared_places, np.int32)).min()
        good = snp.logical_and(good, snp.logical_not(shared_only))
        first = snp.where(shared_only, part, first)
    return good, first.astype(_INT32)


def _finite_rows(*arrays: Any) -> Array:
    """Say whether all elements of each member's part of an array, or of two's sum, are finite."""
    # They are if their sum is, scaled so that it cannot overflow: that costs less than to test each
    # element, and one pass over both arrays less than two passes.
    total = functools.reduce(lambda x, y: x + y, arrays)
    count = max(1, math.prod(total.shape[1:]))
    scaled = total * 2.0 ** -math.ceil(math.log2(count))
    return snp.isfinite(scaled.sum(axis=tuple(range(1, total.ndim))))


def _all_finite(arrays: Tree) -> Array:
    return snp.stack([snp.isfinite(x).all() for x in tree.leaves(arrays)]).all()


def _chosen(moves: Array, new: Tree, old: Tree) -> Tree:
    """Return the new rows of the members that took the step, the old ones of the others."""

    def one(x: Array, y: Array) -> Array:
        return snp.where(moves.reshape(-1, *[1] * (x.ndim - 1)), x, y)

    return tree.map(one, new, old)


M = TypeVar("M")

_SAME = PartitionSpec()


def _axis(shape: Sequence[int], parts: int) -> int | None:
    """Return the first axis after that of the members that can be split so, or ``None``."""
    if not math.prod(shape):
        return None  # nothing to split
    return next((i for i, n in enumerate(shape) if i and n % parts == 0), None)


def spec_of(over: OverMesh, x: ArrayLike) -> PartitionSpec:
    """Say how an array with the members along axis 0 is split, over both axes of the mesh."""
    axis = _axis(np.shape(x), over.data_parts)
    if axis is None:
        return over.rows
    return PartitionSpec(over.members, *[None] * (axis - 1), over.data)


def part_of(over: OverMesh, x: Array, part: Array | int) -> Array:
    """Return the part of a whole array that one device has."""
    axis = _axis(x.shape, over.data_parts)
    if axis is None:
        return x
    size = x.shape[axis] // over.data_parts
    return dynamic_slice_in_dim(x, part * size, size, axis)


def gather_parts(
    over: OverMesh, parts: Mapping[str, Array], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Array]:
    """Put arrays of these shapes together from the parts of all devices: a collective for a dtype.

    Args:
        over: the mesh, and what splits what.
        parts: by name, those of this device.
        shapes: by name, those of the whole arrays of one member.
    """
    whole = dict(parts)
    split = [n for n in parts if tuple(shapes[n]) != parts[n].shape[1:]]
    for dtype in sorted({parts[n].dtype for n in split}, key=str):
        names = [n for n in split if parts[n].dtype == dtype]
        flat = snp.concatenate([parts[n].reshape(-1) for n in names])
        rows = collective.functions.all_gather(flat, over.data)
        start = 0
        for n in names:
            shape = parts[n].shape
            full = (shape[0], *shapes[n])
            axis = next(i for i, size in enumerate(shape) if size != full[i])
            size = math.prod(shape)
            of_all = rows[:, start : start + size].reshape(len(rows), *shape)
            whole[n] = snp.moveaxis(of_all, 0, axis).reshape(full)
            start += size
    return whole


def check_elementwise(
    optimizer: GradientTransformationExtraArgs, own: Mapping[str, Any], state: Tree, losses: Tree
) -> None:
    """Raise ``ValueError`` for an optimizer that needs whole arrays.

    Args:
        optimizer: the transformation of all members.
        own: what it updates, or the types of that.
        state: its state, or the types of that.
        losses: those of the members, or their type.
    """

    def update(grads: Tree, state: Tree, own: Tree, losses: Array) -> Tree:
        return optimizer.update(grads, state, own, value=losses)

    types = tree.map(lambda x: ShapeDtypeStruct(np.shape(x), x.dtype), (own, state, own, losses))
    program = make_graph(update)(*types)
    leaves = tree.leaves(types)
    split = [len(x.shape) > 1 for x in leaves]
    _elementwise(program, split)


def _elementwise(program: Program, split: Sequence[bool]) -> list[bool]:
    """Say which outputs come of arrays that are split, by what goes element by element alone."""
    known: dict[Atom, bool] = dict(zip(program.inputs, split, strict=True))
    for e in program.equations:
        primitive: Any = e.primitive
        inputs = [known.get(a, False) for a in e.inputs]
        outs = [any(inputs)] * len(e.outputs)
        if type(primitive) is Call:
            outs = _elementwise(primitive.program, inputs)
        elif any(inputs) and not isinstance(primitive, (Elementwise, Select, ConvertElementType)):
            place = f", {e.position}" if e.position else ""
            raise ValueError(
                f"fit: the ensemble's mesh splits what the optimizer works on, which must go "
                f"element by element, and this one needs whole arrays: {primitive.name}{place}; "
                f"leave out split= of Ensemble.shard, or use an optimizer such as adamw"
            )
        known.update(zip(e.outputs, outs, strict=True))
    return [known.get(a, False) for a in program.outputs]


def _specs(over: OverMesh, pack: Pack) -> Pack:
    """Say how a pack is split: a prefix of it."""
    rows: Any = over.rows
    if over.split:
        spec = functools.partial(spec_of, over)
        own = tree.map(spec, pack.rows.own) if over.split == "parameters" else rows
        optimizer = tree.map(spec, pack.rows.optimizer)
        rows = Rows(rows, own, rows, optimizer, rows, rows, rows, rows, rows, rows, rows)
    same: Any = _SAME
    return Pack(pack.group, rows, same, same, same, same)


def _put_pack(over: OverMesh, pack: Pack) -> Pack:
    """Put the pack's members on the devices, as many on each, and what they share on all."""
    named = functools.partial(NamedSharding, over.mesh)
    where = tree.map(named, _specs(over, pack), is_leaf=lambda x: isinstance(x, PartitionSpec))
    return api.sharding.placement.device_put(pack, where)


def put_state(state: TrainState[M]) -> TrainState[M]:
    """Put what a step takes of the state on the devices of the ensemble's mesh, if it has one."""
    over = state.layout.over
    if over is None:
        return state
    over.check([pack.group for pack in state.packs], "fit")
    return state.replace(
        packs=tuple([_put_pack(over, pack) for pack in state.packs]),
        sums=over.put(state.sums, over.rows),
        key=over.put(state.key, _SAME),
    )


def check_examples(over: OverMesh | None, size: int, caller: str) -> None:
    """Raise ``ValueError`` for a batch of so many examples that cannot be split evenly."""
    if over is not None and size % over.data_parts:
        raise ValueError(
            f"{caller}: a batch has {size} examples, and the axis {over.data!r} of {over.mesh} "
            f"splits it into {over.data_parts} parts, which must be of one size: give a batch_size "
            f"that {over.data_parts} divides"
        )


def with_company(over: OverMesh | None, pack: Pack, running: Sequence[bool]) -> list[bool]:
    """Choose members of a pack to go on computing: those that run, and others to fill the devices.

    Raises ``ValueError`` where others may not be computed beside those that run.
    """
    chosen, parts = list(running), 1 if over is None else over.parts
    missing = -sum(chosen) % parts
    if missing and pack.shared:
        raise ValueError(
            f"fit: {sum(chosen)} members that train {', '.join(pack.shared)} together are left, "
            f"and cannot be split evenly over {parts} parts of the mesh: train them on_divergence="
            f"'raise', or on a mesh without an axis for members"
        )
    for i, runs in enumerate(running):
        if missing and not runs:
            chosen[i] = True
            missing -= 1
    return chosen


def on_each_device(
    over: OverMesh, step: Callable[..., Any], pack: Pack, *inputs: tuple[Tree, Tree]
) -> Tree:
    """Step each device's part of the pack, and of arrays with a row for each member.

    Args:
        over: the mesh, and what splits what.
        step: a function of the pack and the inputs that returns such a pair.
        pack: the members of an architecture.
        *inputs: trees of arrays, each with how it is split.
    """
    packs = _specs(over, pack)
    return api.sharding.shard_map.shard_map(
        step,
        mesh=over.mesh,
        in_specs=(packs, *[spec for _, spec in inputs]),
        out_specs=(packs, over.rows),
        axis_names=set(over.axes),
    )(pack, *[x for x, _ in inputs])


def everywhere(over: OverMesh | None, x: Array) -> Array:
    """Return the sum over the members of all devices of a sum over those of each."""
    return x if over is None or over.members is None else collective.functions.psum(x, over.members)


def over_data(over: OverMesh | None, x: Tree) -> Tree:
    """Return the mean of each array over the parts of the batch."""
    return x if over is None or over.data is None else collective.functions.pmean(x, over.data)


def of_all_parts(over: OverMesh | None, flags: Array) -> Array:
    """Say which flags are true on every device that has a part of what they are about."""
    if over is None or over.split != "parameters":
        return flags
    return collective.functions.psum(snp.logical_not(flags).astype(np.int32), over.data) == 0


def part_of_data(over: OverMesh | None) -> Array | int:
    """Say which part of the batch this is; 0 where there is one."""
    return 0 if over is None or over.data_parts == 1 else collective.functions.axis_index(over.data)
