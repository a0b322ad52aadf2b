"""Equal work is done once, and detours are left out; the bits stay, and what is seen."""

import time

import numpy as np
import pytest

import stretto as st
from stretto import numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.config import over_axis
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.program import Literal, Program, check
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.passes.prepare import prepare
from stretto._engine.passes.simplify import simplify
from tests.property import chains  # noqa: F401 (fills the table)
from tests.property.oracles import arrays
from tests.property.programs import namespace
from tests.property.writer import draw_program

X = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)


def names(program):
    return [e.primitive.name for e in program.equations]


def left(fun, *args):
    """The simplified program, checked: well formed, settled, and with the same bits."""
    args = args or (X,)
    program = st.make_graph(fun)(*args)
    made = simplify(program)
    check(made)
    assert simplify(made) is made
    assert (made.inputs, made.out_types, made.name) == (
        program.inputs,
        program.out_types,
        program.name,
    )
    same_bits(program, made, [as_value(a) for a in args])
    return made


def same_bits(program, other, values):
    with st.config(disable_jit=True):
        wanted, got = evaluate(program, values), evaluate(other, values)
    for w, g in zip(wanted, got, strict=True):
        assert np.asarray(w).dtype == np.asarray(g).dtype
        assert np.asarray(w).tobytes() == np.asarray(g).tobytes()


# Equal work


def test_equal_equations_are_one():
    def f(x):
        return (snp.sin(x) + 1) * snp.cos(snp.sin(x) + 1)

    assert names(left(f)) == ["sin", "add", "cos", "mul"]


def test_results_of_merged_ones_are_merged_on():
    def f(x):
        y = x
        for _ in range(20):
            y = snp.sin(x) * snp.exp(snp.sin(x) + 2.5) + 0 * y
        return y

    assert names(left(f)).count("sin") == names(left(f)).count("exp") == 1


def test_a_program_with_nothing_in_common_is_itself():
    program = st.make_graph(lambda x: snp.sin(x) * 2 + snp.cos(x) * 2)(X)
    assert simplify(program) is program


def test_static_parameters_count():
    made = left(lambda x: (snp.sum(x, 0).sum(), snp.sum(x, 1).sum(), snp.sum(x, 0) + 1))
    assert names(made).count("reduce_sum") == 4


@pytest.mark.parametrize(
    "pair, count",
    [
        (lambda x, y: (x + y, y + x), 1),
        (lambda x, y: (x * y, y * x), 1),
        (lambda x, y: (x * 2, 2 * x), 1),
        (lambda x, y: (x - y, y - x), 2),
        (lambda x, y: (snp.maximum(x, y), snp.maximum(y, x)), 2),
        (lambda x, y: (x + 1j * y, 1j * y + x), 4),
        (lambda x, y: ((x + 1j) * (y + 2j), (y + 2j) * (x + 1j)), 8),
    ],
    ids=["add", "mul", "literal", "sub", "maximum", "complex add", "complex mul"],
)
def test_operands_change_places_where_the_bits_stay(pair, count):
    made = left(pair, X, X[::-1].copy())
    assert len([n for n in names(made) if n not in ("convert_element_type", "complex")]) <= count
    if count <= 2:
        assert len(made.equations) == count


def test_complex_products_are_not_turned():
    z = X + 1j
    made = left(lambda x, y: (x * y, y * x), z.astype(np.complex64), z.astype(np.complex64))
    assert names(made) == ["mul", "mul"]


def test_literals_are_told_apart_by_sign_and_type():
    made = left(lambda x: (x * 0.0, x * -0.0, x * 0.0, x + 0.0))
    assert names(made) == ["mul", "mul", "add"]
    nan = left(lambda x: (x + np.float32(np.nan), x + np.float32(np.nan)))
    assert names(nan) == ["add"]


def test_random_numbers_of_one_key_are_drawn_once():
    def f(key):
        return st.random.uniform(key, (3,)), st.random.uniform(key, (3,))

    program = st.make_graph(f)(st.random.PRNGKey(0))
    made = simplify(program)
    check(made)
    assert made.outputs[0] is made.outputs[1] and 2 * len(made.equations) == len(program.equations)


# Operations that hold programs


