"""``fori_loop`` and ``map``: plain loops, batches, refusals."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer
from stretto._engine.higher_order import loops, scan

fori_loop = st.lax.fori_loop


def test_fori_loop():
    f = lambda x, n: fori_loop(0, n, lambda i, x: x * 2 + i, x)
    assert int(f(1, 5)) == int(st.jit(f)(1, 5)) == int(st.jit(f, static_argnums=1)(1, 5)) == 58
    np.testing.assert_array_equal(st.vmap(f, (None, 0))(1, snp.array([0, 5, 1])), [1, 58, 2])
    assert int(fori_loop(3, 1, lambda i, x: x + 1, 7)) == 7
    assert int(fori_loop(-2, 2, lambda i, x: x + i, 0)) == -2
    assert int(fori_loop(0, 5, lambda i, x: x + i, 0, unroll=2)) == 10
    tree = fori_loop(0, 3, lambda i, s: {"a": s["a"] + s["b"], "b": s["b"] * 1.5}, {"a": 0, "b": 2})
    assert (float(tree["a"]), float(tree["b"])) == (9.5, 6.75)


def test_the_counter_holds_both_bounds():
    count = lambda low, high: fori_loop(low, high, lambda i, x: x + 1, 0)
    for f in (count, st.jit(count)):
        assert int(f(np.uint8(0), np.int32(300))) == 300
    kinds = []
    fori_loop(np.int16(0), np.int32(2), lambda i, x: kinds.append(i.dtype) or x, 0)
    assert set(kinds) == {np.dtype(np.int32)}


@pytest.mark.parametrize("high", [3.0, 3.5, 0.0, -1.0])
def test_both_bounds_are_floats(high):
    run = lambda low, high: fori_loop(low, high, lambda i, s: (s[0] + i, s[1] + 1), (0.0, 0))
    expected = np.arange(0.5, high)
    for f in (run, st.jit(run)):
        total, count = f(0.5, high)
        assert (float(total), int(count)) == (expected.sum(), len(expected))
    power = lambda x: fori_loop(0.0, 3.0, lambda i, y: y * x, 1.0)
    assert float(st.grad(power)(2.0)) == 12
    assert int(fori_loop(0.0, -np.inf, lambda i, x: x + 1, 0)) == 0


def test_derivatives_of_fori_loop():
    f = lambda x, n: fori_loop(0, n, lambda i, y: y * x, x)
    np.testing.assert_allclose(st.grad(f)(2.0, 3), 32)
    np.testing.assert_allclose(st.jit(st.grad(f), static_argnums=1)(2.0, 3), 32)
    np.testing.assert_allclose(st.jit(st.jacfwd(f))(2.0, 3), 32)
    with pytest.raises(st.errors.MissingRuleError, match="static bounds"):
        st.jit(st.grad(f))(2.0, 3)


def test_map():
    xs = {"a": snp.arange(3.0), "b": snp.arange(6).reshape(3, 2)}
    out = st.lax.map(lambda x: (x["a"] * 2, x["b"].sum()), xs)
    np.testing.assert_array_equal(out[0], [0, 2, 4])
    np.testing.assert_array_equal(out[1], [1, 5, 9])
    slope = st.grad(lambda a: st.lax.map(lambda x: x**3, a).sum())
    np.testing.assert_allclose(slope(snp.arange(3.0)), [0, 3, 12])


@pytest.mark.parametrize("size, batch", [(6, 2), (7, 3), (2, 5), (1, 1), (0, 2), (4, 4)])
def test_map_in_batches(size, batch):
    seen = set()

    def f(x):
        seen.add(x["a"].shape)
        return {"s": x["a"].sum() * x["b"], "c": 3.0}

    xs = {"a": snp.arange(2.0 * size).reshape(size, 2), "b": snp.arange(1.0 * size)}
    want = st.vmap(f)(xs)
    batched = lambda xs: st.lax.map(f, xs, batch_size=batch)
    for g in (batched, st.jit(batched)):
        got = g(xs)
        assert st.tree.structure(got) == st.tree.structure(want)
        np.testing.assert_allclose(got["s"], want["s"], rtol=1e-6)
        np.testing.assert_array_equal(got["c"], want["c"])
    assert seen == {(2,)}
    slope = st.grad(lambda b: st.lax.map(lambda x: x**3, b, batch_size=batch).sum())
    np.testing.assert_allclose(slope(xs["b"]), 3 * np.arange(size) ** 2.0)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: fori_loop(0, 3, lambda i, s: {"w": s["w"].sum()}, {"w": snp.ones(2)}),
            TypeError,
            r"fori_loop: the carry must keep its type; init_val\['w'\] is float32\[2\]",
        ),
        (
            lambda: st.jit(lambda n: fori_loop(0, n, lambda i, s: [s[0] > 1], [1.0]))(3),
            TypeError,
            r"fori_loop: .*init_val\[0\]",
        ),
        (
            lambda: fori_loop(0, 2.5, lambda i, x: x, 0),
            TypeError,
            r"bounds must be integer scalars, or both floats; got int32\[\] and float32\[\]",
        ),
        (
            lambda: fori_loop(False, True, lambda i, x: x, 0),
            TypeError,
            r"got bool\[\] and bool\[\]",
        ),
        (lambda: fori_loop(0, snp.arange(2), lambda i, x: x, 0), TypeError, "bounds must be integ"),
        (lambda: st.lax.map(lambda x: x, snp.ones(2), batch_size=0), ValueError, "batch_size must"),
        (
            lambda: st.lax.map(lambda x: x, {"a": snp.ones(2), "b": 1.0}, batch_size=2),
            ValueError,
            r"map: in_axes maps axis 0 of xs\['b'\], which has type float32",
        ),
        (
            lambda: st.lax.map(lambda x: x, (snp.ones(2), snp.ones(3))),
            ValueError,
            r"map: mapped sizes must agree; xs\[0\] has 2 along axis 0, xs\[1\] has 3 along",
        ),
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_steps_are_written_out_only_where_their_number_is_known():
    def total(n, unroll):
        return st.lax.fori_loop(0, n, lambda i, x: x + i, 0, unroll=unroll)

    assert [int(total(5, u)) for u in (None, 1, 2, True)] == [10] * 4
    assert int(st.jit(lambda n: total(n, None))(5)) == 10
    with pytest.raises(ValueError, match="unroll must be None where a bound is traced"):
        st.jit(lambda n: total(n, 2))(5)


def test_what_other_layers_leave_out():
    """Elements lie along the first axis, results too; steps go forwards, one at a time."""
    x = snp.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(loops.map_(lambda row: row * 2, x), x * 2)
    last = scan.scan(lambda last, row: (row, last), x[0], x)
    np.testing.assert_array_equal(last[0], x[1])
    program = st.make_graph(lambda x: scan.scan(lambda c, row: (c + row, None), x[0], x)[0])(x)
    (loop,) = [e.primitive for e in program.equations if e.primitive.holds_programs]
    assert (loop.unroll, loop.reverse) == (1, False)


X = snp.ones((2, 3, 4))


@pytest.mark.parametrize(
    ("axis", "inner", "taken", "placed", "repeated"),
    [
        (0, 0, 0, 0, 0),
        (2, 0, 2, 2, 2),
        (3, 0, None, None, 3),
        (-3, 0, 0, 0, 1),
        (-4, 0, None, None, 0),
        (1, 1, 1, 1, 1),
        (2, 1, None, None, 2),
        (3, 1, None, None, None),
        (-2, 1, 0, 0, 1),
        (-3, 1, None, None, 0),
    ],
)
def test_axes_of_examples(axis, inner, taken, placed, repeated):
    """A result that is the same for all has an axis more where it is repeated; words have none."""
    words = ", not counting that of a key's words" if inner else ""

    def agree(call, expected, message):
        if expected is None:
            with pytest.raises(ValueError, match=message):
                call()
        else:
            assert call() == expected

    have = f"in_axes maps axis {axis} of x, .*: it has {3 - inner} axes{words}$"
    agree(lambda: loops.in_axis(axis, X, "vmap", "x", inner), taken, have)
    for mapped, expected in ((0, placed), (None, repeated)):
        have = f"places axis {axis} in a result of {3 + (mapped is None) - inner} axes{words}$"
        call = lambda mapped=mapped: loops.out_axis(axis, X, mapped, "vmap", inner)
        agree(call, expected, have)


@pytest.mark.parametrize("axis", [1.0, True, "0"])
def test_an_axis_is_an_integer_or_none(axis):
    with pytest.raises(
        TypeError, match=r"an entry of in_axes must be an int or None, got .* for x"
    ):
        loops.in_axis(axis, X, "vmap", "x")
    with pytest.raises(TypeError, match="an entry of out_axes must be an int or None, got"):
        loops.out_axis(axis, X, 0, "vmap")


def test_an_axis_may_be_none():
    assert loops.in_axis(None, X, "vmap", "x") is loops.out_axis(None, X, None, "vmap") is None
    with pytest.raises(ValueError, match="out_axes is None for a result that differs"):
        loops.out_axis(None, X, 1, "vmap")


def test_the_words_of_keys_are_no_axis_of_theirs():
    keys, words = st.random.split(st.random.key(0), 3), snp.ones((3, 2), np.uint32)
    leaves, structure = tree.flatten({"keys": [keys, keys], "other": X, "words": words})
    assert loops.inner_axes(structure, leaves) == [1, 1, 0, 0]
    assert loops.inner_axes(structure, [None] * 4) == [1, 1, 0, 0]  # no values yet
    assert loops.inner_axes(tree.structure((X, X)), [X, X]) == [0, 0]


@pytest.mark.parametrize("size", [0, -1, True, 1.0, None])
def test_a_number_of_examples_is_a_positive_integer(size):
    with pytest.raises(ValueError, match="map: n must be a positive integer, got"):
        loops.positive(size, "map: n")
    assert [loops.positive(n, "map: n") for n in (1, 2, np.int64(3))] == [1, 2, 3]
    assert type(loops.positive(np.int64(3), "map: n")) is int


@pytest.mark.parametrize(
    ("size", "options", "calls"),
    [(4, {}, 4), (4, {"out_axes": -1}, 4), (4, {"batch_size": 2}, 1), (0, {}, 1)],
)
def test_elements_go_one_by_one_where_nothing_is_compiled(size, options, calls):
    seen = []
    f = lambda x: seen.append(x) or x * 2
    x = snp.arange(1.0 * size)
    with st.config(disable_jit=True):
        np.testing.assert_array_equal(st.lax.map(f, x, **options), x * 2)
    assert len(seen) == calls
    assert any(isinstance(x, Tracer) for x in seen) is (calls == 1)


@pytest.mark.parametrize("size", [None, 2])
def test_references_in_a_loop_over_examples(size):
    """They are read in place; what each example has cannot be written to one."""
    reference = st.new_ref(snp.ones(2))
    run = lambda f: st.lax.map(f, snp.arange(5.0), batch_size=size)
    np.testing.assert_array_equal(run(lambda x: x + reference[0]), np.arange(5.0) + 1)

    def write(x):
        reference[0] = x
        return x

    with pytest.raises(
        st.errors.RefError, match=r"computed there, .*: step over the examples with"
    ):
        run(write)


def test_bounds_that_are_known_count_the_steps():
    def steps(low, high):
        program = st.make_graph(lambda x: fori_loop(low, high, lambda i, x: x + 1, x))(0)
        return [e.primitive.length for e in program.equations if e.primitive.name == "scan"]

    assert [steps(0, 5), steps(-2, 5), steps(0.5, 3.0), steps(0.0, 3.0)] == [[5], [7], [3], [3]]
    # A float that is not finite is no number of steps.
    program = st.make_graph(lambda x: fori_loop(0.0, np.inf, lambda i, x: x + 1, x))(0)
    assert [e.primitive.name for e in program.equations if e.primitive.holds_programs] == ["while"]


@pytest.mark.parametrize("around", [lambda f: f, st.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("setting", ["debug_nans", "debug_infs"])
def test_what_is_the_same_for_all_examples_is_found_at_its_line(around, setting):
    def f(y, xs):
        def one(x):
            return x + snp.log(y)

        return st.lax.map(one, xs)

    y = -1.0 if setting == "debug_nans" else 0.0
    with st.config(**{setting: True}), pytest.raises(st.errors.NonFiniteError) as raised:
        around(f)(snp.array(y), snp.ones(4))
    position = raised.value.fault.position
    assert position.line == f.__code__.co_firstlineno + 2
