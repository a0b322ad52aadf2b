"""Every differentiable primitive is in random programs, or is left out for a reason given here."""

import random

import pytest

import stretto as st
import stretto.special
from stretto._engine.core.primitive import PRIMITIVES, ZERO_DERIVATIVE, Primitive, Refused
from stretto._engine.ops.written import Written
from tests.property import chains  # noqa: F401 (fills the table)
from tests.property.programs import Block, Var, namespace
from tests.property.writer import TABLE, Skip, Writer, draw_program

EXCLUDED = {
    "CustomVjpForward": "checkpoints alone record it; tests of custom_vjp and checkpoint have it",
    "DebugCallback": "it has no results",
}
"""Differentiable primitives that no program uses, by name, and why.

Of the functions that are written out (`Written`) programs use a few: they share every rule but
formula and partial derivatives, which the laws and tests/functions check, and are long to compile.
"""

SCOPE = (
    Var("x0", "float", ()),
    Var("x1", "float", (3,)),
    Var("x2", "float", (2, 3)),
    Var("x3", "float", (3, 3)),
    Var("x4", "float", (3,)),
    Var("x5", "complex", (3,)),
    Var("x6", "complex", (2, 3)),
    Var("x7", "int", (), 0, 2),
    Var("x8", "int", (3,), 0, 2),
    Var("x9", "bool", (3,)),
)


def programs_of(operation, seeds):
    """Blocks with nothing but this operation."""
    for seed in range(seeds):
        way = operation.way
        writer = Writer(random.Random(seed), SCOPE, ("both", way))
        writer.current = operation.name
        try:
            operation.write(writer)
        except Skip:
            continue
        results = tuple(v for s in writer.statements for v in s.outs)
        signature = ", ".join(v.name for v in SCOPE)
        yield Block("g0", signature, SCOPE, tuple(writer.statements), results)


def trace(block, way):
    """Trace the block and its derivatives."""
    names = namespace(block.source())
    args = [eval(v.drawn(k), names) for k, v in enumerate(block.params)]
    moving = [k for k, v in enumerate(block.params) if v.kind in ("float", "complex")]

    def fun(*xs):
        given = list(args)
        for k, x in zip(moving, xs, strict=True):
            given[k] = x
        return names["inexact"](names["g0"](*given))

    primals = [args[k] for k in moving]
    if way != "reverse":
        st.make_graph(lambda *xs: st.jvp(fun, xs, xs))(*primals)
    if way != "forward":

        def pulled(*xs):
            out, back = st.vjp(fun, *xs)
            return back(out)

        st.make_graph(pulled)(*primals)


def test_every_differentiable_primitive_is_drawn(monkeypatch):
    found = set()
    call = Primitive.__call__

    def noted(self, *args):
        found.add(type(self))
        return call(self, *args)

    monkeypatch.setattr(Primitive, "__call__", noted)
    with st.enable_x64():
        for operation in TABLE.values():
            for block in programs_of(operation, 6):
                trace(block, operation.way)
    differentiable = {
        p
        for p in PRIMITIVES
        if p.__module__.startswith("stretto.")
        and p.jvp is not ZERO_DERIVATIVE
        and not isinstance(p.jvp, Refused)
    }
    missing = {p.__name__ for p in differentiable - found if not issubclass(p, Written)}
    missing = sorted(missing - set(EXCLUDED))
    assert any(issubclass(p, Written) for p in found)
    assert not missing, (
        "no random program uses these primitives; add an operation to the table (elementwise.py, "
        "structural.py, linear.py, control.py, customised.py), or to EXCLUDED with the reason: "
        f"{missing}"
    )
    drawn = {p.__name__ for p in found}
    assert not drawn & set(EXCLUDED), "excluded, and drawn all the same"


@pytest.mark.parametrize("seed", range(5))
def test_a_seed_always_gives_the_same_program(seed):
    assert draw_program(seed) == draw_program(seed)


def test_results_are_within_their_bounds():
    """What keeps operations in their domains."""
    with st.enable_x64():
        for seed in range(60):
            program, _ = draw_program(seed)
            names = namespace(program.source())
            args = [eval(v.drawn(seed), names) for v in program.params]
            for out, v in zip(names["g0"](*args), program.results, strict=True):
                assert (out.shape, out.dtype.name[: len(v.kind)]) == (v.shape, v.kind)
                if v.kind in ("float", "int") and v.bound < 1e3:
                    assert v.low - 1e-9 <= out.min() and out.max() <= v.high + 1e-9
