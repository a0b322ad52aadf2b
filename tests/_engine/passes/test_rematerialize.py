"""Values computed again rather than kept: which, that they are the same, and what it saves."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.program import Var, check
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.passes import rematerialize as module
from stretto._engine.passes.rematerialize import rematerialize
from stretto._engine.passes.simplify import simplify
from stretto.nn import functional as F

N = 64
X, W = snp.ones((N, N)), snp.full((N, N), 1 / N)


@pytest.fixture
def eager(monkeypatch):
    """Small programs count as large ones."""
    monkeypatch.setattr(module, "_MUCH", 1)
    monkeypatch.setattr(module, "_LEAST", 1)


def program_of(f, *args):
    before = simplify(st.make_graph(f)(*args))
    after = rematerialize(before)
    check(after)
    return before, after


def copies(f, *args):
    """How many barriers were put in: one for each array that copies are made of."""
    before, after = program_of(f, *args)
    count = lambda p: sum(isinstance(e.primitive, OptimizationBarrier) for e in p.equations)
    return count(after) - count(before)


def most_alive(program):
    """The most bytes of equations' results that are there at once."""
    last = {a: i for i, e in enumerate(program.equations) for a in e.inputs if isinstance(a, Var)}
    last.update(dict.fromkeys(program.outputs, len(program.equations)))
    alive, most, freed = 0, 0, {}
    for i, e in enumerate(program.equations):
        for v in e.outputs:
            if v in last:
                alive += bytes_of(v.type)
                freed.setdefault(last[v], []).append(v)
        most = max(most, alive)
        alive -= sum(bytes_of(v.type) for v in freed.pop(i, ()))
    return most


def layers(activation, count=8):
    def f(x, w):
        for _ in range(count):
            x = activation(x @ w)
        return x.sum()

    return st.grad(f, (0, 1))


def test_activations_are_computed_again(eager):
    before, after = program_of(layers(F.silu), X, W)
    assert copies(layers(F.silu), X, W) >= 7
    assert most_alive(after) < 0.5 * most_alive(before)


def test_normalized_values_are_made_of_what_is_normalized(eager):
    """The output of the product is kept for what is made of it, though nothing else needs it."""

    def normal(x):
        return F.relu(F.batch_norm(x, None, None, training=True))

    before, after = program_of(layers(normal), X, W)
    assert copies(layers(normal), X, W) >= 6
    assert most_alive(after) < 0.7 * most_alive(before)


def test_small_programs_keep_everything():
    assert copies(layers(F.silu), X, W) == 0


def test_what_is_used_soon_is_kept(eager):
    def f(x, w):
        y = snp.exp(x @ w)
        return y.sum() + (y @ w).sum()

    assert copies(f, X, W) == 0


def test_functions_that_take_long_are_kept(eager):
    assert copies(layers(lambda y: lax.lgamma(y + 9)), X, W) == 0
    assert copies(layers(lambda y: snp.log(y + 9)), X, W) > 0


def test_sums_of_many_arrays_are_kept(eager):
    """To compute a residual stream again would be to read all that was ever added to it."""

    def f(x, w):
        for _ in range(8):
            x = x + x @ w
        return x.sum()

    assert copies(st.grad(lambda x, w: f(x, w) ** 2, 1), X, W) == 0


def test_what_is_made_of_three_arrays_is_kept(eager, monkeypatch):
    """Each of them would be read again; where three may be, two more values are made again."""
    u, v = (snp.asarray(np.random.default_rng(i).standard_normal((N, N)), "f4") for i in range(2))
    shifted = layers(lambda y: F.silu(y * u + v))
    few = copies(shifted, X, W)
    monkeypatch.setattr(module, "_SOURCES", 3)
    assert copies(shifted, X, W) == few + 2


