"""Reductions over windows by any operation: known ones found out, laws of others, messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.higher_order.reduce import ReduceWindow
from stretto.laws import bf16, f32, f64, i32, law
from tests.any_size import holds

lax = st.lax
RUNS = pytest.mark.parametrize("run", [lambda f: f, st.jit], ids=["eager", "jit"])


def circle(u, v):
    """(1 + u)(1 + v) - 1, to which 0 is neutral."""
    return u + v + u * v


def growths(*sizes, **options):
    def fun(x):
        strides = options.get("strides", (1,) * x.ndim)
        rest = {k: v for k, v in options.items() if k not in ("strides", "padding")}
        start = snp.zeros((), x.dtype)
        return lax.reduce_window(x, start, circle, sizes, strides, options["padding"], **rest)

    return fun


def dot_and_sum(x, y):
    return lax.reduce_window(
        (x, y), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (2,), (1,), [(0, 0)]
    )


LAWS = [
    law(ReduceWindow, growths(2, 2, padding="VALID"), f64(3, 3)),
    law(ReduceWindow, growths(3, 1, strides=(2, 1), padding=[(0, 1), (0, 0)]), f32(4, 2)),
    law(
        ReduceWindow,
        growths(2, padding=[(-1, 0)], base_dilation=(2,), window_dilation=(2,)),
        f64(5),
    ),
    law(ReduceWindow, growths(2, padding="VALID"), bf16(4)),
    law(ReduceWindow, dot_and_sum, f64(4), f64(4)),
    law(ReduceWindow, lambda x: lax.reduce_window(x, 0, gcd_step, (2,), (2,), "VALID"), i32(6)),
    law(
        ReduceWindow,
        lambda x, c: lax.reduce_window(x, c, snp.logaddexp, (2,), (2,), "VALID"),
        f64(4),
        f64().within(-60, -50),  # as good as minus infinity, and differentiable
    ),
    law(ReduceWindow, growths(2, padding="VALID"), f32(0)),
]


def gcd_step(u, v):
    """max + min is u + v: a way to add that is not known as one."""
    return snp.maximum(u, v) + snp.minimum(u, v)


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


KNOWN = {
    "reduce_window_sum": (lax.add, 0.0),
    "reduce_window_prod": (lambda u, v: u * v, 1.0),
    "reduce_window_max": (lax.max, -np.inf),
    "reduce_window_min": (snp.minimum, np.inf),
}
BITS = {
    "reduce_window_and": (lax.bitwise_and, -1),
    "reduce_window_or": (lax.bitwise_or, 0),
    "reduce_window_xor": (lax.bitwise_xor, 0),
}


@pytest.mark.parametrize("name", [*KNOWN, *BITS])
def test_known_operations_are_found_out(name):
    computation, start = {**KNOWN, **BITS}[name]
    x = snp.array([3.0, 5.0, 6.0]).astype("float32" if name in KNOWN else "int32")
    fun = lambda x: lax.reduce_window(x, start, computation, (2,), (1,), "VALID")
    (equation,) = st.make_graph(fun)(x).equations
    assert equation.primitive.name == name
    pairs = zip(x.tolist(), x.tolist()[1:], strict=False)
    assert fun(x).tolist() == [computation(snp.array(u), v).item() for u, v in pairs]


# What JAX 0.10.2 gives


@RUNS
def test_values_are_jaxs(run):
    x = snp.arange(6.0)
    windows = lambda start, op, size, stride, padding, **more: run(
        lambda x: lax.reduce_window(x, start, op, size, stride, padding, **more)
    )(x).tolist()
    assert windows(0.0, lax.add, (2,), (1,), ((-1, 0),)) == [3, 5, 7, 9]
    assert windows(1.0, lax.add, (2,), (1,), ((1, 0),)) == [1, 2, 4, 6, 8, 10]
    assert windows(1.0, lax.mul, (2,), (1,), ((1, 0),)) == [0, 0, 2, 6, 12, 20]
    assert windows(0.0, lax.add, (2,), (2,), "SAME_LOWER") == [1, 5, 9]
    assert windows(0.0, lax.add, (9,), (2,), "VALID") == []
    assert windows(-np.inf, lax.max, (2,), (1,), ((5, 0),)) == [-np.inf] * 4 + [0, 1, 2, 3, 4, 5]
    assert windows(0.0, circle, (3,), (2,), "SAME") == [5, 59, 29]


def test_integers_take_any_identity():
    x = snp.arange(6)
    top = lax.reduce_window(x, -np.inf, lax.max, (3,), (3,), "VALID")
    assert (top.dtype, top.tolist()) == (np.int32, [2, 5])


@RUNS
def test_an_initial_value_has_a_derivative(run):
    x = snp.array([1.0, 4.0, 2.0, 3.0])
    total = lambda c, op: lax.reduce_window(x, c, op, (2,), (2,), "VALID").sum()
    assert run(st.grad(lambda c: total(c, lax.add)))(0.0) == 2.0
    assert run(st.grad(lambda c: total(c, lax.max)))(3.5) == 1.0
    assert run(st.grad(lambda c: total(c, circle)))(0.0) == 2 * 5 + 3 * 4


@RUNS
def test_hessian_of_any_operation(run):
    with st.config(enable_x64=True):
        x = snp.array(np.random.default_rng(0).normal(size=(3, 4)))
        pooled = lambda x: snp.sum(growths(2, 3, padding="VALID")(x) ** 3)
        blocks = lambda x: sum(
            (snp.prod(1 + x[i : i + 2, j : j + 3]) - 1) ** 3 for i in range(2) for j in range(2)
        )
        np.testing.assert_allclose(run(st.hessian(pooled))(x), st.hessian(blocks)(x), atol=1e-9)


@RUNS
def test_images_pooled_in_a_batch(run):
    """Max and mean over 2 by 2 blocks, mapped and not, have one gradient."""
    x = np.random.default_rng(1).normal(size=(2, 4, 4, 3)).astype(np.float32)

    def pool(x):
        shape = (1, 2, 2, 1)[-x.ndim :]
        top = lax.reduce_window(x, -snp.inf, lax.max, shape, shape, "VALID")
        mean = lax.reduce_window(x, 0.0, lax.add, shape, shape, "VALID") / 4
        return snp.sum(top * mean)

    together = run(st.grad(pool))(x)
    np.testing.assert_allclose(run(st.vmap(st.grad(pool)))(x), together, rtol=1e-5)
    summed = lambda x: snp.sum(st.vmap(pool, 2)(snp.moveaxis(x, 0, 2)))
    np.testing.assert_allclose(run(st.grad(summed))(x), together, rtol=1e-5)


# Messages


def test_errors_name_what_does_not_fit():
    x = snp.ones(6)
    call = lambda *args, **options: lax.reduce_window(x, 0.0, lax.add, *args, **options)
    with pytest.raises(ValueError, match=r"window_dimensions must be a positive integer for each"):
        call((0,), (1,), "VALID")
    with pytest.raises(ValueError, match=r"each axis of float32\[6\], got \(2, 2\)"):
        call((2, 2), (1,), "VALID")
    with pytest.raises(ValueError, match="window_strides must be a positive"):
        call((2,), (0,), "VALID")
    with pytest.raises(ValueError, match="base_dilation must be a positive"):
        call((2,), (1,), "VALID", base_dilation=(0,))
    with pytest.raises(ValueError, match="window_dilation must be a positive"):
        call((2,), (1,), "VALID", window_dilation=(1, 1))
    with pytest.raises(ValueError, match="padding must be 'SAME'"):
        call((2,), (1,), "FULL")
    with pytest.raises(ValueError, match="padding must be a pair"):
        call((2,), (1,), [(0, 0), (0, 0)])
    with pytest.raises(ValueError, match="padding takes away more than axis 0"):
        call((2,), (1,), [(-4, -3)])
    with pytest.raises(TypeError, match=r"reduce_window: expected an initial value of dtype int32"):
        lax.reduce_window(x.astype(int), 0.5, lax.add, (2,), (1,), "VALID")
    with pytest.raises(TypeError, match="uses a traced value from outside"):
        st.jit(lambda c: lax.reduce_window(x, 0.0, lambda u, v: u + c * v, (2,), (1,), "VALID"))(1)


def test_windows_next_to_each_other_by_default():
    out = st.lax.reduce_window(snp.arange(4.0), 0.0, st.lax.add, (2,))
    assert out.tolist() == [1, 3, 5]


# Functions that are not associative: the order is that of the elements, from the initial value on.

ORDERED = {
    "x + 2 y": lambda x, y: x + 2 * y,
    "x - y": lambda x, y: x - y,
    "second": lambda x, y: y,
    "x y + 1": lambda x, y: x * y + 1,
}


def one_by_one(function, start, x, sizes, strides):
    """Windows without padding, in NumPy."""
    out = []
    for i in range(0, x.shape[0] - sizes[0] + 1, strides[0]):
        row = []
        for j in range(0, x.shape[1] - sizes[1] + 1, strides[1]):
            total = start
            for element in x[i : i + sizes[0], j : j + sizes[1]].ravel():
                total = function(total, element)
            row.append(total)
        out.append(row)
    return out


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("sizes", [(2, 3), (1, 1), (4, 6)])
def test_elements_are_taken_in_order_compiled_or_not(name, sizes):
    function, x = ORDERED[name], np.arange(1.0, 25.0, dtype=np.float32).reshape(4, 6) / 8
    f = lambda x: st.lax.reduce_window(x, snp.float32(2), function, sizes, (1, 2), "VALID")
    want = one_by_one(function, np.float32(2), x, sizes, (1, 2))
    for found in (f(x), st.jit(f)(x), st.vmap(f)(x[None])[0], st.jit(st.vmap(f))(x[None])[0]):
        np.testing.assert_allclose(found, want, rtol=1e-6)
    np.testing.assert_allclose(st.jvp(f, (x,), (x,))[0], want, rtol=1e-6)


@pytest.mark.parametrize("name", ORDERED)
def test_padding_and_holes_are_passed_over_compiled_or_not(name):
    x = snp.arange(1.0, 7.0)
    for options in (
        {"padding": "SAME"},
        {"padding": [(2, 1)], "window_dilation": (2,)},
        {"padding": [(0, 3)], "base_dilation": (2,)},
    ):
        f = lambda x, o=options: st.lax.reduce_window(x, snp.float32(2), ORDERED[name], (3,), **o)
        np.testing.assert_allclose(f(x), st.jit(f)(x), rtol=1e-6)


@pytest.mark.parametrize("function", [st.lax.add, st.lax.max, *ORDERED.values()])
def test_scalars(function):
    x, start = snp.float32(3), snp.float32(2)
    f = lambda x: st.lax.reduce_window(x, start, function, (), (), "VALID")
    want = float(function(start, x))
    assert float(f(x)) == float(st.jit(f)(x)) == want
    for g in (st.vmap(f), st.jit(st.vmap(f))):
        np.testing.assert_array_equal(g(snp.stack([x, x])), [want, want])
    if function in (st.lax.add, st.lax.max):
        assert float(st.grad(f)(x)) == float(st.jit(st.grad(f))(x)) == 1.0


def test_windows_keep_their_kind_when_the_program_changes():
    """A call in the computation is simplified inside the operation that holds it."""
    inner = lambda x: lax.reduce(snp.stack([x, x]), 0.0, circle, (0,)) - x * x - x
    f = lambda x: lax.reduce_window(x, 0.0, lambda u, v: circle(inner(u), v), (3,), (1,), "VALID")
    np.testing.assert_allclose(st.jit(f)(snp.ones(5)), np.full(3, 7.0), rtol=1e-6)


def joined(a, b):  # (1 + a) (1 + b) - 1
    return a * b + a + b


def test_axes_of_any_size():
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    same = lambda x: lax.reduce_window(x, 0.0, joined, (3, 1), (1, 1), "SAME")
    valid = lambda x: lax.reduce_window(x, 0.0, joined, (2, 2), (2, 1), "VALID")
    for windows in (same, valid):
        holds(windows, [x], {(0, 0): 0}, tolerance=10)


ORDERED_SMOOTHLY = {
    **ORDERED,
    "x y - x": lambda x, y: x * y - x,
    "x²/4 + y": lambda x, y: x**2 / 4 + y,
}


def by_differences(f, x, step=1e-6):
    """The Jacobian of a function at rest, by central differences in float64."""
    with st.enable_x64():
        moved = [step * e.reshape(x.shape) for e in np.eye(x.size)]
        columns = [(np.asarray(f(x + d)) - np.asarray(f(x - d))) / (2 * step) for d in moved]
    return np.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


@pytest.mark.parametrize("name", ORDERED_SMOOTHLY)
@pytest.mark.parametrize(
    "options",
    [
        {"window_dimensions": (2, 3), "window_strides": (1, 2)},
        {"window_dimensions": (3, 2), "padding": "SAME"},
        {"window_dimensions": (2, 2), "window_dilation": (2, 1), "base_dilation": (1, 2)},
    ],
)
def test_derivatives_of_functions_that_are_not_associative(name, options):
    function = ORDERED_SMOOTHLY[name]
    x = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4)).astype(np.float32)

    def f(x, start=2.0):
        return st.lax.reduce_window(x, np.asarray(start, x.dtype), function, **options)

    want = by_differences(f, x.astype(np.float64))
    for way in (st.jacfwd, st.jacrev):
        for got in (way(f)(x), st.jit(way(f))(x), st.vmap(way(f))(x[None])[0]):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
    start = lambda start: st.lax.reduce_window(x, start, function, **options)
    by_start = (np.asarray(start(snp.float32(2.01))) - np.asarray(start(snp.float32(1.99)))) / 0.02
    np.testing.assert_allclose(st.jacfwd(start)(snp.float32(2)), by_start, rtol=2e-3, atol=2e-3)


def test_derivatives_of_long_windows_are_loops():
    x = np.linspace(0.9, 1.1, 60, dtype=np.float32)
    f = lambda x: st.lax.reduce_window(x, snp.float32(0), lambda x, y: y - x / 2, (40,))
    want = by_differences(
        lambda x: st.lax.reduce_window(x, np.zeros((), x.dtype), lambda x, y: y - x / 2, (40,)),
        x.astype(np.float64),
    )
    np.testing.assert_allclose(st.jacrev(f)(x), want, rtol=1e-4, atol=1e-6)


def test_padding_in_front_that_varies_is_refused():
    combine = lambda a, b: 2 * a + b
    windows = lambda x: st.lax.reduce_window(x, 0.0, combine, (3,), (2,), "SAME")
    with pytest.raises(st.errors.MissingRuleError, match="reduce_window: the padding in front"):
        st.jit(windows, dynamic_axes=({0: "n"},))(np.ones(5, np.float32))
