"""Run a mapped branch: every branch on all examples, or each on the examples that take it.

``cond`` calls this when a branch with a mapped index is evaluated or lowered. Selecting runs every
branch for every example, then selects. Routing sorts the examples by branch and runs each branch on
its own examples, a part at a time; its cost is that of moving them. The cheaper way by estimate is
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.autodiff.vmap import vmap_program
from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Program
from stretto._engine.higher_order.family import has_open_loop
from stretto._engine.higher_order.only_where import only_where
from stretto._engine.higher_order.while_loop import loop_while
from stretto._engine.ops.broadcast import broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full, le, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from stretto._engine.ops.index.gather_scatter import gather
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.iota import iota
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import argsort

_COUNT = np.dtype(np.int32)
_PARTS = 8
_WORTH = 1 << 22  # in units of Primitive.work; moving the examples takes some 10^6 of these


def run_mapped(
    branches: Sequence[Program], size: int, mapped: Sequence[bool], index: Any, args: Sequence[Any]
) -> list[Any]:
    """Return, for each of ``size`` examples, the outputs of the branch that its index chooses.

    ``mapped`` says which of ``args`` have a leading axis of examples; all outputs have one.
    """
    way = _routed if worth_routing(branches, size) else select_branches
    return way(branches, size, tuple(mapped), index, args)


def worth_routing(branches: Sequence[Program], size: int) -> bool:
    """Say if routing saves more than moving the examples costs.

    Branches with an observable effect are always routed, as they must not run for examples that do
    not take them.
    """
    if any(observable(branch.effects) for branch in branches):
        return True
    work = [branch.work for branch in branches]
    mean = sum(work) / len(work)
    return size * (sum(work) - (1 + 1 / _PARTS) * mean) > _WORTH


def select_branches(
    branches: Sequence[Program],
    size: int,
    mapped: tuple[bool, ...],
    index: Any,
    args: Any,
    keep_rules: bool = False,
) -> list[Any]:
    """Run all branches on all examples; parameters and outputs are those of ``run_mapped``.

    With ``keep_rules`` derivatives of this are still to be taken.
    """
    outs: list[Any] = []
    for i, branch in enumerate(branches):
        here = eq(index, i)
        results = _results(branch, size, mapped, here, args, keep_rules)
        if not i:
            outs = results
            continue
        for k, (old, new) in enumerate(zip(outs, results, strict=True)):
            lead = new.shape[:1] + (1,) * (new.ndim - 1)
            outs[k] = select(broadcast_to(reshape(here, lead), new.shape), new, old)
    return outs


def _routed(
    branches: Sequence[Program], size: int, mapped: tuple[bool, ...], index: Any, args: Any
) -> list[Any]:
    """Run each branch on the examples that take it, in parts of a fixed size.

    After sorting, the examples of one branch lie together. Shapes are static, so the last part of a
    branch may reach into the next branch's examples; what it writes there is overwritten when that
    branch's turn comes, so results are exact for any number of examples a branch.
    """
    part = 1 if any(observable(b.effects) for b in branches) else -(-size // _PARTS)
    order = convert(argsort(index), _COUNT)
    padded = concatenate([order, full((part,), 0, _COUNT)], 0)
    start = full((), 0, _COUNT)
    outs = [full((size + part, *t.shape), 0, t.dtype) for t in branches[0].out_types]
    for i, branch in enumerate(branches):
        end = reduce_sum(convert(le(index, i), _COUNT), (0,))

        def step(state: Any, branch: Program = branch) -> Any:
            at, end, outs = state
            members = dynamic_slice_in_dim(padded, at, part)
            own = lt(iota(_COUNT, part), broadcast_to(end - at, (part,)))
            operands = [_rows(x, members) if m else x for x, m in zip(args, mapped, strict=True)]
            results = _results(branch, part, mapped, own, operands)
            written = [
                dynamic_update_slice_in_dim(old, convert(new, old.dtype), at, 0)
                for old, new in zip(outs, results, strict=True)
            ]
            return at + part, end, written

        outs = loop_while("switch", lambda s: s[0] < s[1], step, (start, end, outs), ())[2]
        start = end
    positions = argsort(order)
    return [_rows(slice_in_dim(o, 0, size), positions) for o in outs]


def _results(
    branch: Program,
    size: int,
    mapped: tuple[bool, ...],
    here: Any,
    args: Any,
    keep_rules: bool = False,
) -> list[Any]:
    """Return the outputs of a branch run on so many examples, of which ``here`` says which take it.

    A loop in it that ends for these alone must not wait for the others.
    """
    if has_open_loop(branch):
        branch, mapped, args = only_where(branch, keep_rules), (True, *mapped), [here, *args]
    return evaluate(vmap_program(branch, size, mapped, (True,) * len(branch.outputs))[0], args)


def _rows(x: Any, positions: Any) -> Any:
    """``x[places]`` for places in range."""
    numbers = GatherDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
    indices = reshape(positions, (*positions.shape, 1))
    return gather(x, indices, numbers, (1, *x.shape[1:]), mode="promise_in_bounds")
