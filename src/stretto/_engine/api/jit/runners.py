"""Runners of the calls of one signature: three variants, besides interpreting a small program.

A runner takes the arrays that are passed to the program, and gives those of its results:
``BufferRunner`` on the default device, ``PlacedRunner`` where the program says, and
``DonatingRunner`` either way, letting results take over the memory of arguments. ``Interpreted``
and what executables have for arrays (``on_arrays``) are runners as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from stretto._engine import xla
from stretto._engine.core.position import user_position
from stretto._engine.core.types import ArrayType
from stretto._engine.xla.array import SHARDED, Array, Donated
from stretto._engine.xla.pjrt import Executable

if TYPE_CHECKING:
    from stretto._engine.core.shardings import Placement
    from stretto._engine.xla.partitions import PlacedExecutable


class Runner(Protocol):
    """Gives the results of a program, for the arrays passed to it."""

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]: ...


class BufferRunner:
    """Runs an executable on buffers of the default device."""

    __slots__ = ("executable", "out_types")

    def __init__(self, executable: Executable, out_types: Sequence[ArrayType]) -> None:
        self.executable, self.out_types = executable, out_types

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]:
        return self.results(self.executable(buffers_of(arrays)))

    def ready(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return the arrays where the executable takes them."""
        return arrays

    def results(self, buffers: Sequence[Any]) -> list[Array]:
        """Return arrays for the buffers that the executable gave."""
        return [Array(None, t, b) for t, b in zip(self.out_types, buffers, strict=True)]


class PlacedRunner:
    """Runs an executable on the devices that its program says."""

    __slots__ = ("executable", "placement")

    def __init__(self, executable: PlacedExecutable, placement: Placement) -> None:
        self.executable, self.placement = executable, placement

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]:
        return self.results(self.executable(buffers_of(self.ready(arrays))))

    def ready(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Return the arrays, put where the executable takes them."""
        return xla.sharded.all_placed(arrays, self.placement)

    def results(self, buffers: Sequence[Any]) -> list[Array]:
        """Return arrays for the buffers that the executable gave."""
        return xla.sharded.results_of(self.executable, buffers)


class DonatingRunner:
    """Runs an executable whose results take over the memory of some of the arrays passed.

    Args:
        inner: runs the executable otherwise.
        taken: the positions of those arrays.
        name: what messages call the program.
        name_of: what they call the array at a position.
    """

    __slots__ = ("_inner", "_name", "_name_of", "_taken")

    def __init__(
        self,
        inner: BufferRunner | PlacedRunner,
        taken: frozenset[int],
        name: str,
        name_of: Callable[[int], str],
    ) -> None:
        self._inner, self._taken, self._name, self._name_of = inner, taken, name, name_of

    def __call__(self, arrays: Sequence[Array], /) -> list[Array]:
        arrays = self._inner.ready(arrays)
        self._refuse_shared(arrays)
        xla.background.wait_for_all()  # those that have not run may read what is taken here
        position = user_position()
        donated: list[tuple[Array, Any]] = []
        buffers = []
        try:
            for k, array in enumerate(arrays):
                if k in self._taken:
                    buffers.append(array.to_give())
                    donated.append((array, array.kept()))  # before the array gives it up
                    array.donate(Donated(self._name, self._name_of(k), position))
                else:
                    buffers += buffers_of([array])
            return self._inner.results(self._inner.executable(buffers))
        except BaseException:
            for array, kept in donated:
                array.take_back(kept)
            raise

    def _refuse_shared(self, arrays: Sequence[Array]) -> None:
        """Raise ``ValueError`` if an array is donated and also passed as another argument."""
        ids = [id(a) for a in arrays]
        if len(set(ids)) == len(ids):
            return
        for k in self._taken:
            if ids.count(ids[k]) > 1:
                other = next(j for j, i in enumerate(ids) if i == ids[k] and j != k)
                raise ValueError(
                    f"{self._name}: one array was passed as {self._name_of(k)}, which is donated, "
                    f"and as {self._name_of(other)}; its memory cannot be taken and read at once: "
                    f"pass a copy, snp.copy(...), as one of them"
                )


def buffers_of(arrays: Sequence[Array]) -> list[Any]:
    """Return the buffers of arrays where they are."""
    return [a.to_give() if a.__class__ in SHARDED else a.to_buffer() for a in arrays]
