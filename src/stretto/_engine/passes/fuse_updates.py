"""Make one call of what an optimizer does with each of many arrays, for a kernel.

XLA makes a kernel of its own for each array, which takes longer to compile than to run, and where
arrays have three axes or more its loops run along the last, element by element where that is short.
What is looked for is element-wise operations on arrays of one shape, with numbers that are the same
for all elements, or for all of a member of an ensemble: those whose results leave the program, and
those that nothing reads but such operations. So no optimizer is known by name, and the operations
can all be done together, at the end. Each stays what it is; where a product is added to something,
the two may be rounded once, as in XLA's kernels.

Times of Adam in place, divided by those of XLA's kernels over arrays with one axis, on one thread
with 512-bit vectors. With two threads, training steps of GPT-2 with four layers, ViT-S, an LSTM, a
graph network and MLPs take 0.95 to 1.02 of the time, as memory is what they wait for, and their
first results 0.5 to 0.8 of it.

=================  ======  =========
arrays             kernel  XLA's own
=================  ======  =========
62 of ResNet-18    1.1     2.8
50 of a U-Net      1.1     3.1
8 of 64x64x3x3     1.2     3.7
1 of 64x64x3x3     1.2     2.6
4 of 64x64x7x7     1.3     5.3
2 of 16x16x32x32   1.4     1.4
8 of 512x512       1.3     1
100 of 64x64       1.9     1
52 of GPT-2        1.1     1
=================  ======  =========
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Equation, Literal, Program, Var
from stretto._engine.core.rewriting import drop_dead, remember, with_equations
from stretto._engine.core.sizes import is_size
from stretto._engine.kernels import DTYPES
from stretto._engine.ops.arithmetic import Abs, Add, Mul, Neg, Sub
from stretto._engine.ops.bits import And, Not, Or
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.comparison import Eq, Ge, Gt, Le, Lt, Ne, Select
from stretto._engine.ops.extrema import Max, Min
from stretto._engine.ops.fused_updates import FusedUpdates
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.row_program import CURVES, Instructions, Space, Views, instructions
from stretto._engine.ops.shape import Rev

_LEAST_ELEMENTS = 1 << 12
"""The elements of an array from which a call is worth its few microseconds."""

_MOST_ALONE = 64, 1 << 19
"""The operations, and the elements of all results, up to which a program that does nothing else is
one call. XLA hands what it computes itself to threads that sleep between calls: 65,000 elements of
ReLU take 50 microseconds so, and 9 in a call, which the caller begins, 500,000 take 89 and 42. Of
2,000,000 the kernel's take 1.6 times as long, as XLA's loops keep values in registers."""
_MAPPED = 1 << 25
"""The bytes of a result above which it is in memory that is mapped anew (decision 89). A kernel has
it in huge pages: 16,000,000 elements take a third of the time, whatever is done with them."""

_SHORT = 32
"""The elements of a last axis from which XLA's loops over three axes are as fast as the kernel."""

_MANY = 6
"""The large results, such as two matrices and their moments, from which all are in calls: what XLA
would compile for each takes 5 ms."""

_SHARE = 4
"""Of fewer, the part of all elements that have to be in arrays that XLA is slow for, so that the
others are in their calls, too: XLA copies no weights then."""

_MOST_ARRAYS = 64
"""The arrays of one call: XLA's time to see that nothing has to be copied grows with the square of
their number, and is 9 s for 400."""

_MOST_WAITING = 1 << 13
"""The elements of gradients that wait in one call for the next one: small arrays of a layer or two.
XLA computes the gradients of a call's arrays one after the other, and has what all of them need in
memory until then: with all of ResNet-18 in one call at 224x224 that is 50 MB more."""


