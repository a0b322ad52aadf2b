"""``einsum``: products and sums by the labels of axes, in a cheap order.

Both of NumPy's notations, ``"ij,jk->ik"`` and operands followed by lists of labels, become tuples
of integers, one for each axis, in which an ellipsis is written out. ``opt_einsum`` finds the order;
each step takes two operands, first sums what only one of them has, and is then one ``dot_general``
with shared axes, or a product where nothing is to be summed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.sizes import at_least
from stretto._engine.core.types import ArrayType, promote
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Shape, ShardingLike
from stretto._engine.ops.arithmetic import multiply
from stretto._engine.ops.bilinear import accumulator, promote_dtypes
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.contract import dot_general
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, laid_out, squeeze, transpose
from stretto._engine.ops.linalg.matrix_parts import diagonal_of
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto.numpy.arguments import refuse_out
from stretto.numpy.dtypes import as_dtype

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["einsum", "einsum_path"]

Labels: TypeAlias = tuple[int, ...]
_Term: TypeAlias = tuple[Any, ...]
"""Labels as the user wrote them, letters or any hashable values, and at most one ``Ellipsis``."""


class Notation(NamedTuple):
    """The labels of each operand's axes, those of the result, and the size of each label.

    Args:
        inputs: the labels of each operand.
        output: the labels of the result.
        sizes: the size by label.
    """

    inputs: tuple[Labels, ...]
    output: Labels
    sizes: dict[int, int]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shape of each operand, with what broadcasts at full size."""
        return tuple([tuple([self.sizes[label] for label in own]) for own in self.inputs])


def parse(caller: str, arguments: Sequence[Any]) -> tuple[tuple[Array, ...], Notation]:
    """Read the arguments of ``einsum``.

    Args:
        caller: the name of the function, for messages.
        arguments: subscripts and operands, or operands and lists of labels.

    Returns:
        The operands as values, and the labels of their axes.

    Raises:
        ValueError: the notation is not well formed, or does not match the operands.
        TypeError: an operand is not an array or a number, or a label is not hashable.
    """
    subscripts, operands = arguments[0], arguments[1:]
    if not isinstance(subscripts, str):
        count = len(arguments) // 2
        if not count:
            raise ValueError(
                f"{caller}: expected a string of subscripts, or each operand followed by its "
                f"list of labels; got {type(subscripts).__name__}"
            )
        operands = arguments[: 2 * count : 2]
        subscripts = tuple([_listed(caller, labels) for labels in arguments[1 : 2 * count : 2]])
        if len(arguments) % 2:
            subscripts = (*subscripts, "->", _listed(caller, arguments[-1]))
    values = tuple([as_value(x, caller, f"operand {i}") for i, x in enumerate(operands)])
    return values, _notation(caller, subscripts, tuple([x.type for x in values]))


@functools.lru_cache(2048)
def _notation(
    caller: str, subscripts: str | tuple[Any, ...], types: tuple[ArrayType, ...]
) -> Notation:
    if isinstance(subscripts, str):
        terms, wanted = _from_text(caller, subscripts)
    else:
        listed = list(subscripts)
        wanted = listed.pop() if "->" in listed else None
        terms = [term for term in listed if term != "->"]
    if len(terms) != len(types):
        raise ValueError(
            f"{caller}: the subscripts {subscripts!r} are for {len(terms)} operands, got "
            f"{len(types)}"
        )
    wide = max([type.ndim - len(term) + 1 for type, term in zip(types, terms, strict=True)
                if Ellipsis in term], default=0)  # fmt: skip
    # Numbers for the axes that ellipses stand for, then for the user's labels.
    numbers: dict[Any, int] = {("axis", i): i for i in range(wide)}
    inputs = tuple(
        _written_out(caller, i, type, term, wide, numbers)
        for i, (type, term) in enumerate(zip(types, terms, strict=True))
    )
    if wanted is None:
        counted = [label for term in terms for label in term if label is not Ellipsis]
        once = [c for c in counted if counted.count(c) == 1]
        try:
            wanted = (Ellipsis, *sorted(once))
        except TypeError:
            raise TypeError(
                f"{caller}: the result has its labels in order, and {once} have none; give the "
                f"labels of the result as the last argument"
            ) from None
    output = _output(caller, wanted, wide, numbers)
    return Notation(inputs, output, _sizes(caller, types, inputs, numbers))


