"""Weighted sums of trees, in one pass: of a list, of a stacked tree, or of a generator's trees.

Traced, they are ordinary operations, which XLA fuses. At rest, floats are added up in place, block
by block, at the speed of memory.

Integer and boolean leaves keep their dtype. Their sums are rounded to the nearest integer, half to
even; a boolean is true where that is not 0. Means, and sums with integer weights, are exact. Other
weights multiply the differences from the first member, so that a leaf in which all members agree is
kept whatever its size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np

from stretto._engine.core.interpreter import Tracer, Value, as_value, constant, state
from stretto._engine.core.tree import leaves, structure, unflatten
from stretto._engine.core.types import (
    ArrayType,
    array_type,
    canonical_dtype,
    is_complex,
    is_inexact,
    kind_of,
    promote,
    scalar_dtype,
)
from stretto._engine.core.typing import ArrayLike, Tree
from stretto._engine.higher_order.cond import cond
from stretto._engine.ops.arithmetic import add, divide, multiply, negative, remainder, subtract
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.broadcast import of_rank, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, ge, gt, lt, where
from stretto._engine.ops.contract import tensordot
from stretto._engine.ops.convert import convert
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto._engine.ops.rounding import floor
from stretto._engine.xla.array import Array
from stretto.tree.members import Alike, member_at, of_members, size_of, stack

__all__ = ["IntegerSum", "are_integers", "axpy", "lerp", "mean", "mean_of", "of_column",
           "of_stacked_integers", "weighted_sum", "widened", "without_overflow"]  # fmt: skip


def are_integers(types: Sequence[Any], weights: Sequence[Any] | None) -> bool:
    """Say whether a sum of leaves of these types is one of integers; weights are values."""
    complex_weights = weights is not None and any([kind_of(w.dtype) == "complex" for w in weights])
    return not complex_weights and not [0 for t in types if is_inexact(t.dtype)]


class IntegerSum:
    """The sum over members of a leaf at rest, of which one is held at a time.

    A weight is a number of the host; ``None`` for each counts how many there are, for their mean.
    """

    __slots__ = ("count", "dtype", "first", "moved", "total", "weight")

    def __init__(self, x: Array) -> None:
        self.first = _wide(x)
        self.dtype = x.dtype
        self.total = np.zeros_like(self.first)  # with weights that are integers: exact
        self.moved: Any = 0.0  # with others: of differences from the first
        self.weight: Any = 0.0
        self.count = 0

    def add(self, x: Array, weight: float | None) -> None:
        """Add ``weight * x``, or ``x`` to a mean."""
        self.dtype = promote([(self.dtype, False), (x.dtype, x.weak_type)])[0]
        host = _wide(x)
        self.count += 1
        if weight is None:
            self.total = self.total + (host - self.first)
        elif isinstance(weight, int):
            self.total = self.total + host * self.first.dtype.type(weight)
        else:
            self.moved = self.moved + (host - self.first) * weight
            self.weight += weight

    def result(self, mean: bool = False) -> Array:
        """Return the sum, or the mean, of what was added."""
        if mean:
            whole, rest = np.divmod(self.total, self.first.dtype.type(self.count))
            out = self.first + whole
            rest = 2 * rest
            out = out + ((rest > self.count) | ((rest == self.count) & (out % 2 == 1)))
        elif np.ndim(self.moved) or self.weight:
            # A weight of one holds the first itself, however large; the rest is small, or a float.
            whole_weight = np.rint(self.weight)
            moved = self.moved + self.first * (self.weight - whole_weight)
            below = np.floor(moved)
            out = self.total + self.first * int(whole_weight) + below.astype(self.first.dtype)
            rest = moved - below
            out = out + ((rest > 0.5) | ((rest == 0.5) & (out % 2 == 1)))
        else:
            out = self.total
        return constant(np.asarray(out, self.dtype))  # of no axes, it is NumPy's scalar

    def unrounded(self) -> Array:
        """Return what was added so far as a float, to which others can be added."""
        total = self.total + self.first * self.weight + self.moved
        return constant(np.asarray(total, scalar_dtype(float)))


def _wide(x: Any) -> np.ndarray:  # noqa: ANN401 (an array at rest)
    host = np.asarray(x.to_host())
    return host.astype(np.uint64 if host.dtype == np.uint64 else np.int64)


def of_stacked_integers(
    xs: Array, weights: Array | None, known: Sequence[float | None] | None = None
) -> Array:
    """Return the same of traced leaves, stacked along axis 0.

    ``weights`` is a vector, of which ``known`` has the numbers that are; ``None`` is the mean.
    Where there are no 64 bits, weights that are not integers multiply differences in float32.
    """
    dtype = xs.dtype
    narrow = kind_of(dtype) == "bool" or dtype.itemsize < 4
    xs = convert(xs, np.dtype(np.int32) if narrow else dtype)
    if weights is None:
        out = _mean(xs)
    elif not is_inexact(weights.dtype):
        out = tensordot(convert(weights, xs.dtype), xs, 1)
    else:
        out = _nearest(xs, weights, known or [None])
    return convert(out, dtype)


def _mean(xs: Array) -> Array:
    """Add up quotients and remainders apart, which fits where their sum would not."""
    n = constant(np.asarray(xs.shape[0], xs.dtype))
    rest = remainder(xs, n)
    rest = where(lt(rest, 0), add(rest, n), rest)
    whole = reduce_sum(divide(subtract(xs, rest), n), (0,))
    rest = reduce_sum(rest, (0,))
    left = remainder(rest, n)
    whole = add(whole, divide(subtract(rest, left), n))
    # left > n - left, and not 2 left > n, which might not fit
    other = subtract(n, left)
    return _round(whole, gt(left, other), eq(left, other))


def _nearest(xs: Array, weights: Array, known: Sequence[float | None]) -> Array:
    """Use Σ w x = Σ w (x - x₀) + (Σ w) x₀, of which whole multiples of x₀ stay integers."""
    numbers = [w for w in known if w is not None]
    if len(numbers) == len(known):
        multiple = int(np.rint(sum(numbers)))
        spare: Any = sum(numbers) - multiple
    else:
        multiple, spare = 1, subtract(reduce_sum(weights, (0,)), 1)
    first = member_at(xs, 0, 0)
    across = of_rank(first, xs.ndim)
    up = ge(xs, across)
    bits = np.dtype(f"u{xs.dtype.itemsize}")  # in which a difference of any two fits
    a, b = convert(xs, bits), convert(across, bits)
    size = convert(where(up, subtract(a, b), subtract(b, a)), weights.dtype)
    moved = tensordot(weights, where(up, size, negative(size)), 1)
    moved = add(moved, multiply(convert(first, weights.dtype), spare))
    below = floor(moved)
    rest = subtract(moved, below)
    signed = convert(below, np.dtype(f"i{xs.dtype.itemsize}"))
    whole = add(multiply(first, multiple), convert(signed, xs.dtype))
    return _round(whole, gt(rest, 0.5), eq(rest, 0.5))


def _round(whole: Array, up: Array, half: Array) -> Array:
    odd = eq(bitwise_and(whole, constant(np.ones((), whole.dtype))), 1)
    return where(up | (half & odd), add(whole, constant(np.ones((), whole.dtype))), whole)


T = TypeVar("T")


# Of one leaf


def _accumulator(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which sums of leaves of this dtype are kept."""
    if kind_of(dtype) == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return dtype