def fuse_updates(program: Program) -> Program:
    """Return the program with element-wise operations on what it returns gathered.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> from stretto import tree
    >>> ws = [snp.ones((k, 1000, 3)) for k in range(2, 9)]
    >>> step = lambda ws, ds: tree.map(lambda w, d: w - 0.1 * d, ws, ds)
    >>> [e.primitive.name for e in fuse_updates(make_graph(step)(ws, ws)).equations]
    ['fused_updates']
    """
    return remember(program, "fused updates", _fused)


def gather_updates(program: Program) -> Program:
    """Return the program with all such operations gathered, if arrays are large enough for a call.

    For the body of a loop, whose arrays a kernel can write where it has read them.
    """
    return remember(program, "gathered updates", lambda program: _fused(program, everything=True))


def fuse_alone(program: Program) -> Program:
    """Return a program of element-wise operations alone as one call, if it is small or very large.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> graph = make_graph(lambda x: snp.maximum(x, 0) * x)(snp.ones((50, 100)))
    >>> [e.primitive.name for e in fuse_alone(graph).equations]
    ['fused_updates']
    """
    return remember(program, "fused alone", _alone)


def _alone(program: Program) -> Program:
    types = program.out_types
    if any([any(map(is_size, t.shape)) for t in types]) or len(program.equations) > _MOST_ALONE[0]:
        return program
    small = sum([t.size for t in types]) <= _MOST_ALONE[1]
    mapped = all([t.size * t.dtype.itemsize > _MAPPED for t in types])
    if not (small or mapped) or not (_has_curves(program) or _is_exact(program)):
        return program
    fused = _fused(program, everything=True)
    is_all = all([isinstance(e.primitive, (FusedUpdates, *_AS_IT_LIES)) for e in fused.equations])
    return fused if is_all else program


def _has_curves(program: Program) -> bool:
    """Say whether a program in float32 has functions that are approximated wherever they are."""
    types = [v.type.dtype for e in program.equations for v in e.outputs]
    curves = any([isinstance(e.primitive, CURVES) for e in program.equations])
    return curves and {*types} <= {DTYPES[0], np.dtype(bool)}


def _is_exact(program: Program) -> bool:
    """Say whether a program's results are the same bits whoever computes them.

    A program that compares what two others give, as where a threshold is found first, may go by it.
    """
    products: set[Any] = set()
    for e in program.equations:
        kind = e.primitive.__class__
        if kind in _AS_IT_LIES:
            products.update(e.outputs if not products.isdisjoint(e.inputs) else ())
        elif kind in _ADDITIONS:
            if not products.isdisjoint(e.inputs):
                return False  # the two may be rounded once
        elif kind is Mul:
            products.update(e.outputs)
        elif kind not in _EXACT:
            return False
    return True


def _fused(program: Program, everything: bool = False) -> Program:
    large = [shape for shape in _leaving(program) if math.prod(shape) >= _LEAST_ELEMENTS]
    everything |= len(large) >= _MANY
    if not (large if everything else any(map(_is_slow, large))):
        return program
    found = _Finder(program, everything).found()
    if found is None:
        return program
    places, calls = found
    kept = [e for place, e in enumerate(program.equations) if place not in places]
    return drop_dead(with_equations(program, [*kept, *calls]))


def _leaving(program: Program) -> list[tuple[int, ...]]:
    """Return the shapes of what leaves the program that a kernel may compute."""
    types = [v.type for v in program.outputs if v.type.dtype in DTYPES]
    return [t.shape for t in types if not any(map(is_size, t.shape))]


def _is_slow(shape: tuple[int, ...]) -> bool:
    """Say whether XLA's loops go along a short axis, although a call may take it as one of all."""
    axes = [n for n in shape if n != 1]
    return len(axes) > 2 and axes[-1] < _SHORT and math.prod(axes) >= _LEAST_ELEMENTS


_AS_IT_LIES = (BroadcastInDim, OptimizationBarrier, Reshape, Rev, Transpose)
"""Operations whose results kernels read where their operand lies."""


_ADDITIONS = (Add, Sub)
_EXACT = (Neg, Abs, Max, Min, Eq, Ne, Lt, Le, Gt, Ge, Select, And, Or, Not)
"""Operations that are computed alike everywhere; ``Mul`` and ``_ADDITIONS`` are, one by one."""