def _from_text(caller: str, subscripts: str) -> tuple[list[_Term], _Term | None]:
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = [_letters(caller, subscripts, part) for part in left.split(",")]
    return terms, _letters(caller, subscripts, right) if arrow else None


def _letters(caller: str, subscripts: str, part: str) -> _Term:
    before, dots, after = part.partition("...")
    term: _Term = (*before, *([Ellipsis] if dots else ()), *after)
    for letter in term:
        if letter is not Ellipsis and not letter.isalnum():
            raise ValueError(
                f"{caller}: the subscripts {subscripts!r} must be letters or digits, commas, one "
                f"'->' and at most one '...' for each operand; got {letter!r} in {part!r}"
            )
    return term


def _listed(caller: str, labels: Sequence[Any]) -> _Term:
    if not isinstance(labels, (list, tuple)) or sum([x is Ellipsis for x in labels]) > 1:
        raise ValueError(
            f"{caller}: labels must be a list, of integers or other hashable values, with "
            f"at most one Ellipsis; got {labels!r}"
        )
    term = tuple(labels)
    try:
        hash(term)
    except TypeError:
        raise TypeError(
            f"{caller}: labels must be hashable, such as integers or strings; got {labels!r}"
        ) from None
    return term


def _written_out(
    caller: str, i: int, type: ArrayType, term: _Term, wide: int, numbers: dict[Any, int]
) -> Labels:
    """Return the labels of one operand; ``wide`` is the number of axes that ellipses stand for."""
    dots = term.count(Ellipsis)
    named = len(term) - dots
    if type.ndim < named or (not dots and type.ndim != named):
        more = " or more" if dots else ""
        raise ValueError(
            f"{caller}: the labels {_show(term)} of operand {i} are for {named}{more} axes, but "
            f"it is {type}"
        )
    # Ellipses align from the last axis.
    inside = range(wide - (type.ndim - named), wide)
    out: list[int] = []
    for label in term:
        if label is Ellipsis:
            out.extend(inside)
        else:
            out.append(numbers.setdefault(("label", label), len(numbers)))
    return tuple(out)


def _output(caller: str, term: _Term, wide: int, numbers: dict[Any, int]) -> Labels:
    out: list[int] = []
    for label in term:
        if label is Ellipsis:
            out.extend(range(wide))
        elif ("label", label) not in numbers:
            raise ValueError(f"{caller}: no operand has the output label {label!r}")
        else:
            out.append(numbers["label", label])
    if len(set(out)) != len(out):
        raise ValueError(f"{caller}: the output {_show(term)} names a label twice")
    return tuple(out)


def _sizes(
    caller: str, types: Sequence[ArrayType], inputs: Sequence[Labels], numbers: dict[Any, int]
) -> dict[int, int]:
    """Return the size of each label; 1 gives way to another size."""
    sizes: dict[int, int] = {}
    for i, (type, labels) in enumerate(zip(types, inputs, strict=True)):
        own: dict[int, int] = {}
        for label, n in zip(labels, type.shape, strict=True):
            if own.setdefault(label, n) != n:
                raise ValueError(
                    f"{caller}: operand {i}, {type}, has the label {_name(label, numbers)} twice, "
                    f"along axes of different sizes, {own[label]} and {n}"
                )
        for label, n in own.items():
            have = sizes.setdefault(label, n)
            if 1 not in (have, n) and have != n:
                raise ValueError(
                    f"{caller}: the label {_name(label, numbers)} has size {have}, and size {n} in "
                    f"operand {i}, {type}"
                )
            sizes[label] = n if have == 1 else have
    return sizes


def _name(label: int, numbers: dict[Any, int]) -> str:
    (kind, name), *_ = [key for key, number in numbers.items() if number == label]
    return repr(name) if kind == "label" else "'...'"


def _show(term: _Term) -> str:
    parts = ["..." if label is Ellipsis else str(label) for label in term]
    letters = all(isinstance(x, str) and len(x) == 1 for x in term if x is not Ellipsis)
    separator = "" if letters else ","
    return repr(separator.join(parts))


_opt_einsum: Any = LazyModule("opt_einsum")

