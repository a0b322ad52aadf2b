"""Masked cotangents at the ends of programs, where plain values go in and come out.

The arrays of their conditions are operands of their own, and what comes out is under those
conditions whose arrays went in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stretto._engine.autodiff.masked import Condition, Masked, is_same, settled, under
from stretto._engine.core.types import ArrayType


class Apart(NamedTuple):
    """Cotangents, of which some are masked, as plain values."""

    values: list[Any]
    """Those that are not zero."""
    arrays: list[Any]
    """Those of all their conditions, each once."""
    form: tuple[Any, ...]
    """For each value, whether it is settled, and its conditions with places for the arrays."""
    rows: list[bool]
    """Which arrays have the first axis of the values, if the form is that of one row of them."""

    @property
    def types(self) -> tuple[ArrayType, ...]:
        """The types of the arrays in that form."""
        types = [a.type for a in self.arrays]
        pairs = zip(types, self.rows, strict=True)
        return tuple([t.with_shape(t.shape[1:]) if row else t for t, row in pairs])

    def apart(self) -> tuple[list[Any], list[Any]]:
        """The arrays that are the same for all rows, and those that have an axis of them."""
        pairs = [*zip(self.arrays, self.rows, strict=True)]
        return [a for a, row in pairs if not row], [a for a, row in pairs if row]

    def again(self, values: Sequence[Any], whole: Sequence[Any], own: Sequence[Any]) -> list[Any]:
        """The cotangents of one row, from its values and arrays."""
        parts = iter(whole), iter(own)
        return together(self.form, values, [next(parts[row]) for row in self.rows])


def everywhere(ct: Any) -> Any:
    """The cotangent, masked only if its conditions are the same for all elements; settled."""
    value = settled(ct)
    return ct if ct.__class__ is Masked and not any([c.dims for c in ct.conditions]) else value


def apart(cts: Sequence[Any], by_row: bool = False) -> Apart:
    """The cotangents that are not ``None``, as plain values, whose form may be that of a row."""
    out = Apart([], [], (), [])
    form = []
    for ct in cts:
        if ct is None:
            continue
        if ct.__class__ is not Masked:
            out.values.append(ct)
            form.append((True, ()))
            continue
        out.values.append(ct.settled() if ct.is_settled else ct.raw())
        conditions = []
        for condition in ct.conditions:
            array, row = condition.known(), by_row and 0 in condition.dims
            pairs = enumerate(zip(out.arrays, out.rows, strict=True))
            place = next(
                (i for i, (a, r) in pairs if is_same(a, array) and r == row), len(out.arrays)
            )
            if place == len(out.arrays):
                out.arrays.append(array)
                out.rows.append(row)
            dims = tuple([d - by_row for d in condition.dims if d or not by_row])
            conditions.append((place, condition.holds, dims))
        form.append((ct.is_settled, tuple(conditions)))
    return out._replace(form=tuple(form))


def together(
    form: Sequence[Any],
    values: Sequence[Any],
    arrays: Sequence[Any],
    rows: Sequence[bool] | None = None,
) -> list[Any]:
    """The cotangents of this form; with ``rows``, of values whose rows have it.

    ``rows`` says which arrays have an axis of rows.
    """
    out = []
    for value, (is_settled, places) in zip(values, form, strict=True):
        if not places:
            out.append(value)
            continue
        conditions = []
        for i, holds, dims in places:
            if rows is not None:
                dims = (*(0,) * rows[i], *[d + 1 for d in dims])
            conditions.append(Condition(arrays[i], holds, dims))
        out.append(under(value, tuple(conditions), is_settled))
    return out


def _place_of(array: Any, arrays: Sequence[Any]) -> int | None:
    """The place of this array among others; ``None`` if it is not there."""
    return next((i for i, other in enumerate(arrays) if is_same(other, array)), None)


def with_conditions(
    ct: Any, arrays: Sequence[Any], more: list[Any] | None = None
) -> tuple[Any, Any]:
    """The cotangent as a value, and its form with places among these arrays and then ``more``.

    Arrays of conditions that are not among them are added to ``more``; without that list these
    conditions are applied.
    """
    if ct.__class__ is not Masked:  # None is zero
        return ct, (True, ())
    places: list[int | None] = []
    for condition in ct.conditions:
        array = condition.array
        place = _place_of(array, arrays)
        if place is None and more is not None:
            array = condition.known()
            place = _place_of(array, [*arrays, *more])
            if place is None:
                place = len(arrays) + len(more)
                more.append(array)
        places.append(place)
    pairs = zip(places, ct.conditions, strict=True)
    conditions = tuple([(i, c.holds, c.dims) for i, c in pairs if i is not None])
    if ct.is_settled or not conditions:
        return ct.settled(), (True, conditions)
    lost = frozenset([k for k, i in enumerate(places) if i is None])
    return (ct.without(lost) if lost else ct.raw()), (False, conditions)


def shared(cts: Sequence[Any]) -> tuple[Condition, ...]:
    """The conditions on all these cotangents that are the same for all elements.

    What is linear in the cotangents, whatever it is, is under them, too.
    """
    present = [ct for ct in cts if ct is not None]
    if not present or any([ct.__class__ is not Masked for ct in present]):
        return ()
    first, *rest = present
    alike = [c for c in first.conditions if not c.dims]
    return tuple([c for c in alike if all([c.among(ct.conditions) for ct in rest])])
