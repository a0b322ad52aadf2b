"""The element-wise family: promotion, broadcasting, mapped axes, and how its classes are made."""

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as some

from stretto import numpy as snp
from stretto import vmap
from stretto._engine.api.graph import make_graph
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import PRIMITIVES
from stretto._engine.core.types import array_type
from stretto._engine.ops.arithmetic import ADD, NEG, add, divide, multiply
from stretto._engine.ops.elementwise import (
    FLOAT,
    Elementwise,
    _repeat,
    align_mapped,
    broadcast_shapes,
    promote_values,
    unary,
    widened_to_float32,
)
from stretto._engine.ops.exponential import EXP
from stretto._engine.ops.inverse_trigonometric import atan2
from stretto._engine.ops.special.gamma import LGAMMA
from stretto._engine.ops.thresholds import NARROW

shapes = some.lists(some.integers(0, 3), max_size=3).map(tuple)


@hypothesis.given(shapes, shapes, shapes)
def test_broadcast_shapes_is_numpy_s(a, b, c):
    try:
        want = np.broadcast_shapes(a, b, c)
    except ValueError:
        with pytest.raises(ValueError, match=r"f: shapes .* do not broadcast: axis -"):
            broadcast_shapes("f", a, b, c)
    else:
        assert broadcast_shapes("f", a, b, c) == want


def test_promotion_and_broadcasting():
    x, y = promote_values("f", np.ones((2, 1), np.int8), np.ones(3, np.float16))
    assert x.type is y.type is array_type((2, 3), np.dtype(np.float16))
    x, y = promote_values("f", np.ones(3, ml_dtypes.bfloat16), 2.5)
    assert y.type is array_type((3,), np.dtype(ml_dtypes.bfloat16))
    assert all(v.weak_type for v in promote_values("f", 1, 2.5))
    assert [v.dtype for v in promote_values("f", 1, np.int8(2))] == [np.int8] * 2
    assert [v.dtype for v in promote_values("f", 1, True, inexact=True)] == [np.float32] * 2
    with config(numpy_rank_promotion="raise"):
        with pytest.raises(ValueError, match=r"f: shapes \(2,\) and \(1, 2\) differ in rank"):
            promote_values("f", np.ones(2), np.ones((1, 2)))
        assert promote_values("f", np.ones(2), np.ones((1, 2)), ranks=True)[0].shape == (1, 2)
    assert promote_values("f", 1, 2, inexact=True)[0].type is array_type(
        (), np.dtype(np.float32), True
    )


def test_python_numbers_give_way():
    assert add(np.ones(2, np.int8), 1).dtype == np.int8
    assert add(np.ones(2, np.int8), 1.0).dtype == np.float32
    assert add(np.ones(2, np.float16), 1j).dtype == np.complex64
    assert add(True, 1).dtype == np.int32
    assert add(1, 2).weak_type
    assert not add(np.int32(1), 2).weak_type


def test_division_by_kind():
    assert divide(3, 2).dtype == np.int32
    assert atan2(1, np.ones(2, np.int8)).dtype == np.float32


def test_strict_promotion():
    with config(numpy_dtype_promotion="strict"):
        assert add(np.ones(2, np.int8), 1).dtype == np.int8
        with pytest.raises(
            TypeError, match="add: types float32, int8 differ, and promotion is str"
        ):
            add(np.ones(2, np.int8), np.ones(2, np.float32))


def test_no_implicit_common_type():
    with pytest.raises(TypeError, match="mul: types bfloat16, float8_e5m2 have no implicit common"):
        multiply(snp.ones(2, "float8_e5m2"), snp.ones(2, "bfloat16"))


def test_scalars_are_splats_in_programs():
    program = make_graph(lambda x: add(x, 2))(np.ones((2, 3), np.float32))
    assert str(program).splitlines()[1] == "  b:f32[2,3] = add a 2.0:f32[2,3]"


def test_unary_converts_what_the_primitive_does_not_take():
    assert unary(EXP, np.ones(2, np.int8)).dtype == np.float32
    assert unary(NEG, np.array([True])).dtype == np.int32


@pytest.mark.parametrize("axes", [(0, 0), (1, 0), (0, 2), (None, 1), (2, None), (1, 2)])
def test_mapped_axes_are_aligned(axes):
    rng = np.random.default_rng(0)
    args = [
        rng.normal(size=(2, 3) if a is None else np.insert((2, 3), a, 4)).astype(np.float32)
        for a in axes
    ]
    values, axis = align_mapped(4, [as_value(x) for x in args], axes)
    assert axis == next(a for a in axes if a is not None)
    assert all(v.shape == tuple(np.insert((2, 3), axis, 4)) for v in values)
    rows = [x if a is None else np.moveaxis(x, a, 0) for x, a in zip(args, axes, strict=True)]
    np.testing.assert_array_equal(vmap(add, in_axes=axes)(*args), rows[0] + rows[1])


def test_infer_names_both_operands():
    x, y = as_value(np.ones(2, np.float32)), as_value(np.ones(3, np.float32))
    with pytest.raises(
        TypeError,
        match=r"add: operands must have one shape and dtype, got float32\[2\] \(operand 0\) and "
        r"float32\[3\] \(operand 1\)",
    ):
        ADD(x, y)


