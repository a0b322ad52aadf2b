"""Cotangents that a choice has made zero in places, where they stay zero.

Run backwards, ``select`` hands each choice its cotangent where it was chosen, and zero elsewhere.
If that zero then meets an infinite derivative, as that of ``log`` at 0, the product is NaN. So
zeros are not put in at once: the cotangent travels as it is, with the conditions under which it
counts, through operations that treat each element alone, and they are applied where elements are
first mixed.

At the ends of programs, where plain values go in and come out, arrays of conditions are operands
of their own (``take_apart``), and what comes out is under those conditions whose arrays went in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.interpreter import Linear, Tracer, constant
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.recorder import Traced
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.bits import bitwise_and, bitwise_not, bitwise_or
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.comparison import SELECT, full, zeros_like
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.layout import Reshape

_MOST = 6
"""The most conditions: more are joined, so that a chain of n choices takes n of them.

The first stays, as an array from outside of a program is found again outside, and a joined one is
not.
"""


_DEEPEST = 16
"""The longest chain of conditions, or of cotangents, that wait for each other.

Each link takes a few of the thousand frames that Python allows.
"""


class Later:
    """A boolean array that is computed when it is first needed, if ever.

    Those with equal keys are equal. One that would wait for a long chain of others, the arrays of
    ``conditions``, is computed at once, since each takes a few of the frames that Python allows.
    """

    __slots__ = ("_make", "_value", "depth", "key")

    def __init__(
        self, make: Callable[[], Any], key: Any = None, conditions: Sequence[Condition] = ()
    ) -> None:
        self.key = key
        waiting = [c.array.depth for c in conditions if c.array.__class__ is Later]
        self.depth = 1 + max(waiting, default=0)
        self._make: Callable[[], Any] | None = make
        self._value: Any = None
        if self.depth >= _DEEPEST:
            self.value()

    def value(self) -> Any:
        """Return the array."""
        if self._make is not None:
            self._value, self._make = self._make(), None
            self.depth = 0
        return self._value


class Condition(NamedTuple):
    """Elements count where ``array``, whose axes are ``dims`` of theirs, is ``holds``."""

    array: Any
    """A boolean value, or a ``Later``."""
    holds: bool
    dims: tuple[int, ...]

    def known(self) -> Any:
        """Return the array, computed if it was not."""
        return _computed(self.array)

    def value(self, shape: Sequence[int]) -> Any:
        """Return the array, for ``select`` of an array of this shape."""
        array = self.known()
        if not self.dims or len(self.dims) == len(shape):
            return array
        return BroadcastInDim(tuple(shape), self.dims)(array)

    def whole(self, shape: Sequence[int]) -> Any:
        """Return the array, repeated to this shape."""
        array = self.value(shape)
        return array if array.ndim == len(shape) else BroadcastInDim(tuple(shape), ())(array)

    def mask(self, shape: Sequence[int]) -> Any:
        """Return where elements count: an array of this shape."""
        return self.whole(shape) if self.holds else bitwise_not(self.whole(shape))

    def is_at(self, other: Condition) -> bool:
        """Say if it is about the same array, and the same elements of it."""
        return self.dims == other.dims and is_same(self.array, other.array)

    def among(self, others: Sequence[Condition]) -> bool:
        """Say if it is one of these."""
        return any([self.is_at(other) and self.holds == other.holds for other in others])


class Masked:
    """A cotangent that counts where all ``conditions`` hold, and is zero elsewhere.

    ``raw`` is the cotangent with anything in the places where it does not count, ``with_zeros`` the
    one with zeros there. Both are computed when they are first needed, if ever; ``depth`` is the
    number of others that they wait for, one behind the other.
    """

    __slots__ = ("_part", "_raw", "_with_zeros", "conditions", "depth", "type")

    def __init__(
        self,
        conditions: tuple[Condition, ...],
        type: ArrayType,
        raw: Callable[[], Any],
        with_zeros: Callable[[], Any] | None = None,
        depth: int = 0,
    ) -> None:
        self.conditions = conditions
        self.depth = depth
        self.type = type
        self._raw: Any = raw
        self._with_zeros: Any = with_zeros or self._select
        self._part: Any = None, None

    def behind(self, with_zeros: bool = True) -> int:
        """Return the ``depth`` of one that waits for this; a long chain is computed first."""
        if self.depth >= _DEEPEST:
            self.raw()
            if with_zeros:
                self.with_zeros()
            self.depth = 0
        return self.depth + 1

    @property
    def has_zeros(self) -> bool:
        """Say if ``with_zeros`` costs nothing any more."""
        return self._with_zeros.__class__ is Known

    def raw(self) -> Any:
        """Return the cotangent, with anything where it does not count."""
        if self._raw.__class__ is not Known:
            self._raw = Known(self._raw())
        return self._raw.value

    def with_zeros(self) -> Any:
        """Return the cotangent, with zeros where it does not count."""
        if self._with_zeros.__class__ is not Known:
            self._with_zeros = Known(self._with_zeros())
        return self._with_zeros.value

    def without(self, indices: frozenset[int]) -> Any:
        """Return the cotangent with zeros where the conditions at these places do not hold."""
        if self._part[0] != indices:
            conditions = [self.conditions[i] for i in sorted(indices)]
            self._part = indices, _select(self.raw(), conditions)
        return self._part[1]

    def _select(self) -> Any:
        return _select(self.raw(), self.conditions)


class Known:
    """A value that has been computed."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        return self.value