def test_what_is_compared_with_its_maximum_is_kept(eager):
    """Of a copy that differs in the last bit the maximum would not be found."""

    def peak(x, w):
        y = snp.tanh(x @ w)
        top = y.max(1)
        for _ in range(8):
            x = F.silu(x @ w)
        return (y == top[:, None]) @ x

    _, after = program_of(peak, X, W)
    (compared,) = [e for e in after.equations if e.primitive.name == "eq"]
    makers = {v: e.primitive.name for e in after.equations for v in e.outputs}
    assert sum(name == "tanh" for name in makers.values()) == 1
    assert makers[compared.inputs[0]] == "tanh"


def test_bodies_of_loops_are_changed(eager):
    def train(w):
        step = lambda w, _: (w - layers(F.silu)(X, w)[1], None)
        return st.lax.scan(step, w, None, length=3)[0]

    before, after = program_of(train, W)
    assert before is not after


STEPS = ["silu", "tanh", "relu", "gelu", "normal", "product", "residual", "pool", "scale", "max"]


def network(steps):
    """A network of these steps on (8, 16) arrays, with weights for the products."""

    def f(x, ws):
        kept, total = [x], 0.0
        for i, step in enumerate(steps):
            match step:
                case "product":
                    x = x @ ws[i % len(ws)]
                case "residual":
                    x = x + kept[-1]
                case "pool":
                    x = snp.concatenate([x[:, ::2], -x[:, 1::2]], axis=1)
                case "scale":
                    x = x * ws[0][:8] + 0.5
                case "max":
                    total = total + x.max(1).sum()
                case "normal":
                    x = F.layer_norm(x, (16,))
                case _:
                    x = getattr(F, step)(x)
            kept.append(x)
        return (x * x).sum() + total

    return f