def test_equal_programs_on_equal_operands_run_once():
    def f(x):
        looped = [st.lax.scan(lambda c, r: (c + snp.sin(r), c), 0.0, x[0]) for _ in range(3)]
        called = [st.jit(lambda x: snp.cos(x) * 2)(x) for _ in range(3)]
        return looped, called

    made = left(f)
    assert [n for n in names(made) if n in ("scan", "call")] == ["scan", "call"]


def test_programs_that_differ_stay_apart():
    def f(x):
        return [st.jit(lambda x, k=k: snp.cos(x) * k)(x) for k in (2.0, 3.0, 3.0, 2.0)]

    made = left(f)
    assert names(made) == ["call", "call"]
    assert made.outputs[0] is made.outputs[3] and made.outputs[1] is made.outputs[2]


def test_work_inside_is_merged_there():
    def twice(x):
        return snp.sin(x) * snp.sin(x)

    def f(x):
        chosen = st.lax.cond(x[0, 0] > 0, twice, snp.cos, x)
        until = st.lax.while_loop(lambda c: twice(c) > 0.5, twice, x[0, 0])
        return (
            st.jit(twice)(x),
            st.lax.scan(lambda c, r: (twice(c), twice(r)), x[0], x),
            chosen,
            until,
        )

    assert str(st.make_graph(f)(X)).count("sin") == 12
    assert str(left(f)).count("sin") == 6


def test_nothing_moves_into_programs_or_out():
    def f(x):
        return st.lax.cond(x[0, 0] > 0, lambda: snp.exp(x), lambda: snp.sin(x)), snp.sin(x)

    assert str(left(f)).count("sin") == 2


# What must stay


def test_what_is_seen_is_seen_as_often():
    seen = []

    def f(x):
        for _ in range(2):
            st.debug.callback(seen.append, x[0, 0])
            st.jit(lambda y: st.debug.callback(seen.append, y[0, 1]))(x)
        return st.io_callback(lambda x: x, as_value(X), x), st.io_callback(
            lambda x: x, as_value(X), x
        )

    seen_in = lambda program: [
        n for n in names(program) if n in ("call", "io_callback") or "debug" in n
    ]
    program = st.make_graph(f)(X)
    assert seen_in(simplify(program)) == seen_in(program)
    assert len(seen_in(program)) == 6
    st.jit(f)(X)
    st.debug.effects_barrier()
    assert len(seen) == 4


def test_barriers_keep_apart_what_is_behind_them():
    def f(x):
        first, second = (st.lax.optimization_barrier(x) for _ in range(2))
        return snp.sin(first), snp.sin(second), snp.sin(x)

    assert names(left(f)) == ["optimization_barrier"] * 2 + ["sin"] * 3
    assert st.jit(f).lower(X).as_text().count("stablehlo.sine") == 3


def test_a_recomputation_stays_one():
    """As many operations, and as much memory, as without simplification."""

    def block(x):
        for _ in range(3):
            x = snp.sin(x) * snp.cos(x)
        return x

    def loss(x):
        for _ in range(4):
            x = st.checkpoint(block)(x)
        return snp.sum(x)

    x = np.ones((256, 256), np.float32)
    compiled = {}
    for on in (True, False):
        with st.config(simplify=on, roll_loops=False, interpret_small=False):
            compiled[on] = st.jit(st.grad(loss)).lower(x).compile()
    memory = {on: c.memory_analysis().temp_size_in_bytes for on, c in compiled.items()}
    assert memory[True] <= memory[False] < 8 * x.nbytes
    np.testing.assert_array_equal(compiled[True](x), compiled[False](x))
    kept = simplify(st.make_graph(st.grad(loss))(x))
    again = [e.primitive for e in kept.equations if getattr(e.primitive, "again", False)]
    assert len(again) == 4
    assert all(names(p.program).count("sin") == 3 for p in again)


# Detours


def wide(x, *shape):
    return snp.broadcast_to(x, shape)


@pytest.mark.parametrize(
    "fun, wanted",
    [
        (lambda x: x.T.T, []),
        (lambda x: snp.transpose(x.T, (1, 0)) + 1, ["add"]),
        (lambda x: snp.transpose(snp.transpose(x[None], (2, 0, 1)), (2, 0, 1)), None),
        (lambda x: x.reshape(6).reshape(3, 2), ["reshape"]),
        (lambda x: x.reshape(3, 2).reshape(6, 1).reshape(2, 3), []),
        (lambda x: wide(wide(x, 4, 2, 3), 5, 4, 2, 3), ["broadcast_in_dim"]),
        (lambda x: wide(x[:, :, None], 2, 3, 7), ["broadcast_in_dim"]),
        (lambda x: wide(snp.sum(x, 1, keepdims=True), 2, 3), ["reduce_sum", "broadcast_in_dim"]),
        (lambda x: wide(x.reshape(3, 1, 2), 3, 4, 2), ["reshape", "broadcast_in_dim"]),
    ],
)
def test_detours_are_left_out(fun, wanted):
    made = left(fun)
    if wanted is not None:
        assert names(made) == wanted