def widened(x: Array) -> Array:
    """Return the value in the dtype in which it is summed."""
    return convert(x, _accumulator(x.dtype), x.weak_type)


_UNIT = 2.0**-80
"""The unit in which the square of the greatest float32 is 8e28."""


def without_overflow(squares: Callable[[Array | None], Array]) -> tuple[Array, Array | None]:
    """Return sums of squares in units where they do not overflow, and the units, powers of two.

    ``squares(units)`` is the sums of the squares of numbers times units, of the shape of the sums.
    Each unit is 1, for which None stands at rest, unless the squares overflow. The other sums are
    in a branch, which costs nothing where it is not taken: both at once make
    ``clip_by_global_norm`` 1.4 times as slow.
    """
    total = squares(None)
    if total.__class__ is Array and not np.isinf(total.to_host()).any():
        return total, None
    overflows = eq(total, full_like(total, math.inf))
    # No constants in the branch: XLA makes (x c) (x c) of those x x (c c), infinity times 0.
    units = where(overflows, full_like(total, _UNIT), full_like(total, 1))
    scaled = lambda: convert(squares(units), total.dtype, total.type.weak_type)
    return cond(reduce_or(overflows), scaled, lambda: total), units


def _borrow(x: ArrayLike, caller: str, argument: str) -> Array:
    """Return a leaf's value to be read at once: at rest NumPy's memory is not copied for it."""
    if (
        type(x) is np.ndarray
        and x.flags.c_contiguous
        and state.interpreter is state.eager
        and kind_of(x.dtype)
        and canonical_dtype(x.dtype) == x.dtype
    ):
        return Array(x, array_type(x.shape, x.dtype))
    return as_value(x, caller, argument)