def narrow_condition(condition: Condition, shape: tuple[int, ...]) -> Condition:
    """Return the same condition for elements of this shape, without axes that it is constant along.

    Those are axes of size 1, and those along which its array was repeated, if that can be told.
    """
    array, dims = condition.array, condition.dims
    if array.__class__ is Traced:
        maker = array.interpreter.maker(array.atom)
        if maker is not None and isinstance(maker.primitive, BroadcastInDim):
            array = Traced(array.interpreter, maker.inputs[0])
            dims = tuple([dims[d] for d in maker.primitive.dims])
            shape = tuple(
                [
                    1 if d in dims and array.shape[dims.index(d)] == 1 else n
                    for d, n in enumerate(shape)
                ]
            )
    elif array.__class__ is not Later and not isinstance(array, Tracer):
        return _narrowed_array(condition)
    kept = tuple([d for d in dims if shape[d] != 1])
    if len(kept) < len(dims):
        whole, squeezed = array, Reshape(tuple([shape[d] for d in kept]))
        key = squeezed, _identity(whole)
        array = Later(lambda: squeezed(_computed(whole)), key, [condition])
    return condition._replace(array=array, dims=kept)


def _narrowed_array(condition: Condition) -> Condition:
    """Return the same for a condition whose array is there."""
    array, host = condition.array, condition.array.host()
    if host is None or not host.size:
        return condition
    varies = tuple([n != 1 and step != 0 for n, step in zip(host.shape, host.strides, strict=True)])
    if all(varies):
        return condition
    part = host[tuple([slice(None) if v else 0 for v in varies])]
    dims = tuple([d for d, v in zip(condition.dims, varies, strict=True) if v])
    return condition._replace(
        array=Later(lambda: constant(np.array(part)), (varies, _identity(array))), dims=dims
    )


def _computed(array: Any) -> Any:
    return array.value() if array.__class__ is Later else array


def _identity(array: Any) -> Any:
    """Return what tells if two arrays are the same, or stand for the same value of a program."""
    if array.__class__ is Traced:
        return array.interpreter, array.atom
    return array.key or _Itself(array) if array.__class__ is Later else _Itself(array)