def test_what_is_read_elsewhere_stays():
    made = left(lambda x: (x.T, snp.sin(x.T).T.T))
    assert names(made) == ["transpose", "sin"]


# Results of any kind


def test_results_that_become_one_another_compile():
    def f(x, y):
        return snp.sin(x), snp.sin(x), x.T.T, snp.arange(1) * 3, y

    with st.config(interpret_small=False):
        fun = st.jit(f, donate_argnums=(0, 1))
        given = [snp.array(X), snp.array(X + 1)]
        first, second, same, constant, last = fun(*given)
    np.testing.assert_allclose(first, np.sin(X), rtol=1e-6)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(constant, [0])
    np.testing.assert_array_equal(last, X + 1)
    program = left(lambda x: (x.T.T, snp.arange(1)))
    assert program.outputs[0] is program.inputs[0] and type(program.outputs[1]) is Literal


def test_the_setting_turns_it_off():
    program = st.make_graph(lambda x: snp.sin(x) + snp.sin(x))(X)
    with st.config(roll_loops=False):
        assert names(prepare(program)) == ["sin", "add"]
    with st.config(roll_loops=False, simplify=False):
        assert prepare(program) is program


def test_lines_of_what_is_left_stay():
    def f(x):
        y = snp.sin(x)
        return y + snp.sin(x) + snp.cos(x).T.T

    program = st.make_graph(f)(X)
    lines = {e.primitive.name: e.position.line for e in reversed(program.equations)}
    for equation in simplify(program).equations[:2]:
        assert equation.position.line == lines[equation.primitive.name]


# Any program


def derivative(fun, args):
    """The gradient of a loss of all inexact results, by all real arguments, if there are any."""
    moving = tuple(i for i, a in enumerate(args) if a.dtype.kind == "f")

    def loss(*args):
        outs = [o for o in fun(*args) if o.dtype.kind in "fc"]
        return sum([snp.sum(snp.abs(o)) for o in outs], 0.0)

    return st.grad(loss, moving) if moving else fun


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_any_program_gives_the_same_bits(first):
    with st.enable_x64():
        for at in range(first, first + 20):
            block, way = draw_program(at)
            defined = namespace(block.source())
            fun = lambda *args, raw=defined["g0"]: raw(*map(snp.asarray, args))
            args = arrays(eval(v.drawn(at + i), defined) for i, v in enumerate(block.params))
            several = lambda *args, f=fun: [snp.stack(o) for o in zip(f(*args), f(*args))]
            for g in (fun, several, derivative(fun, args) if way != "forward" else fun):
                entry = st.jit(g).trace(*args)._entry
                made = simplify(drop_dead(entry.program))
                check(made)
                values = [*map(as_value, args), *entry.captured]
                same_bits(entry.program, made, values)
                assert len(made.equations) <= len(entry.program.equations)


def test_compiled_results_are_the_same():
    def f(x):
        table = snp.arange(6).reshape(2, 3) % 4
        y = snp.sin(x) * snp.sin(x) + x.T.T * table
        return st.lax.scan(lambda c, r: (c + snp.sin(r) * snp.sin(r), c), 0 * y[0], y), y

    results = []
    for on in (True, False):
        with st.config(simplify=on, interpret_small=False):
            results.append(st.tree.leaves(st.jit(f)(X)))
    for one, other in zip(*results, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-7)


