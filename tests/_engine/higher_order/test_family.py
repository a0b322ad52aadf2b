"""What operations that hold programs share: parts of lists, recording, changed programs."""

import types

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import Equation, Program, Var, check
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.family import (
    captured_first,
    cut,
    has_long_loop,
    may_take_long,
    or_zeros,
    parting,
    record_tree,
    split,
    values_of,
)
from stretto._engine.higher_order.linear_call import LinearCall, linear_call
from stretto._engine.ops.arithmetic import ADD

F32 = array_type((), np.dtype(np.float32))


def held(f, *args):
    """The one operation of a function that holds programs."""
    (equation,) = [e for e in st.make_graph(f)(*args).equations if e.primitive.holds_programs]
    return equation


def branches(x):
    return st.lax.cond(x > 0, lambda x: snp.sin(x) + snp.cos(x), lambda x: -x, x)


def test_consecutive_parts_and_the_rest():
    assert split([1, 2, 3, 4, 5], 2, 0, 1) == [[1, 2], [], [3], [4, 5]]
    assert split((), 0) == [[], []]
    assert split([1]) == [[1]]


def test_parts_of_an_equation():
    a, b, c = Var(F32), Var(F32), Var(F32)
    place = (test_parts_of_an_equation.__code__, 0, "")
    part = cut(Equation(ADD, [a, b], [c], place), ADD, [False, True], [True])
    assert (list(part.inputs), list(part.outputs), part.place) == ([b], [c], place)
    with pytest.raises(ValueError, match="zip"):
        cut(Equation(ADD, [a, b], [c]), ADD, [True], [True])


def test_zeros_for_nothing():
    weak = array_type((2, 3), np.dtype(np.float16), True)
    zeros = or_zeros(None, weak)
    assert zeros.type is weak and not np.any(np.asarray(zeros))
    x = as_value(1.0)
    assert or_zeros(x, weak) is x


def test_leaves_that_are_no_values_are_named():
    assert [float(v) for v in values_of([1.0, np.float32(2)], "scan")] == [1.0, 2.0]
    with pytest.raises(TypeError, match="scan: a leaf of the argument"):
        values_of(["a"], "scan")


def test_a_function_of_trees_is_recorded_with_what_it_captures():
    outside = snp.array([1.0, 2.0])

    def f(p):
        return {"sum": p["a"] + outside, "n": 3}

    _, structure = tree.flatten(({"a": 1.0},))
    program, out, captured = record_tree(f, structure, [F32], "cond")
    assert [c is outside for c in captured] == [True]
    assert len(program.inputs) == 2 and program.name == "f"
    values = evaluate(program, [as_value(np.float32(3)), outside])
    result = tree.unflatten(out, values)
    assert int(result["n"]) == 3
    np.testing.assert_array_equal(result["sum"], [4, 5])
    anonymous, *_ = record_tree(lambda p: p["a"], structure, [F32], "cond")
    assert anonymous.name == "cond"


def test_captured_inputs_first():
    program = st.make_graph(lambda x, y, z: x - y * z)(1.0, 2.0, 3.0)
    x, y, z = program.inputs
    turned = captured_first(program, 1)
    assert list(turned.inputs) == [y, z, x]
    check(turned)
    assert float(evaluate(turned, [as_value(v) for v in (2.0, 3.0, 1.0)])[0]) == -5
    assert captured_first(program, 3) is program


def test_where_two_structures_part():
    one, other = (tree.structure(t) for t in ({"a": (1, 2)}, {"a": (1, [2])}))
    assert "x['a'][1]" in parting(one, other, "x")


def test_the_programs_among_the_parameters():
    conditional = held(branches, 1.0).primitive
    assert len(conditional.programs()) == 2
    assert all(isinstance(p, Program) for p in conditional.programs())
    assert conditional.work([], []) == sum(p.work for p in conditional.programs())
    assert conditional.effects == frozenset()
    noisy = held(lambda x: st.lax.cond(x > 0, lambda: st.debug.print("a"), lambda: None), 1.0)
    assert noisy.primitive.effects


def with_rule(of, define, *rules):
    fun = of(lambda x: x * 2)
    getattr(fun, define)(*rules)
    return fun


