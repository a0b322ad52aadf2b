"""The user's data: examples that are kept and drawn from in batches, or batches as they come.

``DataOrder`` says which examples each member sees at which step. The order is a function of a key,
the epoch and the member, and of nothing else, so that training can begin anywhere in it.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.integers import count
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.ops.layout import reshape
from stretto.ensemble.score_arguments import is_table
from stretto.ensemble.training.train_state import read
from stretto.random.discrete_draws import permutation, randint
from stretto.random.keys import fold_in

ORDERS = ("own", "same", "bootstrap", "given")
_INT32 = np.dtype(np.int32)


@dataclasses.dataclass(frozen=True)
class DataOrder:
    """The examples that each member of an ensemble sees, batch after batch.

    Where members have different numbers, an epoch has as many steps as the one with the most needs,
    and a member that has seen all of its own takes no more of them.

    Args:
        examples: how many there are; or, where each member has its own, a tuple with the number of
            each.
        batch_size: examples in a batch.
        order: ``"own"``, each member a shuffle of its own, new at every epoch; ``"same"``, one
            shuffle for all members; ``"bootstrap"``, each member shuffles of a sample of its own,
            drawn once with replacement (Efron, 1979; Breiman, "Bagging predictors", 1996);
            ``"given"``, the examples in the order of the data.
        members: how many there are.
        fraction: the size of a bootstrap sample, relative to ``examples``.
        drop_last: leave out what fills no whole batch (others each time, where it is shuffled);
            otherwise an epoch ends with a smaller batch.

    Raises:
        ValueError: a batch would be larger than an epoch, or an argument is out of range.

    >>> import stretto as st
    >>> order = DataOrder(examples=5, batch_size=2, members=3)
    >>> order.steps, order.indices(st.random.PRNGKey(0), epoch=0).shape
    (2, (2, 3, 2))
    """

    examples: int | tuple[int, ...]
    batch_size: int
    order: str = "own"
    members: int = 1
    fraction: float = 1.0
    drop_last: bool = True

    def __post_init__(self) -> None:
        own = self.examples if isinstance(self.examples, tuple) else None
        for n in (self.examples,) if own is None else own:
            count(n, "DataOrder", "examples", 1)
        for name in ("batch_size", "members"):
            count(getattr(self, name), "DataOrder", name, 1)
        if own is not None and len(own) != self.members:
            raise ValueError(
                f"DataOrder: examples must have a number for each of {self.members} members, got "
                f"{len(own)}"
            )
        if own is not None and self.order == "same":
            raise ValueError(
                "DataOrder: order='same' shows all members the same examples, and each has its own"
            )
        if self.order not in ORDERS:
            raise ValueError(f"DataOrder: order must be one of {ORDERS}, got {self.order!r}")
        if self.fraction != 1 and self.order != "bootstrap":
            raise ValueError(
                f"DataOrder: fraction={self.fraction} is for order='bootstrap', not {self.order!r}"
            )
        if not 0 < self.fraction < math.inf:
            raise ValueError(f"DataOrder: fraction must be positive, got {self.fraction}")
        if self.batch_size > self.size:
            raise ValueError(
                f"DataOrder: batch_size={self.batch_size} is larger than an epoch of {self.size} "
                f"examples; give a batch_size of at most {self.size}"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of examples that each member sees in an epoch, if none is dropped."""
        own = self.examples if isinstance(self.examples, tuple) else (self.examples,) * self.members
        if self.order == "bootstrap":
            return tuple([max(1, round(self.fraction * n)) for n in own])
        return own

    @property
    def size(self) -> int:
        """The greatest number of examples that a member sees in an epoch, if none is dropped."""
        return max(self.sizes)

    @property
    def uneven(self) -> bool:
        """True where members see different numbers of examples."""
        return len(set(self.sizes)) > 1

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of examples that each member sees in an epoch."""
        if not self.drop_last:
            return self.sizes
        return tuple([n // self.batch_size * self.batch_size for n in self.sizes])

    @property
    def steps(self) -> int:
        """The number of batches in an epoch."""
        return -(-max(self.counts) // self.batch_size)

    @property
    def each(self) -> bool:
        """True where each member has an order of its own."""
        return self.order in ("own", "bootstrap") or isinstance(self.examples, tuple)

    def batch_size_of(self, step: int) -> int:
        """Return how many examples the batch at this step of an epoch has.

        Args:
            step: from 0.

        Returns:
            The number of examples; where it differs between members, the most that one can have.
        """
        if self.uneven:
            return self.batch_size
        return min(self.batch_size, self.size - step * self.batch_size)

    def epoch(self, key: Key, epoch: int, members: Sequence[int] | None = None) -> Array:
        """Return the examples of an epoch, in order.

        Args:
            key: the key.
            epoch: its number, from 0.
            members: those wanted; by default all.

        Returns:
            (members, size), or (size,) where all members see the same; int32. Places in a member's
                own examples, where it has its own; 0 behind the end of those that have fewer.
        """
        numbers = np.arange(self.members) if members is None else np.asarray(members)
        with config(recompilation_warning=0):  # one program for each order is meant
            return _EPOCH(self, key, np.int32(epoch), numbers.astype(np.int32))

    def indices(self, key: Key, epoch: int, members: Sequence[int] | None = None) -> Array:
        """Return the whole batches of an epoch.

        Args:
            key: the key.
            epoch: its number, from 0.
            members: those wanted; by default all.

        Returns:
            (steps, members, batch_size), or (steps, batch_size) where all members see the same;
                int32.

        Raises:
            ValueError: members see different numbers of examples.
        """
        if self.uneven:
            raise ValueError(
                f"DataOrder: members see {self.sizes} examples, so that they do not share whole "
                f"batches; epoch() gives the order of each"
            )
        order = self.epoch(key, epoch, members)
        steps = self.size // self.batch_size
        whole = order[..., : steps * self.batch_size]
        batches = whole.reshape(*order.shape[:-1], steps, self.batch_size)
        return snp.moveaxis(batches, -2, 0)


def _epoch(order: DataOrder, key: Key, epoch: ArrayLike, members: ArrayLike) -> Array:
    places = snp.arange(order.size, dtype=_INT32)
    numbers = as_value(members, "DataOrder", "members")
    if order.order == "given" and not order.each:
        return places
    if order.order == "same":
        return permutation(fold_in(fold_in(key, 0), epoch), places)

    def of_member(member: Array, places: Array, examples: ArrayLike) -> Array:
        if order.order == "given":
            return places
        # One stream for the sample, which stays, and one for the shuffles of the epochs.
        shuffle = permutation(fold_in(fold_in(fold_in(key, 1), member), epoch), places)
        if order.order == "own":
            return shuffle
        sample = randint(fold_in(fold_in(key, 2), member), places.shape, 0, examples, _INT32)
        return snp.take(sample, shuffle, 0)

    if not order.uneven:
        number = order.examples[0] if isinstance(order.examples, tuple) else order.examples
        return vmap(lambda member: of_member(member, places, number))(numbers)
    rows = snp.broadcast_to(places, (numbers.shape[0], order.size))
    sizes, own = [snp.take(np.asarray(x, _INT32), numbers) for x in (order.sizes, order.examples)]
    run: Any = vmap(of_member)
    return run(numbers, Ragged._of(rows, sizes, order.size, True, 1), own).pad(0, order.size)


_EPOCH = jit(_epoch, static_argnums=0)


@tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Own:
    """Data of which each member has its own: the examples of all, those of one behind the other."""

    data: Any
    """A tree of arrays with the examples along axis 0."""
    starts: Any
    """The place where each member's examples begin: int32."""
    counts: tuple[int, ...] = dataclasses.field(metadata={"static": True})
    """The number of each member's examples."""


