"""``TrainState``: all that training has reached, as one tree of arrays.

The members of an architecture that are trained together are a *pack*. Members that have stopped
leave it for another, which is not run.

What each member has of its own, in arguments and in results.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

import stretto.numpy as snp
from stretto import distributed
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import brief, shown
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.ensemble.groups import Group, M_co, at_places, with_fields
from stretto.ensemble.snapshots import Snapshots, SnapshotState

if TYPE_CHECKING:
    from stretto._engine.core.mesh import Mesh
    from stretto.ensemble.ensemble import Ensemble


def read(x: ArrayLike) -> np.ndarray:
    """Return the array, put together from the processes that have parts of it.

    All of these have to call it, in the same order.
    """
    there: Any = x
    if getattr(there, "is_fully_addressable", True) or there.is_fully_replicated:
        return np.asarray(x)
    return distributed.process_allgather(x)


def same_everywhere(mesh: Mesh | None, number: int, what: str) -> None:
    """Raise ``ValueError`` unless all processes of a mesh have the same number."""
    if mesh is None or not mesh.is_multi_process:
        return
    numbers = distributed.process_allgather(np.int32(number)).tolist()
    if len(set(numbers)) > 1:
        raise ValueError(
            f"fit: the processes must go on from the same place, and {what} is {numbers} in them, "
            f"in order: see that all of them can read the same files, and that these are whole"
        )


_STATIC = {"static": True}


@brief
@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Best:
    """The memory of early stopping, for each member."""

    score: Any
    """The best so far; infinite before the first."""
    waited: Any
    """The number of evaluations since then: int32."""
    own: dict[str, Any]
    """The arrays of that time, by name: what was trained, and buffers."""


@brief
@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rows:
    """All that each member of a pack has of its own; all arrays have the members along axis 0."""

    number: Any
    """Its place in the ensemble: int32."""
    own: dict[str, Any]
    """The arrays that are trained, by dotted name."""
    kept: dict[str, Any]
    """The arrays that are not trained: buffers, and what is frozen."""
    optimizer: Any
    """The state of its optimizer, which means nothing once it has stopped; ``None`` where it trains
    nothing of its own."""
    extra: dict[str, Any]
    """Its own arguments of the loss."""
    active: Any
    """True while it trains on: bool."""
    failed: Any
    """The number of steps it had done when it diverged, or -1: int32."""
    fault: Any
    """The part that did: a place among those trained, or their number for the loss: int32."""
    stopped: Any
    """The number of steps after which it was stopped, or -1: int32."""
    best: Best | None
    """``None`` without early stopping."""
    snapshots: Any = None
    """A ``SnapshotState``: how many it has, int32, and by name the arrays of the last, of shape
    (members, size, ...); ``None`` where none are collected."""


@brief
@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Pack:
    """Members of one architecture that are trained together."""

    group: Group = dataclasses.field(metadata=_STATIC)
    """The architecture; its places are those of the members of this pack."""
    rows: Rows
    shared: dict[str, Any]
    """The arrays that all share and that are trained, by name."""
    fixed: dict[str, Any]
    """The arrays that all share and that stay as they are."""
    shared_optimizer: Any
    step: Any
    """The number of steps done: int32."""

    @property
    def trained(self) -> list[str]:
        """The names of what is trained, in the order of the architecture."""
        return [n for n, t in zip(self.group.names, self.group.trained, strict=True) if t]

    def arrays(self, own: Mapping[str, Any] | None = None) -> list[Any]:
        """List all arrays in the architecture's order; ``own`` has others in place of the last."""
        by_name = {**self.rows.own, **self.rows.kept, **self.shared, **self.fixed, **(own or {})}
        return [by_name[n] for n in self.group.names]

    def replace(self, **fields: Any) -> Pack:
        """Return a pack with other fields; those of ``rows`` by their own names."""
        inside = {n: x for n, x in fields.items() if n in _ROW_FIELDS}
        outside = {n: x for n, x in fields.items() if n not in _ROW_FIELDS}
        rows = dataclasses.replace(outside.pop("rows", self.rows), **inside)
        return dataclasses.replace(self, rows=rows, **outside)


_ROW_FIELDS = {f.name for f in dataclasses.fields(Rows)}