@settings(max_examples=60)
@given(some.lists(some.sampled_from(STEPS), min_size=4, max_size=24), some.integers(0, 99))
def test_random_networks_have_the_same_gradients(steps, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, 16)).astype(np.float32)
    ws = [rng.standard_normal((16, 16)).astype(np.float32) / 4 for _ in range(3)]
    f = st.value_and_grad(network(steps), (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_MUCH", 1)
        patch.setattr(module, "_LEAST", 1)
        patch.setattr(module, "_AFTER", 0)
        before, after = program_of(f, x, ws)
    arguments = [snp.asarray(a) for a in (x, *ws)]
    assert most_alive(after) <= most_alive(before)
    for want, got in zip(evaluate(before, arguments), evaluate(after, arguments), strict=True):
        np.testing.assert_array_equal(got, want)


def test_xla_takes_less_memory_and_gives_the_same(monkeypatch):
    """Through XLA, at a size where it is done by itself."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1024, 1024)).astype(np.float32)
    w = (rng.standard_normal((1024, 1024)) / 32).astype(np.float32)
    again = st.jit(layers(F.silu)).lower(x, w).compile()
    monkeypatch.setattr(module, "_MUCH", 1 << 60)
    kept = st.jit(layers(F.silu)).lower(x, w).compile()
    took = [p.memory_analysis().temp_size_in_bytes for p in (again, kept)]
    assert took[0] < 0.7 * took[1]
    for one, other in zip(again(x, w), kept(x, w), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


def kept_across(make, sorts=6, rows=N, x=X):
    """Whether what ``make`` gives of ``x`` is computed again, behind so many sorts of an array."""

    def f(x, z):
        y = make(x)
        for _ in range(sorts):
            z = snp.sort(z, 0)
        return z.sum() + (y @ snp.ones((y.shape[1], 1))).sum()

    before = st.make_graph(f)(x, snp.ones((rows, N)))
    after = rematerialize(before)
    check(after)
    return after is not before


def times(primitive, count):
    def make(x):
        for _ in range(count):
            x = primitive(x)
        return x

    return make


@pytest.mark.parametrize(
    ("make", "is_made_again"),
    [
        (times(snp.negative, 24), True),
        (times(snp.negative, 25), False),
        (times(snp.tanh, 4), True),
        (times(snp.tanh, 5), False),
        (lambda x: snp.sort(x, 0), False),
    ],
    ids=["24 operations", "25", "4 that take long", "5", "a kernel of its own"],
)
def test_what_is_cheap_to_make_again(eager, make, is_made_again):
    assert kept_across(make) is is_made_again


def test_operands_that_are_slight(eager):
    """Two arrays may be read again; an eighth of their size does not count."""

    def sum_with(rows):
        def f(x, y, v, z):
            total = x + y + v
            for _ in range(6):
                z = snp.sort(z, 0)
            return z.sum() + (total @ snp.ones((N, 1))).sum()

        shapes = (rows, N), (rows, N), (N,), (2 * rows, N)
        return copies(f, *map(snp.ones, shapes))

    assert sum_with(8 * 4) == sum_with(8) == 2  # a barrier for each of the two arrays
    assert sum_with(7) == 0


def test_much_must_be_made_meanwhile(eager):
    assert kept_across(snp.sin, sorts=4)
    assert not kept_across(snp.sin, sorts=3)


@pytest.mark.parametrize(
    ("rows", "others", "is_made_again"), [(23, 100, True), (20, 90, True), (21, 100, False)]
)
def test_a_tenth_of_the_memory_must_be_saved(eager, rows, others, is_made_again):
    """Beside two arrays of so many rows: 0.897, 0.9 and 0.905 of the memory."""
    assert kept_across(snp.sin, rows=others, x=snp.ones((rows, N))) is is_made_again


@pytest.mark.parametrize(("rows", "is_made_again"), [(1024, True), (1023, False)])
def test_values_of_64_kibibytes(monkeypatch, rows, is_made_again):
    monkeypatch.setattr(module, "_MUCH", 1)
    x = snp.ones((rows, 16))
    assert kept_across(snp.sin, rows=256, x=x) is is_made_again


@pytest.mark.parametrize(("rows", "is_made_again"), [(44_000, True), (43_000, False)])
def test_programs_of_32_mebibytes(rows, is_made_again):
    """Three arrays of 256 bytes a row are alive at once."""
    x = st.ShapeDtypeStruct((rows, N), np.float32)
    assert (3 * 256 * rows >= 1 << 25) is is_made_again

    def f(x, z):
        y = snp.sin(x)
        for _ in range(6):
            z = snp.sort(z, 0)
        return z.sum() + (y @ W).sum()

    before = st.make_graph(f)(x, x)
    assert (rematerialize(before) is not before) is is_made_again


def sorted_between(sorts):
    """Between where a value is made and where it is used, another array is sorted so often."""

    def f(x, z, w):
        y = snp.sin(x)
        for _ in range(sorts):
            z = snp.sort(z, 0)
        return z, y @ w

    return f


@pytest.mark.parametrize(("more", "is_made_again"), [(-1, True), (0, True), (1, False)])
def test_programs_of_just_so_much(monkeypatch, more, is_made_again):
    def f(x, z):
        y = snp.sin(x)
        for _ in range(6):
            z = snp.sort(z, 0)
        return z.sum() + (y @ W).sum()

    x = st.ShapeDtypeStruct((1000, N), np.float32)
    before = st.make_graph(f)(x, x)
    monkeypatch.setattr(module, "_MUCH", module._Lives(before).most + more)
    assert (rematerialize(before) is not before) is is_made_again


@pytest.mark.parametrize(("sorts", "is_far"), [(3, False), (4, True), (5, True)])
def test_four_times_its_bytes_are_made_meanwhile(sorts, is_far):
    program = st.make_graph(sorted_between(sorts))(X, X, W[0])
    lives = module._Lives(program)
    assert lives.far(program.equations[0].outputs[0]) is is_far


@pytest.mark.parametrize(
    ("uses", "is_far"), [([9], True), ([3, 9], False), ([1, 9], True), ([2, 3, 9], False)]
)
def test_what_is_made_since_the_last_use_up_to_the_peak_counts(uses, is_far):
    """Of six values as large, which must be four, two are made behind the peak."""
    value = Var(st.make_graph(snp.sin)(X).in_types[0])
    lives = object.__new__(module._Lives)
    lives.peak, lives.made, lives.used = 3, {value: 0}, {value: uses}
    each = [1, 1, 1, 1, 1, 1, 0, 0, 0, 0]
    lives.written = [bytes_of(value.type) * sum(each[:k]) for k in range(len(each) + 1)]
    assert lives.far(value) is is_far


def test_of_equal_peaks_the_first_counts():
    lives = module._Lives(st.make_graph(lambda x: snp.sort(snp.sort(snp.sort(snp.sort(x)))))(X))
    assert (lives.peak, lives.most) == (1, 2 * 4 * N * N)


@pytest.mark.parametrize(("large_first", "count"), [(True, 2), (False, 1)])
def test_what_is_kept_for_a_large_value_serves_others_too(eager, large_first, count):
    """The sorted row is slight beside the sum, and all that its sine is made of."""

    def f(x, v, z):
        row = snp.sort(v)
        if large_first:
            total = x + row
            sine = snp.sin(row)
        else:
            sine = snp.sin(row)
            total = x + row
        for _ in range(6):
            z = snp.sort(z, 0)
        return z.sum() + (total @ snp.ones((N, 1))).sum() + (sine @ snp.ones((N, 1))).sum()

    assert copies(f, X, X[0], snp.ones((2 * N, N))) == count


@pytest.mark.parametrize(("part", "kept"), [(0, False), (39, False), (40, True), (80, True)])
def test_half_as_much_again_must_be_made_of_what_is_kept(part, kept):
    """Of a value that is not used behind the peak."""

    def f(x):
        return x * 2, x[:part] * 3

    program = st.make_graph(f)(snp.ones(80))
    makers = {v: e for e in program.equations for v in e.outputs}
    wanted = [v for v in program.outputs if v.type.size]
    found = module._worth_keeping(wanted, makers, set())
    assert found == [program.inputs[0]] * kept


def relu_of_le(x):
    return lax.select(x <= 0, snp.zeros_like(x), x)


def relu_of_gt(x):
    return lax.select(x > 0, x, snp.zeros_like(x))


def below(x):  # 0 is not below 0, so this mask is not that of the result
    return lax.select(x < 0, snp.zeros_like(x), x)


def six(x):
    return lax.select(x > 6, x, snp.zeros_like(x))


@pytest.mark.parametrize(
    ("rectified", "are_remade"),
    [(relu_of_le, True), (relu_of_gt, True), (below, False), (six, False)],
)
def test_masks_are_made_of_results_that_are_kept(eager, rectified, are_remade):
    """XLA compares again what the ReLU was applied to, which then is kept beside the result."""

    def sums(x, w):
        for _ in range(8):
            x = rectified(x @ w + x @ w.T + x)  # of three arrays: kept
            x = F.silu(x @ w)
        return x.sum()

    before, after = program_of(st.grad(sums, (0, 1)), X, W)
    made = {v: e for e in after.equations for v in e.outputs}
    remade = [
        e
        for e in after.equations
        if e.primitive.name in ("le", "gt", "lt")
        and isinstance(made[e.inputs[0]].primitive, OptimizationBarrier)
    ]
    assert bool(remade) is are_remade
    x = np.random.default_rng(0).standard_normal((N, N), np.float32)
    x[:2, :3] = [[np.nan, np.inf, -np.inf], [0.0, -0.0, 1e-45]]
    args = [snp.asarray(x), W]
    for one, other in zip(evaluate(before, args), evaluate(after, args), strict=True):
        np.testing.assert_array_equal(one, other)


def test_results_live_until_the_end():
    def f(x):
        y = snp.sin(x)
        return y, snp.cos(snp.exp(snp.sin(y)))

    program = st.make_graph(f)(np.ones(4, np.float32))
    lives = module._Lives(program)
    end = len(program.equations)
    assert [lives.used[v][-1] for v in program.outputs] == [end, end]
    assert lives.most == 3 * bytes_of(program.outputs[0].type)