class _Itself:
    """An object that equals itself alone."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


def is_same(x: Any, y: Any) -> bool:
    """Say if these are the same array, or stand for the same value of a program."""
    return x is y or (x.__class__ is y.__class__ and _identity(x) == _identity(y))


def with_zeros(ct: Any) -> Any:
    """Return the cotangent as a value; ``None`` stays, for zero."""
    return ct.with_zeros() if ct.__class__ is Masked else ct


def _where(condition: Condition, value: Any) -> Any:
    """Return the value where the condition holds, zero elsewhere."""
    zeros, array = zeros_like(value), condition.value(value.type.shape)
    return SELECT(array, value, zeros) if condition.holds else SELECT(array, zeros, value)


def _select(value: Any, conditions: Sequence[Condition]) -> Any:
    """Return the value where all conditions hold, zero elsewhere."""
    for condition in conditions:
        value = _where(condition, value)
    return value


def chosen(ct: Any, array: Any, holds: bool | None) -> Masked | None:
    """Return the cotangent of what ``select`` by this array chooses; ``None`` if it never does."""
    condition = Condition(array, bool(holds), tuple(range(array.ndim)))
    if ct.__class__ is not Masked:
        return Masked((condition,), ct.type, Known(ct), lambda: _where(condition, ct))
    conditions = ct.conditions
    for other in conditions:
        if other.is_at(condition):
            return ct if other.holds == holds else None
    if len(conditions) == _MOST:
        conditions = (conditions[0], both(conditions[1:], ct.type.shape))
    with_zeros = lambda: _where(condition, ct.with_zeros())
    return Masked((*conditions, condition), ct.type, ct.raw, with_zeros, ct.behind())


def both(conditions: Sequence[Condition], shape: tuple[int, ...]) -> Condition:
    """Return the condition that all of them hold."""

    def make() -> Any:
        first, *rest = [c.mask(shape) for c in conditions]
        for other in rest:
            first = bitwise_and(first, other)
        return first

    return Condition(Later(make, None, conditions), True, tuple(range(len(shape))))


def under(value: Any, conditions: tuple[Condition, ...], has_zeros: bool) -> Masked:
    """Return the value as a cotangent that counts where these hold; ``has_zeros`` there already."""
    known = Known(value)
    return Masked(conditions, value.type, known, known if has_zeros else None)


def add_masked(x: Any, y: Any) -> Any:
    """Return the sum of two cotangents of one variable, which counts where either does."""
    if x.__class__ is not Masked or y.__class__ is not Masked:
        return ADD(with_zeros(x), with_zeros(y))
    shared, own_x, own_y = _compare(x.conditions, y.conditions)
    if own_x and own_y:  # the same mask of rows may have been broadcast for one of them
        narrow = [[narrow_condition(c, x.type.shape) for c in own] for own in (own_x, own_y)]
        more, rest_x, rest_y = _compare(*narrow)
        if more:
            shared, own_x, own_y = (*shared, *more), rest_x, rest_y
    if not own_x and not own_y:
        depth = max(x.behind(), y.behind())
        total = lambda: ADD(x.raw(), y.raw())
        return Masked(shared, x.type, total, _sum_with_zeros(x, y, shared), depth)
    if len(own_x) == len(own_y) == 1 and own_x[0].is_at(own_y[0]):
        first, second = (x, y) if own_x[0].holds else (y, x)  # one where it holds, one elsewhere
        either = lambda: SELECT(own_x[0].value(x.type.shape), first.raw(), second.raw())
        if not shared:
            return either()
        return Masked(shared, x.type, either, None, max(x.behind(False), y.behind(False)))
    total = Known(ADD(x.with_zeros(), y.with_zeros()))
    if not own_x or not own_y:
        return Masked(shared, x.type, total, total) if shared else total.value
    shape = x.type.shape

    def make() -> Any:
        return bitwise_or(both(own_x, shape).value(shape), both(own_y, shape).value(shape))

    whole = Condition(Later(make, None, [*own_x, *own_y]), True, tuple(range(len(shape))))
    return Masked((*shared, whole), x.type, total, total)


def _compare(
    x: Sequence[Condition], y: Sequence[Condition]
) -> tuple[tuple[Condition, ...], tuple[Condition, ...], tuple[Condition, ...]]:
    """Return the conditions that are among both, and the others of each."""
    shared = tuple([c for c in x if c.among(y)])
    own_x, own_y = [tuple([c for c in each if not c.among(shared)]) for each in (x, y)]
    return shared, own_x, own_y


def _sum_with_zeros(x: Masked, y: Masked, conditions: tuple[Condition, ...]) -> Callable[[], Any]:
    """Return what adds both with zeros, if both have them; otherwise the sum, then with zeros."""

    def make() -> Any:
        if x.has_zeros and y.has_zeros:
            return ADD(x.with_zeros(), y.with_zeros())
        return Masked(conditions, x.type, lambda: ADD(x.raw(), y.raw())).with_zeros()

    return make


class Apart(NamedTuple):
    """Cotangents, of which some are masked, as plain values."""

    values: list[Any]
    """The cotangents that are not zero."""
    arrays: list[Any]
    """The arrays of all their conditions, each once."""
    form: tuple[Any, ...]
    """A pair for each value: if it has its zeros, and its conditions, with numbers of arrays."""
    rows: list[bool]
    """True for arrays with the first axis of the values, if the form is that of one row."""

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of the arrays in that form."""
        types = [a.type for a in self.arrays]
        pairs = zip(types, self.rows, strict=True)
        return tuple([t.with_shape(t.shape[1:]) if row else t for t, row in pairs])

    def apart(self) -> tuple[list[Any], list[Any]]:
        """Return the arrays that are the same for all rows, and those that have an axis of them."""
        pairs = [*zip(self.arrays, self.rows, strict=True)]
        return [a for a, row in pairs if not row], [a for a, row in pairs if row]

    def again(self, values: Sequence[Any], whole: Sequence[Any], own: Sequence[Any]) -> list[Any]:
        """Return the cotangents of one row, from its values and arrays."""
        parts = iter(whole), iter(own)
        return put_together(self.form, values, [next(parts[row]) for row in self.rows])


