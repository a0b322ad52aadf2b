"""Updates of many arrays in one call: what is found, and that values and derivatives stay."""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import optim, tree
from stretto._engine.api.graph import make_graph
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import check
from stretto._engine.kernels import kernels
from stretto._engine.lowering import stablehlo
from stretto._engine.ops.fused_updates import FusedUpdates
from stretto._engine.passes.fuse_updates import fuse_alone, fuse_updates, gather_updates
from stretto._engine.passes.prepare import prepare

SHAPES = [(300, 40), (40,), (7, 3, 3), (1,), (), (33, 65), (64, 32, 3, 3), (20000,), (0, 3)]

OPTIMIZERS = {
    "adam": optim.adam(1e-2),
    "adamw": optim.adamw(1e-2),
    "momentum": optim.sgd(1e-2, momentum=0.9, nesterov=True),
    "lion": optim.lion(1e-2),
    "rmsprop": optim.rmsprop(1e-2),
    "adagrad": optim.adagrad(1e-2),
    "adadelta": optim.adadelta(1e-2),
    "clipped": optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-2)),
    "scheduled": optim.adamw(optim.cosine_decay_schedule(1e-2, 10)),
}


def arrays(seed, shapes=SHAPES, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def step_of(optimizer):
    def step(params, state, grads):
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state

    return step


def found(f, *args):
    """Return the program, and how many calls there are in it."""
    program = fuse_updates(prepare(make_graph(f)(*args)))
    check(program)
    return program, sum([isinstance(e.primitive, FusedUpdates) for e in program.equations])


def close(one, other, tolerance=1e-5):
    for x, y in zip(tree.leaves(one), tree.leaves(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance / 10)


def test_updates_of_matrices_are_gathered_on_demand():
    """XLA's own kernels are as fast for few, but do not write elements of arrays in place."""
    shapes = [(300, 40), (40,), (63, 64)]
    program = prepare(make_graph(step_of(optim.adam(1e-2)))(arrays(0, shapes),
                      optim.adam(1e-2).init(arrays(0, shapes)), arrays(1, shapes)))  # fmt: skip
    assert fuse_updates(program) is program
    gathered = gather_updates(program)
    check(gathered)
    (call,) = [e.primitive for e in gathered.equations if isinstance(e.primitive, FusedUpdates)]
    assert [t.shape for t in call.program.out_types] == [s for s in shapes for _ in range(3)]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    optimizer = OPTIMIZERS[name]
    params, grads = map(tree.map, [snp.asarray] * 2, [arrays(0), arrays(1)])
    state = optimizer.init(params)
    step = step_of(optimizer)
    program, count = found(step, params, state, grads)
    assert count == 1
    leaves = tree.leaves((params, state, grads))
    close(evaluate(program, leaves), tree.leaves(step(params, state, grads)))
    results = []
    for on in (True, False):
        for donated in ((), (0, 1)):
            with st.config(kernels=on):
                run = st.jit(step, donate_argnums=donated)
                p, s = tree.map(snp.copy, (params, state))
                for _ in range(3):
                    p, s = run(p, s, grads)
                results.append((p, s))
    for other in results[1:]:
        close(results[0], other)


def by_hand(ws, ds):
    return tree.map(lambda w, d: w - 0.1 * d, ws, ds)


def of_two_forms(ws, ds):
    return [w - 0.1 * d if w.ndim > 1 else w - d * d for w, d in zip(ws, ds, strict=True)]


def with_masks(ws, ds):
    return [snp.where(d > 0, w, snp.sign(d) / w) for w, d in zip(ws, ds, strict=True)]


def twice_read(ws, ds):
    """With parts that share nothing but what they read."""
    return by_hand(ws, ds), [w * 0.9 + d for w, d in zip(ws, ds, strict=True)]


def with_numbers(ws, ds):
    """With an array, or a number for each of the first axis, for every second one."""
    first = lambda d: d.mean(tuple(range(1, d.ndim)), keepdims=True)
    return [
        w - 0.1 * (d if i % 2 else first(d)) * d
        for i, (w, d) in enumerate(zip(ws, ds, strict=True))
    ]


def of_other_shapes(ws, ds):
    """With gradients that have other axes for every second one."""
    return [
        w - 0.1 * (d if i % 2 else (d.reshape(-1) + 1).reshape(d.shape))
        for i, (w, d) in enumerate(zip(ws, ds, strict=True))
    ]


def the_other_way_round(ws, ds):
    """With the same operations, and their operands exchanged for every second one."""
    return [
        w - 0.1 * d if i % 2 else 0.1 * d - w for i, (w, d) in enumerate(zip(ws, ds, strict=True))
    ]


def chosen_by_one(ws, ds):
    """By one truth for all elements, an operand as it is, which is a result, too."""
    up = ws[4] > 0
    return up, [st.lax.select(up, w - 0.1 * d, w) for w, d in zip(ws, ds, strict=True)]


@pytest.mark.parametrize(
    "f",
    [
        by_hand,
        of_two_forms,
        with_masks,
        twice_read,
        the_other_way_round,
        with_numbers,
        of_other_shapes,
        chosen_by_one,
    ],
)
def test_other_updates(f):
    ws, ds = arrays(0), arrays(1)
    ws[0][0, :3] = np.nan, np.inf, -np.inf
    ds[0][1, :3] = 0.0, -0.0, np.nan
    assert found(f, ws, ds)[1] == 1
    results = []
    for on in (True, False):
        with st.config(kernels=on):
            results.append(st.jit(f)(ws, ds))
    for x, y in zip(*map(tree.leaves, results), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-7)
        x, y = np.asarray(x), np.asarray(y)
        np.testing.assert_array_equal(np.signbit(x[x == 0]), np.signbit(y[y == 0]))


def test_what_reads_a_number_is_another_update_than_what_reads_an_array():
    """Each with an array that is made before, or a number for all elements."""

    def f(ws, ds):
        made = [snp.sort(d.ravel()).reshape(d.shape) for d in ds]
        by = [s if i % 2 else ds[4] for i, s in enumerate(made)]
        return [w - b * d for w, b, d in zip(ws, by, ds, strict=True)]

    ws, ds = arrays(0), arrays(1)
    assert found(f, ws, ds)[1]
    with st.config(kernels=False):
        expected = st.jit(f)(ws, ds)
    close(st.jit(f)(ws, ds), expected)


def behind_barriers(ws, ds):
    """With gradients under another name for every second one."""
    barrier = st.lax.optimization_barrier
    return [
        w - 0.1 * (d if i % 2 else barrier(d)) for i, (w, d) in enumerate(zip(ws, ds, strict=True))
    ]


@pytest.mark.parametrize(
    ("f", "groups"),
    [(by_hand, 1), (the_other_way_round, 2), (with_numbers, 4), (behind_barriers, 1)],
)
def test_equal_updates_are_told_once(f, groups):
    program, _ = found(f, arrays(0), arrays(1))
    (call,) = [e.primitive for e in program.equations if isinstance(e.primitive, FusedUpdates)]
    assert call.numbers[:2] == (groups, len(SHAPES) - 2)


def read_later(ws, ds):
    new = by_hand(ws, ds)
    return new, [snp.cumsum(w.ravel()) for w in new]


def of_matrices(ws, ds):
    return by_hand(ws[:2], ds[:2])


def new(ws, ds):
    """Of nothing that the program is given as it is."""
    return [snp.sort(w, axis=None) - snp.sort(d, axis=None) for w, d in zip(ws, ds, strict=True)]


def whole_numbers(ws, ds):
    return [w.astype(int) + 1 for w in ws]


@pytest.mark.parametrize("f", [read_later, of_matrices, new, whole_numbers])
def test_not_found(f):
    assert found(f, arrays(0), arrays(1))[1] == 0


@pytest.mark.parametrize(
    ("shapes", "calls"),
    [
        ([(64, 64, 3, 3)], 1),  # XLA goes along the last axis
        ([(64, 64, 1, 1)], 0),
        ([(64, 2, 31)], 0),  # less than 4,096 elements
        ([(64, 3, 31)], 1),
        ([(64, 3, 32)], 0),
        ([(64, 64)] * 5, 0),
        ([(64, 64)] * 6, 1),
        ([(63, 64)] * 9 + [(64, 64)] * 5, 0),
        ([(64, 64, 3, 3), (300, 300)], 1),
        ([(64, 64, 3, 3), (900, 300)], 1),
    ],
)
def test_from_which_sizes_on(shapes, calls):
    assert found(by_hand, arrays(0, shapes), arrays(1, shapes))[1] == calls


@pytest.mark.parametrize(("beside", "count"), [((300, 300), 2), ((900, 300), 1)])
def test_others_are_with_them_where_they_are_not_most(beside, count):
    shapes = [(64, 64, 3, 3), beside]
    program, _ = found(by_hand, arrays(0, shapes), arrays(1, shapes))
    (call,) = [e for e in program.equations if isinstance(e.primitive, FusedUpdates)]
    assert len(call.outputs) == count


def test_many_arrays_are_several_calls():
    ws, ds = [arrays(seed, [(40, 3), (20, 8, 30)] * 75) for seed in (0, 1)]
    program, count = found(by_hand, ws, ds)
    assert count == 3
    close(evaluate(program, [*map(snp.asarray, [*ws, *ds])]), by_hand(ws, ds))
    close(st.jit(by_hand)(ws, ds), by_hand(ws, ds))


def net(ws, x):
    for w in ws:
        x = snp.tanh(x @ w.reshape(96, 96))
    return (x**2).sum()


def trained(ws, x):
    return by_hand(ws, st.grad(net)(ws, x))


def clipped(ws, x):
    slopes = st.grad(net)(ws, x)
    size = snp.sqrt(sum([(d * d).sum() for d in slopes]))
    return by_hand(ws, [d / snp.maximum(size, 1) for d in slopes])


@pytest.mark.parametrize(("step", "calls"), [(trained, 7), (clipped, 1)])
def test_calls_wait_for_little(step, calls):
    """What a layer's gradients need is let go before those of the layer below are there."""
    ws, x = arrays(0, [(24, 4, 4, 24)] * 7), arrays(1, [(4, 96)])[0]
    program, count = found(step, ws, x)
    assert count == calls
    close(evaluate(program, [*map(snp.asarray, [*ws, x])]), step(ws, x), 1e-4)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_weights_are_not_copied():
    """Each is written over after the gradient by the layer's input, which needs it."""
    ws, x = arrays(0, [(24, 4, 4, 24)] * 7), arrays(1, [(4, 96)])[0]
    with st.config(kernels=True):
        text = st.jit(trained, donate_argnums=0).lower(ws, x).compile().as_text()
    assert text.count('"stretto_update"') == 7
    assert not re.search(r"f32\[(96,96|24,4,4,24)\]\S* copy\(", text)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_donated_arrays_are_updated_in_place():
    optimizer = OPTIMIZERS["adam"]
    params, grads = map(tree.map, [snp.asarray] * 2, [arrays(0), arrays(1)])
    state = optimizer.init(params)

    def step(params, state, xs):
        grads = st.grad(lambda ps: sum([((p - x) ** 2).sum() for p, x in zip(ps, xs, strict=True)]))
        return step_of(optimizer)(params, state, grads(params))

    size = sum([x.nbytes for x in grads])
    with st.config(kernels=True):
        compiled = st.jit(step, donate_argnums=(0, 1)).lower(params, state, grads).compile()
        assert "stretto_update" in compiled.as_text()
        memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 1.1 * size  # the gradients
    assert memory.alias_size_in_bytes > 2.9 * size


@pytest.mark.parametrize("rates", ["one", "each"])
def test_members_of_ensembles(rates):
    optimizer = OPTIMIZERS["adam"]
    params, grads = [arrays(seed, [(5, *shape) for shape in SHAPES]) for seed in (0, 1)]
    state = st.vmap(optimizer.init)(tree.map(snp.asarray, params))
    rate = np.linspace(0.5, 2, 5, dtype=np.float32) if rates == "each" else np.float32(2)

    def step(params, state, grads, rate):
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, tree.map(lambda u: u * rate, updates)), state

    mapped = st.vmap(step, in_axes=(0, 0, 0, 0 if rates == "each" else None))
    results = []
    for on in (True, False):
        with st.config(kernels=on):
            results.append(st.jit(mapped)(params, state, grads, rate))
    close(*results)
    for k in range(5):
        one = lambda x, k=k: x[k]
        of_one = rate[k] if rates == "each" else rate
        alone = step(*tree.map(one, (params, state, grads)), of_one)
        close(tree.map(one, results[0]), alone)


def test_derivatives():
    ws, ds = arrays(0), arrays(1)

    def loss(ds):
        return sum([(w**3).sum() for w in by_hand(ws, ds)])

    results = []
    for on in (True, False):
        with st.config(kernels=on):
            results.append(st.jit(st.grad(loss))(ds))
    close(*results)


def in_place(ws, ds):
    return by_hand(ws, ds)


def in_a_loop(ws, ds):
    return st.lax.fori_loop(0, 5, lambda i, ws: by_hand(ws, ds), ws)


def in_a_scan(ws, ds):
    scaled = lambda ws, k: (by_hand(ws, [k * d for d in ds]), k)
    return st.lax.scan(scaled, ws, snp.arange(3.0))[0]


def in_a_function(ws, ds):
    return st.jit(by_hand)(ws, [d + 1 for d in ds])


def in_a_branch(ws, ds):
    return st.lax.cond(ds[0][0, 0, 0] < 9, lambda: by_hand(ws, ds), lambda: ws)


def of_members(ws, ds):
    return st.vmap(by_hand)(ws, ds)


def twice(ws, ds):
    """One call of a function for those in place, and one for others."""
    step = st.jit(by_hand)
    return step(ws, ds), step(ds, ws)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize(
    "f", [in_place, in_a_loop, in_a_scan, in_a_function, in_a_branch, of_members]
)
def test_whatever_holds_them_they_are_in_place(f):
    shapes = [(30, 7, 30)] * 8
    ws, ds = arrays(0, shapes), arrays(1, shapes)
    results = []
    for on in (True, False):
        with st.config(kernels=on):
            run = st.jit(f, donate_argnums=0)
            compiled = run.lower(ws, ds).compile()
            results.append(run(tree.map(snp.array, ws), ds))
        text = compiled.as_text()
        assert ('"stretto_update"' in text) == on
        assert not on or not re.search(r"f32\[30,7,30\]\S* copy\(", text)
    close(*results)


def test_functions_in_place_and_not():
    ws, ds = arrays(0), arrays(1)
    results = []
    for on in (True, False):
        with st.config(kernels=on):
            run = st.jit(twice, donate_argnums=0)
            results.append(run(tree.map(snp.array, ws), ds))
    close(*results)


def test_what_another_update_reads_is_not_written_over():
    """As members' numbers: an array that is updated itself."""
    rates, ws = arrays(0, [(5,)] * 8), arrays(1, [(5, 100, 30)] * 8)

    def step(rates, ws):
        return [0.5 * r for r in rates], [w * r for w, r in zip(ws, rates, strict=True)]

    mapped = st.vmap(step)
    for donated in ((), (0,), (0, 1)):
        got = st.jit(mapped, donate_argnums=donated)(*tree.map(snp.array, (rates, ws)))
        with st.config(kernels=False):
            close(got, st.jit(mapped)(rates, ws))


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_what_is_called_and_what_is_not():
    ws, ds = arrays(0), arrays(1)
    program = prepare(make_graph(by_hand)(ws, ds))
    for on in (True, False):
        with st.config(kernels=on):
            assert ("stretto_update" in stablehlo.lower(program)) == on


@pytest.mark.parametrize(
    ("f", "ends"),
    [
        (lambda w, v, d: w - 0.1 * d, True),
        (lambda w, v, d: (w - 0.1 * d, v - 0.1 * d), True),
        (lambda w, v, d: (w - 0.1 * d, d), False),
        (lambda w, v, d: (w - 0.1 * d, snp.cumsum(d, 0)), False),
    ],
    ids=["once", "twice", "a result", "by another operation"],
)
def test_arrays_of_the_program_s_own_that_end_in_the_call(f, ends):
    """Nothing else reads it, and it is no result."""
    w, v, x = arrays(0, [(64, 40, 3)] * 3)
    program, count = found(lambda w, v, x: f(w, v, snp.cumsum(x, 1)), w, v, x)
    assert count == 1
    (call,) = [e for e in program.equations if isinstance(e.primitive, FusedUpdates)]
    made = next(e.outputs[0] for e in program.equations if e.primitive.name == "cumsum")
    assert call.primitive.ending == ({call.inputs.index(made)} if ends else set())


# Programs that do nothing else


def hardswish(x):
    return x * snp.minimum(snp.maximum(x + 3, 0), 6) / 6


ALONE = {
    "relu": (lambda x, y: snp.maximum(x, 0), True),
    "leaky relu": (lambda x, y: snp.where(x > 0, x, 0.01 * x), True),
    "two results": (lambda x, y: ((x + y) * 2, snp.where(x > y, x, -y)), True),
    # Others may be other bits by a kernel.
    "rounded once": (lambda x, y: x + y * 2, False),
    "rounded once, turned": (lambda x, y: x + (y.T * 2).T, False),
    "quotient": (lambda x, y: hardswish(x), False),
    # Such as are approximated wherever they are.
    "exponential": (lambda x, y: x * snp.exp(-x), True),
    "gelu": (lambda x, y: st.nn.functional.gelu(x), True),
    "gelu by tanh": (lambda x, y: st.nn.functional.gelu(x, approximate="tanh"), True),
    "a curve's gradient": (st.grad(lambda x, y: (snp.tanh(x) * y).sum()), True),
    "gradient": (st.grad(lambda x, y: (snp.maximum(x, 0) * y).sum()), True),
    "turned": (lambda x, y: (x.T * 2 + y.T).T, False),
    "one number": (lambda x, y: x * y[0, 0], False),
    "a row": (lambda x, y: x * y[0], False),
    "a sum": (lambda x, y: x * y + y.sum(), False),
    "a tangent": (lambda x, y: snp.tan(x) * y, False),
    "a product": (lambda x, y: (x @ y.T) * 2, False),
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("shape", [(64, 100), (8, 16, 7, 7), (9000,), (200, 300)])
def test_small_programs_of_nothing_else_are_one_call(name, shape):
    f, alone = ALONE[name]
    if "product" in name and len(shape) != 2:
        shape = (64, 100)
    if len(shape) == 1 and name in ("one number", "a row", "turned"):
        shape = (90, 100)
    args = arrays(1, [shape, shape])
    program = fuse_alone(prepare(make_graph(f)(*args)))
    check(program)
    is_alone = all(isinstance(e.primitive, FusedUpdates) for e in program.equations)
    assert is_alone == alone
    args[0][0], args[0].flat[-1] = np.nan, np.inf
    with st.config(kernels=False):
        expected = st.jit(f)(*args)
    if alone:
        for got, e in zip(tree.leaves(st.jit(f)(*args)), tree.leaves(expected), strict=True):
            # Curves are approximated by others, so that only what is not finite is the same.
            off = (
                1e-6 if name in ("exponential", "gelu", "gelu by tanh", "a curve's gradient") else 0
            )
            np.testing.assert_allclose(got, e, rtol=off, atol=off)


SIZES_ALONE = [(4095, 0), (4096, 1), (524288, 1), (524289, 0), (1 << 23, 0), ((1 << 23) + 1, 1)]


@pytest.mark.parametrize(("elements", "alone"), SIZES_ALONE)
def test_sizes_of_programs_that_are_one_call(elements, alone):
    program = fuse_alone(prepare(make_graph(lambda x: (x + 1) * 2)(np.ones(elements, np.float32))))
    assert sum(isinstance(e.primitive, FusedUpdates) for e in program.equations) == alone


@pytest.mark.parametrize(("elements", "alone"), SIZES_ALONE)
def test_sizes_of_programs_with_a_curve_that_are_one_call(elements, alone):
    program = fuse_alone(prepare(make_graph(snp.tanh)(np.ones(elements, np.float32))))
    assert sum(isinstance(e.primitive, FusedUpdates) for e in program.equations) == alone


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_curves_of_other_dtypes_are_not_a_call(dtype):
    with st.enable_x64():
        program = fuse_alone(prepare(make_graph(lambda x: snp.tanh(x) * x)(np.ones(5000, dtype))))
    assert not any(isinstance(e.primitive, FusedUpdates) for e in program.equations)


@pytest.mark.parametrize(("count", "alone"), [(64, 1), (65, 0)])
def test_operations_of_programs_that_are_one_call(count, alone):
    def f(x):
        for n in range(count):
            x = snp.maximum(x, -1.0) if n % 2 else x * 0.5
        return x

    program = fuse_alone(make_graph(f)(np.ones(5000, np.float32)))
    assert len(program.equations) == (1 if alone else count)


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
def test_bodies_of_loops_are_left_to_xla():
    """A turn of a loop is too short for a call."""
    loop = lambda x: st.lax.fori_loop(0, 9, lambda i, x: (x + 1) * 0.5, x)
    assert "stretto_update" not in st.jit(loop).lower(np.ones(5000, np.float32)).as_text()
    plain = st.jit(lambda x: (x + 1) * 0.5).lower(np.ones(5000, np.float32)).as_text()
    assert "stretto_update" in plain
    with st.config(kernels=False):
        plain = st.jit(lambda x: (x + 1) * 0.5).lower(np.ones(5000, np.float32)).as_text()
    assert "stretto_update" not in plain
