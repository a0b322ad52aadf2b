"""Makes a failure small: fewer links, fewer statements, while it still fails in the same way."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.property.chains import Failure, Step, run_chain
from tests.property.programs import Block, Statement, Var, free, live, renamed
from tests.property.settings import ALL_ON

__all__ = ["shrink", "smaller"]


def smaller(block: Block, outside: Sequence[Var] = ()) -> Iterator[Block]:
    """Blocks that are a little smaller: what comes first is smallest."""
    if not outside and len(block.results) > 1:
        for i in range(len(block.results)):
            yield dataclasses.replace(block, results=block.results[:i] + block.results[i + 1 :])
    read = free(dataclasses.replace(block, params=()))
    if not outside and any(v.name not in read for v in block.params):
        params = tuple(v for v in block.params if v.name in read) or block.params[:1]
        if params != block.params:
            signature = ", ".join(v.name for v in params)
            yield dataclasses.replace(block, params=params, signature=signature)
    known = [*outside, *block.params]
    for k, statement in enumerate(block.statements):
        before, after = block.statements[:k], block.statements[k + 1 :]
        others = {out.name: _instead(out, known) for out in statement.outs}
        if all(others.values()):
            rest = dataclasses.replace(block, statements=before + after)
            yield renamed(rest, {name: v for name, v in others.items() if v is not None})
        if statement.operation != "literal":
            literals = tuple(_literal(out) for out in statement.outs)
            yield dataclasses.replace(block, statements=before + literals + after)
        for j, body in enumerate(statement.bodies):
            for less in smaller(body, known):
                bodies = (*statement.bodies[:j], less, *statement.bodies[j + 1 :])
                changed = dataclasses.replace(statement, bodies=bodies)
                yield dataclasses.replace(block, statements=(*before, changed, *after))
        known += statement.outs
    if outside:
        for i, result in enumerate(block.results):
            v = _instead(result, [*outside, *block.params])
            if v is not None and result not in block.params and result not in outside:
                results = (*block.results[:i], v, *block.results[i + 1 :])
                yield dataclasses.replace(block, results=results)


def _instead(out: Var, known: Sequence[Var]) -> Var | None:
    """A variable that can stand for this one."""
    for v in known:
        if (v.kind, v.shape) == (out.kind, out.shape) and out.low <= v.low and v.high <= out.high:
            return v
    return None


def _literal(out: Var) -> Statement:
    middle = round((out.low + out.high) / 2, 3)
    value = {"int": int(max(out.low, 0)), "bool": False, "complex": complex(middle)}
    dtype = {"float": ", FLOAT", "complex": ", COMPLEX"}.get(out.kind, "")
    text = f"snp.full({out.shape}, {value.get(out.kind, middle)}{dtype})"
    return Statement("literal", (out,), text, ())


def _alike(one: Failure, other: Failure) -> bool:
    if one.kind != other.kind:
        return False
    return one.kind == "Mismatch" or str(one.error)[:30] == str(other.error)[:30]


def shrink(
    failure: Failure,
    program: Block,
    way: str,
    steps: Sequence[Step],
    at: int,
    settings: Mapping[str, Any] = ALL_ON,
    seconds: float = 60.0,
    clock: Callable[[], float] = time.monotonic,
) -> Failure:
    """The failure of the smallest program and chain found that fail alike."""
    end = clock() + seconds

    def attempt(program: Block, steps: Sequence[Step]) -> bool:
        nonlocal failure
        try:
            run_chain(program, way, steps, at, settings)
        except Failure as found:
            if _alike(failure, found):
                failure = found
                return True
        return False

    i = 0
    while i < len(steps) and clock() < end:
        fewer = [*steps[:i], *steps[i + 1 :]]
        if attempt(program, fewer):
            steps = fewer
        else:
            i += 1
    program = live(program)
    place, tried = 0, 0
    while clock() < end:
        candidates = list(smaller(program))
        if tried >= len(candidates):  # none of them fails
            break
        less = live(candidates[place % len(candidates)])
        if less != program and attempt(less, steps):
            program, tried = less, 0
        else:
            place, tried = place + 1, tried + 1
    return failure