def is_examples(data: Tree) -> bool:
    """Say whether the data are a tree of arrays: an array, a tuple or a dictionary."""
    return isinstance(data, (Value, np.ndarray, Ragged, tuple, dict))


def refuse_table(data: Tree, argument: str) -> None:
    """Raise ``TypeError`` for a table such as a DataFrame, which gives the names of its columns."""
    if not is_examples(data) and is_table(data):
        raise TypeError(
            f"fit: {argument} is a {type(data).__name__}; give its numbers as an array, such as "
            f"{argument}.to_numpy(), or as a tuple or dictionary of arrays, one for each argument "
            f"of the loss"
        )


def refuse_list(loss: Callable[..., Any], data: Tree) -> None:
    """Raise ``TypeError`` for a list of arrays, each of which would be taken for a batch.

    Only where the loss takes several arrays, so that a tuple of them was meant.
    """
    arrays = isinstance(data, list) and all(isinstance(x, (Value, np.ndarray)) for x in data)
    if not arrays or not data:
        return
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise TypeError(
            f"fit: data is a list of {len(data)} arrays, and the loss takes (member, "
            f"{', '.join(list(signature.parameters)[1:])}); a list is taken for batches, one after "
            f"another: for arrays with one example a row give a tuple, (x, y)"
        ) from None


def examples_of(data: Tree, argument: str) -> tuple[Any, int]:
    """Return the arrays as values, and the number of examples, which all must have along axis 0."""
    paths, values, structure = _arrays_of(data, argument, "the examples along axis 0")
    sizes = {len(x) if is_ragged(x) or x.ndim else None for x in values}
    if len(sizes) > 1 or None in sizes:
        described = ", ".join(f"{p}: {_type(x)}" for p, x in zip(paths, values, strict=True))
        raise ValueError(
            f"fit: the arrays of {argument} must have the same number of examples along axis 0; "
            f"got {described}"
        )
    (size,) = sizes
    if not size:
        raise ValueError(f"fit: {argument} has no examples")
    return tree.unflatten(structure, values), size


