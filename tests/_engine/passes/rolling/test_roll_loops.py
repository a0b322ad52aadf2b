"""Loops found in straight-line code: the same values with them and without."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as draw

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import Program, check
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.passes.prepare import prepare
from stretto._engine.passes.rolling.roll_loops import roll_all_loops, roll_loops


def array(*shape, seed=0):
    numbers = np.random.default_rng([seed, *shape]).standard_normal(shape)
    return snp.asarray((0.4 * numbers).astype(np.float32))


def straight(f, *args):
    """The program as it is lowered without loops."""
    with st.config(roll_loops=False):
        return prepare(st.make_graph(f)(*args))


def lengths(program):
    """Of the loops in it, those inside of others in a list after theirs."""
    found = []
    for e in program.equations:
        if e.primitive.name == "scan":
            inner = lengths(e.primitive.body)
            found.append([e.primitive.length, *inner] if inner else e.primitive.length)
        elif e.primitive.holds_programs:
            found += [n for p in e.primitive.programs() for n in lengths(p)]
    return found


def rolled(f, *args):
    """The program with loops, once it was seen to give the same."""
    before = straight(f, *args)
    after = roll_loops(before, always=True)
    check(after)
    assert after.inputs == before.inputs
    assert after.outputs == before.outputs
    leaves = st.tree.leaves(args)
    for one, other in zip(evaluate(before, leaves), evaluate(after, leaves), strict=True):
        np.testing.assert_array_equal(one, other)
    return after


def gradient(f, *argnums):
    def loss(*args):
        return sum([snp.sum(leaf * leaf) for leaf in st.tree.leaves(f(*args))])

    return st.grad(loss, argnums=argnums or (0,))


# Carried values


def power(x, turns=50):
    y = x
    for _ in range(turns):
        y = y * x
    return y


def test_a_chain_of_products():
    after = rolled(power, array(4))
    assert [e.primitive.name for e in after.equations] == ["scan"]
    assert lengths(after) == [50]
    assert lengths(rolled(gradient(power), array(4))) == [50, 49]


def test_the_pass_for_tests_makes_loops_that_do_not_pay():
    program = straight(power, array(4))
    assert roll_loops(program) is program
    assert lengths(roll_all_loops(program)) == [50]


def test_the_text_has_a_while_and_the_compiled_values_are_the_same():
    x = array(4)
    f = lambda x: power(x, 1000)
    assert "stablehlo.while" in st.jit(f).lower(x).as_text()
    looped = st.jit(f)(x + 0.999)
    with st.config(roll_loops=False):
        assert "stablehlo.while" not in st.jit(f).lower(x).as_text()
        np.testing.assert_allclose(looped, st.jit(f)(x + 0.999), rtol=1e-4)


def test_two_values_are_carried():
    def f(x, y):
        for _ in range(20):
            x, y = snp.sin(x) * y, snp.cos(y)
        return x, y

    after = rolled(f, array(3), array(3, seed=1))
    assert lengths(after) == [20]
    assert after.equations[0].primitive.carry == 2
    rolled(gradient(f, 0, 1), array(3), array(3, seed=1))


def test_values_of_copies_long_before():
    def f(a, b, c):
        xs = [a, b, c]
        for _ in range(12):
            xs.append(xs[-1] * snp.sin(xs[-2]) + xs[-3])
        return xs[-1], xs[-2]

    args = array(3), array(3, seed=1), array(3, seed=2)
    assert lengths(rolled(f, *args)) == [12]
    assert lengths(rolled(gradient(f, 0, 1, 2), *args))


def test_periods_of_several_copies():
    def switched(a, b, x):
        for i in range(20):
            x = snp.sin(x * a) if i % 2 else snp.sin(x * b)
        return x

    after = rolled(switched, array(3), array(3, seed=1), array(3, seed=2))
    assert lengths(after) == [10]

    def wired(x, y):
        for _ in range(12):
            z = x * y
            y = x * z
            x = z * y
        return x, y, z

    assert lengths(rolled(wired, array(3), array(3, seed=1)))


def test_a_first_and_a_last_turn_that_differ():
    def f(x):
        for i in range(12):
            x = snp.sin(x)
            x = x * 3.0 if i == 0 else snp.cos(x) if i == 11 else x + 1.0
        return x

    assert lengths(rolled(f, array(3))) == [10]


def test_an_equation_of_something_else_in_between():
    def f(x, y):
        for i in range(12):
            x = snp.sin(x) * 2
            if i == 5:
                y = y @ y.T
        return x, y

    assert sum(lengths(rolled(f, array(3), array(3, 3)))) >= 10


def test_weak_types_at_the_start():
    def f(x):
        total = 0.0
        for i in range(8):
            total = total + snp.sum(x) * i
        return total

    assert lengths(rolled(f, array(3))) in ([8], [7])


# What changes from turn to turn


def test_numbers_that_change():
    def f(x, key):
        for i in range(12):
            x = x * i + 1.5**i
        return x + st.random.normal(st.random.fold_in(key, 3), (3,))

    after = rolled(f, array(3), st.random.PRNGKey(0))
    assert lengths(after) == [12]


def test_keys():
    def f(key, x):
        for i in range(8):
            x = x + st.random.uniform(st.random.fold_in(key, i), x.shape)
        return x

    assert lengths(rolled(f, st.random.PRNGKey(1), array(3))) == [8]


def test_bits_of_numbers_count():
    def f(x):
        for i in range(8):
            x = snp.copysign(snp.sin(x), -0.0 if i % 3 else 0.0)
        return x

    rolled(f, array(3))


def layers(weights, biases, x):
    for w, b in zip(weights, biases, strict=True):
        x = snp.maximum(x @ w + b, 0)
    return x


def test_arrays_of_each_turn():
    weights = [array(4, 4, seed=i) for i in range(6)]
    biases = [array(4, seed=i) for i in range(6)]
    after = rolled(layers, weights, biases, array(2, 4))
    assert lengths(after) == [6]
    rolled(gradient(layers, 0, 1, 2), weights, biases, array(2, 4))


def test_rows_of_one_array_are_read_where_they_lie():
    after = rolled(lambda w, x: layers(w, w[:, 0], x), array(6, 4, 4), array(2, 4))
    assert lengths(after) == [6]
    assert "concatenate" not in {e.primitive.name for e in after.equations}


def recurrent(w, u, x, h):
    hs = []
    for t in range(x.shape[1]):
        h = snp.tanh(h @ w + x[:, t] @ u)
        hs.append(h)
    return h, hs


RECURRENT = array(4, 4), array(3, 4), array(2, 8, 3), array(2, 4)


def test_a_recurrence_over_an_axis_inside():
    after = rolled(lambda *args: recurrent(*args)[0], *RECURRENT)
    assert lengths(after) == [8]
    assert [e.primitive.name for e in after.equations] == ["constant", "scan"]


def test_the_way_back_reads_what_the_way_there_keeps():
    f = gradient(lambda *args: recurrent(*args)[0], 0, 1, 2, 3)
    after = rolled(f, *RECURRENT)
    assert lengths(after) == [8, 7]
    forward, backward = [e for e in after.equations if e.primitive.name == "scan"]
    assert set(forward.outputs) & set(backward.inputs)
    # The sums of slices' cotangents are made in place, and nothing is put together.
    names = {e.primitive.name for e in backward.primitive.body.equations}
    assert "dynamic_update_slice" in names
    assert "concatenate" not in {e.primitive.name for e in after.equations}


def test_layers_of_recurrences():
    def f(w, v, x):
        hs = [x[t] for t in range(6)]
        for _ in range(2):
            h, out = snp.zeros(4), []
            for t in range(6):
                h = snp.tanh(h @ w + hs[t] @ v)
                out.append(h)
            hs = out
        return snp.stack(hs)

    args = array(4, 4), array(4, 4, seed=1), array(6, 4)
    after = rolled(f, *args)
    assert lengths(after) == [6, 5]  # both begin with zeros @ w, which is done once
    rolled(gradient(f, 0, 1, 2), *args)


# What is read of each turn


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("backwards", [False, True], ids=["in-order", "backwards"])
def test_stacked_results(axis, backwards):
    def f(*args):
        hs = recurrent(*args)[1]
        return snp.stack(hs[::-1] if backwards else hs, axis)

    after = rolled(f, *RECURRENT)
    assert lengths(after) == [8]
    assert "concatenate" not in {e.primitive.name for e in after.equations}


def test_some_results_together_with_others():
    def f(*args):
        h, hs = recurrent(*args)
        return snp.concatenate([args[3], *hs[1:6], h * 2], 1), hs[0]

    assert lengths(rolled(f, *RECURRENT)) == [8]


def test_results_by_themselves():
    assert lengths(rolled(recurrent, *RECURRENT)) == [8]
    assert lengths(rolled(lambda *args: recurrent(*args)[1][1::3], *RECURRENT)) == [8]


def test_only_the_last_of_what_is_not_carried():
    def f(x):
        for _ in range(12):
            x = snp.sin(x)
            y = x * x
        return x, y

    after = rolled(f, array(3))
    assert lengths(after) == [12]
    assert all([v.type.shape == (3,) for v in after.equations[0].outputs])


# Programs inside


def test_nested_loops_become_nested_loops():
    def f(x):
        for _ in range(6):
            for _ in range(7):
                x = snp.sin(x) * x
            x = snp.cos(x)
        return x

    assert lengths(rolled(f, array(3))) == [[6, 7]]


def test_functions_called_and_held():
    once = st.jit(lambda w, x: snp.tanh(x @ w))
    kept = st.checkpoint(lambda w, x: snp.sin(snp.cos(x @ w)))

    def f(w, x):
        for i in range(6):
            x = once(w, x) + kept(w, x)
            x = st.lax.scan(lambda c, _: (c @ w, None), x, None, length=3)[0] + i
            x = st.lax.cond(snp.sum(x) > 0, lambda x: x @ w, lambda x: -x, x)
            x = st.nn.gelu(st.nn.relu(x), "tanh")
        return x

    args = array(4, 4), array(2, 4)
    # The scan inside is one of each turn, and the branches are in its list.
    assert lengths(rolled(f, *args)) == [[6, 3]]
    rolled(gradient(f, 0, 1), *args)


def test_loops_inside_what_is_called():
    inner = st.jit(lambda x: power(x, 30))
    after = rolled(lambda x: inner(x) + inner(x + 1), array(3))
    assert lengths(after) == [30, 30]
    programs = [e.primitive.program for e in after.equations if e.primitive.name == "call"]
    assert programs[0] is programs[1]


def test_mapped_and_second_derivatives():
    w, x = array(4, 4), array(5, 4)

    def f(w, x):
        for _ in range(6):
            x = snp.tanh(x @ w)
        return x

    assert lengths(rolled(st.vmap(f, in_axes=(None, 0)), w, x)) == [6]
    rolled(st.vmap(gradient(f, 0), in_axes=(None, 0)), w, x)
    rolled(gradient(gradient(f, 0), 0), w, x)
    rolled(lambda w, x: st.jvp(lambda w: f(w, x), (w,), (w,)), w, x)


def test_what_is_planned_stays_with_the_planner():
    weights, x = array(10, 64, 64), array(8, 64)

    layer = st.vmap(lambda w, x: snp.tanh(x @ w), in_axes=(0, None))

    def f(weights, x):
        for _ in range(6):
            x = layer(weights, x).mean(0)
        return x

    with st.config(plan="batched"):
        after = rolled(f, weights, x)
    assert [e.primitive.name for e in after.equations].count("mapped") == 6


def test_training_steps():
    def loss(params, x, y):
        (w, b), (v, c) = params
        return snp.mean((snp.tanh(x @ w + b) @ v + c - y) ** 2)

    def train(params, xs, ys):
        for x, y in zip(xs, ys, strict=True):
            gradients = st.grad(loss)(params, x, y)
            params = st.tree.map(lambda p, g: p - 0.1 * g, params, gradients)
        return params

    params = [(array(3, 4), array(4)), (array(4, 1), array(1))]
    assert lengths(rolled(train, params, array(6, 5, 3), array(6, 5, 1))) == [6]


# Effects, places, types


def test_effects_end_a_stretch(capsys):
    def f(x):
        for i in range(30):
            x = snp.sin(x) * 2
            if i == 14:
                st.debug.print("half {}", x[0], ordered=True)
        return x

    before = straight(f, array(2))
    after = roll_loops(before, always=True)
    assert lengths(after) == [15, 15]
    st.jit(f)(array(2)).block_until_ready()
    assert capsys.readouterr().out.startswith("half ")


def test_equations_keep_the_place_of_the_first_copy():
    def f(x):
        for _ in range(30):
            x = snp.sin(x)  # here
            x = x * 2
        return x

    (scan,) = rolled(f, array(2)).equations
    line = f.__code__.co_firstlineno
    assert scan.position.line == line + 2
    assert [e.position.line for e in scan.primitive.body.equations] == [line + 2, line + 3]


@pytest.mark.parametrize("dtype", ["float64", "int64", "complex128"])
def test_64_bits(dtype):
    with st.enable_x64():
        x = snp.asarray(np.arange(1, 7).reshape(2, 3).astype(dtype))

        def f(x):
            y = x[0]
            for i in range(12):
                y = y * x[1] + i
            return y

        assert lengths(rolled(f, x)) == [12]


def test_donated_arguments():
    f = st.jit(lambda x: power(x, 400), donate_argnums=0)
    x = array(64) + 1.0
    expected = np.asarray(st.jit(lambda x: power(x, 400))(x))
    given = x + 0.0
    np.testing.assert_array_equal(f(given), expected)
    assert given.is_deleted()


def test_the_text_is_the_same_each_time():
    f = gradient(lambda *args: recurrent(*args)[0], 0, 1, 2, 3)
    first, second = [lower(roll_loops(straight(f, *RECURRENT), always=True)) for _ in range(2)]
    assert first == second


# Compiled


def test_compiled_loops_give_what_copies_give():
    f = gradient(lambda *args: snp.stack(recurrent(*args)[1]), 0, 1, 2, 3)
    looped = st.jit(f)(*RECURRENT)
    with st.config(roll_loops=False):
        copied = st.jit(f)(*RECURRENT)
    for one, other in zip(looped, copied, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


# Random loops


# fmt: off
KINDS = (
    "mul", "add", "sub", "sin", "tanh", "row", "column", "number", "parity", "dot", "still",
    "given", "put", "before",
)
# fmt: on


def random_loop(seed):
    """A function with Python loops of a random body, and arguments."""
    rng = random.Random(seed)
    turns, state, size = rng.randint(4, 8), rng.randint(1, 3), 3
    count = rng.randint(1, 6)
    body = [(rng.choice(KINDS), rng.randint(0, 9), rng.randint(0, 9)) for _ in range(count)]
    read = rng.choice(["last", "all", "some", "stack", "backwards"])
    order = range(turns) if rng.random() < 0.7 else range(turns)[::-1]
    odd = rng.choice([None, None, None, 0, turns - 1, turns // 2])
    swap, loops, axis = rng.random() < 0.2, rng.randint(1, 2), rng.randint(0, 1)

    def operation(kind, u, v, i, past, arrays):
        rows, columns, matrix, given = arrays
        return {
            "mul": lambda: u * v,
            "add": lambda: u + v,
            "sub": lambda: u - v,
            "sin": lambda: snp.sin(u),
            "tanh": lambda: snp.tanh(u),
            "row": lambda: u * rows[i],
            "column": lambda: u + columns[:, i],
            "number": lambda: u * (0.1 * i),
            "parity": lambda: u + float(i % 2),
            "dot": lambda: u @ matrix,
            "still": lambda: u * snp.sin(rows[0]),
            "given": lambda: u + given[i],
            "put": lambda: columns[:, i].at[i % 3].set(u[1]),
            "before": lambda: u + past,
        }[kind]()

    def f(states, *arrays):
        seen = []
        for _ in range(loops):
            history = [list(states)]
            for i in order:
                values = list(states)
                for kind, a, b in body:
                    past = history[max(0, len(history) - 1 - a % 3)][b % state]
                    u, v = values[a % len(values)], values[b % len(values)]
                    values.append(operation(kind, u, v, i, past, arrays))
                if odd == i:
                    values[-1] = snp.cos(values[-1])
                states = [snp.tanh(x) for x in values[-state:]]
                states = states[::-1] if swap and i % 2 else states
                history.append(states)
                seen.append(states[0] * 1.0)
        results = {
            "last": lambda: [],
            "all": lambda: seen,
            "some": lambda: seen[::3],
            "stack": lambda: [snp.stack(seen, axis)],
            "backwards": lambda: [snp.concatenate([*seen[::-1][1:], arrays[0][0]])],
        }
        return [*states, *results[read]()]

    given_ = [array(size, seed=i) for i in range(turns)]
    states = [array(size, seed=9 + i) for i in range(state)]
    return f, (states, array(turns, size), array(size, turns), array(size, size), given_)


@given(draw.integers(0, 1 << 30))
@settings(max_examples=100)
def test_random_loops(seed):
    f, args = random_loop(seed)
    rolled(f, *args)


@given(draw.integers(0, 1 << 30))
@settings(max_examples=50)
def test_gradients_of_random_loops(seed):
    f, args = random_loop(seed)
    rolled(gradient(f, *range(5)), *args)


def test_most_random_loops_are_found():
    graphs = [straight(f, *args) for f, args in map(random_loop, range(40))]
    assert sum([bool(lengths(roll_loops(g, always=True))) for g in graphs]) >= 20


def test_nothing_is_done_where_nothing_repeats():
    program = straight(lambda x: snp.sin(x) * snp.cos(x) + snp.exp(x), array(3))
    assert isinstance(program, Program)
    assert roll_loops(program, always=True) is program


@pytest.mark.parametrize(("copies", "loops"), [(3, []), (4, [4]), (5, [5])])
def test_four_copies_are_a_loop(copies, loops):
    def f(x, y):
        for _ in range(copies):
            x = snp.sin(x) * y
        return x

    assert lengths(rolled(f, array(3), array(3, seed=1))) == loops


@pytest.mark.parametrize("copies", [4, 5])
def test_four_copies_beside_a_loop_are_another_one(copies):
    """What differs in one copy stands between two loops."""

    def f(x, y, z):
        for i in range(9 + copies):
            x = snp.sin(x) * (z if i == 8 else y)
        return x

    args = [array(3, seed=i) for i in range(3)]
    assert sum(lengths(rolled(f, *args))) >= 8 + copies
