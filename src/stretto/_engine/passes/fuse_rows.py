"""Make one operation of softmax, norms, their gradients and the like, for a kernel by rows.

What is looked for is sums or maxima along rows with element-wise operations around them, whatever
function they come from. All of a group read and write arrays of one shape, or one value a row, and
no other operation stands between two of them. Each operation stays what it is, so results differ in
the rounding of sums and exponentials alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.rewriting import (
    drop_dead,
    in_order,
    remember,
    with_equations,
    written_out,
)
from stretto._engine.core.sizes import is_size
from stretto._engine.higher_order.custom_derivatives import CustomJvp
from stretto._engine.kernels import DTYPES
from stretto._engine.ops.arithmetic import Mul, Sub
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.exponential import Logistic, LogisticSlope
from stretto._engine.ops.fused_product import FusedProduct
from stretto._engine.ops.fused_rows import FusedRows
from stretto._engine.ops.layout import Transpose
from stretto._engine.ops.reducing.reduce import ReduceMax, ReduceMin
from stretto._engine.ops.row_program import CURVES, Kind, Space, Views, instructions
from stretto._engine.ops.trigonometric import SechSquared, Tanh
from stretto._engine.passes.thin_products import as_rows, matrix_of, space_of

_WORTH = 1 << 12
"""The elements from which a call is worth its few microseconds, also in loops."""

_LEAST_COLUMNS = 32
"""The columns from which rows are worth it: with 16, XLA's softmax takes 0.85 of the kernel's."""
_LEAST_BESIDE = 32
"""The rows side by side from which they are worth it, where rows' elements are not."""
_MOST_COLUMNS_APART = 1 << 10
"""The columns up to which they are: of 8,192 x 512 along the first axis, XLA's softmax takes a
third of the kernel's time, of 1,024 x 512 0.9, of 128 x 512 twice as long."""
_LEAST_STRETCH = 16
"""The elements that a value is repeated over, within a row, from which they are a line."""
_LEAST_OVER = 256
"""The elements of a row with others between from which it is worth it: XLA's gradients of batch
norm over 8 examples of 4 by 4 take 0.7 of the time, over 16 the same."""
_MOST_COLUMNS_ALONE = 1 << 16
"""The columns up to which a single row is worth a call, which one thread runs."""

_NARROW, _MOST_NARROW = 16, 256
"""Rows that are narrower do not fill vectors: of so many in all a call is worth it."""


def fuse_rows(program: Program) -> Program:
    """Return the program with operations along rows gathered.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> from stretto import nn
    >>> graph = make_graph(lambda x: nn.functional.softmax(x, dim=-1))(snp.ones((64, 128)))
    >>> [e.primitive.name for e in fuse_rows(graph).equations]
    ['fused_rows']
    """
    return remember(program, "fused rows", lambda program: _fused(program, small=False))


def fuse_small_rows(program: Program) -> Program:
    """Return the program with operations along rows gathered that are few.

    This is for what no loop repeats. XLA compiles a kernel for each of a few operations, and hands
    a program to another thread if it sees a thousand of them, of which a call has none: a layer
    norm of 8 by 128 elements takes 12 ms to compile so and 6 µs a call, and 98 ms and 39 µs by
    XLA. But XLA makes one kernel of a whole small loop.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> from stretto import nn
    >>> graph = make_graph(lambda x: nn.functional.softmax(x, dim=-1))(snp.ones((2, 16)))
    >>> [e.primitive.name for e in fuse_small_rows(graph).equations]
    ['fused_rows']
    """
    return remember(program, "fused small rows", lambda program: _fused(program, small=True))