_BLOCK = 1 << 17  # elements: a block of the sum, and one of a product, stay in the cache


def _add_scaled(
    total: np.ndarray, hosts: Sequence[np.ndarray], weights: Sequence[Any], fresh: bool
) -> None:
    """Do ``total += sum of weights[i] * hosts[i]`` in place, or ``=`` where it is ``fresh``."""
    dtype, flat = total.dtype, total.reshape(-1)
    pairs = [(x.reshape(-1), w) for x, w in zip(hosts, weights, strict=True)]
    products = np.empty(min(flat.size, _BLOCK), dtype)
    with np.errstate(all="ignore"):
        for i in range(0, flat.size, _BLOCK):
            part = flat[i : i + _BLOCK]
            product = products[: part.size]
            for k, (x, w) in enumerate(pairs):
                out, block = part if fresh and not k else product, x[i : i + _BLOCK]
                if block.dtype == np.float16 and dtype == np.float32:
                    _widen_halves(block, out)
                    block = out
                np.multiply(block, w, out=out, dtype=dtype)
                if out is product:
                    np.add(part, product, out=part)


def _widen_halves(x: np.ndarray, out: np.ndarray) -> None:
    """Cast float16 to float32 by shifting bits, which is several times as fast as NumPy's cast."""
    bits, wide_bits = x.view(np.uint16), out.view(np.uint32)
    exponent = np.uint16(0x7C00)
    if np.bitwise_and(bits, exponent).max(initial=0) == exponent:  # infinite, or NaN
        np.copyto(out, x)
        return
    # Exponent and fraction, moved to their places, are the number times 2**-112.
    np.copyto(wide_bits, bits)
    sign = wide_bits & 0x8000
    wide_bits &= 0x7FFF
    wide_bits <<= 13
    out *= np.float32(2.0**112)
    sign <<= 16
    wide_bits |= sign


def _in_place(x: Array, w: Array) -> bool:
    """Say whether both are at hand, with a product of the dtype that ``x`` is summed in.

    Only then are products added to memory of our own.
    """
    if not (x.__class__ is Array and w.__class__ is Array) or state.interpreter is not state.eager:
        return False
    wide = _accumulator(x.dtype)
    types = [(wide, False), (w.dtype, w.weak_type)]
    return kind_of(wide) == "float" and not x.weak_type and promote(types)[0] == wide


def _scalar(w: Array, dtype: np.dtype) -> np.ndarray:
    return w.to_host().astype(dtype)[()]


class Weights(NamedTuple):
    """The weights of members."""

    values: list[Any]
    """One scalar each."""
    numbers: list[Any]
    """The same as numbers of the host, in 64 bits; ``None`` for what is traced."""