_Path: TypeAlias = tuple[tuple[int, ...], ...]
_Operand: TypeAlias = tuple[Any, Labels]
OptimizeLike: TypeAlias = bool | str | Sequence[Any] | Callable[..., Any]
"""A path, a strategy or its name, or whether to look for a cheap order."""


def einsum(
    subscripts: ArrayLike | str | Sequence[Any],
    /,
    *operands: ArrayLike | str | Sequence[Any],
    out: None = None,
    optimize: OptimizeLike = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Sum products of arrays over the labels of axes that the result does not have.

    Args:
        subscripts: a letter for each axis of each operand, with commas between operands, and after
            ``->`` the labels of the result; without ``->`` these are the labels that occur once, in
            order. ``...`` stands for axes that broadcast, and a label that an operand has twice for
            its diagonal.
        *operands: the arrays. Or instead of subscripts, each operand is followed by its list of
            labels (integers or other hashable values), and that of the result comes last.
        out: must be ``None``: arrays are immutable.
        optimize: the order of the products: a strategy of ``opt_einsum`` (``"auto"``,
            ``"optimal"``, ``"greedy"``, ``"dp"``, …), ``False`` for from left to right, or a path
            as ``einsum_path`` returns it.
        precision: the precision of the products, as for ``lax.dot_general``.
        preferred_element_type: the dtype of the result and of the sums. By default that of the
            operands, and numbers narrower than float32 are added up in float32.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The sums, of the promoted dtype.

    Raises:
        ValueError: the labels do not match the operands, their sizes differ, or there is no such
            strategy or path; or the result cannot be split as ``out_sharding`` says.
        TypeError: an operand is not an array or a number, or a label is not hashable.
        NotImplementedError: ``out`` is given.

    As NumPy's ``einsum``.

    >>> import stretto.numpy as snp
    >>> x = snp.array([[1, 2], [3, 4]])
    >>> snp.einsum("ij,j->i", x, snp.array([1, 10]))
    Array([21, 43], dtype=int32)
    >>> snp.einsum("ii", x), snp.einsum(x, [0, 1], [1, 0])
    (Array(5, dtype=int32), Array([[1, 3],
           [2, 4]], dtype=int32))
    """
    refuse_out("einsum", out)
    given = (subscripts, *operands)
    return laid_out(
        einsum_by(None, given, optimize, precision, preferred_element_type), out_sharding, "einsum"
    )


def einsum_by(
    product: Callable[..., Array] | None,
    operands: Sequence[Any],
    optimize: OptimizeLike = "auto",
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Compute ``einsum`` by products that are all those of a function like ``dot_general``.

    Args:
        product: called with the two arrays, the numbers of their axes, ``precision`` and
            ``preferred_element_type``; None stands for ``dot_general``.
        operands: what ``einsum`` takes by position.
        optimize: as for ``einsum``.
        precision: as for ``einsum``.
        preferred_element_type: as for ``einsum``.

    Returns:
        The sums.
    """
    values, notation = parse("einsum", operands)
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], "einsum")
    wanted = None if preferred_element_type is None else as_dtype(preferred_element_type)
    wider = wanted is not None and promote([(dtype, weak), (wanted, False)])[0] == wanted != dtype
    step = _Step(precision, wanted if wider else None, product)
    remaining = [_simplified(convert(v, dtype, weak), labels, notation.sizes)
            for v, labels in zip(values, notation.inputs, strict=True)]  # fmt: skip
    path = _path(notation, optimize)
    for at, places in enumerate(path):
        chosen = [remaining[i] for i in places]
        remaining = [operand for i, operand in enumerate(remaining) if i not in places]
        needed = {*notation.output}.union(*(labels for _, labels in remaining))
        order = notation.output if at == len(path) - 1 else None
        remaining.append(step.product(chosen, needed, order))
    result, labels = remaining[0]
    result = transpose(result, _places(labels, notation.output))
    return result if wanted is None else convert(result, wanted)