SHOWN = {
    "linear_call": (
        lambda x: linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 3.0, x),
        "of linear program",
    ),
    "checkpoint": (st.checkpoint(snp.sin), "program policy prevent_cse again"),
    "custom_jvp": (with_rule(st.custom_jvp, "defjvp", lambda p, t: (p[0], t[0])), "program"),
    "custom_vjp": (
        with_rule(st.custom_vjp, "defvjp", lambda x: (x, None), lambda r, ct: (ct,)),
        "program",
    ),
    "custom_vmap": (with_rule(st.custom_vmap, "def_vmap", lambda n, b, x: (x, True)), "program"),
    "call": (st.jit(lambda x: x + 1), "program"),
    "scan": (
        lambda x: st.lax.scan(lambda c, y: (c + y, y), 0.0, x),
        "body length consts carry reverse unroll",
    ),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_program_shows_of_operations_with_programs(name):
    """Functions of Python, which tell nothing, are left out."""
    f, shown = SHOWN[name]
    (equation,) = st.make_graph(f)(snp.ones(2)).equations
    assert equation.primitive.name == name
    assert [key for key, _ in equation.primitive.parameters()] == shown.split()
    assert "<function" not in str(equation.primitive)


def test_a_change_of_no_program_is_none():
    conditional = held(branches, 1.0).primitive
    assert conditional.with_programs(lambda p: p) is conditional
    copy = lambda p: Program(p.inputs, list(p.equations), p.outputs, "other")
    changed = conditional.with_programs(copy)
    assert changed is not conditional and type(changed) is type(conditional)
    assert [p.name for p in changed.programs()] == ["other", "other"]


def test_dead_work_inside_is_trimmed():
    def f(x):
        def body(i, x):
            snp.sin(x)
            return x + 1

        return st.lax.fori_loop(0, 3, body, x)

    equation = held(f, 1.0)
    trimmed = equation.primitive.trimmed(equation, [True] * len(equation.outputs))
    inner = [e.primitive.name for p in trimmed.primitive.programs() for e in p.equations]
    assert "sin" not in inner and "add" in inner
    again = trimmed.primitive.trimmed(trimmed, [True] * len(trimmed.outputs))
    assert again is trimmed


def test_on_arrays_it_is_interpreted():
    equation = held(branches, np.float32(1))
    for x in (1.0, -2.0):
        values = [x if v.type.kind == "float" else x > 0 for v in equation.inputs]
        arrays = [np.asarray(v, t.type.dtype) for v, t in zip(values, equation.inputs, strict=True)]
        (out,) = equation.primitive.reference(*arrays)
        assert isinstance(out, np.ndarray)
        np.testing.assert_allclose(out, np.sin(x) + np.cos(x) if x > 0 else -x, rtol=1e-6)


@pytest.mark.parametrize(
    ("size", "work", "long"),
    [(16384, 1e12, False), (16385, 2e10, False), (16385, 2.001e10, True), (16384, 0, False)],
)
def test_which_programs_without_loops_may_take_a_second(size, work, long):
    """Those of so much work, of which one array at least is large."""
    array = array_type((size,), np.dtype(np.float32))
    equation = types.SimpleNamespace(primitive=ADD, inputs=[Var(array), Var(array)])
    assert may_take_long(types.SimpleNamespace(cache={}, equations=[equation], work=work)) is long


@pytest.mark.parametrize(("more", "long"), [(0, False), (1, True)])
def test_which_loops_are_long(more, long):
    """Those of more work than a million steps of a small operation have."""
    body = lambda total, x: (total + x, None)
    f = lambda xs: st.lax.scan(body, np.float32(0), xs)[0]
    each = held(f, snp.zeros(3)).primitive.body.work
    program = st.make_graph(f)(st.ShapeDtypeStruct((int(4e6 / each) + more,), np.float32))
    assert has_long_loop(program) is may_take_long(program) is long


def test_sizes_that_vary_are_for_programs_that_are_written_in_place():
    """One that holds a program runs it in the bucket; of others nothing is known."""

    @st.custom_jvp
    def twice(x):
        return 2 * x

    twice.defjvp(lambda primals, tangents: (twice(*primals), 2 * tangents[0]))
    ran = []
    bucket = types.SimpleNamespace(run=lambda program, args: ran.append(program) or args)
    operation = held(twice, 1.0).primitive
    assert operation.padded(bucket, "operand") == ("operand",)
    assert ran == [operation.inlined()]
    backwards = LinearCall("f", (F32,), 1, lambda residuals, cts: cts, None)
    with pytest.raises(MissingRuleError, match="linear_call takes no size that varies"):
        backwards.padded(bucket, as_value(1.0))
