"""Operators at rest: the short way gives what the general way gives, for all operands.

Run with the extension in C and, by ``tests/_engine/native/test_native``, without.
"""

import operator

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.eager import twins
from stretto._engine.eager.table import OPERATORS, TABLE, forget
from stretto._engine.eager.twins import binary_function, number_of
from stretto._engine.native import native
from stretto._engine.ops.arithmetic import ADD

NAMES = ["add", "sub", "mul", "truediv", "floordiv", "mod", "lt", "ge", "eq", "ne"]
DTYPES = ["float32", "int32", "uint8", "bool", "float16", "bfloat16", "complex64", "int8"]
HUGE = 1 << 40
NUMBERS = [2, -3, 0, 2.5, -0.0, 1e300, float("nan"), True, 300, HUGE, 2j, np.float32(2)]


def outcome(f, *operands):
    """The value, dtype and weakness, or the kind of error."""
    try:
        out = f(*operands)
    except Exception as error:
        return type(error)
    return np.asarray(out), out.dtype, out.weak_type


def same(one, other):
    if isinstance(one, type) or isinstance(other, type):
        assert one is other
        return
    assert one[1:] == other[1:]
    # Of ml_dtypes' arrays NumPy's tests do not find NaN.
    one, other = (v[0].astype(np.complex128) for v in (one, other))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_numbers_and_arrays(name, dtype):
    f = getattr(operator, name)
    x = snp.asarray(np.array([1, 2, 3, 0], getattr(ml_dtypes, dtype, dtype)))
    for other in [*NUMBERS, x, x[:1], x[:, None], snp.asarray(2), snp.asarray(1.5), snp.ones(3)]:
        for swap in (False, True):
            g = (lambda a, b: f(b, a)) if swap else f
            first = outcome(g, x, other)
            for _ in range(2):  # by now the short way knows these types
                same(outcome(g, x, other), first)
            if isinstance(first, type) or isinstance(other, np.generic) or other is HUGE:
                continue
            y = snp.asarray(other) if isinstance(other, (int, float, complex)) else other
            (out,) = st.make_graph(lambda a, b, g=g: g(a, b))(x, y).out_types
            assert (out.dtype, out.weak_type) == first[1:]


@pytest.mark.parametrize("shapes", [((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,)), ((2, 3), (3, 2)),
                                    ((), (3,)), ((2, 2, 3), (3, 2)), ((2, 3), (2, 3, 2)),
                                    ((3,), (2, 3, 2)), ((3,), (2,))])  # fmt: skip
@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
def test_matrix_products(shapes, dtype):
    draw = np.random.default_rng(0)
    x, y = (snp.asarray(draw.integers(0, 9, s).astype(getattr(ml_dtypes, dtype, dtype)))
            for s in shapes)  # fmt: skip
    first = outcome(operator.matmul, x, y)
    for _ in range(2):
        same(outcome(operator.matmul, x, y), first)
    if not isinstance(first, type):
        wide = np.asarray(x, np.float32) @ np.asarray(y, np.float32)
        np.testing.assert_array_equal(np.asarray(first[0], np.float32), wide)


def test_tracers_on_either_side():
    x = snp.arange(3.0)
    x + x, x @ x, 2.0 * x, x * 2.0
    np.testing.assert_array_equal(st.grad(lambda y: (x + y) @ x)(x), x)
    np.testing.assert_array_equal(st.grad(lambda y: (2.0 * y) @ x)(x), 2 * np.asarray(x))
    np.testing.assert_array_equal(st.vmap(lambda y: x * y)(snp.ones((2, 3))), [x, x])
    assert "mul" in str(st.make_graph(lambda y: x * 2.0 * y)(x))


def test_within_a_trace_concrete_arrays_are_recorded():
    x = snp.arange(3.0)
    x + x
    program = st.jit(lambda y: (x + x) + y).trace(x).program
    assert str(program).count("add") == 2


