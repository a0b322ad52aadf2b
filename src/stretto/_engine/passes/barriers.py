"""Operations that only steer the compiler: barriers, and work that moves a program to a thread.

Barriers stand where XLA or YNNPACK would compute again what is computed already.

Programs that may take long run on a thread of XLA's on CPUs, however small they are, and however
few operations XLA sees in them beside calls of our kernels. XLA runs a
program in the thread that calls it if it counts fewer than a thousand operations in it, where each
loop counts as one step: then nothing is heard of Ctrl-C until the loop has ended. With a thousand
operations more, which take some 0.2 µs, the call returns, and whoever waits can be interrupted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.primitive import CALLBACK, ORDERED, Kernel, Primitive
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.rewriting import (
    changed_inside,
    holds_programs,
    remember,
    types_made,
    with_equations,
)
from stretto._engine.core.types import bytes_of, is_inexact, kind_of
from stretto._engine.higher_order.family import Call, has_long_loop
from stretto._engine.kernels import kernels
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import Comparison, Select, gt, select, zeros_like
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import ConvertElementType, convert
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.fused import Fused
from stretto._engine.ops.identities import (
    AFTER,
    OPTIMIZATION_BARRIER,
    OptimizationBarrier,
    with_barriers,
)
from stretto._engine.ops.index.dynamic import DynamicSlice
from stretto._engine.ops.index.gather_scatter import ScatterExtremum
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.cumulative import (
    Cumulative,
    LinearRecurrence,
    RunningChooser,
)
from stretto._engine.ops.reducing.reduce import Chooser, Place, reduce_min
from stretto._engine.ops.reducing.window import WindowChooser
from stretto._engine.ops.shape import Concatenate, slice_in_dim
from stretto._engine.ops.sort import Sort, TopK
from stretto._engine.passes.prepare import as_written

_CHOOSING = (Chooser, RunningChooser, WindowChooser, ScatterExtremum, Sort, TopK)
"""Each element of a result is one of an operand's."""

_COMPARING = (Place, Comparison)
"""A program compares values with what was chosen from them by these alone."""

_MOVING = (Gather, DynamicSlice, Select, Concatenate, OptimizationBarrier)
"""The same holds here, and the kernels that do it leave the bits as they are."""


_MUCH_WORK = 1 << 24
"""Multiply-adds that take some hundred microseconds, of a program whose caller should not wait:
another thread takes 20 to 50 to begin, and the caller to hear of its end."""


def barrier_before_choices(program: Program) -> Program:
    """Return the program with barriers behind what is compared with its own elements.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> program = make_graph(lambda x: snp.argmax(x * 2 + 1, 0))(snp.ones((3, 2)))
    >>> print(barrier_before_choices(program))
    { function(a:f32[3,2])
      b:f32[3,2] = mul a 2.0:f32[3,2]
      c:f32[3,2] = add b 1.0:f32[3,2]
      d:f32[3,2] = optimization_barrier c
      e:i32[2] = argmax d [axis=0, index_dtype=int32]
      return e }
    """
    return remember(program, "barrier before choices", lambda p: _with_barriers(p, p.inputs))


def _inside(program: Program) -> Program:
    # The compiler writes such a program in place of its call: its arguments may be computed again.
    return remember(program, "barrier before choices, inside", lambda p: _with_barriers(p, ()))


def _with_barriers(program: Program, stored: Iterable[Atom]) -> Program:
    program = changed_inside(program, _inside)
    compared = _compared(program)
    if not compared:
        return program
    barred = _barred(program, compared, set(stored))
    return with_barriers(program, barred) if barred else program