@shown("stretto.ensemble.cards", "card_of_state", "state_text")
@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class TrainState(Generic[M_co]):
    """All that training has reached: a tree, which can be saved and resumed from.

    ``state.ensemble`` is the ensemble as it stands, ``state.best`` that of each member's best
    evaluation.
    """

    packs: tuple[Pack, ...]
    """One for each architecture: the members that are run."""
    finished: tuple[tuple[Pack, ...], ...]
    """The members of each architecture that no longer run, without what all share."""
    key: Any
    """The key that the order of the data, and what layers draw, come from."""
    step: int = 0
    """The number of steps done."""
    epoch: int = 0
    """The number of epochs done."""
    first: int = 0
    """The number of steps that were done when this epoch began."""
    sums: tuple[Any, ...] = ()
    """The sums of each architecture's losses since the last entry of the history."""
    going: tuple[bool, ...] = ()
    """True for each architecture of which a member trained on at the history's last entry."""
    history: dict[str, Any] = dataclasses.field(default_factory=dict)
    """``step`` and ``epoch`` (entries), and all else by name: (entries, members)."""
    ensemble_class: Any = dataclasses.field(default=None, metadata=_STATIC)
    """The class of the ensemble."""
    layout: Any = dataclasses.field(default=None, metadata=_STATIC)
    """All of the ensemble but its arrays."""

    def replace(self, **fields: Any) -> TrainState[M_co]:
        """Return a state with other values of some fields.

        Args:
            **fields: by name.

        Returns:
            The new state.
        """
        return dataclasses.replace(self, **fields)

    @property
    def size(self) -> int:
        """The number of members."""
        return sum(p.group.size for p in self.all_packs())

    @property
    def ensemble(self) -> Ensemble[M_co]:
        """The ensemble as it stands."""
        return self._made([w.arrays() for w in self._whole()])

    @property
    def best(self) -> Ensemble[M_co]:
        """The ensemble with each member as it was at its best evaluation.

        As it stands, without early stopping.
        """
        return self._made([w.arrays(w.rows.best and w.rows.best.own) for w in self._whole()])

    def snapshots(self, without: Collection[int] = ()) -> Ensemble[M_co] | None:
        """Return the snapshots of all members as one ensemble, in evaluation mode.

        Those of the oldest cycle come first, each time in the order of the members. A member that
        stopped has none of later cycles. Shared parts that were trained are each snapshot's own.

        Args:
            without: the members to leave out.

        Returns:
            The ensemble; ``None`` if there are no snapshots.
        """
        whole = [pack for pack in self._whole() if pack.rows.snapshots is not None]
        found = []  # the cycle, the member, and where its arrays are
        for g, pack in enumerate(whole):
            size = _room_of(pack)
            for row, count in enumerate(read(pack.rows.snapshots.count).tolist()):
                place = pack.group.places[row]
                kept = range(max(0, count - size), count) if place not in without else ()
                found += [(cycle, place, g, row * size + cycle % size) for cycle in kept]
        if not found:
            return None
        found.sort()
        parts = []
        for g, pack in enumerate(whole):
            places = [i for i, at in enumerate(found) if at[2] == g]
            if not places:
                continue
            at = np.asarray([found[i][3] for i in places], np.int32)
            taken = {
                n: snp.take(x.reshape(-1, *x.shape[2:]), at, 0)
                for n, x in pack.rows.snapshots.stacked.items()
            }
            group = with_fields(
                at_places(pack.group, places),
                shared=tuple([n in pack.fixed for n in pack.group.names]),
            )
            parts.append((group, [{**taken, **pack.fixed}[n] for n in group.names]))
        parts.sort(key=lambda part: part[0].places[0])
        layout = self.layout.of(group for group, _ in parts)
        return self.ensemble_class._of(layout, [column for _, column in parts]).eval()

    def draws(
        self, draw: Callable[[Pack], dict[str, Array]], count: int, without: Collection[int]
    ) -> Ensemble[M_co] | None:
        """Return draws of the weights of all members as one ensemble, in evaluation mode.

        The first draws of all members come first, in their order, then their second.

        Args:
            draw: gives a pack's draws by name, of shape (members, ``count``, ...).
            count: how many draws of each member.
            without: the members to leave out.

        Returns:
            The ensemble; ``None`` if there are no members.
        """

        def of_pack(pack: Pack) -> Pack:
            same = {
                n: snp.broadcast_to(x[:, None], (x.shape[0], count, *x.shape[1:]))
                for n, x in _of_now(pack).items()
            }
            counts = snp.full(pack.group.size, count, np.int32)
            return pack.replace(snapshots=SnapshotState(counts, same | draw(pack)))

        packs = tuple([of_pack(pack) for pack in self._whole()])
        return self.replace(packs=packs, finished=((),) * len(packs)).snapshots(without)

    def _made(self, arrays: list[Any]) -> Tree:
        return self.ensemble_class._of(self.layout, arrays)

    def _whole(self) -> list[Pack]:
        """Return one pack for each architecture, of all its members in their order."""
        return [unite_packs((p, *f)) for p, f in zip(self.packs, self.finished, strict=True)]

    def all_packs(self) -> Iterable[Pack]:
        """Go through the packs that run, then those that no longer do.

        Returns:
            The packs.
        """
        yield from self.packs
        for packs in self.finished:
            yield from packs

    def each(self, name: str) -> np.ndarray:
        """Return a field of ``Rows``, such as ``"active"``, for all members in their order.

        Args:
            name: the field.

        Returns:
            (members,).
        """
        result: Any = None
        for pack in self.all_packs():
            values = read(getattr(pack.rows, name))
            if result is None:
                result = np.zeros(self.size, values.dtype)
            result[list(pack.group.places)] = values
        return result


