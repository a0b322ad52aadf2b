"""Formulations of a contraction that is mapped over members, and what each would cost.

With both operands mapped it is one batched product, or one product a member. With one mapped it may
also be

- a *wide* product: the members join the free axes of the mapped operand, which must be copied if
  its axes do not lie in that order;
- a *batched* product, with the shared operand repeated for each member;
- the same in *chunks* of members, so that the repeated operand stays in the cache.
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.cost import Machine
from stretto._engine.core.types import bytes_of
from stretto._engine.higher_order.loops import map_
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.passes.formulations.forms import Choice, Form, Parts, Shared, Whole

_CHUNK_BYTES = 1 << 21


def of_product(op: DotGeneral, x: Any, y: Any, size: int, machine: Machine) -> list[Choice]:
    """Return the formulations of ``op`` for these operands, at least one of which is mapped."""
    if isinstance(x, Shared) or isinstance(y, Shared):
        return _one_mapped(op, x, y, size, machine)

    def batched() -> Any:
        out, axis = op.vmap(size, (x.front(), y.front()), (0, 0))
        return Whole(out, axis)

    def written() -> Any:
        return Parts([op(x.member(i), y.member(i)) for i in range(size)])

    types = x.type, y.type
    out = op.infer(*types)
    work = size * op.work(types, (out,))
    time = machine.product(work, machine.fraction(work / size)) + size * machine.item
    stacking, cutting = x.to_stack + y.to_stack, x.to_cut + y.to_cut
    together = machine.copying(size * bytes_of(out))  # the parts are put together in the end
    return [
        Choice(Form.BATCHED_PRODUCT, time + machine.copying(stacking), batched),
        Choice(
            Form.WRITTEN_OUT,
            time + machine.copying(cutting) + together + 4 * size * machine.kernel,
            written,
        ),
    ]


def _one_mapped(op: DotGeneral, x: Any, y: Any, size: int, machine: Machine) -> list[Choice]:
    first = isinstance(y, Shared)
    mapped, other = (x, y.value) if first else (y, x.value)
    member = mapped.type
    types = (member, other.type) if first else (other.type, member)
    out = op.infer(*types)
    work = size * op.work(types, (out,))
    item = out.dtype.itemsize
    bytes_mapped, bytes_other = member.size * size * item, other.size * size * item
    bytes_out = out.size * size * item
    batched_time = machine.product(work, machine.fraction(work / size)) + size * machine.item
    if _scattered(op, (types[0].ndim, types[1].ndim), not first):
        batched_time += machine.copying(bytes_mapped)
    stacking = machine.copying(mapped.to_stack)

    def wide() -> Any:
        values = (mapped.value, other) if first else (other, mapped.value)
        result, axis = op.vmap(size, values, (mapped.axis, None) if first else (None, mapped.axis))
        return Whole(result, axis)

    def members_first() -> Any:
        swapped = DotGeneral(
            (tuple(a + 1 for a in op.summed[not first]), op.summed[first]),
            ((), ()),
            op.precision,
            op.preferred,
        )
        result = swapped(mapped.front(), other)  # member, free of mapped, free of other
        if not first:
            n = 1 + member.ndim - len(op.summed[1])
            axes = (0, *range(n, result.ndim), *range(1, n))
            result = transpose(result, axes)
        return Whole(result, 0)

    def repeated(count: int, value: Any) -> Any:
        copies = broadcast_to(other, (count, *other.shape))
        values = (value, copies) if first else (copies, value)
        return op.vmap(count, values, (0, 0))[0]

    def batched() -> Any:
        return Whole(repeated(size, mapped.front()), 0)

    chunk = _chunk(size, other.size * item)

    def chunks() -> Any:
        front = mapped.front()
        turns = size // chunk
        cut = reshape(front, (turns, chunk, *front.shape[1:]))
        result = map_(lambda value: repeated(chunk, value), cut)
        return Whole(reshape(result, (size, *result.shape[2:])), 0)

    def written() -> Any:
        values = [mapped.member(i) for i in range(size)]
        return Parts([op(v, other) if first else op(other, v) for v in values])

    wide_time = machine.product(work, machine.wide) + stacking
    trailing = op.summed[not first] == tuple(
        range(member.ndim - len(op.summed[not first]), member.ndim)
    )
    choices = []
    free_first = first and not op.shared[0]
    turned = 0.0 if free_first and mapped.axis == 0 else machine.copying(bytes_out)
    lies = trailing and not op.shared[0] and mapped.axis == 0
    if lies:
        time = wide_time + (0.0 if first else machine.copying(bytes_out) / 2)
        choices.append(Choice(Form.WIDE_PRODUCT_MEMBERS_FIRST, time, members_first))
    choices.append(
        Choice(
            Form.WIDE_PRODUCT,
            wide_time + turned + (0.0 if lies else machine.copying(bytes_mapped)),
            wide,
        )
    )
    choices.append(
        Choice(
            Form.BATCHED_PRODUCT,
            batched_time + stacking + machine.copying(bytes_other) / 2,
            batched,
        )
    )
    if 1 < chunk < size:
        choices.append(
            Choice(
                Form.CHUNKS,
                batched_time
                + stacking
                + bytes_other / machine.near
                + machine.moving(bytes_mapped + bytes_out)
                + size // chunk * 4 * machine.turn,
                chunks,
            )
        )
    copied = machine.copying(mapped.to_cut) + machine.copying(bytes_out)
    choices.append(
        Choice(Form.WRITTEN_OUT, batched_time + copied + 4 * size * machine.kernel, written)
    )
    return choices


def _scattered(op: DotGeneral, ranks: tuple[int, int], side: bool) -> bool:
    """Return whether free axes of an operand are apart from each other.

    XLA multiplies stacks of matrices, and copies an operand that is none.
    """
    free = op.free_of(*ranks)[side]
    return bool(free) and free[-1] - free[0] >= len(free)


def _chunk(size: int, item_bytes: int) -> int:
    """Return the largest divisor of the number of members that keeps a chunk in the cache."""
    most = max(1, _CHUNK_BYTES // max(1, item_bytes))
    return max(d for d in range(1, math.isqrt(size) * 2 + 2) if size % d == 0 and d <= max(most, 1))
