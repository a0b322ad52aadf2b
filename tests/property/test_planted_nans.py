"""NaN planted in random programs is found at its line, whatever transformations are around it."""

import dataclasses
import linecache
import random
import re

import numpy as np
import pytest

import stretto as st
from tests.property.chains import draw_chain
from tests.property.oracles import Discard, arrays
from tests.property.programs import Block, Statement, Var, namespace
from tests.property.transformations import TRANSFORMATIONS, Function, Inapplicable
from tests.property.writer import draw_program

PLANTS = {
    "log": "snp.log(-1.0 - {0} * {0})",
    "sqrt": "snp.sqrt(-1.0 - {0} * {0})",
    "div": "snp.sign(0.0 * {0}) / (0.0 * {0})",
}
"""Each makes NaN of any number, by this operation."""


def planted(block: Block, rng: random.Random, plant: str) -> Block | None:
    """The block with the plant behind a random statement, in a body inside perhaps."""
    places = [i for i, s in enumerate(block.statements) if any(v.kind == "float" for v in s.outs)]
    bodies = [i for i, s in enumerate(block.statements) if s.bodies]
    statements = list(block.statements)
    if bodies and rng.random() < 0.5:
        i = rng.choice(bodies)
        inside = list(statements[i].bodies)
        k = rng.randrange(len(inside))
        body = planted(inside[k], rng, plant)
        if body is not None:
            inside[k] = body
            statements[i] = dataclasses.replace(statements[i], bodies=tuple(inside))
            return dataclasses.replace(block, statements=tuple(statements))
    if not places:
        return None
    i = rng.choice(places)
    v = rng.choice([v for v in statements[i].outs if v.kind == "float"])
    p = dataclasses.replace(v, name="planted")
    rest = dataclasses.replace(block, statements=tuple(statements[i + 1 :]))
    rest = renamed_outside(rest, v, p)
    text = f"{{0}} + {PLANTS[plant]}  # planted"
    after = (*statements[: i + 1], Statement("planted", (p,), text, (v,)), *rest.statements)
    return dataclasses.replace(block, statements=after, results=rest.results)


def renamed_outside(block: Block, v: Var, p: Var) -> Block:
    swap = lambda w: p if w.name == v.name else w
    return dataclasses.replace(
        block,
        statements=tuple(
            dataclasses.replace(s, operands=tuple(map(swap, s.operands))) for s in block.statements
        ),
        results=tuple(map(swap, block.results)),
    )


def composed(program: Block, way: str, seed: int) -> tuple[dict, list[str], str, tuple[Var, ...]]:
    """The names, sources, last function and its parameters, of a random chain."""
    names = namespace("")
    sources: list[str] = []

    def define(source: str) -> None:
        file = f"<planted{seed}-{len(sources)}>"
        sources.append(source)
        linecache.cache[file] = len(source), None, source.splitlines(True), file
        exec(compile(source, file, "exec"), names)

    define(program.source())
    params = program.params
    for step in draw_chain(seed, way, most=3):
        number = len(sources) - 1
        raw = names[f"g{number}"]
        fun = lambda *xs, raw=raw: raw(*map(st.numpy.asarray, xs))
        args = arguments(names, params, seed)
        function = Function(number, params, fun, arrays(fun(*args)), way)
        try:
            link = TRANSFORMATIONS[step.name].make(random.Random(step.seed), function)
        except (Inapplicable, Discard):
            continue
        define(link.source)
        params = link.params
    return names, sources, f"g{len(sources) - 1}", params


def arguments(names: dict, params: tuple[Var, ...], seed: int) -> list[np.ndarray]:
    return arrays(eval(v.drawn(seed + i), names) for i, v in enumerate(params))


def found(seed: int) -> bool:
    """Whether there was a NaN to find; it is asserted that it was found."""
    rng = random.Random(f"planted {seed}")
    plant = rng.choice(list(PLANTS))
    program, way = draw_program(seed)
    program = planted(program, rng, plant)
    if program is None:
        return False
    names, sources, last, params = composed(program, way, seed)
    args = [st.numpy.asarray(x) for x in arguments(names, params, seed)]
    whole = st.jit(names[last])
    with st.config(debug_nans=True):
        try:
            outs = arrays(whole(*args))
        except st.errors.NonFiniteError as error:
            raised = error
        else:  # no result depends on it
            assert not any(np.isnan(y).any() for y in outs if y.dtype.kind in "fc")
            return False
    position = raised.fault.position
    line = linecache.getline(position.file, position.line) if position else ""
    assert "# planted" in line, f"seed {seed}:\n{raised}\n{line}\n" + "\n".join(sources)
    return True


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_a_planted_nan_is_found_at_its_line(first):
    with st.enable_x64():
        count = sum(found(seed) for seed in range(first, first + 20))
    assert count >= 4  # that many at least have it in their results


def test_the_plants_make_nan():
    for text in PLANTS.values():
        lines = re.sub(r"\{0\}", "x", text)
        assert np.isnan(eval(lines, {"snp": st.numpy, "x": st.numpy.array(2.0)}))