def _fused(program: Program, small: bool) -> Program:
    # Without a call for each operation: most programs have none of these.
    along = [e for e in program.equations if e.primitive.__class__ in _ALONG]
    thin = [] if small else _beside_curves(program)
    if not along and not thin:
        return program
    read = {a for e in program.equations for a in e.inputs}
    along = [e for e in along if e.outputs[0] in read]  # what follows a sum is what a call is for
    # A product reads a matrix where it lies; along rows it would be turned around before.
    turned = {e.outputs[0] for e in program.equations if e.primitive.__class__ is Transpose}
    kept = {e for e in thin if matrix_of(e) in turned}
    summed = [space for e in thin if e not in kept and (space := space_of(e)) is not None]
    spaces = _spaces([*map(_space_of, along), *summed], small)
    if not spaces:
        return program
    program = _with_parts(program, spaces)
    while True:
        opened, products = _opened(program, spaces if summed else {}, kept)
        groups = _Groups(opened, spaces)
        calls = {place: call for places, call in groups.found() for place in places}
        left = {e for e, place in products.items() if place not in calls}
        if not left:
            break
        kept |= left
    if not calls:
        return program
    changed = with_equations(opened, in_order(opened, calls))
    if "noted" in program.cache:
        changed.cache["noted"] = program.cache["noted"]
    return drop_dead(changed)


def _beside_curves(program: Program) -> list[Equation]:
    """Return the products that may be along rows, if curves stand beside any.

    Chains of networks of one input and one output take 0.6 to 0.8 of the time so with tanh and the
    logistic function, 1 to 1.05 with ReLU and GELU, and up to 1.12 with softplus.
    """
    products = [e for e in program.equations if e.primitive.__class__ in _PRODUCTS]
    if not products:
        return []
    opened = [getattr(short(e), "equations", (e,)) for e in program.equations]
    curves = [e for some in opened for e in some if isinstance(e.primitive, CURVES)]
    others = {e.outputs[0].type.shape for e in curves if not isinstance(e.primitive, _QUICK)}
    shapes = {e.outputs[0].type.shape for e in curves} - others
    matrices = [m for m in map(matrix_of, products if shapes else ()) if m is not None]
    return products if any([m.type.shape in shapes for m in matrices]) else []


def _opened(
    program: Program, spaces: Mapping[Any, Space], kept: set[Equation]
) -> tuple[Program, dict[Equation, int]]:
    """Return the program with functions of a few operations, and thin products, written out.

    Products that are ``kept`` stay. Says where the largest operation of each other one is.
    """
    shapes = {shape for shape, _ in spaces}
    products: dict[Equation, int] = {}
    inner: dict[Equation, Program] = {}
    place = 0
    for e in program.equations:
        found = short(e)
        if found is None and shapes and e not in kept:
            rows = as_rows(e, shapes)
            if rows is not None:
                found, products[e] = rows[0], place + rows[1]
        if found is not None:
            inner[e] = found
        place += 1 if found is None else len(found.equations)
    return (written_out(program, inner.get) if inner else program), products


_ALONG = (ReduceSum, ReduceMax, ReduceMin)
_PRODUCTS = (DotGeneral, FusedProduct)
_QUICK = (Tanh, SechSquared, Logistic, LogisticSlope)
"""Curves that the kernel computes with their derivatives."""
_BEGINNING = ("sum", "greatest", "least", "first")


def short(e: Equation) -> Program | None:
    """Return the program of a function with a derivative of its own, if it is a few operations."""
    primitive = e.primitive
    if not isinstance(primitive, CustomJvp):
        return None
    inner = primitive.program
    few = len(inner.equations) <= 4 and all([one.primitive.light for one in inner.equations])
    return inner if few else None


def _spaces(along: list[Space | None], small: bool) -> dict[Any, Space]:
    """Return the shapes and dtypes with reductions along some axes, also ``small`` ones."""
    counts: Counter[Space] = Counter()
    for space in along:
        if space is not None and _is_worth_it(space, small):
            counts[space] += 1
    spaces: dict[Any, Space] = {}
    # Sums over examples, of a bias's derivative, are no reason to take rows the other way.
    last = lambda space: 1 if space.behind else 2 * (math.prod(space.lead) == 1)
    for space in sorted([space for space, _ in counts.most_common()], key=last):
        spaces.setdefault((space.shape, space.dtype), space)
    return spaces