class _Sum:
    """The sum of one leaf over members, in memory of its own while it can be.

    At rest integers are added up in ``integers``; what is traced of them waits in ``rows``.
    """

    __slots__ = ("integers", "mean", "rows", "total", "type")

    def __init__(self, x: Array, w: Array, number: float | None, mean: bool) -> None:
        self.type, self.mean = x.type, mean
        self.total: Any = None
        self.integers: IntegerSum | None = None
        self.rows: list[tuple[Any, Any, Any]] | None = None
        if not are_integers([x.type], None if mean else [w]):
            self._begin(x, w)
        elif state.interpreter is state.eager:
            self.integers = IntegerSum(x)
            self.integers.add(x, None if mean else number)
        else:
            self.rows = [(x, w, number)]

    def _begin(self, x: Array, w: Array) -> None:
        if _in_place(x, w):
            self.total = np.empty(x.shape, _accumulator(x.dtype))
            _add_scaled(self.total, [x.to_host()], [_scalar(w, self.total.dtype)], True)
        else:
            self.total = multiply(widened(x), w)

    def add(self, x: Array, w: Array, number: float | None) -> None:
        """Add ``w * x``."""
        self.type = _promote([self.type, x.type])
        if self.integers is None and self.rows is None:
            self._add(x, w)
        elif not are_integers([x.type], None if self.mean else [w]):
            self._leave_integers()
            self._add(x, w)
        elif self.integers is not None:
            self.integers.add(x, None if self.mean else number)
        elif self.rows is not None:
            self.rows.append((x, w, number))

    def _add(self, x: Array, w: Array) -> None:
        total = self.total
        if type(total) is np.ndarray:
            if _in_place(x, w) and _accumulator(x.dtype) == total.dtype:
                _add_scaled(total, [x.to_host()], [_scalar(w, total.dtype)], False)
                return
            total = constant(total)
        self.total = add(total, multiply(widened(x), w))

    def _leave_integers(self) -> None:
        """Go on with floats, where integers came first."""
        if self.integers is not None:
            self.total = self.integers.unrounded()
        for k, (x, w, _) in enumerate(self.rows or []):
            self._add(x, w) if k else self._begin(x, w)
        self.integers = self.rows = None

    def result(self, count: int = 1) -> Array:
        """Return the sum, or the mean of so many."""
        if self.integers is not None:
            return self.integers.result(self.mean)
        if self.rows is not None:
            xs, values, numbers = zip(*self.rows, strict=True)
            return _of_integers(xs, None if self.mean else Weights(list(values), list(numbers)))
        total, self.total = self.total, None
        if type(total) is np.ndarray:
            if self.mean:
                np.multiply(total, total.dtype.type(1 / count), out=total)
            total = constant(total)
        elif self.mean:
            total = multiply(total, 1 / count)
        return _finish(total, self.type.dtype)


def _promote(types: Sequence[ArrayType]) -> ArrayType:
    """Return the type of a sum over leaves of these types, in whichever order they come."""
    dtype, weak = promote([(t.dtype, t.weak_type) for t in types])
    return array_type(types[0].shape, dtype, weak)


def _finish(total: Array, dtype: np.dtype) -> Array:
    """Return the sum as a result: strongly typed, and of low precision where all its leaves are."""
    narrow = _accumulator(dtype) != dtype and not is_complex(total.dtype)
    return convert(total, dtype if narrow else total.dtype)