def test_a_class_must_state_its_parts():
    known = list(PRIMITIVES)
    for body in (
        {"accepts": FLOAT, "op": "sine"},  # no partials
        {"accepts": FLOAT, "partials": (None,)},  # no lowering
        {"op": "sine", "partials": (None,)},  # no kinds
    ):
        with pytest.raises(TypeError, match="element-wise primitive Made must state accepts, op"):
            type(Elementwise)("Made", (Elementwise,), {**body, "reference": staticmethod(np.sin)})
    with pytest.raises(TypeError, match="primitive made: no rule for reference"):
        type(Elementwise)(
            "Made", (Elementwise,), {"accepts": FLOAT, "op": "sine", "partials": (None,)}
        )
    assert known == PRIMITIVES


def test_what_classes_say_by_themselves():
    """Where they are compiled, by their costs; and that NumPy's own functions are computed wide."""
    assert type(EXP).compiled_from == type(EXP).costs.sizes() != {}
    assert type(NEG).compiled_from == {}
    assert type(EXP).widens and type(NEG).widens and not Elementwise.widens


def test_results_are_weak_where_all_operands_are():
    weak, strong = (array_type((2,), np.dtype(np.float32), w) for w in (True, False))
    for types in ((weak, weak), (weak, strong), (strong, weak), (strong, strong)):
        assert ADD.infer(*types).weak_type is (strong not in types)
    for x, y in ((1, np.int8(2)), (np.int8(2), 1)):
        assert [v.weak_type for v in promote_values("f", x, y, inexact=True)] == [False, False]
    assert [v.weak_type for v in promote_values("f", 1, 2, inexact=True)] == [True, True]


def test_operands_that_differ_in_one_respect_are_refused():
    x = array_type((2,), np.dtype(np.float32))
    for other in (array_type((3,), x.dtype), array_type((2,), np.dtype(np.float64))):
        with pytest.raises(TypeError, match=r"add: operands must .* \(operand 1\)"):
            ADD.infer(x, other)


def test_elementwise_operations_keep_rows_and_axes():
    x = array_type((2, 3), np.dtype(np.float32))
    assert ADD.by_rows((x, x), (x,))
    assert [*ADD.kept_axes(1, x, x)] == [0, 1]


def test_functions_that_are_polynomials_count_as_more_work():
    x = array_type((10, 10), np.dtype(np.float32))
    assert [f.work((x,), (x,)) for f in (NEG, EXP, LGAMMA)] == [400, 4_000, 40_000]


@pytest.mark.parametrize(("dtype", "least", "most"), [("int8", -128, 127), ("uint16", 0, 65535)])
def test_integers_of_python_must_fit(dtype, least, most):
    x = np.zeros(1, dtype)
    for fits in (least, most):
        assert promote_values("f", x, fits)[1].tolist() == [fits]
    for beyond in (least - 1, most + 1):
        with pytest.raises(OverflowError, match=f"f: the Python integer {beyond} does not fit in"):
            promote_values("f", x, beyond)


def test_kinds_that_are_not_accepted_are_refused_by_the_primitive_itself():
    for primitive, dtype in ((EXP, np.int32), (NEG, np.bool_)):
        with pytest.raises(TypeError, match=f"{primitive.name}: expected an array of kind"):
            primitive.infer(array_type((2,), np.dtype(dtype)))


@pytest.mark.parametrize("least", [1, NARROW - 1, NARROW, NARROW + 1])
def test_compiled_from_the_measured_size_on_and_never_below_that_of_any_call(least, monkeypatch):
    dtype = np.dtype(np.float32)
    monkeypatch.setattr(type(LGAMMA), "compiled_from", {dtype: least})
    compiled = lambda n, dtype=dtype: LGAMMA.compiled((array_type((n,), dtype),))
    first = max(least, NARROW)
    assert compiled(first) and compiled(first + 1) and not compiled(first - 1)
    assert not compiled(10 * first, np.dtype(np.float64))


def test_one_element_is_repeated_along_mapped_axes_without_memory():
    """At rest; what is recorded repeats it by an operation."""
    x = snp.asarray([2.0])
    for shape in ((1, 4), (3, 1, 4)):
        x = _repeat(x, shape, len(shape) - 1 if len(shape) == 2 else 0)
        assert not any(x.host().strides)
        np.testing.assert_array_equal(x, np.full(shape, 2.0))
    several = _repeat(snp.asarray([1.0, 2.0]), (2, 3), 1)
    np.testing.assert_array_equal(several, [[1.0] * 3, [2.0] * 3])
    assert _repeat(snp.zeros((0, 2)), (0, 3, 2), 1).shape == (0, 3, 2)
    graph = make_graph(lambda x: _repeat(x, (3, 1), 0))(np.ones(1, np.float32))
    assert [e.primitive.name for e in graph.equations] == ["broadcast_in_dim"]


@pytest.mark.parametrize("shape", [(), (1,), (1, 5), (3, 1, 2), (0, 2)], ids=str)
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_repeated_narrow_floats_stay_repeated(name, shape):
    one = np.asarray(2.5, getattr(ml_dtypes, name, name))
    out = widened_to_float32(np.broadcast_to(one, shape))
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, np.full(shape, 2.5))
    assert not out.size or not any(out.strides)