def _space_of(e: Equation) -> Space | None:
    """Return the rows that a reduction is along, if a kernel may take them."""
    primitive: Any = e.primitive
    type, axes = e.inputs[0].type, sorted(primitive.axes)
    if type.dtype not in DTYPES or not axes or any(map(is_size, type.shape)):
        return None
    tail = 1
    while tail < len(axes) and axes[-tail - 1] == axes[-tail] - 1:
        tail += 1
    behind, front = type.ndim - 1 - axes[-1], axes[:-tail]
    if not front:
        return Space(type.shape, tail, type.dtype, behind)
    over = front[0], front[-1] + 1
    apart = behind or front != list(range(*over))
    return None if apart else Space(type.shape, tail, type.dtype, over=over)


def _is_worth_it(space: Space, small: bool) -> bool:
    """Say whether a kernel is quicker for these rows, of which there may be few if ``small``."""
    rows, columns = math.prod(space.lead), space.columns
    if (rows == 1 and columns > _MOST_COLUMNS_ALONE) or columns < 2:
        return False
    if space.behind:
        apart = columns <= _MOST_COLUMNS_APART and space.lead[-1] >= _LEAST_BESIDE
        return apart and (small or rows * columns >= _WORTH)
    lines, width = rows * space.parts, columns // space.parts
    large = rows * columns >= _WORTH
    if any(space.over) and (large or not small):
        return large and columns >= _LEAST_OVER and width >= _NARROW
    if small:
        return lines > 0 and (width >= _NARROW or lines <= _MOST_NARROW)
    return large and width >= _LEAST_COLUMNS


def _with_parts(program: Program, spaces: dict[Any, Space]) -> Program:
    """Find what repeats within the rows of spaces; return the program with sums of it apart.

    A sum over the places of channels and over examples becomes one for each channel of each row,
    which the kernel makes while the row is in the cache, and a small one over examples.
    """
    views = Views({v: e for e in program.equations for v in e.outputs})
    found: dict[Any, Counter[int]] = {}
    for e in program.equations:
        shaped = [a for a in e.inputs if not isinstance(a, Literal)]
        for a in shaped:
            space = spaces.get((a.type.shape, a.type.dtype))
            if space is None or space.behind or any(space.over) or space.tail < 2:
                continue
            steps = views(a)[1].strides[space.first :]
            sizes = space.shape[space.first :]
            moving = [
                k + 1 for k, (n, s) in enumerate(zip(sizes, steps, strict=True)) if n > 1 and s
            ]
            split = max(moving, default=0)
            if 0 < split < space.tail and math.prod(sizes[split:]) >= _LEAST_STRETCH:
                found.setdefault((space.shape, space.dtype), Counter())[split] += 1
    for key, splits in found.items():
        spaces[key] = spaces[key]._replace(stretches=splits.most_common(1)[0][0])
    equations: list[Equation] = []
    for e in program.equations:
        space = spaces.get((e.inputs[0].type.shape, e.inputs[0].type.dtype)) if e.inputs else None
        axes = sorted(e.primitive.axes) if isinstance(e.primitive, ReduceSum) else []
        if space is None:
            equations.append(e)
            continue
        inner = [*space.axes[space.stretches :]]
        rest = axes[: len(axes) - len(inner)]
        if not rest or axes[len(rest) :] != inner or {*rest} & {*space.axes}:
            equations.append(e)
            continue
        kept = tuple([n for k, n in enumerate(space.shape) if k not in inner])
        partial = Var(e.inputs[0].type.with_shape(kept))
        equations.append(Equation(ReduceSum(tuple(inner)), e.inputs, (partial,), e.place))
        equations.append(Equation(ReduceSum(tuple(rest)), (partial,), e.outputs, e.place))
    return (
        program if len(equations) == len(program.equations) else with_equations(program, equations)
    )