def test_time_is_in_proportion():
    """Per equation as long for eight times as many; the factor is for a busy machine."""

    def each(count, common):
        def f(x):
            for _ in range(count // 2):
                x = snp.sin(x) * 1.5 + (snp.cos(x) * 1.5 if common else 0)
            return x

        program = st.make_graph(f)(X)
        times = []
        for _ in range(8):
            again = Program(program.inputs, program.equations, program.outputs)
            start = time.process_time()
            simplify(again)
            times.append(time.process_time() - start)
        return min(times) / len(program.equations)

    for common in (False, True):
        assert each(4000, common) < 3 * each(500, common)


# Work on small constants is done beforehand, where NumPy gives the compiler's bits.


SMALL = np.arange(4.0, dtype=np.float32)


def names_of(program):
    return [e.primitive.name for e in program.equations]


def left_over(fun):
    program = st.make_graph(fun)(SMALL)
    made = simplify(program)
    check(made)
    for got, want in zip(
        evaluate(made, [snp.array(SMALL)]), evaluate(program, [snp.array(SMALL)]), strict=True
    ):
        assert np.asarray(got).tobytes() == np.asarray(want).tobytes()
        np.testing.assert_array_equal(got.dtype, want.dtype)
    return made


@pytest.mark.parametrize(
    "table",
    [
        lambda: st.lax.iota(int, 4) * 3 - 1,
        lambda: (st.lax.iota(int, 4) % 2) == 0,
        lambda: st.lax.iota(int, 16).reshape(4, 4).T[:, None] + 0,
        lambda: st.lax.iota(np.int8, 4).astype(np.float32),
        lambda: snp.where(st.lax.iota(int, 4) > 1, 5, st.lax.iota(int, 4)),
        lambda: st.lax.broadcasted_iota(int, (4, 4), 0) >= st.lax.broadcasted_iota(int, (4, 4), 1),
        lambda: ~(st.lax.iota(int, 4) == 1),
        lambda: st.lax.iota(st.numpy.bfloat16, 4).astype(np.complex64),
    ],
)
def test_exact_work_is_done(table):
    made = names_of(left_over(lambda x: (x[0], table())))
    assert [n for n in made if n not in ("slice", "reshape")] == ["constant"]


def test_equal_elements_make_a_literal():
    made = left_over(lambda x: x.astype(int) + (st.lax.iota(int, 4) * 0 + 7))
    assert names_of(made) == ["convert_element_type", "add"]
    (constant,) = left_over(lambda x: st.lax.iota(int, 4) < 9).outputs
    assert type(constant) is Literal and constant.value


def test_equal_constants_are_one():
    made = left_over(lambda x: (x + (st.lax.iota(int, 4) + 1), x * (2 + st.lax.iota(int, 4) - 1)))
    assert names_of(made).count("constant") == 1


def test_what_nobody_computes_with_stays():
    program = st.make_graph(lambda x: x + st.lax.iota(np.float32, 4))(SMALL)
    assert simplify(program) is program


def test_functions_of_floats_are_left_to_the_compiler():
    made = left_over(lambda x: x + snp.sin(st.lax.iota(np.float32, 4)) * 0.1)
    assert names_of(made) == ["iota", "sin", "mul", "add"]


def test_large_results_are_left_to_the_compiler():
    for size, wanted in [(256, "constant"), (257, "iota")]:
        made = names_of(left_over(lambda x, size=size: x[0] + st.lax.iota(int, size) * 2))
        assert [name for name in made if name in ("iota", "constant")] == [wanted]
    made = left_over(lambda x: x[0] + snp.broadcast_to(st.lax.iota(int, 100) * 2, (10, 100)))
    assert [n for n in names_of(made) if n in ("iota", "constant")] == ["constant"]


def test_what_is_seen_or_drawn_is_not_done_beforehand():
    def f(x):
        st.debug.callback(lambda i: None, st.lax.iota(int, 4) * 2)
        return x + st.pure_callback(lambda i: i, snp.array(SMALL), st.lax.iota(np.float32, 4))

    made = simplify(st.make_graph(f)(SMALL))
    assert names_of(made) == ["constant", "debug_callback", "iota", "pure_callback", "add"]


def test_members_of_a_named_axis_are_no_constants():
    def check():
        program = st.make_graph(lambda x: x * (st.lax.axis_index("i") * 2))(SMALL)
        assert names_of(simplify(program)) == names_of(program)

    over_axis("i", 4, check)


def test_compiled_it_is_the_same():
    def f(x):
        mask = snp.tril(snp.ones((4, 4), bool))
        return snp.where(mask, x, -snp.inf).max(1) + snp.eye(4) @ x + snp.arange(8)[::2] // 3

    with st.config(interpret_small=False):
        got = st.jit(f)(SMALL)
    np.testing.assert_allclose(got, f(snp.array(SMALL)), rtol=1e-6)
