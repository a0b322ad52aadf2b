"""What is written: names, constants, regions, attributes, tokens of ordered calls."""

import itertools

import numpy as np
import pytest

from stretto._engine.core.program import Var
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import TOKEN, Operand
from stretto._engine.lowering.writer import Writer

F32 = array_type((2, 3), np.dtype(np.float32))
SCALAR = array_type((), np.dtype(np.float32))
X = Operand("%x", F32)


def lines(writer):
    return writer._lines


def test_an_operation():
    b = Writer()
    b._outputs = (Var(F32),)
    y = b.emit("add", X, X)
    assert (y.name, y.type) == ("%1", F32)
    z = b.emit("erf", y, attributes="a = 1", dialect="chlo", out=SCALAR)
    assert lines(b) == [
        '%1 = "stablehlo.add"(%x, %x) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>',
        '%2 = "chlo.erf"(%1) {a = 1} : (tensor<2x3xf32>) -> tensor<f32>',
    ]
    assert z.type is SCALAR and b.outs == (F32,)


@pytest.mark.parametrize("outs", [0, 1, 3])
def test_operations_with_any_number_of_results(outs):
    b = Writer()
    results = b.emit_many("op", [X], [SCALAR] * outs, regions=["{}", "{}"])
    assert [r.name for r in results] == [f"%1#{i}" for i in range(outs)]
    (line,) = lines(b)
    assert line.startswith(f"%1:{outs} = " if outs else '"stablehlo.op"(%x) ({}, {}) :')


def test_a_constant_is_written_once_for_each_type_and_block():
    b = Writer()
    one = b.splat(2, F32)
    assert b.splat(2.0, F32).name == one.name
    assert b.scalar(2, F32.dtype).name != one.name
    assert b.splat(2, array_type((2, 3), np.dtype(np.int32))).name != one.name
    assert b.splat(0.0, F32).name != b.splat(-0.0, F32).name
    names = []
    b.region((), lambda: names.append(b.splat(2, F32).name) or [])
    assert names != [one.name]
    assert b.splat(2, F32).name == one.name  # that of the region is not seen from here


def test_arrays_are_written_or_passed_by_their_size():
    b = Writer()
    small = b.array(np.arange(256, dtype=np.int32).reshape(16, 16))
    assert small.type.shape == (16, 16) and len(lines(b)) == 1
    assert lines(b)[0].count("[") == 17
    large = np.arange(257, dtype=np.int32)
    passed = [b.array(large) for _ in range(2)]
    assert [x.name for x in passed] == ["%c0", "%c0"] and len(lines(b)) == 1
    assert b.array(large.copy()).name == "%c1"
    empty = b.array(np.zeros((0, 2), np.float32))
    assert "dense<> : tensor<0x2xf32>" in lines(b)[-1] and empty.type.shape == (0, 2)


def test_a_region_puts_back_what_was_outside_even_what_it_changes():
    b = Writer()
    b._outputs, b._token = (Var(F32),), Operand("%t", TOKEN)

    def body(x, y):
        b._outputs, b._token = (Var(SCALAR),), None
        return [b.emit("add", x, y)]

    text = b.region((SCALAR, SCALAR), body)
    assert text == (
        "{\n^bb0(%a1: tensor<f32>, %a2: tensor<f32>):\n"
        '%3 = "stablehlo.add"(%a1, %a2) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n'
        "stablehlo.return %3 : tensor<f32>\n}"
    )
    assert lines(b) == [] and b.outs == (F32,) and b._token.name == "%t"
    assert b.region((), lambda: []) == "{\nstablehlo.return\n}"


def test_attributes():
    b = Writer()
    assert b.ints([1, -2, 3]) == "array<i64: 1, -2, 3>"
    assert b.ints([]) == "array<i64>"
    assert b.compare("LT", X, X).type == array_type((2, 3), np.dtype(bool))
    assert "comparison_direction = #stablehlo<comparison_direction LT>" in lines(b)[-1]


def test_a_conversion_to_the_same_dtype_is_none():
    b = Writer()
    assert b.convert(X, np.dtype(np.float32)) is X
    assert b.convert(X, np.dtype(np.float64)).type.dtype == np.float64
    assert len(lines(b)) == 1


def reduced(op, dtype, axes=(1,)):
    b = Writer()
    out = b.reduce(op, Operand("%x", array_type((2, 3), np.dtype(dtype))), axes, 0)
    return out, "\n".join(lines(b))