def test_foreign_operands():
    x = snp.ones(2)
    with pytest.raises(TypeError):
        x + "one"
    with pytest.raises(TypeError):
        x + object()
    with pytest.raises(ValueError, match="broadcast"):
        x + snp.ones(3)

    class Reflecting:
        def __radd__(self, other):
            return "theirs"

    assert x + Reflecting() == "theirs"
    assert isinstance(np.ones(2, np.float32) + x, st.Array)
    assert isinstance(x + np.ones(2, np.float32), st.Array)


def test_donated_operands_say_so():
    x, y = snp.arange(2.0), snp.arange(2.0)
    x + y
    y.delete()
    with pytest.raises(st.errors.DonatedArrayError):
        x + y
    with pytest.raises(st.errors.DonatedArrayError):
        y + x


def test_no_warnings(recwarn):
    x = snp.arange(2.0)
    for _ in range(2):
        x / x, x * 1e300, x - float("inf"), x // x
    assert not recwarn.list


def test_settings_do_not_change_what_is_known():
    x = snp.ones(2)
    assert (x * 2.0).dtype == np.float32
    with st.enable_x64():
        assert (x * 2.0).dtype == np.float32
        assert (snp.ones(2, snp.float64) * 2.0).dtype == np.float64
    with st.config(numpy_dtype_promotion="strict"):
        assert (x * 2.0).dtype == np.float32
        with pytest.raises(st.errors.TypePromotionError):
            x + snp.ones(2, int)


def test_numbers_are_kept_apart_that_are_equal_and_not_the_same():
    numbers = [0.0, -0.0, 0, 1, 1.0, 2.5]
    for x in [*numbers, *numbers]:
        made = np.asarray(number_of(x, snp.ones(2, "float32").type))
        want = np.full(2, x, np.float32)
        np.testing.assert_array_equal(made, want)
        np.testing.assert_array_equal(np.signbit(made), np.signbit(want))
    for z in [complex(1, 0.0), complex(1, -0.0), complex(-0.0, 1), complex(0.0, 1)] * 2:
        made = np.asarray(number_of(z, snp.ones(2, "complex64").type)).copy().view("f4")
        want = np.full(2, z, np.complex64).view("f4")
        np.testing.assert_array_equal(made, want)
        np.testing.assert_array_equal(np.signbit(made), np.signbit(want))


@pytest.mark.parametrize(
    "x, dtype",
    [(1.5, "int32"), (True, "float32"), ([1], "float32"), (300, "int8"), (1j, "float32")],
)
def test_what_needs_promotion_is_no_number(x, dtype):
    assert number_of(x, snp.ones(2, dtype).type) is None


@pytest.mark.parametrize("number", [0.0, -0.0, 2.5, 3])
def test_numbers_in_programs(number):
    x = np.array([-0.0, 2.0], np.float32)
    for f in (lambda x: x * number, lambda x: number - x):
        for _ in range(2):
            got = np.asarray(st.jit(f)(x))
            want = f(x).astype(np.float32)
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((3,), (2, 3)), ((2, 1), (1, 3)), ((2, 3), ())])
def test_traced_operands_of_several_shapes(shapes):
    x, y = (np.arange(np.prod(s), dtype=np.float32).reshape(s) + 1 for s in shapes)
    graph = st.make_graph(lambda x, y: x - y)(x, y)
    out_shape = np.broadcast_shapes(*shapes)
    wide = [s for s in shapes if s != out_shape]
    assert [e.primitive.name for e in graph.equations] == ["broadcast_in_dim"] * len(wide) + ["sub"]
    np.testing.assert_array_equal(st.jit(lambda x, y: x - y)(x, y), x - y)


def graph(f, *operands):
    """The program of a function of the arrays among these."""

    def call(*traced):
        rest = iter(traced)
        return f(*[next(rest) if isinstance(a, st.Array) else a for a in operands])

    return st.make_graph(call)(*[a for a in operands if isinstance(a, st.Array)])