class _Operand(NamedTuple):
    """An array that an operation reads from outside, or a number for each of some first axes."""

    atom: Var
    axes: int
    """How many first axes a number has; -1 for an array."""


class _Member(NamedTuple):
    """An operation: what the kernel does for it, and how it reads its operands."""

    op: str
    reads: list[_Operand | Literal]


class _Component:
    """Operations that depend on each other, or read the same arrays."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.places: list[int] = []
        self.part_of: _Component | None = None

    def whole(self) -> _Component:
        """Return the component that this one has become part of."""
        one = self
        while one.part_of is not None:
            one = one.part_of
        return one


class _Segment(NamedTuple):
    """A component as the kernel sees it: what it does, and with what."""

    form: Any
    """Equal for those that do the same."""
    dtype: np.dtype
    axes: int
    """The first axes along which its numbers differ."""
    shape: tuple[int, ...]
    inputs: tuple[_Operand, ...]
    outputs: tuple[Var, ...]
    places: tuple[int, ...]

    @property
    def size(self) -> int:
        """The elements of each array."""
        return math.prod(self.shape)

    @property
    def is_large(self) -> bool:
        """Say whether an array is worth a call."""
        return self.size >= _LEAST_ELEMENTS


class _Group(NamedTuple):
    """Segments that do the same."""

    told: Instructions
    segments: list[_Segment]


class _Finder:
    """Finds operations that can be done at the end of a program."""

    def __init__(self, program: Program, everything: bool) -> None:
        self.program, self.everything = program, everything
        self.outputs = {*program.outputs}
        self.makers = {v: e for e in program.equations for v in e.outputs}
        self.views = Views(self.makers)
        self.spaces: dict[Any, Space] = {}
        self.members: dict[int, _Member] = {}
        """The operations that may be done, by place."""
        self.outside: set[Any] = set()
        """The values that other operations read."""

    def found(self) -> tuple[set[int], list[Equation]] | None:
        """Return the places of the operations, and those that do what they do."""
        self._find_members()
        segments = [s for s in map(self._segment, self._components()) if s is not None]
        forms: dict[Any, list[_Segment]] = {}
        for segment in segments:
            forms.setdefault(segment.form, []).append(segment)
        by_dtype: dict[np.dtype, list[_Group]] = {}
        for alike in forms.values():
            template = max(alike, key=lambda s: s.size)
            told = self._told(template)
            if told is not None:
                by_dtype.setdefault(template.dtype, []).append(_Group(told, alike))
        if not by_dtype:
            return None
        groups = max(by_dtype.values(), key=_elements)
        found = [s for _, alike in groups for s in alike]
        if not any([_is_slow(s.shape) or (self.everything and s.is_large) for s in found]):
            return None
        return self._calls(groups)

    def _find_members(self) -> None:
        outs = {v for v in self.program.outputs if v.type.ndim and v.type.dtype in DTYPES}
        outs = {v for v in outs if not any(map(is_size, v.type.shape))}
        slow = {v for v in outs if _is_slow(v.type.shape)}
        sizes = [sum([v.type.size for v in some]) for some in (slow, outs)]
        needed = outs if self.everything or _SHARE * sizes[0] >= sizes[1] else slow
        for place in range(len(self.program.equations) - 1, -1, -1):
            e = self.program.equations[place]
            if len(e.outputs) == 1 and e.outputs[0] not in self.outside:
                (out,) = e.outputs
                if out not in self.outputs and self._is_renamed(out):
                    continue
                member = self._member(e) if out in needed else None
                if member is not None:
                    self.members[place] = member
                    for read in member.reads:
                        if isinstance(read, _Operand):
                            (needed if read.axes < 0 else self.outside).add(read.atom)
                    continue
            self.outside.update(e.inputs)

    def _is_renamed(self, atom: Any) -> bool:
        """Say whether an array is another one under another name."""
        base, _ = self.views(atom)
        same = base.type.shape == atom.type.shape and base.type.dtype == atom.type.dtype
        return same and base is not atom

    def _member(self, e: Equation) -> _Member | None:
        """Return an operation as the kernel does it; None if it cannot."""
        out = e.outputs[0].type
        if observable(e.primitive.effects) or any(map(is_size, out.shape)) or out.size == 0:
            return None
        dtypes = [a.type.dtype for a in (*e.outputs, *e.inputs)]
        dtype = next((d for d in dtypes if d in DTYPES), None)
        key = out.shape, dtype or DTYPES[0]
        space = self.spaces.get(key)
        if space is None:
            space = self.spaces[key] = Space(out.shape, len(out.shape), key[1])
        found = space.operation(e, self.views)
        if found is None or found[1] != "rows" or found[0] == "is_column":
            return None
        reads = [self._read(a, out.shape) for a in e.inputs]
        whole = [read for read in reads if read is not None]
        return _Member(found[0], whole) if len(whole) == len(reads) else None

    def _read(self, atom: Any, shape: tuple[int, ...]) -> _Operand | Literal | None:
        """Return how an operation reads something; None if the kernel cannot."""
        if isinstance(atom, Literal):
            return atom
        base, view = self.views(atom)
        if base is atom:
            return _Operand(atom, -1 if atom.type.shape == shape else 0)
        if self._is_renamed(atom):
            return _Operand(base, -1)
        inner = base.type.shape
        if len(inner) < len(shape) and inner == shape[: len(inner)]:
            count = len(inner)
        elif base.type.size == atom.type.size:
            return _Operand(atom, -1)
        else:
            differs = [bool(s) and n > 1 for n, s in zip(shape, view.strides, strict=True)]
            count = max([k + 1 for k, d in enumerate(differs) if d], default=0)
        lead = shape[:count]
        if base.type.size != math.prod(lead):
            return None
        steps = [math.prod(lead[axis + 1 :]) for axis in range(count)]
        steps += [0] * (len(shape) - count)
        fits = all([n == 1 or s == t for n, s, t in zip(shape, view.strides, steps, strict=True)])
        return _Operand(base, count) if fits else None

    def _components(self) -> Iterator[_Component]:
        owner: dict[Any, _Component] = {}
        for place in sorted(self.members):
            e = self.program.equations[place]
            own = _Component(e.outputs[0].type.shape)
            own.places.append(place)
            owner[e.outputs[0]] = own
            for read in self.members[place].reads:
                if not isinstance(read, _Operand) or read.axes >= 0:
                    continue
                other = owner.setdefault(read.atom, own).whole()
                if other is not own.whole() and other.shape == own.shape:
                    mine = own.whole()
                    other.places += mine.places
                    mine.part_of = other
        yield from dict.fromkeys([c.whole() for c in owner.values()])

    def _segment(self, component: _Component) -> _Segment | None:
        """Return a component in the form by which equal ones are found; None if it updates none."""
        places = sorted(component.places)
        number: dict[Any, int] = {}
        inputs: list[_Operand] = []
        lines: list[Any] = []
        outputs: list[Var] = []
        dtypes: set[np.dtype] = set()
        axes = 0
        for place in places:
            e = self.program.equations[place]
            line: list[Any] = [self.members[place].op]
            for read in self.members[place].reads:
                if isinstance(read, Literal):
                    dtype = read.type.dtype
                    line.append((dtype, np.asarray(read.value, dtype).tobytes()))
                    continue
                key = read.atom if read.axes < 0 else read
                if key not in number:
                    number[key] = len(number)
                    inputs.append(read)
                    line.append((read.axes, read.atom.type.dtype))
                    dtypes.add(read.atom.type.dtype)
                    if read.axes > 0 and axes not in (0, read.axes):
                        return None
                    axes = max(axes, read.axes)
                line.append(number[key])
            (out,) = e.outputs
            number[out] = len(number)
            dtypes.add(out.type.dtype)
            leaves = out in self.outputs
            if leaves:
                outputs.append(out)
            lines.append((*line, leaves))
        updates = any([read.axes < 0 and read.atom not in self.makers for read in inputs])
        floats = [dtype for dtype in dtypes if dtype in DTYPES]
        if not updates or len(floats) != 1 or not dtypes <= {*floats, np.dtype(bool)}:
            return None
        shape = component.shape
        form = (floats[0], axes, math.prod(shape[:axes]), tuple(lines))
        return _Segment(form, floats[0], axes, shape, tuple(inputs), tuple(outputs), tuple(places))

    def _told(self, segment: _Segment) -> Instructions | None:
        """Return the instructions for a segment, which do for all that have its form."""
        space = Space(segment.shape, len(segment.shape) - segment.axes, segment.dtype)
        if segment.axes == len(segment.shape) or space.columns == 1:
            return None
        # Numbers are repeated as they are read, whatever the way.
        inputs: list[Var] = []
        repeated: dict[_Operand, Var] = {}
        body: list[Equation] = []
        for read in segment.inputs:
            if read.axes < 0:
                inputs.append(read.atom)
                continue
            small = Var(read.atom.type.with_shape(segment.shape[: read.axes]))
            repeated[read] = Var(read.atom.type.with_shape(segment.shape))
            spread = BroadcastInDim(segment.shape, tuple(range(read.axes)))
            body.append(Equation(spread, (small,), (repeated[read],), None))
            inputs.append(small)
        for place in segment.places:
            e = self.program.equations[place]
            reads = self.members[place].reads
            atoms = [repeated.get(r, r.atom) if isinstance(r, _Operand) else r for r in reads]
            body.append(Equation(e.primitive, atoms, e.outputs, e.place))
        told = instructions(Program(inputs, body, segment.outputs, "updates"), space)
        return None if told is None or told.numbers[1:4] != (1, 1, 1) else told

    def _calls(self, groups: list[_Group]) -> tuple[set[int], list[Equation]]:
        equations = self.program.equations
        made = {v: place for place, e in enumerate(equations) for v in e.outputs}
        whole = [(told, s) for told, alike in groups for s in alike]
        depth = self._depths(made)
        ready = {
            s.places: max([depth[made[r.atom]] for r in s.inputs if r.atom in made], default=0)
            for _, s in whole
        }
        whole.sort(key=lambda one: ready[one[1].places])
        places = {place for _, s in whole for place in s.places}
        kept = [k for k in range(len(equations)) if k not in places]
        self.uses = Counter([a for k in kept for a in equations[k].inputs])
        self.readers = Counter([v for _, s in whole for v in {read.atom for read in s.inputs}])
        parts: list[list[tuple[Instructions, _Segment]]] = [[]]
        waiting = since = 0
        for told, segment in whole:
            waits = waiting > _MOST_WAITING and ready[segment.places] > since
            if waits or len(parts[-1]) == _MOST_ARRAYS:
                parts.append([])
                waiting = 0
            parts[-1].append((told, segment))
            since = ready[segment.places]
            of_program = [read for read in segment.inputs if read.axes < 0 and read.atom in made]
            waiting += segment.size * len(of_program)
        last = self._last_readers(kept, depth)
        seen: set[int] = set()
        calls = []
        for part in parts:
            arrays = dict.fromkeys([read.atom for _, s in part for read in s.inputs])
            self._visit([made[v] for v in arrays if v in made], made, seen)
            # A weight may be written over only when the gradient that needs it is there.
            late = dict.fromkeys([last[v] for v in arrays if v in last and last[v] not in seen])
            after = [min(equations[k].outputs, key=lambda v: v.type.size) for k in late]
            calls.append(self._call(part, after))
        return places, calls

    def _depths(self, made: Mapping[Any, int]) -> list[int]:
        """Return how many operations, one after the other, there are up to each."""
        depths: list[int] = []
        for e in self.program.equations:
            before = [depths[made[a]] for a in e.inputs if not isinstance(a, Literal) and a in made]
            depths.append(1 + max(before, default=0))
        return depths

    def _last_readers(self, kept: Sequence[int], depth: Sequence[int]) -> dict[Any, int]:
        """Return where each input of the program is read last, also in another order of axes."""
        origin = {v: v for v in self.program.inputs}
        last: dict[Any, int] = {}
        for k in kept:
            e = self.program.equations[k]
            for a in e.inputs:
                if isinstance(a, Literal) or a not in origin:
                    continue
                if len(e.inputs) == 1 and isinstance(e.primitive, _AS_IT_LIES):
                    origin[e.outputs[0]] = origin[a]
                elif e.outputs and depth[k] >= depth[last.get(origin[a], k)]:
                    last[origin[a]] = k
        return last

    def _visit(self, starts: list[int], made: Mapping[Any, int], seen: set[int]) -> None:
        """Add the places of what these operations need; of what is known already, no more."""
        while starts:
            place = starts.pop()
            if place not in seen:
                seen.add(place)
                inputs = self.program.equations[place].inputs
                starts += [made[a] for a in inputs if not isinstance(a, Literal) and a in made]

    def _call(
        self, part: Sequence[tuple[Instructions, _Segment]], after: Sequence[Any]
    ) -> Equation:
        """Return one call for these segments, which comes when all these arrays are there."""
        groups: dict[int, _Group] = {}
        for told, segment in part:
            groups.setdefault(id(told), _Group(told, [])).segments.append(segment)
        operands: dict[Any, int] = {}
        numbers = [len(groups), len(part)]
        outputs: list[Var] = []
        shared: list[tuple[int, int]] = []
        places: set[int] = set()
        for told, alike in groups.values():
            numbers += [*told.numbers, len(alike)]
            for segment in alike:
                rows = math.prod(segment.shape[: segment.axes])
                own = [operands.setdefault(r.atom, len(operands)) for r in segment.inputs]
                numbers += [rows, segment.size // rows, *[own[i] for i in told.inputs]]
                for k, i in told.shared:
                    out, read = segment.outputs[k].type, segment.inputs[i]
                    # What another segment reads may not be written by this one.
                    alone = read.axes < 0 and self.readers[read.atom] == 1
                    if alone and read.atom.type.dtype == out.dtype:
                        shared.append((len(outputs) + k, own[i]))
                outputs += segment.outputs
                places.update(segment.places)
        ending = [i for v, i in operands.items() if self._ends(v, 0) and self.readers[v] == 1]
        for v in after:
            operands.setdefault(v, len(operands))
        program = Program([*operands], self._equations(places, operands), outputs, "updates")
        primitive = FusedUpdates(program, tuple(numbers), tuple(shared), frozenset(ending))
        place = self.program.equations[max(places)].place
        return Equation(primitive, tuple(operands), outputs, place)

    def _equations(self, places: set[int], operands: dict[Any, int]) -> list[Equation]:
        """Return the operations, with those that only repeat or rename what they read."""
        written: list[Equation] = []
        known = {*operands}

        def write(e: Equation) -> None:
            for a in e.inputs:
                if not isinstance(a, Literal) and a not in known:
                    write(self.makers[a])
            written.append(e)
            known.update(e.outputs)

        for place in sorted(places):
            write(self.program.equations[place])
        return written

    def _ends(self, v: Any, least: int) -> bool:
        """Say whether nothing needs an array of the program's own but so many other operations."""
        e = self.makers.get(v)
        if e is None or v in self.outputs or self.uses[v] > least:
            return False
        return not self.views.is_view(v) or self._ends(e.inputs[0], 1)


def _elements(groups: list[_Group]) -> int:
    """Return the elements of what all segments return."""
    return sum([s.size * len(s.outputs) for _, alike in groups for s in alike])
