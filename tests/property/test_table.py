"""Random programs use every rule of derivatives and of mapping, or leave it out for a reason."""

import inspect
import random

import pytest

import stretto as st
import stretto.special
from stretto._engine.core.primitive import PRIMITIVES, ZERO_DERIVATIVE, Primitive, Refused
from tests.property import chains  # noqa: F401 (fills the table)
from tests.property.programs import Block, Var, namespace
from tests.property.writer import TABLE, Skip, Writer, draw_program

EXCLUDED = {
    "CustomVjpForward": "checkpoints alone record it; tests of custom_vjp and checkpoint have it",
    "DebugCallback": "it has no results",
    "DawsnSlope": "it is written out, and long to compile; its laws have it",
    "ErfcxSlope": "as DawsnSlope",
    "Example": "programs have it while debug_nans is set; its own tests take its rules",
    "PSame": "maps over devices alone have it; their tests take its rules, to second order",
    "PSumSame": "as PSame",
    "PVary": "as PSame",
    "TotalsTogether": "the planner writes it after all transformations",
    "SizedCall": "it needs sizes that vary; its tests take all rules, to second order",
    "SizeOf": "it is in programs of sizes that vary alone; as SizedCall",
    "ShardMap": "it needs devices; its tests take all rules, to second order",
    "ShardingConstraint": "it needs devices, and computes nothing; its tests have it",
    "ZetaSlope": "it is written out, and long to compile; its laws have it, to second order",
}
"""Differentiable primitives that no program uses, by name, and why."""

RULES = ("infer", "jvp", "linearize", "transpose", "vmap")


def rules_of(primitive):
    """What a transformed program is made by.

    Primitives of a family share them. What each has for itself, such as formula, lowering and
    partial derivatives, the laws and tests/functions check; programs use some of each family.
    """
    return tuple(inspect.getattr_static(primitive, rule) for rule in RULES)


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


def test_all_rules_of_differentiable_primitives_are_drawn(monkeypatch):
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
    rules = {rules_of(p) for p in found}
    missing = sorted({p.__name__ for p in differentiable if rules_of(p) not in rules})
    missing = [name for name in missing if name not in EXCLUDED]
    assert not missing, (
        "no random program uses the rules of these primitives; add an operation to the table "
        "(elementwise.py, structural.py, linear.py, control.py, customized.py), or to EXCLUDED "
        f"with the reason: {missing}"
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