def of_column(column: Sequence[Any], weights: Weights | Sequence[Any] | None) -> Array:
    """Return the weighted sum of one leaf of all members; ``None`` for their mean."""
    if weights is not None and not isinstance(weights, Weights):
        weights = Weights([as_value(w) for w in weights], [_number(w) for w in weights])
    if are_integers([x.type for x in column], None if weights is None else weights.values):
        return _of_integers(column, weights)
    if weights is None:
        share = as_value(1 / len(column))
        weights = Weights([share] * len(column), [1 / len(column)] * len(column))
    first = column[0]
    wide = _accumulator(first.dtype)
    if {_accumulator(x.dtype) for x in column} == {wide} and not [
        0 for x, w in zip(column, weights.values, strict=True) if not _in_place(x, w)
    ]:
        total = np.empty(first.shape, wide)
        scalars = [_scalar(w, wide) for w in weights.values]
        _add_scaled(total, [x.to_host() for x in column], scalars, True)
        return _finish(constant(total), _promote([x.type for x in column]).dtype)
    total = multiply(widened(first), weights.values[0])
    for x, w in zip(column[1:], weights.values[1:], strict=True):
        total = add(total, multiply(widened(x), w))
    return _finish(total, _promote([x.type for x in column]).dtype)


def _of_integers(column: Sequence[Any], weights: Weights | None) -> Array:
    """Return the weighted sum where all leaves are integers."""
    numbers = [None] * len(column) if weights is None else weights.numbers
    if state.interpreter is state.eager and not [0 for x in column if x.__class__ is not Array]:
        of_leaf = IntegerSum(column[0])
        for x, number in zip(column, numbers, strict=True):
            of_leaf.add(x, number)
        return of_leaf.result(weights is None)
    dtype = _promote([x.type for x in column]).dtype
    stacked = stack([convert(x, dtype) for x in column])
    return of_stacked_integers(stacked, None if weights is None else stack(weights.values), numbers)


# Of trees


def _weights(weights: ArrayLike | Sequence[ArrayLike], caller: str) -> Weights:
    """Return the weights, one scalar each."""
    given: Any = weights
    if isinstance(weights, (list, tuple)):
        values = [as_value(w, caller, "a weight") for w in weights]
    else:
        vector = as_value(weights, caller, "weights")
        if vector.ndim != 1:
            raise ValueError(
                f"{caller}: weights must be a vector, with one for each tree; got {vector.type}"
            )
        values = given = [member_at(vector, i, 0) for i in range(vector.shape[0])]
    for w in values:
        if w.ndim:
            raise ValueError(f"{caller}: each weight must be a scalar; got {w.type}")
    return Weights(values, [_number(w) for w in given])


def _number(w: Any) -> Any:  # noqa: ANN401 (a number, or none)
    """Return a weight as a number in 64 bits, an int where it is one; ``None`` if traced."""
    if isinstance(w, Tracer) or (isinstance(w, Value) and state.interpreter is not state.eager):
        return None
    number = np.asarray(w)
    if kind_of(number.dtype) == "complex":
        return None
    return float(number) if is_inexact(number.dtype) else int(number)


def _is_stacked(trees: Tree, count: int) -> bool:
    """Say whether ``trees`` is one tree with ``count`` members along axis 0 of its leaves.

    A list or tuple of as many entries as weights is a list of trees. One of another length is a
    stacked tree if it could be nothing else, or if its leaves are arrays such as ``stack`` gives
    and it is shorter than the weights.
    """
    if not isinstance(trees, (list, tuple)):
        return True
    if len(trees) == count or not trees:
        return False
    flat = leaves(trees)
    stacked = [isinstance(x, Value) and x.ndim and x.shape[0] == count for x in flat]
    if not flat or False in stacked:
        return False
    shapes = [(structure(t), [x.shape for x in leaves(t)]) for t in trees]
    return len(trees) < count or shapes != shapes[:1] * len(trees)


def _stream_sums(
    trees: Iterator[Any], weights: Weights | None, caller: str
) -> tuple[list[_Sum], int, Any]:
    """Return the sums by leaf, the number of trees, and their structure; holds one tree at a time.

    Without weights they are for means.
    """
    alike = Alike(caller, _borrow)
    sums: list[_Sum] = []
    one = as_value(1.0)
    number = 0
    while (member := next(trees, alike)) is not alike:
        if weights is None:
            weight, of_host = one, None
        elif number < len(weights.values):
            weight, of_host = weights.values[number], weights.numbers[number]
        else:
            raise ValueError(
                f"{caller}: expected {len(weights.values)} trees, one for each weight; got more"
            )
        row = alike.row(member, number)
        del member  # before the next is made
        for k in range(len(row)):
            if number:
                sums[k].add(row[k], weight, of_host)
            else:
                sums.append(_Sum(row[k], weight, of_host, weights is None))
            row[k] = None
        number += 1
    if not number:
        raise ValueError(f"{caller}: expected at least one tree, got none")
    if weights is not None and number < len(weights.values):
        raise ValueError(
            f"{caller}: expected {len(weights.values)} trees, one for each weight; got {number}"
        )
    return sums, number, alike.structure


