"""What methods measure of a tensor before it is merged: sums, products, the n-th largest."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto import numpy as snp
from stretto import random
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.interpreter import constant
from stretto._engine.core.typing import Array
from stretto.lax import bitcast_convert_type
from stretto.merge.streams import UNIT, Block, Source, Stream, kth_largest

__all__ = ["Measuring", "Pieces", "in_runs"]

_SCRATCH = 1 << 26
"""The most bytes in which a threshold is looked for: the largest matrices of a model of 7 billion
parameters fit, but for its embedding."""


class Pieces(NamedTuple):
    """The same block of each tensor, in the dtype of the arithmetic, while a method is compiled."""

    models: list[Array]
    base: Array | None
    settings: Mapping[str, Any]
    """Numbers; vectors of a number for each model; and what is fixed, as truth values."""
    measured: Any
    noise: Callable[[int], Array]
    """``noise(i)``: uniform numbers from 0 to 1 for model i, the same wherever blocks begin."""

    zero: Array
    """0, which the compiler does not know."""

    beside: Sequence[Array] = ()
    """What the files beside the models have for them, where the method has such files."""

    def times(self, x: Array, weight: Array) -> Array:
        """Multiply and round, whatever is done with the product.

        A product that is added to something is rounded once or twice, as the compiler likes and the
        processor can. With an integer added to its bits it is a number of its own, and results have
        the same bytes everywhere.
        """
        product = x * weight
        return bitcast_convert_type(
            bitcast_convert_type(product, self.zero.dtype) + self.zero, product.dtype
        )

    def over(self, x: Array, number: Array) -> Array:
        """Divide by a number: in float64, since XLA multiplies by its inverse, rounding twice."""
        return (x.astype(np.float64) / number.astype(np.float64)).astype(x.dtype)

    @property
    def deltas(self) -> list[Array]:
        """Return the models minus the base."""
        base: Any = self.base
        return [x - base for x in self.models]


class Measuring:
    """The tensors of a step, and the numbers of its settings."""

    def __init__(
        self,
        models: Sequence[Source],
        base: Source | None,
        settings: Mapping[str, Any],
        *,
        rows: bool,
        most: int,
        dtype: np.dtype,
        seed: int,
        name: str,
        beside: Sequence[Source] = (),
    ) -> None:
        self.models, self.base, self.settings = tuple(models), base, settings
        self.beside = tuple(beside)
        self.most, self.dtype = most, dtype
        self.rows = rows
        self.size = Stream([self.models[0]], most).size
        self._seed = np.array([seed, zlib.crc32(name.encode())], np.uint32)

    def run(
        self, function: Callable[[Pieces], Array], measured: Any = None, only: int | None = None,
        every: int = 1,
    ) -> Iterator[tuple[Block, np.ndarray]]:  # fmt: skip
        """Compute a function of each block.

        Args:
            function: of ``Pieces``, compiled; one of a module, so that it is compiled once.
            measured: what the pieces have as ``measured``.
            only: the number of the model that is read; all of them by default.
            every: 1 for all blocks, k for each k-th alone.

        Returns:
            The blocks, each with the result for it, whose end belongs to the zeros that fill it.
        """
        models = self.models if only is None else self.models[only : only + 1]
        beside = self.beside if only is None else self.beside[only : only + 1]
        sources = [*models, *beside, *([] if self.base is None else [self.base])]
        stream = Stream(sources, self.most, rows=self.rows, every=every)
        fixed = tuple(sorted((k, v) for k, v in self.settings.items() if not _is_number(v)))
        numbers = {k: np.asarray(v, self.dtype) for k, v in self.settings.items() if _is_number(v)}
        program = _program(
            function, fixed, len(models), self.base is not None, self.dtype, self.rows
        )
        first = 0 if only is None else only
        zero = np.zeros((), np.uint32 if self.dtype.itemsize == 4 else np.uint64)
        unit = stream.row if self.rows else UNIT
        for block in stream:
            # The program reads the buffers where they are, so that it has to be done with them
            # before they are filled again; copies took a third of its time.
            arrays = [constant(x) for x in block.arrays]
            result = program(
                arrays, numbers, measured, self._seed, np.uint32(first),
                np.uint32(block.start // max(unit, 1)), zero,
            )  # fmt: skip
            yield block, np.asarray(result)

    def products(self) -> np.ndarray:
        """Return the products of the models, or of their deltas where there is a base, (n, n)."""
        return self.sums(_products)

    def sums(self, function: Callable[[Pieces], Array], measured: Any = None) -> np.ndarray:
        """Return the sum, in float64, of what a function gives for each run, or each row.

        The same for blocks of any length.
        """
        parts = []
        for block, result in self.run(function, measured):
            unit = (self.models[0].stored.shape or (1,))[-1] if self.rows else UNIT
            parts.append(result[: -(-block.size // unit)].astype(np.float64))
        total: np.ndarray = np.sum(np.concatenate(parts), axis=0)
        return total

    def largest(
        self, function: Callable[[Pieces], Array], counts: Sequence[int], only: int | None
    ) -> list[float]:
        """Return the n-th largest elements of what a function gives, all at least 0."""

        def values(every: int) -> Iterator[np.ndarray]:
            for block, result in self.run(function, only=only, every=every):
                yield result.reshape(-1)[: block.size].astype(np.float32, copy=False)

        return kth_largest(values, self.size, counts, min(self.most, _SCRATCH))


def _is_number(value: object) -> bool:
    return not isinstance(value, (bool, str, int))


def in_runs(x: Array) -> Array:
    """Add up each run of a block along its last axis: (..., length) to (..., runs)."""
    return snp.sum(x.reshape(*x.shape[:-1], -1, UNIT), axis=-1)


def _products(p: Pieces) -> Array:
    xs = p.models if p.base is None else p.deltas
    rows = [snp.stack([in_runs(x * y) for y in xs], -1) for x in xs]
    return snp.stack(rows, -2)


@functools.lru_cache(maxsize=256)
def _program(
    function: Callable[[Pieces], Any],
    fixed: tuple[tuple[str, Any], ...],
    count: int,
    has_base: bool,
    dtype: np.dtype,
    rows: bool,
) -> Callable[..., Any]:
    """Return a compiled function of a block's arrays and the numbers that go with it."""

    def compute(
        arrays: Sequence[Array], numbers: Mapping[str, Array], measured: Any, seed: Array,
        first: Array, unit: Array, zero: Array,
    ) -> Any:  # fmt: skip
        wide = [x.astype(dtype) for x in arrays]
        rest, base = (wide[:-1], wide[-1]) if has_base else (wide, None)
        models, beside = rest[:count], rest[count:]

        def noise(i: int) -> Array:
            key = random.fold_in(random.fold_in(random.PRNGKey(seed[0]), seed[1]), first + i)
            count, length = models[i].shape if rows else (models[i].size // UNIT, UNIT)
            numbers_of = unit + snp.arange(count, dtype=np.uint32)
            each = vmap(lambda n: random.uniform(random.fold_in(key, n), (length,), dtype))
            return each(numbers_of).reshape(models[i].shape)

        return function(
            Pieces(models, base, {**dict(fixed), **numbers}, measured, noise, zero, beside)
        )

    return jit(compute)