def everywhere(ct: Any) -> Any:
    """Put zeros into the cotangent, unless its conditions are the same for all elements."""
    value = with_zeros(ct)
    return ct if ct.__class__ is Masked and not any([c.dims for c in ct.conditions]) else value


def take_apart(cts: Sequence[Any], by_row: bool = False) -> Apart:
    """Return the cotangents that are not ``None``, as plain values, perhaps in a row's form."""
    out = Apart([], [], (), [])
    form = []
    for ct in cts:
        if ct is None:
            continue
        if ct.__class__ is not Masked:
            out.values.append(ct)
            form.append((True, ()))
            continue
        out.values.append(ct.with_zeros() if ct.has_zeros else ct.raw())
        conditions = []
        for condition in ct.conditions:
            array, row = condition.known(), by_row and 0 in condition.dims
            pairs = enumerate(zip(out.arrays, out.rows, strict=True))
            at = next((i for i, (a, r) in pairs if is_same(a, array) and r == row), len(out.arrays))
            if at == len(out.arrays):
                out.arrays.append(array)
                out.rows.append(row)
            dims = tuple([d - by_row for d in condition.dims if d or not by_row])
            conditions.append((at, condition.holds, dims))
        form.append((ct.has_zeros, tuple(conditions)))
    return out._replace(form=tuple(form))


def put_together(
    form: Sequence[Any],
    values: Sequence[Any],
    arrays: Sequence[Any],
    rows: Sequence[bool] | None = None,
) -> list[Any]:
    """Return the cotangents of this form; with ``rows``, of values whose rows have it.

    ``rows`` says which arrays have an axis of rows.
    """
    out = []
    for value, (has_zeros, indices) in zip(values, form, strict=True):
        if not indices:
            out.append(value)
            continue
        conditions = []
        for i, holds, dims in indices:
            if rows is not None:
                dims = (*(0,) * rows[i], *[d + 1 for d in dims])
            conditions.append(Condition(arrays[i], holds, dims))
        out.append(under(value, tuple(conditions), has_zeros))
    return out