@overload
def weighted_sum(
    trees: list[T] | tuple[T, ...] | Iterator[T],
    weights: ArrayLike | Sequence[ArrayLike],
    *,
    stacked: Literal[False] | None = None,
) -> T: ...
@overload
def weighted_sum(
    trees: T, weights: ArrayLike | Sequence[ArrayLike], *, stacked: bool | None = None
) -> T: ...
def weighted_sum(
    trees: Tree, weights: ArrayLike | Sequence[ArrayLike], *, stacked: bool | None = None
) -> Tree:
    """Sum ``weights[i] * trees[i]``, leaf by leaf, in one pass without a stacked copy.

    Args:
        trees: a list or tuple of trees of one structure; an iterator of them, such as a generator,
            of which one is held at a time beside the sum; an ``Ensemble`` of one architecture,
            which stands for its members; or one tree with the members stacked along axis 0 of its
            leaves.
        weights: (members,), or a list of scalars; differentiable.
        stacked: whether ``trees`` is a stacked tree, where a list leaves that open; by default, one
            with as many entries as weights is a list of trees.

    Returns:
        A tree of arrays, strongly typed. Leaves of low precision are summed in float32, and come
            back in their own dtype, or in what differing ones promote to. Integers and booleans,
            such as counters, keep their dtype: they are rounded to the nearest integer, half to
            even, after an exact sum where weights are integers too; a boolean is true where that is
            not 0.

    Raises:
        ValueError: trees differ, with the member and the path; or the numbers of trees and weights
            differ.

    >>> import stretto.numpy as snp
    >>> weighted_sum([{"w": snp.ones(2)}, {"w": snp.ones(2)}], [0.25, 0.5])
    {'w': Array([0.75, 0.75], dtype=float32)}
    """
    scalars = _weights(weights, "weighted_sum")
    count = len(scalars.values)
    trees, stacked = _members_of(trees, stacked, "weighted_sum")
    if isinstance(trees, Iterator):
        sums, _, spec = _stream_sums(trees, scalars, "weighted_sum")
        return unflatten(spec, [s.result() for s in sums])
    if not (_is_stacked(trees, count) if stacked is None else stacked):
        members = list(trees)
        if len(members) != count:
            raise ValueError(
                f"weighted_sum: expected one weight for each tree; got {len(members)} trees and "
                f"{count} weights"
            )
        return _sum_list(members, scalars, "weighted_sum")
    values, spec, size = size_of(trees, 0, "weighted_sum")
    if size != count:
        raise ValueError(
            f"weighted_sum: expected one weight for each member; the stacked tree has {size} "
            f"members, and there are {count} weights"
        )
    return unflatten(spec, [_of_stacked(v, scalars) for v in values])


def _members_of(trees: Tree, stacked: bool | None, caller: str) -> tuple[Tree, bool | None]:
    """Return the trees, an ensemble as an iterator of members; and whether they are stacked."""
    members = of_members(trees, caller)
    return (trees, stacked) if members is None else (iter(members), False)


def _sum_list(members: Sequence[Any], weights: Weights | None, caller: str) -> Tree:
    """Return the weighted sum of a list of trees, or their mean."""
    if not members:
        raise ValueError(f"{caller}: expected at least one tree, got none")
    alike = Alike(caller, _borrow)
    rows = [alike.row(member, i) for i, member in enumerate(members)]
    columns = zip(*rows, strict=True)
    return unflatten(alike.structure, [of_column(column, weights) for column in columns])