def test_narrow_floats_are_added_up_in_32_bits_and_come_back_narrow():
    out, text = reduced("add", np.float16)
    assert out.type == array_type((2,), np.dtype(np.float16))
    assert '"stablehlo.reduce"(%1, %2)' in text and "(tensor<f32>, tensor<f32>) -> " in text
    assert text.splitlines()[-1].endswith("(tensor<2xf32>) -> tensor<2xf16>")
    out, text = reduced("maximum", np.float16, (0, 1))
    assert out.type.shape == () and "f32" not in text  # nothing to round


def test_extrema_of_floats_keep_nan_by_comparison():
    assert '"stablehlo.maximum"' not in reduced("maximum", np.float32)[1]
    assert "comparison_direction NE" in reduced("minimum", np.float32)[1]
    assert '"stablehlo.maximum"' in reduced("maximum", np.int32)[1]


def test_aliases_of_calls_name_the_result_where_there_are_several():
    def call(outs, **options):
        b = Writer()
        b.custom_call("f", [X], [F32] * outs, {"n": "3 : i64"}, [[(1, 0)], [(1, 0)] * outs],
                      {outs - 1: 0}, **options)  # fmt: skip
        return lines(b)[0]

    assert "output_tuple_indices = [], operand_index = 0" in call(1)
    text = call(2)
    assert "output_tuple_indices = [1], operand_index = 0" in text
    assert "backend_config = {n = 3 : i64}" in text
    assert "operand_layouts = [dense<[1, 0]> : tensor<2xindex>]" in text
    assert "has_side_effect" not in text
    assert "has_side_effect = true" in call(2, side_effect=True)


def test_ordered_calls_hand_on_a_token():
    b = Writer()
    b._outputs, b._token = (Var(F32),), Operand("%t", TOKEN)
    (out,) = b.host_call(lambda args: args, [X], observable=True, ordered=True)
    assert out.type is F32
    assert "(%x, %t)" in lines(b)[-1]
    assert b._token.name == "%1#1" and b._token.type is TOKEN
    (again,) = b.host_call(lambda args: args, [out], observable=False, ordered=False)
    assert "(%1#0) {" in lines(b)[-1] and b._token.name == "%1#1"
    assert again.type is F32
    assert [c.ordered for c in b._calls] == [True, False]
    assert "index = 1 : ui64" in lines(b)[-1]


def test_loops_and_branches_hand_the_token_on_too():
    b = Writer()
    b._outputs, b._token = (Var(SCALAR),), Operand("%t", TOKEN)
    x = Operand("%x", SCALAR)
    seen = []

    def body(*state):
        seen.append((len(state), b._token.name))
        return state

    (out,) = b.while_loop(lambda x: [b.compare("LT", x, x)], body, [x])
    assert out.type is SCALAR and seen == [(1, "%a5")]
    first = b._token.name
    assert first.endswith("#1")
    (out,) = b.case(Operand("%i", TOKEN), [lambda: [x], lambda: [x]])
    assert b._token.name.endswith("#1") and b._token.name != first
    assert lines(b)[-1].count(f"stablehlo.return %x, {first}") == 2
    b._token = None
    assert len(b.while_loop(lambda x: [b.compare("LT", x, x)], lambda *s: s, [x])) == 1


def test_rows_are_read_and_written_at_a_number():
    b = Writer()
    i = Operand("%i", TOKEN)
    row = b.slice_at(X, i)
    assert row.type.shape == (3,)
    assert any("dynamic_slice" in line and "slice_sizes = array<i64: 1, 3>" in line
               for line in lines(b))  # fmt: skip
    assert b.update_at(X, row, i).type == F32
    vector = Operand("%v", array_type((4,), np.dtype(np.float32)))
    assert b.slice_at(vector, i).type.shape == ()


def test_barriers_are_left_out_between_scalars_alone():
    b = Writer()
    assert "optimization_barrier" not in b.scalar_region([SCALAR], lambda x: b.barrier((x,)))
    assert "optimization_barrier" in b.region([SCALAR], lambda x: b.barrier((x,)))


def test_only_programs_of_scalars_have_a_place_in_a_kernel():
    b = Writer()
    negated = lambda x: [b.emit("negate", x, out=x.type)]
    widened = lambda x: [b.splat(0, F32), *negated(x)]
    looped = lambda x: b.while_loop(lambda x: [b.compare("GT", x, x)], negated, (x,))
    assert b.scalar_program([SCALAR], negated) is not None
    assert b.scalar_program([SCALAR], widened) is None
    assert b.scalar_program([SCALAR], looped) is None
    b.array(np.ones(2, np.float32))  # of what is outside it says nothing
    assert b.scalar_program([SCALAR], lambda x: b.array(np.array(2)) and [x]) is not None
    assert b.scalar_program([SCALAR], lambda x: b.array(np.ones(2)) and [x]) is None