def _index_of(array: Any, arrays: Sequence[Any]) -> int | None:
    """Return the place of this array among others; ``None`` if it is not there."""
    return next((i for i, other in enumerate(arrays) if is_same(other, array)), None)


def with_conditions(
    ct: Any, arrays: Sequence[Any], more: list[Any] | None = None
) -> tuple[Any, Any]:
    """Give the cotangent as a value, and its form with places among these arrays and then ``more``.

    Arrays of conditions that are not among them are added to ``more``; without that list these
    conditions are applied.
    """
    if ct.__class__ is not Masked:  # None is zero
        return ct, (True, ())
    indices: list[int | None] = []
    for condition in ct.conditions:
        array = condition.array
        at = _index_of(array, arrays)
        if at is None and more is not None:
            array = condition.known()
            at = _index_of(array, [*arrays, *more])
            if at is None:
                at = len(arrays) + len(more)
                more.append(array)
        indices.append(at)
    pairs = zip(indices, ct.conditions, strict=True)
    conditions = tuple([(i, c.holds, c.dims) for i, c in pairs if i is not None])
    if ct.has_zeros or not conditions:
        return ct.with_zeros(), (True, conditions)
    lost = frozenset([k for k, i in enumerate(indices) if i is None])
    return (ct.without(lost) if lost else ct.raw()), (False, conditions)


def shared_conditions(cts: Sequence[Any]) -> tuple[Condition, ...]:
    """Return the conditions on all these cotangents that are the same for all elements.

    What is linear in the cotangents, whatever it is, is under them, too.
    """
    present = [ct for ct in cts if ct is not None]
    if not present or any([ct.__class__ is not Masked for ct in present]):
        return ()
    first, *rest = present
    alike = [c for c in first.conditions if not c.dims]
    return tuple([c for c in alike if all([c.among(ct.conditions) for ct in rest])])


# Rules by which operations pass masked cotangents, and tangents, on: ``pass_back`` is for running
# backwards, ``push_forward`` for going forward. What treats each element alone passes conditions on
# as they are; what moves elements moves conditions along; what mixes elements along some axes
# passes on those that do not vary along these.


def pass_back(
    primitive: Primitive,
    run: Callable[[Any], Sequence[Any]],
    ct: Masked,
    args: Sequence[Any],
    keeps_zeros: bool,
) -> Sequence[Any]:
    """Return the cotangents of the arguments of an operation whose output has this cotangent.

    ``run`` applies its transpose rule to a value; ``keeps_zeros`` says that it only moves elements,
    adds them up and multiplies them by finite constants, so that zeros stay zeros.
    """
    mixes = type(primitive).kept_axes is Primitive.kept_axes
    if mixes and all([c.dims for c in ct.conditions]):
        return run(ct.with_zeros())
    if isinstance(primitive, Elementwise):
        alike = [ct.conditions if a.__class__ is Linear else None for a in args]
        return _lazily(run, ct, alike, args, keeps_zeros)
    moved: list[Any] = [
        _move_conditions(primitive, run, ct, k, a.type) if a.__class__ is Linear else None
        for k, a in enumerate(args)
    ]
    lost = {i for m in moved if m is not None for i, c in enumerate(m) if c is None}
    if lost:
        kept = [m and tuple([c for i, c in enumerate(m) if i not in lost]) for m in moved]
        if keeps_zeros or not any(kept):
            out = run(ct.with_zeros())
        else:
            out = run(ct.without(frozenset(lost)))
        pairs = zip(out, kept, strict=True)
        return [under(v, m, keeps_zeros) if m and v is not None else v for v, m in pairs]
    return _lazily(run, ct, moved, args, keeps_zeros)