def _compared(program: Program) -> set[Atom]:
    """Find the values that are compared with what was chosen from them."""
    primitives = [e.primitive for e in program.equations]
    if not any([isinstance(p, _COMPARING) or p.holds_programs for p in primitives]):
        return set()
    roots: dict[Atom, Atom] = {}  # of a view, the value that it is a view of
    origins: dict[Atom, frozenset[Atom]] = {}  # the values that elements were chosen from
    compared: set[Atom] = set()
    nothing: frozenset[Atom] = frozenset()
    for e in program.equations:
        primitive = e.primitive
        read = [roots.get(a, a) for a in e.inputs if a.__class__ is Var]
        chosen = nothing.union(*[origins.get(a, nothing) for a in e.inputs])
        if isinstance(primitive, Place):
            compared.update(read)
        elif isinstance(primitive, Comparison):
            compared.update(chosen.intersection(read))
        elif primitive.holds_programs:
            # What is chosen or compared inside may be compared or chosen outside.
            compared.update(chosen.intersection(read))
            if _chooses(primitive):
                origins.update(dict.fromkeys(e.outputs, chosen.union(read)))
        elif isinstance(primitive, _CHOOSING):
            origins.update(dict.fromkeys(e.outputs, chosen.union(read)))
        elif chosen and (_is_view(primitive) or isinstance(primitive, _MOVING)):
            origins.update(dict.fromkeys(e.outputs, chosen))
        elif len(e.inputs) == len(read) == 1 and _is_view(primitive):
            roots.update(dict.fromkeys(e.outputs, read[0]))
    return compared


def _is_view(primitive: Primitive) -> bool:
    return primitive.kernel is Kernel.VIEW or primitive.rearranges


def _chooses(primitive: Primitive) -> bool:
    """Tell whether the operation, or what it holds, chooses among elements."""
    if not primitive.holds_programs:
        return isinstance(primitive, _CHOOSING)
    holder: Any = primitive
    return any(_chooses(e.primitive) for p in holder.programs() for e in p.equations)


def _barred(program: Program, compared: set[Atom], stored: set[Atom]) -> set[Atom]:
    """Keep those values that kernels might compute again, and not to the last bit alike."""
    made: dict[Atom, Primitive] = {v: e.primitive for e in program.equations for v in e.outputs}

    def may_differ(value: Atom) -> bool:
        if value in stored or not is_inexact(value.type.dtype):
            return False
        # Results in narrow floats are computed wider, and XLA may leave the rounding out.
        return value not in made or value.type.dtype.itemsize < 4 or _in_kernels(made[value])

    return {value for value in compared if may_differ(value)}


def _in_kernels(primitive: Primitive) -> bool:
    """Tell whether the operation may be part of the kernels that read its result."""
    if primitive.kernel is None:
        return primitive.light or primitive.holds_programs
    return primitive.kernel is not Kernel.WRITTEN


# Products, one behind the other


_BLOCKS = 256
"""The columns from which on it matters: two blocks, which take a tenth longer than one.

Products of 512 columns took 4 times as long as with Eigen, of 1,024 columns 8 times."""


def split_chained_products(program: Program) -> Program:
    """Return the program with barriers in front of such products; the same values.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w = snp.ones((8, 512)), snp.ones((512, 512))
    >>> program = split_chained_products(st.make_graph(lambda x, w: snp.tanh(x @ w) @ w)(x, w))
    >>> [e.primitive.name for e in program.equations]
    ['dot_general', 'tanh', 'optimization_barrier', 'dot_general']
    """
    return remember(program, "split_chained_products", _split_chained_products)


def _split_chained_products(program: Program) -> Program:
    program = changed_inside(program, split_chained_products)
    if sum([e.primitive.__class__ is DotGeneral for e in program.equations]) < 2:
        return program
    products: set[Atom] = set()
    equations: list[Equation] = []
    for e in program.equations:
        primitive: Any = e.primitive
        if isinstance(primitive, DotGeneral):
            left = e.inputs[0]
            if left in products and _square(primitive, e.inputs[1]):
                apart = Var(left.type)
                equations.append(Equation(OPTIMIZATION_BARRIER, [left], [apart], e.place))
                e = Equation(primitive, [apart, e.inputs[1]], e.outputs, e.place)
            products.update(e.outputs)
        elif not products.isdisjoint(e.inputs) and (
            isinstance(primitive, Elementwise) or primitive.kernel is Kernel.VIEW
        ):
            products.update(e.outputs)
        equations.append(e)
    return with_equations(program, equations)