def _of_stacked(x: Array, weights: Weights | None) -> Array:
    """Return the weighted sum of one leaf over its axis 0, or its mean."""
    at_rest = state.interpreter is state.eager and x.__class__ is Array
    values = [as_value(1 / len(x))] * len(x) if weights is None else weights.values
    if are_integers([x.type], values):
        if not at_rest:
            numbers = None if weights is None else weights.numbers
            return of_stacked_integers(x, None if weights is None else stack(values), numbers)
    elif not _in_place(x, values[0]):
        return _finish(tensordot(stack(values), widened(x), 1), x.dtype)
    host, type = x.to_host(), array_type(x.shape[1:], x.dtype)
    return of_column([Array(host[i], type) for i in range(len(host))], weights)


@overload
def mean(
    trees: list[T] | tuple[T, ...] | Iterator[T], *, stacked: Literal[False] | None = None
) -> T: ...
@overload
def mean(trees: T, *, stacked: bool | None = None) -> T: ...
def mean(trees: Tree, *, stacked: bool | None = None) -> Tree:
    """Average trees of one structure, leaf by leaf: the uniform soup of weights.

    Args:
        trees: as for ``weighted_sum``: a list (the default for lists), a generator, of which one is
            held at a time, an ``Ensemble``, or a stacked tree.
        stacked: whether ``trees`` is a stacked tree, where a list leaves that open.

    Returns:
        A tree of arrays, strongly typed. Integers stay integers, as in ``weighted_sum``; their
            means are exact.

    Raises:
        ValueError: trees differ, with the member and the path; or there are none.

    Source: Wortsman et al., "Model soups", 2022.

    >>> import stretto.numpy as snp
    >>> mean([{"w": snp.zeros(2)}, {"w": snp.ones(2)}])
    {'w': Array([0.5, 0.5], dtype=float32)}
    """
    return mean_of(trees, stacked, "mean")


def mean_of(trees: Tree, stacked: bool | None, caller: str) -> Tree:
    """Return the mean of trees for a caller, whose name errors have."""
    trees, stacked = _members_of(trees, stacked, caller)
    is_list = isinstance(trees, (list, tuple, Iterator))
    if stacked or (stacked is None and not is_list):
        values, spec, size = size_of(trees, 0, caller)
        if not size:
            raise ValueError(f"{caller}: expected at least one tree, got none")
        return unflatten(spec, [_of_stacked(v, None) for v in values])
    if not isinstance(trees, Iterator):
        return _sum_list(list(trees), None, caller)
    sums, count, spec = _stream_sums(trees, None, caller)
    return unflatten(spec, [s.result(count) for s in sums])


def lerp(start: T, end: T, weight: float | Array) -> T:
    """Interpolate linearly: ``start + weight * (end - start)``, leaf by leaf.

    Args:
        start: a tree of arrays.
        end: a tree like it.
        weight: a scalar, 0 for ``start``, 1 for ``end``.

    Returns:
        A tree of arrays; integers and low precision as in ``weighted_sum``.

    Raises:
        ValueError: structures or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> lerp({"w": snp.zeros(1)}, {"w": snp.ones(1)}, 0.25)
    {'w': Array([0.25], dtype=float32)}
    """
    return weighted_sum([start, end], [1 - weight, weight], stacked=False)


def axpy(a: ArrayLike, x: T, y: T) -> T:
    """Compute ``a * x + y``, leaf by leaf.

    Args:
        a: a scalar.
        x: a tree of arrays.
        y: a tree like it.

    Returns:
        A tree of arrays; integers and low precision as in ``weighted_sum``.

    Raises:
        ValueError: structures or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> axpy(2.0, {"w": snp.ones(1)}, {"w": snp.ones(1)})
    {'w': Array([3.], dtype=float32)}
    """
    return weighted_sum([x, y], [a, 1], stacked=False)