def _lazily(
    run: Callable[[Any], Sequence[Any]],
    ct: Masked,
    moved: Sequence[Any],
    args: Sequence[Any],
    keeps_zeros: bool,
) -> Sequence[Any]:
    """Give the cotangents of the arguments under these conditions, once they are needed."""
    raw = _Once(run, ct.raw)
    zeroed = _Once(run, ct.with_zeros) if keeps_zeros else None
    depth = ct.behind(keeps_zeros)
    return [
        m if m is None else raw.masked(k, m, args[k].type, zeroed, depth)
        for k, m in enumerate(moved)
    ]


def _move_conditions(
    primitive: Primitive, run: Callable[[Any], Sequence[Any]], ct: Masked, k: int, type: ArrayType
) -> tuple[Condition | None, ...]:
    """Return the conditions on the cotangent of the ``k``-th operand; None for one that is lost."""
    axes = primitive.kept_axes(k, type, ct.type)
    shape = ct.type.shape

    def along(condition: Condition) -> Condition | None:
        dims = [axes[d] for d in condition.dims]
        if None in dims or dims != sorted(dims):  # type: ignore[type-var]
            return None
        return condition._replace(dims=tuple(dims))

    def moved(condition: Condition) -> Condition | None:
        pads = primitive.rearranges and type.size != ct.type.size
        same = along(condition) or (None if pads else along(narrow_condition(condition, shape)))
        if same is not None or not primitive.rearranges:
            return same
        every = tuple(range(type.ndim))
        if not pads:
            whole = Later(lambda: run(condition.whole(shape))[k], None, [condition])
            return Condition(whole, condition.holds, every)
        # Where nothing was taken from, the rule puts False.
        mask = Later(lambda: run(condition.mask(shape))[k], None, [condition])
        return Condition(mask, True, every)

    return tuple([moved(condition) for condition in ct.conditions])


class _Once:
    """The result of a transpose rule for a cotangent, computed when it is first needed."""

    __slots__ = ("_ct", "_parts", "_run")

    def __init__(self, run: Callable[[Any], Sequence[Any]], ct: Callable[[], Any]) -> None:
        self._run, self._ct = run, ct
        self._parts: Sequence[Any] | None = None

    def part(self, k: int) -> Any:
        """Return the cotangent of operand ``k``."""
        if self._parts is None:
            self._parts = self._run(self._ct())
        return self._parts[k]

    def masked(
        self,
        k: int,
        conditions: tuple[Condition, ...],
        type: ArrayType,
        with_zeros: _Once | None,
        depth: int,
    ) -> Masked:
        """Return what holds under these conditions; ``with_zeros`` has zeros elsewhere."""
        later = None if with_zeros is None else lambda: with_zeros.part(k)
        return Masked(conditions, type, lambda: self.part(k), later, depth)