def _square(primitive: DotGeneral, right: Atom) -> bool:
    """Say whether the second matrix has as many columns as rows, and enough of them."""
    (_, summed), (_, shared) = primitive.summed, primitive.shared
    shape = right.type.shape
    rows = math.prod([shape[a] for a in summed])
    columns = math.prod([n for a, n in enumerate(shape) if a not in (*summed, *shared)])
    return rows == columns >= _BLOCKS and right.type.dtype.itemsize == 4


# What several kernels read


_READS = 2
"""The least number of arrays of its size that a value worth storing is made of.

To compute it again is to read them again; to store it is to write it once, and read it. With three
times the bytes a GPT of 8 layers compiled in 3.8 s in place of 2.9, and ran alike.
"""

_LEAST = 1 << 12
"""The bytes of the smallest value that is stored: below, a kernel costs more than what it saves."""

_FEWEST = _LEAST // 16
"""The fewest elements, of the widest dtype, that such a value has."""

_SMALL = 4
"""Operands this many times smaller than the value cost nothing to read."""

_MOST = 16
"""The most operands of a value that are counted."""


def materialize_shared(program: Program) -> Program:
    """Return the program with barriers behind values that several kernels would compute.

    The values are the same.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> def f(x, y):
    ...     s = x + y
    ...     return s.sum(), s.max(0)
    >>> x = snp.ones((64, 64))
    >>> print(materialize_shared(make_graph(f)(x, x)))
    { f(a:f32[64,64], b:f32[64,64])
      c:f32[64,64] = add a b
      d:f32[64,64] = optimization_barrier c
      e:f32[] = reduce_sum d [axes=(0, 1)]
      f:f32[64] = reduce_max d [axes=(0,)]
      return e, f }
    """
    return remember(program, "materialize_shared", _materialize_shared)


def _materialize_shared(program: Program) -> Program:
    program = changed_inside(program, materialize_shared)
    types = types_made(program)
    if any([t.size >= _FEWEST for t in types]):
        shared = {v for v in _shared(program) if bytes_of(v.type) >= _LEAST}
        if shared:
            return with_barriers(program, _worth_storing(program, shared))
    return program


def _worth_storing(program: Program, shared: set[Atom]) -> set[Atom]:
    """Keep those of the shared values that are worth storing."""
    made_of: dict[Atom, tuple[Var, ...]] = {}
    stored: set[Atom] = set()
    for e in program.equations:
        fused = _fused(e.primitive)
        if not fused and shared.isdisjoint(e.outputs):
            continue
        read = _sources(e.inputs, made_of)
        for value in e.outputs:
            sources = _of_size(read, bytes_of(value.type))
            if value in shared:
                if e.primitive.kernel is Kernel.LONG:
                    continue  # XLA does not repeat it
                if _bytes(sources) >= _READS * bytes_of(value.type):
                    stored.add(value)
                    continue
            if fused:
                made_of[value] = sources
    return stored


def _fused(primitive: Any) -> bool:
    """Say whether XLA makes it part of the kernels that read its result."""
    return isinstance(primitive, Elementwise) or primitive.kernel is Kernel.VIEW


def _shared(program: Program) -> set[Atom]:
    """Return the values that are parts of several kernels.

    They are results of element-wise operations, or of calls, which XLA inlines. A kernel is named
    by its result; a shared value is taken for one.
    """
    outputs = set(program.outputs)
    readers: dict[Atom, tuple[Var, ...]] = {}
    shared: set[Atom] = set()
    for e in reversed(program.equations):
        if not e.outputs:
            continue
        primitive: Any = e.primitive
        kernels: tuple[Var, ...] = (e.outputs[0],)
        for value in e.outputs:
            read_by = readers.get(value, ())
            if value in outputs:
                continue
            if len(read_by) < 2 or not _storable(primitive, value):
                if _fused(primitive):
                    kernels = read_by
            else:
                shared.add(value)
        for a in e.inputs:
            if a.__class__ is Var:
                known = readers.get(a, ())
                if len(known) < 2 and known != kernels:
                    readers[a] = (*known, *[k for k in kernels if k not in known])
    return shared