class _Group:
    """Operations over rows of one space, and the groups that they depend on."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.members: dict[int, tuple[str, Kind]] = {}
        """What the equations at these places do."""
        self.outside: set[_Group] = set()
        """Groups of which it reads something through operations that are in none."""
        self.direct: set[_Group] = set()
        """Groups of which it reads results."""
        self.part_of: _Group | None = None
        """The group that it was merged into."""

    @property
    def reduces(self) -> bool:
        """Say whether it reduces along rows."""
        return any([op in _BEGINNING for op, _ in self.members.values()])


class _Groups:
    """Puts equations into groups, one after the other."""

    def __init__(self, program: Program, spaces: dict[Any, Space]) -> None:
        self.program = program
        self.spaces = spaces
        self.views = Views({v: e for e in program.equations for v in e.outputs})
        self.group: dict[Any, _Group] = {}
        self.kind: dict[Any, Kind] = {}
        self.place_of: dict[Any, int] = {}
        self.needs: dict[Any, set[_Group]] = {}
        """The groups that a value depends on; of what is in a group nobody asks."""
        before: set[_Group] = set()  # what the last operation with an effect depends on
        for place, e in enumerate(program.equations):
            if not observable(e.primitive.effects):
                self._place(place, e)
            needs: set[_Group] = set()
            for base in self._bases(e):
                needs |= self._of(base)
            if observable(e.primitive.effects):
                needs |= before
                before = needs
            for v in e.outputs:
                self.needs[v] = needs

    def _bases(self, e: Equation) -> list[Var]:
        return [self.views(a)[0] for a in e.inputs if not isinstance(a, Literal)]

    def _of(self, base: Any) -> set[_Group]:
        group = self.group.get(base)
        return self.needs.get(base, set()) if group is None else {group}

    @staticmethod
    def _reaches(starts: Iterable[_Group], group: _Group) -> bool:
        """Say whether any of these is a group, or depends on it."""
        seen: set[_Group] = set()
        stack = list(starts)
        while stack:
            one = stack.pop()
            if one is group:
                return True
            if one not in seen:
                seen.add(one)
                stack += [*one.outside, *one.direct]
        return False

    def _place(self, place: int, e: Equation) -> None:
        """Put an equation into a group, if it can be in one."""
        groups: list[_Group] = []
        for base in self._bases(e):
            group = self.group.get(base)
            if group is not None and group not in groups:
                groups.append(group)
        for group in groups:
            found = self._fits(e, group.space)
            if found is None:
                continue
            others: set[_Group] = set()
            for base in self._bases(e):
                if self.group.get(base) is not group:
                    others |= self._of(base)
            if self._reaches(others, group):
                continue
            self._join(place, e, group, found)
            for other in groups:
                if other is not group and other.space == group.space:
                    self._merge(group, other)
            return
        shapes = {a.type.shape for a in (*e.inputs, *e.outputs)}
        for key in [(shape, dtype) for shape in shapes for dtype in DTYPES]:
            space = self.spaces.get(key)
            found = space and self._fits(e, space)
            if space and found and (found[1] == "rows" or found[0] in _BEGINNING):
                self._join(place, e, _Group(space), found)
                return

    def _fits(self, e: Equation, space: Space) -> tuple[str, Kind] | None:
        """Return what an equation does in a space, if the kernel can read all its operands."""
        found = space.operation(e, self.views)
        if found is None:
            return None
        op, kind = found
        reading = "rows"
        if kind in ("scalars", "parts") and e.inputs[0].type.shape != space.shape:
            reading = space.kind(e.inputs[0].type.shape) or kind
        for a in e.inputs:
            if isinstance(a, Literal) or (op == "is_column" and space.counts(a, self.views)):
                continue
            base, view = self.views(a)
            group = self.group.get(base)
            if group is not None and group.space == space:
                own = self.kind[base]
                if own == "sums" or not space.is_own(view, reading, own):
                    return None
            elif not space.takes(view, reading, base.type):
                return None
        return found

    def _join(self, place: int, e: Equation, group: _Group, found: tuple[str, Kind]) -> None:
        group.members[place] = found
        self.group[e.outputs[0]] = group
        self.kind[e.outputs[0]] = found[1]
        self.place_of[e.outputs[0]] = place
        for base in self._bases(e):
            own = self.group.get(base)
            if own is None:
                group.outside |= self.needs.get(base, set())
            elif own is not group:
                group.direct.add(own)

    def _merge(self, one: _Group, other: _Group) -> None:
        """Make one group of two, unless something outside stands between them."""
        for a, b in ((one, other), (other, one)):
            if self._reaches(a.outside | (a.direct - {b}), b):
                return
        other.part_of = one
        one.members.update(other.members)
        one.outside |= other.outside
        one.direct = (one.direct | other.direct) - {one, other}
        for place in other.members:
            self.group[self.program.equations[place].outputs[0]] = one
        for group in {*self.group.values()}:
            for known in (group.outside, group.direct):
                if other in known:
                    known.discard(other)
                    known.add(one)
        for known in {id(n): n for n in self.needs.values()}.values():
            if other in known:
                known.discard(other)
                known.add(one)

    def found(self) -> list[tuple[list[int], Equation]]:
        """Return the groups that are worth a call: their equations' places, and the call."""
        self._merge_readers()
        called: dict[_Group, list[int]] = {}
        for group in {id(g): g for g in self.group.values()}.values():
            places = self._worthwhile(group)
            if places:
                called[group] = places
        while True:
            readers = self._readers()
            self._repeat_cheap(called, readers)
            calls = {group: self._call(group, called[group], readers) for group in called}
            too_large = [group for group, call in calls.items() if call is None]
            if not too_large:
                return [(called[group], call) for group, call in calls.items() if call]
            for group in too_large:
                del called[group]

    def _readers(self) -> dict[Any, set[int]]:
        """Return where each array is read, through views as well."""
        readers: dict[Any, set[int]] = {}
        for place, e in enumerate(self.program.equations):
            if len(e.outputs) == 1 and self.views.is_view(e.outputs[0]):
                continue  # who reads the view reads the array
            for base in self._bases(e):
                readers.setdefault(base, set()).add(place)
        return readers

    def _merge_readers(self) -> None:
        """Make one group of those that read the same rows, where one of them reduces along rows."""
        reading: dict[Any, list[_Group]] = {}
        for e in self.program.equations:
            group = self.group.get(e.outputs[0]) if e.outputs else None
            if group is None:
                continue
            for a in e.inputs:
                if not isinstance(a, Literal) and a.type.shape == group.space.shape:
                    reading.setdefault(self.views(a)[0], []).append(group)
        for groups in reading.values():
            for one in groups[1:]:
                first, other = self._now(groups[0]), self._now(one)
                alike = first is not other and first.space == other.space
                if alike and (first.reduces or other.reduces):
                    self._merge(first, other)

    def _now(self, group: _Group) -> _Group:
        """Return the group that this one has become part of."""
        while group.part_of is not None:
            group = group.part_of
        return group

    def _repeat_cheap(self, called: dict[_Group, list[int]], readers: dict[Any, set[int]]) -> None:
        """Have groups compute again what costs less than to write it and to read it.

        These are differences and products of rows and a scalar each, as what a norm's derivative
        needs: the rows are there anyway.
        """
        owner = {place: group for group, places in called.items() for place in places}
        self.repeated: dict[_Group, set[Any]] = {group: set() for group in called}

        def stays(v: Any, group: _Group) -> bool:
            """Say whether others than calls of the same space read a value of a group."""
            users = [owner.get(place) for place in readers.get(v, ())]
            return v in self.outputs or any([u is None or u.space != group.space for u in users])

        def cheap(v: Any, group: _Group, depth: int = 0) -> list[Any]:
            """Return what has to be computed again for a value; nothing if that is too much."""
            e = self.makers[v]
            if depth > 2 or stays(v, group) or not isinstance(e.primitive, (Sub, Mul)):
                return []
            bases = {self.views(a)[0] for a in e.inputs if not isinstance(a, Literal)}
            size = math.prod(group.space.shape)
            rows = [b for b in bases if math.prod(b.type.shape) == size]
            scalars = bases - {*rows}
            own = all([self.group.get(b) is group and self.kind[b] == "scalars" for b in scalars])
            if len(rows) != 1 or len(scalars) != 1 or not own:
                return []
            (base,) = rows
            if owner.get(self.place_of.get(base, -1)) is not group:
                return [v]
            if {owner.get(place) for place in readers.get(base, ())} - {group}:
                return [v]  # it is written anyway
            more = cheap(base, group, depth + 1)
            return [v, *more] if more else []

        for place, group in sorted(owner.items(), key=lambda item: item[0]):
            for v in self.program.equations[place].outputs:
                users = {owner.get(p) for p in readers.get(v, ())} - {group}
                again = cheap(v, group) if users and self.kind[v] == "rows" else []
                for user in users if again else ():
                    self._repeat(again, user, called[user], readers)  # type: ignore[arg-type, index]

    def _repeat(
        self, values: list[Any], user: _Group, places: list[int], readers: dict[Any, set[int]]
    ) -> None:
        """Have a group compute values again."""
        self.repeated[user].update(values)
        for v in values:
            readers[v] = readers.get(v, set()) - {*places}
            for base in self._bases(self.makers[v]):
                if base not in values:
                    readers.setdefault(base, set()).add(places[0])

    def _worthwhile(self, group: _Group) -> list[int]:
        """Return the places of what reductions need, what depends on them, and what that needs."""
        equations, members = self.program.equations, group.members
        order = sorted(members)
        maker = {equations[place].outputs[0]: place for place in order}
        inputs = {
            place: [maker[b] for b in self._bases(equations[place]) if b in maker]
            for place in order
        }
        reducing = {p for p in order if isinstance(equations[p].primitive, _ALONG)}
        after = {p for p in reducing if members[p][1] in ("scalars", "parts")}
        for place in order:
            if any([p in after for p in inputs[place]]):
                after.add(place)
        if not any([members[p][1] == "rows" for p in after]):
            return []
        kept = after | reducing
        for place in reversed(order):
            if place in kept:
                kept.update(inputs[place])
        return sorted(kept)

    def _call(
        self, group: _Group, places: list[int], readers: dict[Any, set[int]]
    ) -> Equation | None:
        """Return one operation that does what the equations at these places do."""
        equations = self.program.equations
        own = {equations[place].outputs[0] for place in places}
        inside = set(places)
        outs = [
            v
            for place in places
            for v in equations[place].outputs
            if v in self.outputs or not readers.get(v, set()) <= inside
        ]
        outs.sort(key=lambda v: self.kind[v] == "sums")
        bases: dict[Any, None] = {}
        written: list[Equation] = []
        done: dict[Any, bool] = {}  # what is written, and whether it counts columns
        clashes = False

        def write(e: Equation, counts: bool = False, inside_numbers: bool = False) -> None:
            """Write the repeats and reshapes that an equation reads, then the equation.

            One that ``counts`` columns reads no array with their numbers; all others do.
            """
            nonlocal clashes
            for a in e.inputs:
                if isinstance(a, Literal) or a in own:
                    continue
                maker = self.makers.get(a)
                numbers = inside_numbers or (counts and group.space.counts(a, self.views))
                viewed = self.views.is_view(a) or a in self.repeated[group]
                if a in done:
                    clashes |= done[a] != numbers
                elif maker is not None and (viewed or numbers):
                    done[a] = numbers
                    write(maker, numbers, numbers)
                else:
                    bases[a] = None
            written.append(e)

        for place in places:
            write(equations[place], group.members[place][0] == "is_column")
        if clashes or not bases.keys().isdisjoint(done):
            return None  # the numbers of columns are read as an array as well
        program = Program(bases, written, outs, "rows")
        told = instructions(program, group.space)
        if told is None:
            return None
        return Equation(FusedRows(program, told), tuple(bases), outs, equations[places[-1]].place)

    @property
    def outputs(self) -> set[Atom]:
        """What the program returns, and what that is read from."""
        if not hasattr(self, "_outputs"):
            outs = [a for a in self.program.outputs if not isinstance(a, Literal)]
            self._outputs = {*outs, *[self.views(a)[0] for a in outs]}
        return self._outputs

    @property
    def makers(self) -> Mapping[Any, Equation]:
        """The equation that makes each value."""
        return self.views.definers