def _simplified(x: Array, labels: Labels, sizes: dict[int, int]) -> _Operand:
    """Leave out axes of size 1 that broadcast, and put repeated labels on diagonals."""
    stretched = [d for d, label in enumerate(labels) if x.shape[d] != sizes[label]]
    if not stretched and len(set(labels)) == len(labels):
        return x, labels
    x = squeeze(x, tuple(stretched))
    kept = [label for d, label in enumerate(labels) if d not in stretched]
    while len(set(kept)) < len(kept):
        label = next(label for label in kept if kept.count(label) > 1)
        first, second = [d for d, other in enumerate(kept) if other == label][:2]
        rest = [d for d in range(len(kept)) if d not in (first, second)]
        x = diagonal_of(transpose(x, (*rest, first, second)), 0)
        kept = [*[kept[d] for d in rest], label]
    return x, tuple(kept)


class _Step:
    """The steps of a contraction, with the settings that all of its products share."""

    def __init__(
        self,
        precision: PrecisionLike,
        preferred: np.dtype | None,
        multiply: Callable[..., Array] | None,
    ) -> None:
        """``preferred`` is a dtype wider than the operands', to compute in."""
        self.precision = precision
        self.preferred = preferred
        self.multiply = multiply

    def product(
        self, operands: Sequence[_Operand], wanted: Iterable[int], order: Labels | None
    ) -> _Operand:
        """Multiply the operands, two at a time, and sum over the labels that are not wanted."""
        first, *rest = operands
        for i, second in enumerate(rest):
            later = {label for _, labels in rest[i + 1 :] for label in labels}
            first = self.pair(first, second, {*wanted, *later}, order)
        return first if rest else self.summed(first, wanted)

    def summed(self, operand: _Operand, wanted: Iterable[int]) -> _Operand:
        """Return the sum over the axes whose labels are not wanted."""
        x, labels = operand
        axes = tuple([d for d, label in enumerate(labels) if label not in wanted])
        if not axes:
            return operand
        kept = tuple([label for label in labels if label in wanted])
        if x.type.kind == "bool":
            return reduce_or(x, axes), kept
        dtype = x.dtype if self.preferred is None else self.preferred
        total = ReduceSum(axes)(convert(x, accumulator(dtype), x.type.weak_type))
        return convert(total, dtype, total.type.weak_type and self.preferred is None), kept

    def pair(
        self, first: _Operand, second: _Operand, wanted: Iterable[int], order: Labels | None
    ) -> _Operand:
        """Return the product of two, as one ``dot_general`` where something is to be summed."""
        first = self.summed(first, {*wanted, *second[1]})
        second = self.summed(second, {*wanted, *first[1]})
        (x, in_x), (y, in_y) = first, second
        x, y = promote_dtypes("einsum", x, y)
        summed = [label for label in in_x if label in in_y and label not in wanted]
        if not summed and self.multiply is None:
            return _product((x, in_x), (y, in_y), order)
        shared = [label for label in in_x if label in in_y and label in wanted]
        sides = [(x, in_x), (y, in_y)]
        free = [
            [label for label in labels if label not in (*summed, *shared)] for _, labels in sides
        ]
        if order is not None and (*shared, *free[1], *free[0]) == order:
            sides, free = sides[::-1], free[::-1]
        (x, in_x), (y, in_y) = sides
        numbers = (
            (_places(in_x, summed), _places(in_y, summed)),
            (_places(in_x, shared), _places(in_y, shared)),
        )
        if self.multiply is None:
            out = dot_general(x, y, numbers, self.precision, self.preferred)
        else:
            dtype = x.dtype if self.preferred is None else self.preferred
            out = self.multiply(
                x, y, numbers, precision=self.precision, preferred_element_type=dtype
            )
        return out, (*shared, *free[0], *free[1])


def _places(labels: Labels, some: Sequence[int]) -> tuple[int, ...]:
    return tuple([labels.index(label) for label in some])


def _product(first: _Operand, second: _Operand, order: Labels | None) -> _Operand:
    """Multiply every element of one by the elements of the other at the same labels."""
    labels = tuple(dict.fromkeys((*first[1], *second[1]))) if order is None else order
    spread = []
    for x, own in (first, second):
        x = transpose(x, _places(own, [label for label in labels if label in own]))
        spread.append(expand_dims(x, tuple([d for d, q in enumerate(labels) if q not in own])))
    return multiply(*spread), labels


# The order of the steps