def _storable(primitive: Any, value: Atom) -> bool:
    """Say whether it may be stored for the kernels that read it, at a gain.

    A kernel that reads truth values is not vectorized, whereas one that compares again is.
    """
    # relu of 8×64×28×28 with its gradient took 2.0 ms with ``x <= 0`` stored, and 0.3 without.
    return isinstance(primitive, Elementwise | Call) and value.type.dtype != bool


def _sources(operands: Iterable[Atom], made_of: dict[Atom, tuple[Var, ...]]) -> list[Var]:
    """Return the stored arrays that an operation on these operands reads, once fused."""
    sources: dict[Var, None] = {}
    for a in operands:
        if isinstance(a, Var):
            sources.update(dict.fromkeys(made_of.get(a, (a,))))
    return list(sources)


def _of_size(sources: list[Var], size: int) -> tuple[Var, ...]:
    """Return those that take time to read, beside a value of so many bytes."""
    return tuple([s for s in sources if _SMALL * bytes_of(s.type) >= size][:_MOST])


def _bytes(sources: Iterable[Var]) -> int:
    return sum([bytes_of(s.type) for s in sources])


# What is read elsewhere than a barrier's copy of it


def store_beside_copies(program: Program) -> Program:
    """Return the program with barriers behind what is taken from a value that has a barrier itself.

    XLA has one buffer for a value and for what comes out of a barrier, and lets a kernel that reads
    the latter element by element write over it. It does not look whether the kernel reads the value
    before the barrier as well, elsewhere: of ``copy - y[:1]`` with a ``copy`` of ``y`` all rows but
    the first were wrong (jaxlib 0.10.2, in any order of operations). So what is taken from the
    value is stored, and the kernel reads that.

    >>> import stretto as st, stretto.numpy as snp
    >>> def centred(y):
    ...     return st.lax.optimization_barrier(y) - y[:1]
    >>> program = store_beside_copies(st.make_graph(centred)(snp.ones((3, 2))))
    >>> [e.primitive.name for e in program.equations]
    ['optimization_barrier', 'slice', 'optimization_barrier', 'broadcast_in_dim', 'sub']
    """
    return remember(program, "store beside copies", _store_beside_copies)


_CALLED = (DotGeneral, ConvGeneralDilated)
"""What a library or a kernel of ours computes: it is no part of what reads it."""

_IN_PLACE = (Elementwise, Select, ConvertElementType)
"""Each element of a result is made of those in its place, and a kernel may write over these."""


def _store_beside_copies(program: Program) -> Program:
    program = changed_inside(program, store_beside_copies)
    copied, read = set[Atom](), set[Atom]()
    for e in program.equations:
        (copied if isinstance(e.primitive, OptimizationBarrier) else read).update(e.inputs)
    roots = {a for a in copied & read if a.__class__ is Var}
    taken = _taken_beside_copies(program, roots) if roots else None
    return with_barriers(program, taken) if taken else program


def _taken_beside_copies(program: Program, roots: set[Atom]) -> set[Atom]:
    """Find what is taken from one of these values for an operation that reads a copy of it too."""
    of: dict[Atom, set[Atom]] = {a: {a} for a in roots}  # what elements in place are made of
    copies: dict[Atom, set[Atom]] = {}  # the same, of what comes out of barriers
    parts: dict[Atom, dict[Atom, set[Atom]]] = {}  # what is taken from each of the values
    found: set[Atom] = set()
    for e in program.equations:
        primitive = e.primitive
        if isinstance(primitive, OptimizationBarrier):
            for a, out in zip(e.inputs, e.outputs, strict=True):
                copies[out] = copies.get(a, set()) | ({a} & roots)
            continue
        inputs = [a for a in e.inputs if a in of or a in copies or a in parts]
        if not inputs:
            continue
        own = set[Atom]().union(*[of.get(a, ()) for a in inputs])
        behind = set[Atom]().union(*[copies.get(a, ()) for a in inputs])
        taken: dict[Atom, set[Atom]] = {}
        for a in inputs:
            for root, some in parts.get(a, {}).items():
                taken[root] = taken.get(root, set()) | some
        found.update(*[taken[root] for root in behind & taken.keys()])
        if isinstance(primitive, _CALLED):
            continue
        for out in e.outputs:
            if isinstance(primitive, _IN_PLACE):
                of[out], copies[out], parts[out] = own, behind, taken
            else:
                parts[out] = {**taken, **{root: taken.get(root, set()) | {out} for root in own}}
    return found