def test_which_operands_go_the_short_way():
    """At rest by the function of NumPy, traced by the primitive unless that function is another."""
    asked = []

    def general(x, y):
        asked.append((x, y))
        return snp.asarray(0.0)

    own, other = binary_function(ADD, general), binary_function(ADD, general, None, np.subtract)
    whole = binary_function(ADD, general, frozenset({"int"}))
    x, k = snp.array([3.0, 5.0]), snp.array([3, 5])
    for f, operands, want in [
        (own, (x, x), [6, 10]), (other, (x, x), [0, 0]), (whole, (k, k), [6, 10]),
        (own, (x, 2.0), [5, 7]), (other, (x, 2.0), [1, 3]), (other, (2.0, x), [-1, -3]),
        (own, (x, x[:1]), [6, 8]), (own, (k, 2), [5, 7]),
    ]:  # fmt: skip
        assert np.asarray(f(*operands)).tolist() == want
    assert not asked
    for f, operands in [
        (whole, (x, x)), (whole, (2.0, x)), (own, (x, k)), (own, (k, 2.5)), (own, (2.5, k)),
        (own, (1.0, 2.0)), (own, ("a", x)), (own, (x, None)), (own, (x, snp.ones(3))),
    ]:  # fmt: skip
        f(*operands)
        assert asked.pop() == operands and not asked
    for f, operands, is_short in [
        (own, (x, x), True), (own, (x, x[:1]), True), (own, (x, 2.0), True), (own, (2.0, x), True),
        (own, (x, 2j), False), (other, (x, x), False), (other, (x, x[:1]), False),
        (other, (x, 2.0), False), (other, (2.0, x), False), (whole, (x, x), False),
    ]:  # fmt: skip
        asked.clear()
        program = graph(f, *operands)
        assert (len(asked) == 0) is is_short
        assert ("add" in [e.primitive.name for e in program.equations]) is is_short


@pytest.mark.skipif(native is None, reason="the extension was not built")
@pytest.mark.parametrize(("rows", "columns"), [(127, 129), (128, 128), (113, 145)])
def test_a_product_is_large_by_either_operand(rows, columns):
    for dtype, kept in [("int32", rows * columns < 16_384), ("float32", True)]:
        x = snp.ones((rows, columns), dtype)
        for left, right in ((x, x[0]), (x[:, 0], x), (x, x[:2].T), (x[:, :2].T, x)):
            forget()
            left @ right
            assert bool(TABLE.get(OPERATORS["matmul"])) is kept
    forget()


@pytest.mark.skipif(native is None, reason="the extension was not built")
@pytest.mark.parametrize(("rows", "is_kept"), [(1, True), (2, True), (3, False)])
def test_operands_of_a_large_result_are_left_to_the_general_way(monkeypatch, rows, is_kept):
    monkeypatch.setattr(twins, "_is_large", lambda primitive, type: type.size > 6)
    forget()
    x, y = snp.ones((rows, 1)), snp.ones(3)
    for _ in range(2):
        np.testing.assert_array_equal(snp.add(x, y), np.full((rows, 3), 2))
    assert (y.type in TABLE.get(OPERATORS["add"], {}).get(x.type, {})) is is_kept
    snp.add(x, x)
    assert x.type in TABLE[OPERATORS["add"]][x.type]
    forget()


@pytest.mark.skipif(native is None, reason="the extension was not built")
def test_operators_are_entered_by_name_with_their_general_way():
    """And the types that they met; other functions are entered nowhere."""
    known, x = {*OPERATORS}, snp.ones(3)
    general = lambda x, y: snp.asarray(0.0)
    f = binary_function(ADD, general, operator="some")
    entered = OPERATORS.pop("some")
    try:
        assert entered.apply is f and entered.rule is ADD.reference
        np.testing.assert_array_equal(f(x, x), [2, 2, 2])
        assert TABLE[entered][x.type][x.type].function is entered.rule
    finally:
        TABLE.pop(entered, None)
    binary_function(ADD, general)(x, x)
    assert {*OPERATORS} == known