def push_forward(
    primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """Return output and tangent of an operation with one output, as its jvp rule, if masked.

    The tangent of one that chooses is masked, too.
    """
    if primitive.picks:
        parts = zip(tangents, primitive.picks, strict=True)
        live = [(t, p) for t, p in parts if t is not None]
        if len(live) == 1:
            ((t, holds),) = live
            return primitive(*primals), chosen(t, primals[0], holds)
        shared, values = _in_common([t for t, _ in live])
        if shared:
            out, tangent = primitive.jvp(primals, [None, *values])
            return out, under(tangent, shared, False)
    elif isinstance(primitive, Elementwise):
        if primitive.counts or len([t for t in tangents if t is not None]) > 1:
            if getattr(primitive, "partials", None):
                return _partials(primitive, primals, tangents)
        else:
            return _along(primitive, primals, tangents)
    elif len(primals) == 1 and (primitive.keeps_zeros or _by_element(primitive, tangents[0])):
        return _along(primitive, primals, tangents)
    elif primitive.rearranges:
        return _joined(primitive, primals, tangents)
    return primitive.jvp(primals, [with_zeros(t) for t in tangents])


def _in_common(tangents: Sequence[Any]) -> tuple[tuple[Condition, ...], list[Any]]:
    """Return the conditions that are on both tangents, and the tangents under their others."""
    if any([t.__class__ is not Masked for t in tangents]):
        return (), [with_zeros(t) for t in tangents]
    first, second = tangents
    shared = tuple([c for c in first.conditions if c.among(second.conditions)])
    values = []
    for t in tangents:
        others = [k for k, c in enumerate(t.conditions) if not c.among(shared)]
        values.append(t.without(frozenset(others)) if others else t.raw())
    return shared, values


def _sum(x: Any, y: Any) -> Any:
    """Return the sum of two tangents of which either may be zero."""
    return y if x is None else x if y is None else add_masked(x, y)


def _by_element(primitive: Any, t: Masked) -> bool:
    """Say if an operation on one operand treats each element alone."""
    return [*primitive.kept_axes(0, t.type, t.type)] == [*range(t.type.ndim)]


def _partials(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the sum of each argument's partial derivative times its tangent, where it counts."""
    out, total = primitive(*primals), None
    for k, (partial, t) in enumerate(zip(primitive.partials, tangents, strict=True)):
        if t is None or partial is None:
            continue
        if t.__class__ is Masked:
            value = Known(partial(t.raw(), out, *primals))
            part: Any = Masked(t.conditions, value.value.type, value)
        else:
            part = partial(t, out, *primals)
        if primitive.counts:
            part = chosen(part, primitive.counts[k](*primals), True)
        total = _sum(total, part)
    return out, total


def _along(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the same, for one masked tangent and an operation with a place for each condition."""
    (k,) = [k for k, t in enumerate(tangents) if t is not None]
    t = tangents[k]
    if not primitive.keeps_zeros:
        out, tangent = primitive.jvp(primals, [None if v is None else v.raw() for v in tangents])
        if tangent is None:
            return out, None
        return out, Masked(t.conditions, tangent.type, Known(tangent))
    out = primitive(*primals)
    if out.type.kind not in ("float", "complex"):
        return out, None
    linear: Callable[[Any], Any] = primitive
    if hasattr(primitive, "partials"):
        linear = lambda v: primitive.partials[k](v, out, *primals)
    moved = _forward(primitive, t, k, out.type)
    if len(moved) == len(t.conditions):
        raw, zeroed = lambda: linear(t.raw()), lambda: linear(t.with_zeros())
        return out, Masked(moved, out.type, raw, zeroed, t.behind())
    value = Known(linear(t.with_zeros()))
    return out, Masked(moved, out.type, value, value) if moved else value.value


def _joined(primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the same, for an operation that puts the elements of several operands together."""
    raws = [t.raw() if t.__class__ is Masked else t for t in tangents]
    out, tangent = primitive.jvp(primals, raws)

    def whole() -> Any:
        masks = []
        for x, t in zip(primals, tangents, strict=True):
            if t.__class__ is Masked:
                masks.append(both(t.conditions, x.type.shape).known())
            else:
                masks.append(full(x.type.shape, t is not None, np.dtype(bool)))
        return primitive(*masks)

    behind = [c for t in tangents if t.__class__ is Masked for c in t.conditions]
    condition = Condition(Later(whole, None, behind), True, tuple(range(out.ndim)))
    return out, Masked((condition,), tangent.type, Known(tangent))


def _forward(primitive: Any, t: Masked, k: int, out: ArrayType) -> tuple[Condition, ...]:
    """Return the conditions on the output's tangent; less where they cannot be moved."""
    axes = list(primitive.kept_axes(k, t.type, out))
    moved = []
    for condition in t.conditions:
        if all([d in axes for d in condition.dims]):
            dims = [axes.index(d) for d in condition.dims]
            if dims == sorted(dims):
                moved.append(condition._replace(dims=tuple(dims)))
                continue
        if primitive.rearranges:
            whole = Later(lambda c=condition: primitive(c.whole(t.type.shape)), None, [condition])
            moved.append(Condition(whole, condition.holds, tuple(range(out.ndim))))
    return tuple(moved)
