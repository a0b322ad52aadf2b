"""Functions of matrices written with their eigenvectors or singular vectors, and derivatives.

Where eigenvalues are equal, their vectors are a choice, and have no derivative. What is made of all
of them alike, as ``(v * f(w)) @ v.T``, has one all the same: the quotients ``(f(w[j]) - f(w[i])) /
(w[j] - w[i])`` of Daleckii and Krein, which are ``f'`` where values are equal. So while such a
function is differentiated, a value keeps the form in which it was made of vectors and values, and
the product that completes it is given these quotients. The tangent of a value in any other use is
computed when something asks for it. ``autodiff/jvp`` calls this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.types import is_complex
from stretto._engine.ops.arithmetic import Div, Mul
from stretto._engine.ops.broadcast import BroadcastInDim, broadcast_in_dim
from stretto._engine.ops.comparison import Select, full_like, zeros_like
from stretto._engine.ops.complex_parts import Conj, conj
from stretto._engine.ops.contract import DotGeneral, matmul
from stretto._engine.ops.convert import ConvertElementType, convert
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.layout import Reshape, Transpose, expand_dims
from stretto._engine.ops.linalg.matrix_parts import adjoint
from stretto._engine.ops.shape import Pad, Slice, pad, slice_in_dim


class Decomposition:
    """Hold what a matrix was factored into, and how its factors and what is made of them change.

    Args:
        values: eigenvalues or singular values, ``[..., k]``.
        sides: the matrices of vectors, by name, ``[..., m, k]``.
    """

    def __init__(self, values: Any, sides: dict[str, Any]) -> None:
        self.values = values
        self.sides = sides
        self.batch = values.ndim - 1

    @property
    def count(self) -> int:
        """Say how many values there are."""
        return self.values.shape[-1]

    def dvalues(self) -> Any:
        """Return the tangent of the values."""
        raise NotImplementedError

    def dvectors(self, side: str, start: int, stop: int) -> Any:
        """Return the tangents of some of the vectors, divided by differences of values."""
        raise NotImplementedError

    def recombined(self, left: str, right: str, h: Any, slope: Any) -> Any | None:
        """Return the tangent of ``left diag(h) right^H`` by the values; None without a rule.

        ``h`` is a function of each value, with this ``slope``.
        """
        raise NotImplementedError


class Made:
    """Say how a value was made of the vectors and values of a decomposition."""

    source: Decomposition
    described = "a function of eigenvalues or singular values"
    """Name the value in messages about its derivative."""

    def tangent(self) -> Any:
        """Return the tangent of the value, or None for zero."""
        raise NotImplementedError

    def through(
        self, primitive: Any, primals: Sequence[Any], forms: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Any, Made | None, Any] | None:
        """Apply an operation: its value, and the form that this has, or its tangent.

        None if the operation is none that is known of such forms.
        """
        sources = {id(f.source) for f in forms if f is not None}
        if len(sources) != 1:
            return None
        return _through(primitive, primals, forms, tangents)


class Along(Made):
    """A function of each value, along an axis, for values number ``start`` to ``stop``.

    Args:
        source: the decomposition.
        value: the function's values.
        slope: its derivatives by the value, of that shape, or None for zero.
        rest: the tangent that comes from elsewhere, or None.
        axis: along which the values lie; axes of the batch come first.
        repeated: the axes along which it is the same.
        start: the first of the values.
        stop: behind the last.
        plain: the same with real numbers, if these were converted from such.
    """

    def __init__(
        self,
        source: Decomposition,
        value: Any,
        slope: Any,
        rest: Any,
        axis: int,
        repeated: frozenset[int],
        start: int,
        stop: int,
        plain: Along | None = None,
    ) -> None:
        self.source = source
        self.value = value
        self.slope = slope
        self.rest = rest
        self.axis = axis
        self.repeated = repeated
        self.start = start
        self.stop = stop
        self.plain = plain

    @property
    def kind(self) -> tuple[Any, ...]:
        """Return what two must share to be combined element by element."""
        return (id(self.source), self.axis, self.start, self.stop, self.value.shape)

    def mapped(self, primitive: Any, axis: int, repeated: frozenset[int]) -> Along:
        """Return the same after an operation that moves or repeats elements."""
        value, slope, rest = [
            None if v is None else primitive(v) for v in (self.value, self.slope, self.rest)
        ]
        plain = None if self.plain is None else self.plain.mapped(primitive, axis, repeated)
        start, stop = self.start, self.stop
        return Along(self.source, value, slope, rest, axis, repeated, start, stop, plain)

    def vector(self) -> tuple[Any, Any, Any] | None:
        """Return value, slope and rest as ``[..., k]``, if it is the same along all other axes."""
        if self.plain is not None:
            return self.plain.vector()
        batch = self.source.batch
        others = [d for d in range(batch, self.value.ndim) if d != self.axis]
        if not self.repeated.issuperset(others):
            return None
        shape = (*self.value.shape[:batch], self.stop - self.start)

        def line(x: Any) -> Any:
            for d in others:
                x = slice_in_dim(x, 0, 1, 1, d)
            return Reshape(shape)(x)

        return line(self.value), self._line(line, self.slope), self._line(line, self.rest)

    def _line(self, line: Any, x: Any) -> Any:
        return None if x is None else line(x)

    def tangent(self) -> Any:
        """Return the slope times the tangent of the values, and the rest."""
        if self.slope is None:
            return self.rest
        dw = slice_in_dim(self.source.dvalues(), self.start, self.stop, 1, self.source.batch)
        dims = (*range(self.source.batch), self.axis)
        moved = self.slope * convert(broadcast_in_dim(dw, self.slope.shape, dims), self.slope.dtype)
        return moved if self.rest is None else moved + self.rest


class Columns(Made):
    """Vectors number ``start`` to ``stop``, each scaled by a function of its value.

    Args:
        source: the decomposition.
        side: which matrix of vectors.
        scale: the function's value, slope and rest, ``[..., k]``, or None for 1.
        conjugated: whether the vectors are.
        rows: whether the vectors are rows.
        start: the first of the vectors.
        stop: behind the last.
    """

    def __init__(
        self,
        source: Decomposition,
        side: str,
        scale: tuple[Any, Any, Any] | None,
        conjugated: bool,
        rows: bool,
        start: int,
        stop: int,
    ) -> None:
        self.source = source
        self.side = side
        self.scale = scale
        self.conjugated = conjugated
        self.rows = rows
        self.start = start
        self.stop = stop

    described = "eigenvectors or singular vectors, which have none where values are equal"

    @property
    def axis(self) -> int:
        """The axis along which the vectors are numbered."""
        return self.source.batch + (0 if self.rows else 1)

    def having(self, **changes: Any) -> Columns:
        """Return the same with some of its fields changed."""
        return Columns(**{**vars(self), **changes})

    def scaled(self, scale: tuple[Any, Any, Any] | None) -> Columns:
        """Return the same scaled once more."""
        return self.having(scale=_times(self.scale, scale))

    def vectors(self, x: Any) -> Any:
        """Return a matrix of vectors as columns, laid out as this is."""
        x = conj(x) if self.conjugated and is_complex(x.dtype) else x
        last = x.ndim - 1
        return Transpose((*range(last - 1), last, last - 1))(x) if self.rows else x

    def tangent(self) -> Any:
        """Return the tangent of the vectors, scaled, and that of the scale."""
        source = self.source
        last = source.batch + 1
        moved = self.vectors(source.dvectors(self.side, self.start, self.stop))
        if self.scale is None:
            return moved
        value, slope, rest = self.scale
        still = slice_in_dim(source.sides[self.side], self.start, self.stop, 1, last)
        still = self.vectors(still)
        spread = lambda x: convert(
            broadcast_in_dim(x, still.shape, (*range(source.batch), self.axis)), still.dtype
        )
        total = moved * spread(value)
        if slope is not None:
            dw = slice_in_dim(source.dvalues(), self.start, self.stop, 1, source.batch)
            total = total + still * spread(slope * convert(dw, slope.dtype))
        return total if rest is None else total + still * spread(rest)


class Diagonal(Made):
    """A function of values put on the diagonal of a matrix, or on the way there."""

    def __init__(self, along: Along, steps: tuple[Any, ...]) -> None:
        self.source = along.source
        self.along = along
        self.steps = steps

    @property
    def whole(self) -> bool:
        """Say whether it is a matrix already."""
        return len(self.steps) == 2

    def tangent(self) -> Any:
        """Return the tangent of the function, put there."""
        dx = self.along.tangent()
        for step in self.steps if dx is not None else ():
            dx = step(dx)
        return dx


def _times(
    x: tuple[Any, Any, Any] | None, y: tuple[Any, Any, Any] | None
) -> tuple[Any, Any, Any] | None:
    """Return the product of two functions with their slopes and rests."""
    if x is None or y is None:
        return y if x is None else x
    (a, da, ra), (b, db, rb) = x, y
    return a * b, _sum(_product(da, b), _product(a, db)), _sum(_product(ra, b), _product(a, rb))


def _product(x: Any, y: Any) -> Any:
    return None if x is None or y is None else x * y


def _sum(x: Any, y: Any) -> Any:
    return y if x is None else x if y is None else x + y


def _through(
    primitive: Any, primals: Sequence[Any], forms: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Made | None, Any] | None:
    form = forms[0]
    if isinstance(primitive, DotGeneral):
        return _product_of(primitive, primals, forms)
    if len(primals) == 1 and isinstance(form, Columns):
        new = _columns(primitive, form)
        return None if new is None else (primitive(*primals), new, None)
    if isinstance(primitive, Mul | Div) and any([isinstance(f, Columns) for f in forms]):
        new = _scale(forms, isinstance(primitive, Div))
        return None if new is None else (primitive(*primals), new, None)
    if any([f is not None and not isinstance(f, Along) for f in forms]):
        if isinstance(form, Diagonal) and isinstance(primitive, Reshape) and not form.whole:
            n = form.along.stop - form.along.start
            if primitive.shape == (*form.along.value.shape[:-1], n, n):
                steps = (*form.steps, primitive)
                return primitive(*primals), Diagonal(form.along, steps), None
        return None
    if isinstance(primitive, Elementwise | Select | ConvertElementType):
        return _element_by_element(primitive, primals, forms, tangents)
    if isinstance(primitive, Pad) and isinstance(form, Along) and forms[1] is None:
        n = form.stop - form.start
        spread = (*[(0, 0, 0)] * form.source.batch, (0, 0, n))
        if form.value.ndim == form.source.batch + 1 and primitive.config == spread:
            zero = lambda x: pad(x, 0, primitive.config)
            return primitive(*primals), Diagonal(form, (zero,)), None
        return None
    new = _move_axes(primitive, form) if len(primals) == 1 else None
    return None if new is None else (new.value, new, None)


def _element_by_element(
    primitive: Any, primals: Sequence[Any], forms: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Made | None, Any] | None:
    """Return a function of functions of values, with the slope by its own derivative."""
    known = [f for f in forms if f is not None]
    if len({f.kind for f in known}) != 1 or any(
        [p.shape != known[0].value.shape for p, f in zip(primals, forms, strict=True) if f is None]
    ):
        return None
    slopes = [None if f is None else f.slope for f in forms]
    rests = [t if f is None else f.rest for f, t in zip(forms, tangents, strict=True)]
    value = primitive(*primals)

    def derivative(parts: Sequence[Any]) -> Any:
        if all([part is None for part in parts]) or value.type.kind not in ("float", "complex"):
            return None
        return primitive.jvp(primals, parts)[1]

    one = known[0]
    same = one.repeated if len(known) == len(forms) else frozenset[int]()
    same = frozenset.intersection(same, *[f.repeated for f in known])
    new = Along(
        one.source,
        value,
        derivative(slopes),
        derivative(rests),
        one.axis,
        same,
        one.start,
        one.stop,
        one if isinstance(primitive, ConvertElementType) and is_complex(value.dtype) else None,
    )
    return value, new, None


def _move_axes(primitive: Any, form: Along) -> Along | None:
    """Return a function of values whose axes are moved, repeated or cut."""
    batch = form.source.batch
    axes: dict[int, int]
    if isinstance(primitive, BroadcastInDim):
        axes = dict(enumerate(primitive.dims))
        shape = primitive.shape
    elif isinstance(primitive, Transpose):
        axes = {d: i for i, d in enumerate(primitive.permutation)}
        shape = tuple([form.value.shape[d] for d in primitive.permutation])
    elif isinstance(primitive, Reshape):
        kept = [
            d for d, n in enumerate(form.value.shape) if n != 1 or d in (form.axis, *range(batch))
        ]
        shape = primitive.shape
        places = [i for i, n in enumerate(shape) if n != 1]
        if [form.value.shape[d] for d in kept] != [shape[i] for i in places]:
            return None
        axes = dict(zip(kept, places, strict=True))
    elif isinstance(primitive, Slice):
        cut = [
            d
            for d, n in enumerate(form.value.shape)
            if (primitive.starts[d], primitive.limits[d], primitive.strides[d]) != (0, n, 1)
        ]
        if cut != [form.axis] or primitive.strides[form.axis] != 1:
            return None
        new = form.mapped(primitive, form.axis, form.repeated)
        first, last = primitive.starts[form.axis], primitive.limits[form.axis]
        for f in (new, new.plain):
            if f is not None:
                f.start, f.stop = form.start + first, form.start + last
        return new
    else:
        return None
    same_batch = all([axes.get(d) == d for d in range(batch)])
    if not same_batch or shape[axes[form.axis]] != form.value.shape[form.axis]:
        return None
    ones = {
        axes[d] for d in axes if d in form.repeated or (form.value.shape[d] == 1 and d != form.axis)
    }
    new_axes = {d for d in range(len(shape)) if d not in axes.values()}
    return form.mapped(primitive, axes[form.axis], frozenset(ones | new_axes))


def _columns(primitive: Any, form: Columns) -> Columns | None:
    """Return vectors that are transposed, conjugated, or of which some are taken."""
    batch, axis = form.source.batch, form.axis
    if isinstance(primitive, Transpose):
        swapped = (*range(batch), batch + 1, batch)
        return form.having(rows=not form.rows) if primitive.permutation == swapped else None
    if isinstance(primitive, Conj):
        value = form.scale
        if value is not None and any([v is not None and is_complex(v.dtype) for v in value]):
            return None
        return form.having(conjugated=not form.conjugated)
    if isinstance(primitive, Slice):
        side = form.source.sides[form.side]
        sizes = [*side.shape[:batch], 0, 0]
        sizes[axis] = form.stop - form.start
        sizes[2 * batch + 1 - axis] = side.shape[batch]
        whole = [
            (primitive.starts[d], primitive.limits[d], primitive.strides[d]) == (0, n, 1)
            for d, n in enumerate(sizes)
        ]
        if not all([w for d, w in enumerate(whole) if d != axis]) or primitive.strides[axis] != 1:
            return None
        first, last = primitive.starts[axis], primitive.limits[axis]
        cut = lambda v: None if v is None else slice_in_dim(v, first, last, 1, batch)
        scale = None if form.scale is None else tuple(map(cut, form.scale))
        start, stop = form.start + first, form.start + last
        return form.having(scale=scale, start=start, stop=stop)
    return None


def _scale(forms: Sequence[Any], divided: bool) -> Columns | None:
    """Return vectors times a function of their values, or divided by it."""
    columns, along = forms if divided or isinstance(forms[0], Columns) else forms[::-1]
    if not isinstance(columns, Columns) or not isinstance(along, Along):
        return None
    if along.axis != columns.axis or (along.start, along.stop) != (columns.start, columns.stop):
        return None
    scale = along.vector()
    if scale is not None and divided:
        h, *others = scale
        slope, rest = (None if d is None else -d / (h * h) for d in others)
        scale = 1 / h, slope, rest
    return None if scale is None else columns.scaled(scale)


def _product_of(
    primitive: DotGeneral, primals: Sequence[Any], forms: Sequence[Any]
) -> tuple[Any, Made | None, Any] | None:
    """Return vectors times a diagonal matrix, or the product that puts a function together."""
    left, right = forms
    if left is None or right is None:
        return None
    batch = tuple(range(left.source.batch))
    if primitive.shared != (batch, batch):
        return None
    if isinstance(left, Diagonal) or isinstance(right, Diagonal):
        columns, diagonal = (right, left) if isinstance(left, Diagonal) else (left, right)
        if not isinstance(columns, Columns) or not isinstance(diagonal, Diagonal):
            return None
        along = diagonal.along
        kept = columns.rows == (columns is right)
        summed = primitive.summed[0 if columns is left else 1]
        fits = (along.start, along.stop) == (columns.start, columns.stop)
        if not (diagonal.whole and kept and fits and summed == (columns.axis,)):
            return None
        scale = along.vector()
        return None if scale is None else (primitive(*primals), columns.scaled(scale), None)
    if not isinstance(left, Columns) or not isinstance(right, Columns):
        return None
    if primitive.summed != ((left.axis,), (right.axis,)):
        return None
    if (left.start, left.stop) != (right.start, right.stop):
        return None
    out = primitive(*primals)
    if is_complex(out.dtype) and (left.conjugated or not right.conjugated):
        return None
    tangent = _recombine(left, right)
    if tangent is None:
        return None
    return out, None, convert(tangent, out.dtype, out.type.weak_type)


def _recombine(left: Columns, right: Columns) -> Any | None:
    """Give the tangent of ``left diag(h) right^H``, for ``h`` zero outside of the vectors taken."""
    source = left.source
    scale = _times(left.scale, right.scale)
    dtype = source.values.dtype
    ones = full_like(slice_in_dim(source.values, left.start, left.stop, 1, source.batch), 1)
    h, slope, rest = (ones, None, None) if scale is None else scale
    if is_complex(h.dtype):
        return None
    edges = [(0, 0, 0)] * source.batch + [(left.start, source.count - left.stop, 0)]
    whole = lambda x: pad(convert(x, dtype), 0, edges)
    h = whole(h)
    slope = zeros_like(h) if slope is None else whole(slope)
    total = source.recombined(left.side, right.side, h, slope)
    if total is None or rest is None:
        return total
    u, v = source.sides[left.side], source.sides[right.side]
    rest = whole(rest)
    along = convert(expand_dims(rest, rest.ndim - 1), u.dtype)  # a row, for the columns of u
    return total + matmul(u * along, adjoint(v))
