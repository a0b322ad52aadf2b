"""``DataOrder``: which examples each member sees at which step.

The order is a function of a key, the epoch and the member, and of nothing else, so that training
can begin anywhere in it. Next, read ``state``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config
from stretto._engine.core.integers import count
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto.random.discrete import permutation, randint
from stretto.random.keys import fold_in

__all__ = ["ORDERS", "DataOrder"]

ORDERS = ("own", "same", "bootstrap", "given")
_INT32 = np.dtype(np.int32)


@dataclasses.dataclass(frozen=True)
class DataOrder:
    """Which examples each member of an ensemble sees, batch after batch.

    Args:
        examples: how many there are.
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

    examples: int
    batch_size: int
    order: str = "own"
    members: int = 1
    fraction: float = 1.0
    drop_last: bool = True

    def __post_init__(self) -> None:
        for name in ("examples", "batch_size", "members"):
            count(getattr(self, name), "DataOrder", name, 1)
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
    def size(self) -> int:
        """How many examples a member sees in an epoch, if none is dropped."""
        if self.order == "bootstrap":
            return max(1, round(self.fraction * self.examples))
        return self.examples

    @property
    def steps(self) -> int:
        """How many batches an epoch has."""
        whole, rest = divmod(self.size, self.batch_size)
        return whole + (bool(rest) and not self.drop_last)

    @property
    def each(self) -> bool:
        """Whether each member has an order of its own."""
        return self.order in ("own", "bootstrap")

    def batch_size_of(self, step: int) -> int:
        """Return how many examples the batch at this step of an epoch has.

        Args:
            step: from 0.

        Returns:
            The number of examples.
        """
        return min(self.batch_size, self.size - step * self.batch_size)

    def epoch(self, key: Key, epoch: int, members: Sequence[int] | None = None) -> Array:
        """Return the examples of an epoch, in order.

        Args:
            key: the key.
            epoch: its number, from 0.
            members: those wanted; by default all.

        Returns:
            (members, size), or (size,) where all members see the same; int32.
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
        """
        order = self.epoch(key, epoch, members)
        steps = self.size // self.batch_size
        whole = order[..., : steps * self.batch_size]
        batches = whole.reshape(*order.shape[:-1], steps, self.batch_size)
        return snp.moveaxis(batches, -2, 0)


def _epoch(order: DataOrder, key: Key, epoch: ArrayLike, members: ArrayLike) -> Array:
    places = snp.arange(order.size, dtype=_INT32)
    if order.order == "given":
        return places
    if order.order == "same":
        return permutation(fold_in(fold_in(key, 0), epoch), places)

    def of_member(member: Array) -> Array:
        # One stream for the sample, which stays, and one for the shuffles of the epochs.
        shuffle = permutation(fold_in(fold_in(fold_in(key, 1), member), epoch), places)
        if order.order == "own":
            return shuffle
        sample = randint(fold_in(fold_in(key, 2), member), (order.size,), 0, order.examples, _INT32)
        return snp.take(sample, shuffle, 0)

    return vmap(of_member)(as_value(members, "DataOrder", "members"))


_EPOCH = jit(_epoch, static_argnums=0)