def _room_of(pack: Pack) -> int:
    """Return how many snapshots of a member a pack has room for."""
    return next(iter(pack.rows.snapshots.stacked.values())).shape[1]


def _of_now(pack: Pack) -> dict[str, Array]:
    """Return what a snapshot of each member has: all but what members share and do not train."""
    size = pack.group.size
    shared = {n: snp.broadcast_to(x, (size, *x.shape)) for n, x in pack.shared.items()}
    return {**pack.rows.own, **pack.rows.kept, **shared}


def with_room(state: TrainState[M_co], snapshots: Snapshots | None) -> TrainState[M_co]:
    """Return the state with room for the snapshots of each member, if there are to be any."""
    if snapshots is None:
        return state

    def of_pack(pack: Pack) -> Pack:
        room = {
            n: snp.zeros((x.shape[0], snapshots.size, *x.shape[1:]), x.dtype)
            for n, x in _of_now(pack).items()
        }
        return pack.replace(snapshots=SnapshotState(snp.zeros(pack.group.size, np.int32), room))

    return state.replace(packs=tuple([of_pack(pack) for pack in state.packs]))


def take_snapshots(pack: Pack) -> Pack:
    """Return the pack with a snapshot of each member that trains on, in place of its oldest."""
    before, size = pack.rows.snapshots, _room_of(pack)
    place = (before.count % size)[:, None]
    here = snp.logical_and(snp.arange(size) == place, pack.rows.active[:, None])
    stacked = {
        n: snp.where(here.reshape(*here.shape, *[1] * (x.ndim - 1)), x[:, None], before.stacked[n])
        for n, x in _of_now(pack).items()
    }
    count = before.count + pack.rows.active.astype(np.int32)
    return pack.replace(snapshots=SnapshotState(count, stacked))


def _with_places(group: Group, places: Iterable[int]) -> Group:
    """Return the architecture, of members at other places."""
    return dataclasses.replace(group, places=tuple(places))


def divide_pack(pack: Pack, running: Sequence[bool]) -> tuple[Pack, Pack]:
    """Divide a pack into the members that still run, and the others, without what it has once."""
    parts = []
    for runs in (True, False):
        rows = np.flatnonzero(np.asarray(running) == runs).astype(np.int32)
        group = _with_places(pack.group, [pack.group.places[r] for r in rows])
        own = tree.map(lambda x, rows=rows: snp.take(x, rows, 0), pack.rows)
        parts.append(dataclasses.replace(pack, group=group, rows=own))
    active, stopped = parts
    return active, stopped.replace(shared={}, fixed={}, shared_optimizer=None, step=None)


def unite_packs(packs: Sequence[Pack]) -> Pack:
    """Join packs of one architecture, members in their order; what they share is the first's."""
    first = packs[0]
    if len(packs) == 1:
        return first
    places = np.concatenate([p.group.places for p in packs])
    order = np.argsort(places)
    rows = tree.map(
        lambda *xs: snp.take(snp.concatenate(xs, 0), order.astype(np.int32), 0),
        *[p.rows for p in packs],
    )
    return first.replace(group=_with_places(first.group, places[order].tolist()), rows=rows)


def is_row(x: object) -> bool:
    """Say whether a hyperparameter has an entry for each member."""
    return isinstance(x, (list, tuple)) or (isinstance(x, (Value, np.ndarray)) and bool(x.ndim))


def of_each(
    arguments: Mapping[str, Any], size: int, argument: str, every: bool = False
) -> dict[str, Array]:
    """Return the arguments that have an entry for each member, as arrays."""
    columns = {}
    for name, x in arguments.items():
        if not (every or is_row(x)):
            continue
        value = as_value(np.asarray(x) if isinstance(x, (list, tuple)) else x, "fit", name)
        if not value.ndim or value.shape[0] != size:
            raise ValueError(
                f"fit: {argument}[{name!r}] must have an entry for each of {size} members along "
                f"axis 0, got {value.type}"
            )
        columns[name] = value
    return columns


def in_places(
    packs: Sequence[Pack], results: Sequence[Mapping[str, Array]], size: int
) -> dict[str, Array]:
    """Join by name what each pack gives, in the order of all members."""
    if len(packs) == 1 and packs[0].group.size == size:
        return dict(results[0])
    out: dict[str, Any] = {}
    for pack, values in zip(packs, results, strict=True):
        for name, x in values.items():
            here = out.get(name, np.full(size, np.nan, np.float32))
            here[list(pack.group.places)] = read(x)
            out[name] = here
    return {name: snp.asarray(x) for name, x in out.items()}