def test_a_hidden_number_is_written_once_where_barriers_last():
    b = Writer()
    two = b.hide(2)
    assert b.hides and two is b.hide(2) is not b.hide(3)
    (barrier, _) = [line for line in lines(b) if "optimization_barrier" in line]
    assert barrier.startswith(two.name.removesuffix("#0")) and "tensor<i32>" in barrier
    assert b.region([SCALAR], lambda x: [b.hide(2)]).count("optimization_barrier") == 1
    assert "stablehlo.return %" in b.scalar_region([SCALAR], lambda x: [x] if not b.hides else [])
    for name, value in (("platform", "gpu"), ("partitioned", True)):
        other = type("Other", (Writer,), {name: value})()
        assert not other.hides


@pytest.mark.parametrize(
    ("dtype", "exponent", "mantissa"), [("float32", 8, 23), ("float64", 11, 52)]
)
def test_quotients_of_quotients_are_rounded_between(dtype, exponent, mantissa):
    """To the bits of their dtype, so that XLA does not multiply the divisors instead."""
    b = Writer()
    x = Operand("%x", array_type((), np.dtype(dtype)))
    b._outputs = (Var(x.type),)
    b.quotient(b.quotient(x, x), x)
    (line,) = [line for line in lines(b) if "reduce_precision" in line]
    assert f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32" in line


@pytest.mark.parametrize("where", ["", "_in_loop", "_in_function"])
def test_convolutions_in_loops_are_noted(where):
    b = Writer()
    b._outputs = (Var(F32),)
    if where:
        setattr(b, where, True)
    b.convolution(X, X, "window = {}")
    assert b._facts.has_convolutions_in_loops == bool(where)
    b._in_loop = b._in_function = False
    b.convolution(X, X, "window = {}")
    assert b._facts.has_convolutions_in_loops == bool(where)


def test_what_repeats_elements_is_put_into_memory_once():
    b = Writer()
    b._outputs = (Var(F32),)
    row = Operand("%row", array_type((3,), np.dtype(np.float32)))
    wide, two = b.broadcast(row, (1,), F32), b.splat(2, F32)
    apart = [wide, two, b.emit("add", wide, two), b.emit("negate", b.emit("add", two, wide))]
    as_they_are = [X, b.scalar(2, F32.dtype), b.iota(0, F32), b.emit("add", wide, X),
                   b.emit("add", X, two), b.emit("negate", b.emit("add", X, wide))]  # fmt: skip
    before = len(lines(b))
    for x in as_they_are:
        assert b.in_memory(x) is x
    assert len(lines(b)) == before
    for count, x in enumerate(apart, 1):
        assert b.in_memory(x) is b.in_memory(x) is not x
        assert len(lines(b)) == before + count
        assert "optimization_barrier" in lines(b)[-1] and f"({x.name})" in lines(b)[-1]
    elsewhere = type("Other", (Writer,), {"platform": "gpu"})()
    wide = elsewhere.broadcast(row, (1,), F32)
    assert elsewhere.in_memory(wide) is wide


@pytest.mark.parametrize("ndim", [2, 3, 4])
def test_which_transposes_are_those_of_matrices(ndim):
    """A product whose operand is one has another layout, and options go by that."""
    matrices = (*range(ndim - 2), ndim - 1, ndim - 2)
    x = Operand("%x", array_type((2, 3, 4, 5)[:ndim], np.dtype(np.float32)))
    for permutation in itertools.permutations(range(ndim)):
        b = Writer()
        b._outputs = (Var(array_type(tuple([x.type.shape[d] for d in permutation]), x.type.dtype)),)
        y = b.transpose(x, permutation)
        assert (y.name in b._swapped) == (permutation == matrices)


def test_axes_of_one_element_are_not_reversed():
    x = Operand("%x", array_type((2, 1, 3), np.dtype(np.float32)))
    b = Writer()
    b._outputs = (Var(x.type),)
    assert b.reverse(x, (1,)) is x
    assert not lines(b)
    b.reverse(x, (0, 1))
    assert "dimensions = array<i64: 0>" in lines(b)[-1]
    b.reverse(x, (2,))
    assert "dimensions = array<i64: 2>" in lines(b)[-1]