def _path(notation: Notation, optimize: OptimizeLike) -> _Path:
    """Say which operands each step takes; its result goes to the end of the list."""
    count = len(notation.inputs)
    if isinstance(optimize, (list, tuple)) and not _is_limited(optimize):
        return _checked_path(optimize, count)
    if count < 3:
        return (tuple(range(count)),)
    if optimize is False:
        return ((0, 1), *[(0, count - i - 1) for i in range(1, count - 1)])
    if isinstance(optimize, Callable):
        return _cached_path.__wrapped__(notation.inputs, notation.output, notation.shapes, optimize)
    limited = tuple(optimize) if isinstance(optimize, list) else optimize
    return _cached_path(notation.inputs, notation.output, notation.shapes, limited)


def _is_limited(optimize: Sequence[Any]) -> bool:
    """Say whether it is a strategy with the greatest size of an intermediate, as in NumPy."""
    return (
        len(optimize) == 2
        and isinstance(optimize[0], str)
        and optimize[0] != "einsum_path"
        and isinstance(optimize[1], (int, float))
    )


def _checked_path(optimize: Sequence[Any], count: int) -> _Path:
    steps = optimize[1:] if optimize and optimize[0] == "einsum_path" else optimize
    path = tuple(tuple(map(int, step)) for step in steps)
    left = count
    for step in path:
        if len(set(step)) != len(step) or not step or any(not 0 <= i < left for i in step):
            raise ValueError(
                f"einsum: the path {list(path)} takes operands {step} where there are {left}"
            )
        left -= len(step) - 1
    if left != 1:
        raise ValueError(f"einsum: the path {list(path)} leaves {left} of {count} operands, not 1")
    return path


@functools.lru_cache(1024)
def _cached_path(
    inputs: tuple[Labels, ...], output: Labels, shapes: tuple[Shape, ...], optimize: OptimizeLike
) -> _Path:
    return _search(inputs, output, shapes, optimize)[0]


def _search(
    inputs: tuple[Labels, ...], output: Labels, shapes: tuple[Shape, ...], optimize: OptimizeLike
) -> tuple[_Path, Any]:
    """Return the path, and ``opt_einsum``'s report of it."""
    limit = None
    if isinstance(optimize, tuple):
        optimize, limit = optimize
    terms = ["".join(map(_opt_einsum.get_symbol, labels)) for labels in (*inputs, output)]
    text = f"{','.join(terms[:-1])}->{terms[-1]}"
    shapes = tuple([tuple(map(at_least, shape)) for shape in shapes])
    try:
        path, report = _opt_einsum.contract_path(
            text, *shapes, shapes=True, optimize=optimize, memory_limit=limit
        )
    except KeyError:
        raise ValueError(
            f"einsum: optimize must be a bool, a path, or a strategy of opt_einsum such as 'auto', "
            f"'optimal', 'greedy' or 'dp'; got {optimize!r}"
        ) from None
    return tuple(tuple(step) for step in path), report


def einsum_path(
    subscripts: ArrayLike | str | Sequence[Any],
    /,
    *operands: ArrayLike | str | Sequence[Any],
    optimize: bool | str | Sequence[Any] = "auto",
) -> tuple[list[tuple[int, ...]], Any]:
    """Find the order in which ``einsum`` multiplies, and what that costs.

    Args:
        subscripts: as for ``einsum``.
        *operands: as for ``einsum``.
        optimize: as for ``einsum``.

    Returns:
        A list with the places of the operands that each step takes, where what it makes goes to the
        end, which ``einsum`` takes as ``optimize``; and ``opt_einsum``'s account of the costs.

    Raises:
        ValueError: the labels do not match the operands, their sizes differ, or there is no such
            strategy or path.
        TypeError: an operand is not an array or a number.

    As ``opt_einsum.contract_path``.

    >>> import stretto.numpy as snp
    >>> x, y = snp.ones((2, 9)), snp.ones((9, 9))
    >>> snp.einsum_path("ij,jk,k->i", x, y, snp.ones(9))[0]
    [(1, 2), (0, 1)]
    """
    _, notation = parse("einsum_path", (subscripts, *operands))
    if not isinstance(optimize, (str, bool)) and not _is_limited(optimize):
        optimize = list(_checked_path(optimize, len(notation.inputs)))
    elif optimize is False:
        optimize = list(_path(notation, False))
    elif isinstance(optimize, list):
        optimize = tuple(optimize)
    path, report = _search(notation.inputs, notation.output, notation.shapes, optimize)
    return list(path), report