def own_examples_of(data: Tree, members: int, argument: str) -> Own:
    """Return data of which each member has its own: ragged, or with the members along axis 0."""
    paths, values, structure = _arrays_of(
        data, argument, "the members along axis 0, and their examples along axis 1"
    )
    numbers: dict[str, tuple[int, ...]] = {}
    rows = []
    for path, x in zip(paths, values, strict=True):
        if not is_ragged(x) and x.ndim < 2:
            raise ValueError(
                f"fit: each=True, so that {path} must be ragged or have the members along axis 0 "
                f"and examples along axis 1; got {_type(x)}"
            )
        if len(x) != members:
            raise ValueError(
                f"fit: each=True, so that {path} must have an entry for each of {members} members; "
                f"got {_type(x)}"
            )
        if is_ragged(x):
            numbers[path] = tuple(np.asarray(x.lengths).tolist())
            rows.append(x.values)
        else:
            numbers[path] = (x.shape[1],) * members
            rows.append(reshape(x, (members * x.shape[1], *x.shape[2:])))
    counts = numbers[paths[0]]
    for path, others in numbers.items():
        if others != counts:
            place = next(i for i, (n, m) in enumerate(zip(counts, others, strict=True)) if n != m)
            raise ValueError(
                f"fit: the arrays of {argument} must have the same numbers of examples for each "
                f"member; member {place} has {counts[place]} in {paths[0]} and {others[place]} in "
                f"{path}"
            )
    if not min(counts):
        raise ValueError(f"fit: {argument} has no examples")
    starts = np.cumsum((0, *counts[:-1])).astype(_INT32)
    return Own(tree.unflatten(structure, rows), as_value(starts), counts)


def _arrays_of(data: Tree, argument: str, where: str) -> tuple[list[str], list[Any], Any]:
    """Return the paths of the arrays, the arrays, ragged ones among them, and the structure."""
    refuse_table(data, argument)
    if not is_examples(data):
        raise TypeError(
            f"fit: {argument} must be an array, or a tuple or dictionary of arrays with {where}; "
            f"got {type(data).__name__}"
        )
    leaves, structure = tree.flatten(data, is_ragged)
    if not leaves:
        raise ValueError(f"fit: {argument} has no arrays")
    paths = tree.paths(tree.unflatten(structure, range(len(leaves))), argument)
    arrays = list(zip(leaves, paths, strict=True))
    for x, path in arrays:
        if isinstance(x, np.ndarray) and x.dtype.kind in "OSUMm":
            raise TypeError(
                f"fit: {path} has the dtype {x.dtype}, which holds no numbers: {path}.astype(np."
                f"float32) makes them of what looks like such, and names of classes are numbered "
                f"by names, labels = np.unique({path}, return_inverse=True)"
            )
    return paths, [x if is_ragged(x) else as_value(x, "fit", p) for x, p in arrays], structure


def _type(x: Tree) -> str:
    return repr(x) if is_ragged(x) else str(x.type)


def rows_of(data: Tree, places: Array) -> Tree:
    """Return the examples at these places, of any shape; ragged arrays give wide ones."""
    lengths: dict[int, Array] = {}  # of those whose lengths are one array, so that they stay one

    def rows(x: Tree) -> Tree:
        if is_ragged(x):
            wide = x._at(places)
            own = lengths.setdefault(id(x.lengths), wide.lengths)
            return wide.like(Ragged._of(None, own, x._most, True, x._least))
        flat = places.reshape(-1)  # twice as fast on the CPU as rows and columns
        return x.at[flat].get(mode="promise_in_bounds").reshape(*places.shape, *x.shape[1:])

    return tree.map(rows, data, is_leaf=is_ragged)


def with_rectangles(batch: Tree) -> Tree:
    """Make the ragged arrays of a batch wide, so that all leaves have the arrays along axis 0."""
    return tree.map(lambda x: x._spread() if is_ragged(x) else x, batch, is_leaf=is_ragged)


def batches_of(data: Iterable[Any], skip: int) -> Iterator[tuple[Any, bool]]:
    """Yield the batches of one epoch from number ``skip``, each with whether it is the last.

    Those before it are drawn and discarded.
    """
    batches = iter(data)
    last: Any = None
    number = 0
    for batch in batches:
        if number > skip:
            yield last, False
        last = tree.map(lambda x: as_value(x, "fit", "a batch"), batch)
        number += 1
    if number > skip:
        yield last, True


def checksum(data: Tree) -> int:
    """Return a number that tells data apart: CRC-32 of all bytes."""
    total = 0
    for x in tree.leaves(data):
        total = zlib.crc32(np.ascontiguousarray(read(x)).view(np.uint8).data, total)
    return total