# Threads of XLA's


_OPERATIONS = 1024
_LARGE_OUTPUT = 1 << 16
"""Outputs of so many elements are not copied for this: what computes them counts more. After calls
of kernels, which count as nothing, they go through one more, which does nothing."""


def run_on_xla_thread(program: Program) -> Program:
    """Add so many operations to a program that may be long that XLA hands it to another thread.

    >>> import stretto as st
    >>> loop = st.make_graph(lambda x: st.lax.while_loop(lambda x: x < 9, lambda x: x + x, x))(1.0)
    >>> len(run_on_xla_thread(loop).equations) > len(loop.equations)
    True
    """
    return remember(program, "run_on_xla_thread", _run_on_xla_thread)


def _run_on_xla_thread(program: Program) -> Program:
    # Python functions are called in the thread of the call, where signals are heard.
    if not program.effects.isdisjoint({CALLBACK, ORDERED}):
        return program
    computed = {v for e in program.equations for v in e.outputs}
    outputs = [a for a in program.outputs if a in computed and a.type.size]
    if not _counts_as_nothing(program):
        if not has_long_loop(program):
            return program
        outputs = [a for a in outputs if a.type.size < _LARGE_OUTPUT]
    if not outputs:
        return program
    smallest = min(outputs, key=lambda a: a.type.size)
    added = record(lambda x: ([_after_counting(x)], None), [smallest.type])[0]
    renamed: dict[Atom, Any] = {added.inputs[0]: smallest}
    equations = [
        type(e)(e.primitive, [renamed.get(a, a) for a in e.inputs], e.outputs, None)
        for e in added.equations
    ]
    results = [added.outputs[0] if a is smallest else a for a in program.outputs]
    return Program(program.inputs, [*program.equations, *equations], results, program.name)


def _counts_as_nothing(program: Program) -> bool:
    """Say whether XLA sees few operations in a program that takes long: calls are none to it."""
    if kernels is None or not config.kernels or program.work < _MUCH_WORK:
        return False
    written = as_written(program, in_loop=False)
    return _has_called(written) and _counted(written) < _OPERATIONS


_CALLS = (*_CALLED, Fused, Cumulative, LinearRecurrence, Place, TopK)
"""What is a call of a kernel, or may be."""


def _has_called(program: Program) -> bool:
    """Say whether a program, as it is written, has a call of a kernel, also in what it holds."""
    if any([isinstance(e.primitive, _CALLS) for e in program.equations]):
        return True
    return holds_programs(program) and any(map(_has_called, _held(program)))


def _held(program: Program) -> list[Program]:
    """Return the programs that its operations hold, as they are written."""
    found: list[Program] = []
    for e in program.equations:
        primitive: Any = e.primitive
        if primitive.holds_programs:
            found += map(as_written, primitive.programs())
    return found


def _counted(program: Program) -> int:
    """Count the operations on elements that XLA sees, those in a loop once."""
    own = [
        e.outputs[0].type.size for e in program.equations if isinstance(e.primitive, Elementwise)
    ]
    return sum(own) + sum(map(_counted, _held(program)))


def _after_counting(x: Any) -> Any:
    """Return the same value, after operations that the compiler cannot know to be in vain.

    The least of an integer's bits that it has in common with 0, 1, ... is that with 0.
    """
    first = x if not x.ndim else reshape(slice_in_dim(reshape(x, (x.size,)), 0, 1), ())
    if kind_of(x.dtype) == "complex":
        first = real(first)
    number = convert(first, np.dtype(np.int32))
    common = bitwise_and(broadcast_to(number, (_OPERATIONS,)), iota(np.int32, _OPERATIONS))
    never = gt(reduce_min(common), 0)
    if x.size < _LARGE_OUTPUT:
        return select(broadcast_to(never, x.shape), zeros_like(x), x)
    return AFTER(x, never)
