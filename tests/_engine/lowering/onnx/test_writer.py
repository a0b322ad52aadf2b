"""The writer of nodes: broadcasting without nodes, casts, shapes of any size, loops."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64
from stretto._engine.core.sizes import Positive, SizeVariable, is_size, size_of
from stretto._engine.core.types import array_type
from stretto._engine.lowering.onnx.graph import Operand
from stretto._engine.lowering.onnx.products import Onnx
from stretto.errors import ExportError
from tests.export.running import agrees, exported, onnx, operators, run
from tests.onnx_graphs import flags_are_set_or_not, is_close, written

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")


def test_what_repeats_elements_is_carried_small():
    model = agrees(lambda x, y: x * 2 + snp.broadcast_to(y, (4, 3)), X, X[0])
    assert operators(model) == {"Mul": 1, "Add": 1}


@pytest.mark.parametrize(
    ("shape", "names"), [((), {"Add": 1}), ((1, 1), {"Reshape": 1, "Add": 1}), ((1, 3), None)]
)
def test_what_repeats_one_element_stays_small_in_another_shape(shape, names):
    x, y = X.reshape(-1)[: np.prod(shape, dtype=int)].reshape(shape), X.reshape(12)
    model = agrees(lambda x, y: snp.broadcast_to(x, (4, 3)).reshape(12) + y, x, y)
    assert (operators(model) == names) if names else ("Expand" in operators(model))


def test_equal_work_is_written_once():
    model = agrees(lambda x: snp.sin(x) * snp.sin(x), X)
    assert operators(model)["Sin"] == 1


FLOATS = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 2147483520, 255.5, -0.6, 70000], "float32")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "bool"])
def test_floats_as_integers_saturate(dtype):
    agrees(lambda x: x.astype(dtype), FLOATS)


def test_floats_as_wide_integers_saturate():
    with enable_x64():
        agrees(lambda x: x.astype("int64"), FLOATS.astype("float64") * 1e12)


@pytest.mark.parametrize("dtype", ["bool", "int16", "uint16", "uint32", "float16", "int8"])
def test_choices_of_dtypes_without_a_kernel(dtype):
    x = (np.arange(12).reshape(4, 3) % 2).astype(dtype)
    agrees(lambda c, x: snp.where(c, x, x[::-1]), X > 0, x)


def test_unsigned_integers_of_64_bits():
    with enable_x64():
        x = np.array([1, 2**63 + 5, 2**64 - 1], np.uint64)
        agrees(lambda c, x: (snp.where(c, x, x[::-1]), snp.sort(x), x.argmax(), x.max()),
               np.array([True, False, True]), x)  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_shapes_with_sizes_that_vary(n):
    def f(x):
        rows = snp.arange(x.shape[0])[:, None] * snp.ones((1, 2))
        flat = x.reshape(x.shape[0] * 3)
        return rows, flat, snp.concatenate([x, x[:1]]), snp.full((x.shape[0], 2), 7), x[::-1]

    model = exported(f, X, dynamic_axes=({0: "n"},))
    x = np.random.default_rng(n).normal(size=(n, 3)).astype("float32")
    for got, want in zip(run(model, [x]), f(snp.array(x)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_bits_of_other_widths():
    agrees(lambda x: st.lax.bitcast_convert_type(x, "uint8"), X)
    words = np.random.default_rng(0).integers(0, 255, (3, 4)).astype("uint8")
    agrees(lambda x: st.lax.bitcast_convert_type(x, "int32"), words)


@pytest.mark.parametrize(("exponent", "mantissa"), [(8, 7), (5, 10), (8, 23), (6, 3), (11, 52)])
def test_rounding_to_fewer_bits(exponent, mantissa):
    x = np.concatenate([X.ravel(), FLOATS])
    agrees(lambda x: st.lax.reduce_precision(x, exponent, mantissa), x)


def test_padding_between_elements_and_cut_at_the_ends():
    agrees(lambda x: st.lax.pad(x, np.float32(9), [(1, -1, 2), (-1, 2, 1)]), X)


def test_a_loop_whose_state_is_not_read():
    agrees(lambda x: st.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1]), (0, x)), X)


@pytest.mark.parametrize("op", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int32", "float16"])
def test_reductions(op, dtype):
    x = (np.arange(1, 13).reshape(4, 3) % 4).astype(dtype)
    agrees(lambda x: getattr(x, op)(axis=1), x)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (1,), (2, 1)])
def test_few_elements_are_sorted(shape):
    x = X.reshape(-1)[: np.prod(shape)].reshape(shape)
    agrees(lambda x: (snp.sort(x), snp.argsort(x), *st.lax.sort((x, -x), num_keys=1)), x)


def test_bitwise_reductions_fold_halves():
    x = np.arange(3, 38, dtype="int32").reshape(5, 7)
    agrees(lambda x: (snp.bitwise_xor.reduce(x, 1), snp.bitwise_and.reduce(x, 0)), x)


def test_nan_is_kept_in_extrema():
    x = X.copy()
    x[1, 1] = np.nan
    agrees(lambda x: (x.max(1), x.min(0), snp.maximum(x, 0), x.argmax(1), x.argmin(0)), x)


# What the writer is asked for, of tensors whole and small, and of constants

SHAPE = (4, 3)
GIVEN = {"whole": X, "row": X[:1], "line": X[0], "column": X[:, :1], "number": X[0, 0]}
"""Tensors that stand for a value of four rows: they broadcast to it."""

F32, I32, I64 = np.dtype(np.float32), np.dtype(np.int32), np.dtype(np.int64)


def t(*shape, dtype=F32):
    return array_type(shape, np.dtype(dtype))


def as_value(x, shape=SHAPE):
    """Return an operand of this shape, whose tensor is smaller."""
    return Operand(x.name, array_type(shape, x.type.dtype), x.shape, x.value)


def check(build, want, *arrays, **settings):
    """Assert that what is written gives these values; return the operators."""
    model = written(build, *arrays, **settings)
    onnx.checker.check_model(model, full_check=True)
    flags_are_set_or_not(model)
    wanted = want if isinstance(want, (list, tuple)) else [want]
    for got, value in zip(run(model, arrays), wanted, strict=True):
        got = got[..., 0] + 1j * got[..., 1] if np.iscomplexobj(value) else got
        assert got.dtype == np.asarray(value).dtype and got.shape == np.shape(value)
        is_close(got, np.asarray(value), 1e-6, 0)
    return [node.op_type for node in model.graph.node if node.op_type != "Identity"]


def padded(x, value, config):
    """Put a value around the elements and between them, or cut some off."""
    for axis, (low, high, between) in enumerate(config):
        x = np.moveaxis(x, axis, 0)
        wide = np.full(((len(x) - 1) * (between + 1) + 1, *x.shape[1:]), value, x.dtype)
        wide[:: between + 1] = x
        wide = wide[max(-low, 0) : len(wide) - max(-high, 0)]
        ends = [(max(low, 0), max(high, 0)), *[(0, 0)] * (x.ndim - 1)]
        x = np.moveaxis(np.pad(wide, ends, constant_values=value), 0, axis)
    return x


def pad(config, value=9.0):
    shape = padded(np.zeros(SHAPE, np.float32), 0, config).shape
    return (lambda b, x: b.pad(x, b.splat(value, t()), config, t(*shape)),
            lambda x: padded(x, value, config))  # fmt: skip


def reduce(op, ufunc, axes):
    return (lambda b, x: b.reduce(op, x, axes, ufunc.identity or 0),
            lambda x: ufunc.reduce(x, axes) if axes else x)  # fmt: skip


def cut(*parts):
    return (lambda b, x: b.slice(x, parts),
            lambda x: x[tuple([slice(*part) for part in parts])])  # fmt: skip


OPERATIONS = {
    **{f"reshape {s}": (lambda b, x, s=s: b.reshape(x, t(*s)), lambda x, s=s: x.reshape(s))
       for s in ((12,), (3, 4), (4, 1, 3), (1, 4, 3, 1), (2, 2, 3), (4, 3), (4, 3, 1), (6, 2))},
    **{f"transpose {p}": (lambda b, x, p=p: b.transpose(x, p), lambda x, p=p: x.transpose(p))
       for p in ((0, 1), (1, 0))},
    "before": (lambda b, x: b.broadcast(x, (1, 2), t(2, 4, 3)), lambda x: np.stack([x, x])),
    "between": (lambda b, x: b.broadcast(x, (0, 2), t(4, 2, 3)), lambda x: np.stack([x, x], 1)),
    "behind": (lambda b, x: b.broadcast(x, (0, 1), t(4, 3, 2)), lambda x: np.stack([x, x], 2)),
    "to nothing": (lambda b, x: b.broadcast(x, (1, 2), t(0, 4, 3)),
                   lambda x: np.zeros((0, 4, 3), np.float32)),
    "rows": cut((1, 3, 1), (0, 3, 1)),
    "columns": cut((0, 4, 1), (2, 3, 1)),
    "every other": cut((0, 4, 2), (1, 3, 1)),
    "from the second on": cut((1, 4, 2), (0, 3, 2)),
    "first rows": cut((0, 3, 1), (0, 3, 1)),
    "no rows": cut((2, 2, 1), (0, 3, 1)),
    "all": cut((0, 4, 1), (0, 3, 1)),
    "reverse rows": (lambda b, x: b.reverse(x, (0,)), lambda x: x[::-1]),
    "reverse columns": (lambda b, x: b.reverse(x, (1,)), lambda x: x[:, ::-1]),
    "reverse both": (lambda b, x: b.reverse(x, (0, 1)), lambda x: x[::-1, ::-1]),
    "join rows": (lambda b, x: b.concatenate([x, x], 0, t(8, 3)), lambda x: np.concatenate([x, x])),
    "join columns": (lambda b, x: b.concatenate([x, b.splat(2, t(4, 1)), x], 1, t(4, 7)),
                     lambda x: np.concatenate([x, np.full((4, 1), 2, np.float32), x], 1)),
    "join nothing": (lambda b, x: b.concatenate([b.splat(0, t(0, 3)), x, b.splat(1, t(0, 3))], 0,
                                                t(4, 3)), lambda x: x),
    "pad ends": pad([(1, 2, 0), (0, 1, 0)]),
    "cut ends": pad([(-1, 0, 0), (0, -1, 0)]),
    "pad and cut": pad([(2, -1, 0), (-1, 3, 0)]),
    "pad between": pad([(0, 0, 1), (0, 0, 2)]),
    "pad between and around": pad([(1, -1, 2), (-1, 2, 0)]),
    "pad nothing": pad([(0, 0, 0), (0, 0, 0)]),
    **{f"{op} {axes}": reduce(op, ufunc, axes) for axes in ((0,), (1,), (0, 1), ())
       for op, ufunc in (("add", np.add), ("multiply", np.multiply))},
    **{f"{op} {axes}": reduce(op, ufunc, axes) for axes in ((0,), (1,))
       for op, ufunc in (("maximum", np.maximum), ("minimum", np.minimum))},
    "compare": (lambda b, x: b.compare("GT", x, b.splat(0, x.type)), lambda x: x > 0),
    "differ": (lambda b, x: b.compare("NE", x, b.array(X)), lambda x: x != X),
    "select": (lambda b, x: b.select(b.compare("GE", x, b.splat(0, x.type)), x, b.array(X * 2)),
               lambda x: np.where(x >= 0, x, X * 2)),
    "whole": (lambda b, x: b.whole(x), lambda x: x),
    "as integers": (lambda b, x: b.convert(x, I32), lambda x: x.astype(np.int32)),
    "as truth": (lambda b, x: b.convert(x, np.dtype(bool)), lambda x: x != 0),
    "as complex": (lambda b, x: b.convert(x, np.dtype(np.complex64)),
                   lambda x: x.astype(np.complex64)),
    "bits": (lambda b, x: b.bitcast(x, t(*SHAPE, dtype=I32)), lambda x: x.view(np.int32)),
    "bytes": (lambda b, x: b.bitcast_convert(x, t(*SHAPE, 4, dtype=np.uint8)),
              lambda x: x[..., None].view(np.uint8)),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("constant", [False, True])
def test_operations_of_tensors_that_stand_for_more(operation, given, constant):
    write, numpy = OPERATIONS[operation]
    x = GIVEN[given]
    want = numpy(np.broadcast_to(x, SHAPE).copy())
    if not constant:
        check(lambda b, v: write(b, as_value(v)), want, x)
        return
    names = check(lambda b, _: write(b, Operand("", t(*SHAPE), x.shape, x)), want, X)
    if operation.partition(" ")[0] in ("reshape", "transpose", "reverse", "bits", "rows"):
        assert not {*names} - {"Expand"}


SMALL = [
    ("reshape (4, 1, 3)", "row", ["Unsqueeze", "Expand"]),
    ("reshape (4, 1, 3)", "number", ["Expand"]),
    ("transpose (1, 0)", "line", ["Unsqueeze", "Transpose", "Expand"]),
    ("transpose (0, 1)", "line", ["Expand"]),
    ("behind", "line", ["Unsqueeze", "Unsqueeze", "Expand"]),
    ("before", "line", ["Unsqueeze", "Expand"]),
    ("before", "whole", ["Expand"]),
    ("between", "column", ["Unsqueeze", "Expand"]),
    ("between", "number", ["Expand"]),
    ("rows", "row", ["Expand"]),
    ("rows", "number", ["Expand"]),
    ("rows", "whole", ["Slice"]),
    ("all", "whole", []),
    ("reverse rows", "row", ["Expand"]),
    ("reverse both", "number", ["Expand"]),
    ("join nothing", "whole", []),
    ("pad nothing", "whole", []),
    ("pad ends", "whole", ["Pad"]),
    ("cut ends", "whole", ["Slice"]),
    ("add ()", "whole", []),
    ("whole", "whole", []),
    ("as truth", "line", ["Equal", "Not", "Expand"]),
]


@pytest.mark.parametrize(("operation", "given", "names"), SMALL)
def test_tensors_stay_small(operation, given, names):
    write, numpy = OPERATIONS[operation]
    x = GIVEN[given]
    want = numpy(np.broadcast_to(x, SHAPE))
    assert check(lambda b, v: write(b, as_value(v)), want, x) == names


def test_nothing_joined_to_nothing_is_no_node():
    x = np.zeros((0, 3), np.float32)
    assert check(lambda b, v: b.concatenate([v, v], 0, t(0, 3)), x, x) == []
    assert check(lambda b, v: b.concatenate([v, v], 1, t(0, 6)), np.zeros((0, 6), "f4"), x) == [
        "Concat"
    ]


UNITS = X[None, :, None]  # of shape (1, 4, 1, 3)


@pytest.mark.parametrize("shape", [(4, 3), (4, 1, 3), (1, 1, 4, 3), (3, 4), (12,), (4, 3, 1)])
@pytest.mark.parametrize("given", [UNITS, UNITS[:, :1], UNITS[..., :1], X[0], UNITS[:, :1, :, :1]])
@pytest.mark.parametrize("constant", [False, True])
def test_units_are_moved(shape, given, constant):
    whole = np.broadcast_to(given, UNITS.shape)
    write = lambda b, x: b.reshape(as_value(x, UNITS.shape), t(*shape))
    if constant:
        write = lambda b, x: b.reshape(Operand("", t(*UNITS.shape), given.shape, given), t(*shape))
    check(write, whole.reshape(shape), given)


@pytest.mark.parametrize(
    ("shape", "small", "out", "left"),
    [
        ((1, 4, 1, 3), (1, 1, 1, 3), (4, 3), (1, 3)),
        ((1, 4, 1, 3), (1, 4, 1, 1), (4, 1, 3), (4, 1, 1)),
        ((2, 1, 3), (1, 1, 3), (1, 2, 3), (1, 1, 3)),
        ((2, 3), (2, 1), (2, 1, 3), (2, 1, 1)),
        ((2, 3), (2, 1), (3, 2), (3, 2)),
        ((2, 3), (2, 1), (6,), (6,)),
    ],
)
def test_views_that_move_units_alone_stay_small(shape, small, out, left):
    b = Onnx(26, True)
    x = Operand("x", t(*shape), small)
    assert b.reshape(x, t(*out)).shape == left
    held = Operand("", t(*shape), small, np.ones(small, np.float32))
    assert b.reshape(held, t(*out)).shape == left


Z = (X + 1j * X[::-1]).astype(np.complex64)


def c(*shape):
    return array_type(shape, np.dtype(np.complex64))


@pytest.mark.parametrize(
    ("write", "numpy"),
    [
        (lambda b, z: b.reshape(z, c(2, 6)), lambda z: z.reshape(2, 6)),
        (lambda b, z: b.transpose(z, (1, 0)), lambda z: z.T),
        (lambda b, z: b.broadcast(z, (1, 2), c(2, 4, 3)), lambda z: np.stack([z, z])),
        (lambda b, z: b.slice(z, [(1, 3, 1), (0, 3, 2)]), lambda z: z[1:3, ::2]),
        (lambda b, z: b.reverse(z, (0,)), lambda z: z[::-1]),
        (lambda b, z: b.concatenate([z, z], 1, c(4, 6)), lambda z: np.concatenate([z, z], 1)),
        (lambda b, z: b.pad(z, b.splat(1 + 2j, c()), [(1, 0, 0), (0, 1, 0)], c(5, 4)),
         lambda z: np.pad(z, [(1, 0), (0, 1)], constant_values=1 + 2j)),
        (lambda b, z: b.reduce("add", z, (0,), 0), lambda z: z.sum(0)),
        (lambda b, z: b.reduce("add", z, (1,), 0), lambda z: z.sum(1)),
        (lambda b, z: b.reduce("multiply", z, (0,), 1), lambda z: z.prod(0)),
        (lambda b, z: b.reduce("multiply", z, (1,), 1), lambda z: z.prod(1)),
        (lambda b, z: b.convert(z, F32), lambda z: z.real),
        (lambda b, z: b.convert(z, np.dtype(np.complex64)), lambda z: z),
        (lambda b, z: b.compare("EQ", z, b.array(Z.conj() + 0 * Z)), lambda z: z == z.conj()),
        (lambda b, z: b.compare("NE", z, b.array(Z.real.astype(np.complex64))),
         lambda z: z != Z.real),
        (lambda b, z: b.select(b.array(X > 0), z, b.array(-Z)), lambda z: np.where(X > 0, z, -z)),
        (lambda b, z: b.iota(1, c(4, 3)), lambda z: (np.arange(3) + 0 * z).astype(z.dtype)),
        (lambda b, z: b.splat(2 - 1j, c(4, 3)), lambda z: np.full_like(z, 2 - 1j)),
        (lambda b, z: b.slice_at(z, b.scalar(2, I32)), lambda z: z[2]),
        (lambda b, z: b.dynamic_slice(z, [b.scalar(1, I32)] * 2, (2, 2)), lambda z: z[1:3, 1:]),
        (lambda b, z: b.dynamic_update_slice(z, b.splat(1j, c(2, 3)), [b.scalar(1, I32)] * 2),
         lambda z: np.concatenate([z[:1], np.full((2, 3), 1j, np.complex64), z[3:]])),
        (lambda b, z: b.cumulative("CumSum", z, 1, False), lambda z: z.cumsum(1)),
        (lambda b, z: b.along(z, b.array(np.array([[2, 0, 1]] * 4)), 1), lambda z: z[:, [2, 0, 1]]),
    ],
)  # fmt: skip
def test_complex_numbers_are_pairs(write, numpy):
    check(write, numpy(Z), Z)


# Numbers of elements, dtypes, constants


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64", "float16", "float32"])
def test_numbers_as_truth_values_and_back(dtype):
    x = np.array([0, 1, 2, 0, 77], dtype)
    with enable_x64():
        check(lambda b, v: b.convert(v, np.dtype(bool)), x != 0, x)
        check(lambda b, v: b.convert(v, np.dtype(dtype)), (x != 0).astype(dtype), x != 0)
        check(lambda b, v: b.convert(b.held(x), np.dtype(bool)), x != 0, x)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint32", "int32", "uint64", "int64", "bool"])
@pytest.mark.parametrize("op", ["and", "or", "xor"])
@pytest.mark.parametrize("shape", [(1, 3), (2, 3), (5, 3), (8, 2), (0, 3)])
def test_reductions_of_bits(op, dtype, shape):
    x = (np.arange(np.prod(shape)).reshape(shape) * 37 % 11).astype(dtype)
    ufunc = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
    whole = array_type(shape, np.dtype(dtype))
    nothing = {"and": -1 if dtype != "bool" else True}.get(op, 0)
    with enable_x64():
        for axes in ((0,), (1,), (0, 1)):
            if dtype.startswith("u") and nothing == -1 and not x.size:
                continue
            want = ufunc.reduce(x, axes)
            check(lambda b, v, axes=axes: b.reduce(op, v, axes, nothing), want, x)
            held = lambda b, _, axes=axes: b.reduce(op, b.held(x, whole), axes, nothing)
            check(held, want, np.zeros(1, np.float32))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "uint32", "uint64", "int64",
                                   "float16", "float32", "float64"])  # fmt: skip
@pytest.mark.parametrize("op", ["add", "multiply", "maximum", "minimum"])
def test_reductions_keep_their_dtype(op, dtype):
    x = (np.arange(1, 13).reshape(4, 3) * 5 % 7).astype(dtype)
    if dtype in ("int32", "uint32", "int64", "uint64"):  # sums and products wrap around
        x += np.array(np.iinfo(dtype).max // 2 + 1, dtype)
    numpy = {"add": np.add, "multiply": np.multiply}.get(op, getattr(np, op))
    if dtype == "bool" and op in ("maximum", "minimum"):
        return
    with enable_x64():
        for axes in ((1,), (0, 1)):
            want = numpy.reduce(x, axes, dtype=x.dtype)
            check(lambda b, v, axes=axes: b.reduce(op, v, axes, 0), want, x)


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_extrema_of_nan_are_a_choice(op):
    x = np.where(X > 1, np.nan, X).astype(np.float32)
    want = getattr(np, op).reduce(x, 1)
    write = lambda b, v: b.reduce(op, v, (1,), 0)
    exact = check(write, want, x)
    assert [n for n in exact if n != "Not"] == ["Reduce" + op.title()[:3], "Equal", "ReduceMax",
                                                "Where"]  # fmt: skip
    assert check(write, getattr(np, op).reduce(X, 1), X, exact=False) == [exact[0]]


@pytest.mark.parametrize(
    ("op", "start"), [("add", 0), ("multiply", 1), ("maximum", -np.inf), ("minimum", np.inf)]
)
def test_a_reduction_of_nothing_is_where_it_starts(op, start):
    for dtype in ("float32", "complex64"):
        if dtype == "float32" or np.isfinite(start):
            x = np.zeros((0, 2), dtype)
            check(lambda b, v: b.reduce(op, v, (0,), start), np.full(2, start, dtype), x)


def test_sums_of_many_integers_are_by_halves():
    b = Onnx(26, True)
    for count, dtype, op in ((1 << 21, I32, "ReduceSum"), ((1 << 21) + 1, I32, "Concat"),
                             (3, I64, "Concat")):  # fmt: skip
        b.reduce("add", Operand("x", t(count, 2, dtype=dtype), (count, 2)), (0,), 0)
        assert op in [n.op for n in b.graph.nodes[-8:]]
        b = Onnx(26, True)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_sums_of_integers_along_a_size_that_varies(dtype):
    x = np.array([[1, 2**30], [3, 2**30], [5, 2**30]], dtype)
    with enable_x64():
        check(lambda b, v: b.reduce("add", v, (0,), 0), x.sum(0, dtype=dtype), x,
              shapes=[("n", 2)])  # fmt: skip


BITS = [
    ("uint32", "int32"), ("int8", "uint8"), ("float32", "int32"), ("int32", "float32"),
    ("float64", "int64"), ("float16", "uint16"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "target"), BITS)
@pytest.mark.parametrize("constant", [False, True])
def test_bits_of_the_same_width(source, target, constant):
    x = np.array([0, 1, 2, 77, 120], source)
    out = t(5, dtype=target)
    with enable_x64():
        write = lambda b, v: b.bitcast(b.held(x) if constant else v, out)
        names = check(write, x.view(target), x)
        of_floats = {source[:2], target[:2]} & {"fl"}
        assert names == ([] if constant else ["BitCast" if of_floats else "Cast"])
        check(write, x.view(target), x, opset=25)  # which has no operator for it


@pytest.mark.parametrize(
    ("source", "target"),
    [("uint32", "uint8"), ("int64", "int32"), ("float64", "uint32"), ("float64", "uint8"),
     ("int32", "int16"), ("uint16", "uint8"), ("float32", "uint16")],
)  # fmt: skip
def test_bits_of_other_widths_and_back(source, target):
    x = (np.arange(1, 7).reshape(2, 3) * 1234567.891).astype(source)
    ratio = x.itemsize // np.dtype(target).itemsize
    parts = x[..., None].view(target)
    with enable_x64():
        check(lambda b, v: b.bitcast_convert(v, t(2, 3, ratio, dtype=target)), parts, x)
        check(lambda b, v: b.bitcast_convert(v, t(2, 3, dtype=source)), x, parts)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("bits", [(5, 10), (8, 7), (8, 23), (11, 52), (5, 7), (8, 10), (4, 10),
                                  (11, 23), (4, 3), (5, 9)])  # fmt: skip
def test_fewer_bits(dtype, bits):
    x = np.array([0.1, -1.7, 3.14159, 300.3, -65519.0, 1e-6, np.inf, np.nan, 0.0, 447.9], dtype)
    with enable_x64():
        want = np.asarray(st.lax.reduce_precision(x, *bits))
        names = check(lambda b, v: b.reduce_precision(v, *bits), want, x)
    own = {"float16": (5, 10), "float32": (8, 23), "float64": (11, 52)}[dtype]
    if bits[0] >= own[0] and bits[1] >= own[1]:
        assert names == []
    elif dtype == "float32" and bits == (8, 7):
        assert names == ["Cast", "Cast"]


def test_bits_are_kept_where_they_are_few():
    b = Onnx(26, True)
    row = np.broadcast_to(np.arange(3.0), (4, 3))
    assert b.held(row).value.shape == (1, 3)
    assert b.held(np.broadcast_to(np.float32(2), (4, 3))).value.shape == ()
    assert b.held(np.broadcast_to(np.float32(2), (0, 3))).value.shape == (0, 3)
    assert b.held(np.ones((4, 3))).value.shape == (4, 3)
    assert b.held(np.float32(3)).type.shape == ()


def test_equal_constants_are_one():
    b = Onnx(26, True)
    small, large = np.zeros(1 << 16, np.int8), np.zeros((1 << 16) + 1, np.int8)
    assert b.constant(small) == b.constant(small.copy())
    assert b.constant(large) == b.constant(large) != b.constant(large.copy())
    assert b.constant(np.zeros(3, np.int8)) != b.constant(np.zeros((1, 3), np.int8))
    assert b.constant(np.zeros(3, np.int8)) != b.constant(np.zeros(3, bool))


def test_large_constants_are_turned_and_joined_by_nodes():
    large = np.arange((1 << 16) + 2, dtype=np.float32).reshape(2, -1)
    small = large[:, : 1 << 15].copy()
    turned = lambda b, x: b.transpose(b.held(x), (1, 0))
    viewed = lambda b, x: b.reshape(b.held(x), t(x.size))
    narrow = lambda b, x: b.cast(b.held(x), np.dtype(np.float16))
    joined = lambda b, x: b.concatenate([b.held(x), b.held(x[:, :1].copy())], 1,
                                        t(2, x.shape[1] + 1))  # fmt: skip
    b = Onnx(26, True)
    for write, op in ((turned, "Transpose"), (viewed, "Reshape"), (narrow, "Cast"),
                      (joined, "Concat")):  # fmt: skip
        before = len(b.graph.nodes)
        assert write(b, small[:, :-1] if write is joined else small).value is not None
        assert len(b.graph.nodes) == before
        assert write(b, large).value is None
        assert [n.op for n in b.graph.nodes[before:]] == [op]
    assert joined(b, small).value is None


def test_names_of_tensors():
    b = Onnx(26, True)
    assert [b.fresh("x") for _ in range(3)] == ["x", "x_1", "x_2"]
    assert b.fresh("x_1") == "x_3" and b.fresh("y") == "y"  # x_1 is a copy of x, too
    assert b.fresh("z_4") == "z_4" and b.fresh("z_4") == "z_4_1" and b.fresh("x") == "x_4"


# Sizes that vary

N = size_of(SizeVariable("n"))
M = size_of(SizeVariable("m"))


@pytest.mark.parametrize(
    ("size", "value"),
    [(size_of(Positive(N - 9)), 0), (size_of(Positive(N - 4)) + 1, 4),
     (N, 7), (N + 3, 10), (2 * N, 14), (N * N, 49), (N // 2, 3), ((N + 1) // 4, 2), (N - 2, 5),
     (3 * (N // 3) + 1, 7), (N * M, 21), (5, 5)],
)  # fmt: skip
def test_sizes_are_computed(size, value):
    def write(b, x, y):
        return Operand(b.size(size), t(1, dtype=I64), (1,)), b.size_value(size, t(dtype=I32))

    shapes = [("n", 2), ("m",)]
    wanted = [np.array([value]), np.array(value, np.int32)]
    arrays = [np.zeros((7, 2), np.float32), np.zeros(3, np.float32)]
    if is_size(size):
        check(write, wanted, *arrays, shapes=shapes)
    else:
        check(lambda b, x, y: write(b, x, y)[0], wanted[:1], *arrays, shapes=shapes)


def test_a_size_of_no_axis_is_refused():
    with pytest.raises(ExportError, match="the size m is that of no axis of an input"):
        written(lambda b, x: b.size_value(M, t(dtype=I32)), X, shapes=[("n", 3)])


ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)
AS_ROWS = t(N, 2)


@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda b, x: b.iota(0, AS_ROWS), np.repeat(np.arange(5.0), 2).reshape(5, 2)),
        (lambda b, x: b.iota(1, t(2, N)), np.tile(np.arange(5.0), (2, 1))),
        (lambda b, x: b.reshape(x, t(2, N)), ROWS.reshape(2, 5)),
        (lambda b, x: b.reshape(x, t(2 * N)), ROWS.reshape(-1)),
        (lambda b, x: b.reshape(x, t(N, 1, 2)), ROWS[:, None]),
        (lambda b, x: b.reshape(as_value(b.splat(3, t()), AS_ROWS.shape), t(2, N)),
         np.full((2, 5), 3.0)),
        (lambda b, x: b.slice(x, [(1, N, 1), (0, 2, 1)]), ROWS[1:]),
        (lambda b, x: b.slice(x, [(0, N, 2), (1, 2, 1)]), ROWS[::2, 1:]),
        (lambda b, x: b.slice(x, [(N - 2, N, 1), (0, 2, 1)]), ROWS[3:]),
        (lambda b, x: b.slice(x, [(0, N, 1), (0, 2, 1)]), ROWS),
        (lambda b, x: b.reverse(x, (0,)), ROWS[::-1]),
        (lambda b, x: b.pad(x, b.splat(9, t()), [(1, 0, 0), (0, 0, 0)], t(N + 1, 2)),
         np.concatenate([np.full((1, 2), 9.0), ROWS])),
        (lambda b, x: b.pad(x, b.splat(9, t()), [(0, N, 0), (0, 0, 0)], t(2 * N, 2)),
         np.concatenate([ROWS, np.full((5, 2), 9.0)])),
        (lambda b, x: b.pad(x, b.splat(9, t()), [(-1, 0, 0), (0, 0, 0)], t(N - 1, 2)), ROWS[1:]),
        (lambda b, x: b.whole(b.splat(2, AS_ROWS)), np.full((5, 2), 2.0)),
        (lambda b, x: b.broadcast(x, (1, 2), t(2, N, 2)), np.stack([ROWS, ROWS])),
        (lambda b, x: b.reduce("add", x, (0,), 0), ROWS.sum(0)),
        (lambda b, x: b.reduce("add", x, (1,), 0), ROWS.sum(1)),
        (lambda b, x: b.concatenate([x, x], 0, t(2 * N, 2)),
         np.concatenate([ROWS, ROWS])),
        (lambda b, x: b.whole(b.splat(1, t(2, N, 2))), np.ones((2, 5, 2))),
    ],
)  # fmt: skip
def test_shapes_of_any_size(write, want):
    check(write, np.asarray(want, np.float32), ROWS, shapes=[("n", 2)])


def test_zeros_in_shapes_are_said_where_there_may_be_some():
    def said(shape):
        b = Onnx(26, True)
        b.sizes = {variable: "n" for n in (N, M) for variable in n.variables()}
        b.reshape(Operand("x", t(N, 6), (N, 6)), t(*shape))
        return b.graph.nodes[-1].attributes.get("allowzero", 0)

    assert [said(s) for s in ((2 * N, 3), (0, N), (N, M), (N, 2, 3))] == [0, 1, 1, 0]


def test_a_view_with_two_sizes_that_vary():
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    shape = t(N, 2, M // 2)
    check(lambda b, x: b.reshape(x, shape), x.reshape(4, 2, 3), x, shapes=[("n", "m")])
    nothing = t(0, N)
    check(lambda b, x: b.reshape(x, nothing), x[:0].reshape(0, 4), x[:, :0], shapes=[("n", 0)])


def test_a_reduction_of_bits_along_a_size_that_varies_is_refused():
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    with pytest.raises(ExportError, match="a reduction by 'xor' along an axis of varying size"):
        written(lambda b, x: b.reduce("xor", x, (0,), 0), x, shapes=[("n", 3)])
    check(lambda b, x: b.reduce("xor", x, (1,), 0), np.bitwise_xor.reduce(x, 1), x,
          shapes=[("n", 3)])  # fmt: skip


# Loops and branches


@pytest.mark.parametrize("index", [-3, 0, 1, 2, 9])
def test_the_branch_of_an_index_is_the_nearest(index):
    f = lambda i, x: st.lax.switch(i, [lambda x: x + 1, lambda x: x * 2, lambda x: -x], x)
    (got,) = run(exported(f, np.int32(0), X), [np.int32(index), X])
    want = [X + 1, X * 2, -X][min(max(index, 0), 2)]
    np.testing.assert_allclose(got, want)


def test_branches_that_give_nothing_and_pairs():
    f = lambda c, z: st.lax.cond(c, lambda z: (z, z.real), lambda z: (z * 2j, z.imag), z)
    agrees(f, np.bool_(True), Z)
    agrees(f, np.bool_(False), Z)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse):
    def total(carry, x):
        return carry + x, carry * 2

    zero = np.zeros(3, np.float32)
    scan = lambda f, *args, **kwargs: st.lax.scan(f, *args, reverse=reverse, **kwargs)
    agrees(lambda x: scan(total, zero, x), X)
    agrees(lambda x: scan(lambda c, x: (c + x, None), zero, x)[0], X)
    agrees(lambda z: scan(total, 1j * zero, z), Z)
    agrees(lambda x: scan(lambda c, _: (c * 1.5, c), x, None, length=3), X)


def test_a_loop_over_pairs_and_one_that_never_runs():
    going = lambda s: s[0] < 3
    step = lambda s: (s[0] + 1, s[1] * 1j)
    agrees(lambda z: st.lax.while_loop(going, step, (0, z)), Z)
    agrees(lambda z: st.lax.while_loop(going, step, (5, z)), Z)


# What is refused


def test_errors_name_the_operation_and_what_was_asked():
    narrow = np.zeros(3, np.float32)
    with pytest.raises(ExportError, match="export to ONNX: the program: ONNX's operators take no"):
        written(lambda b, x: b.convert(x, np.dtype(ml_dtypes.float8_e4m3fn)), narrow)
    with pytest.raises(ExportError, match=r"take no float8_e4m3fn: convert to a wider dtype$"):
        written(lambda b, x: b.splat(0, t(dtype=ml_dtypes.float8_e4m3fn)), narrow)
    with pytest.raises(ExportError, match="it calls blas, a function of a library"):
        written(lambda b, x: b.custom_call("blas", x), narrow)
    with pytest.raises(ExportError, match="onnxruntime has no Erf of float64"):
        written(lambda b, x: b.apply("Erf", [x], x.type), np.zeros(3))
    with pytest.raises(ExportError, match="there is no counterpart of 'nonesuch'"):
        written(lambda b, x: b.emit("nonesuch", x, out=x.type), narrow)


def test_errors_say_where_the_operation_is():
    f = lambda x: x.astype(ml_dtypes.float8_e4m3fn)
    with pytest.raises(
        ExportError, match=r"export to ONNX: convert_element_type \(.*test_writer\.py:\d+"
    ):
        exported(f, X)
    g = lambda x: snp.sin(st.lax.reduce_precision(x, 4, 3).astype(ml_dtypes.float8_e5m2) + 1)
    with pytest.raises(
        ExportError, match=r"export to ONNX: convert_element_type \(.*take no float8_e5m2"
    ):
        exported(g, X)


@pytest.mark.parametrize("bits", [(8, 4), (5, 7), (5, 3)])
def test_fewer_bits_of_bfloat16(bits):
    x = np.array([0.1, -1.7, 3.14159, 300.3, -65519.0, 1e-6, np.inf, np.nan, 0.0, 1e-40], "float32")
    narrow = lambda x: st.lax.reduce_precision(x.astype(ml_dtypes.bfloat16), *bits)
    agrees(lambda x: narrow(x).astype("float32"), x)


def test_errors_of_what_is_written_inside_name_the_operation_at_hand():
    narrow = lambda v: v.astype(ml_dtypes.float8_e4m3fn)
    with pytest.raises(ExportError, match="export to ONNX: the program: ONNX's operators take no"):
        written(lambda b, x: b.inline(narrow, x), X)


def test_reductions_without_a_kernel_are_refused():
    x = np.ones((2, 3), np.uint64)
    write = lambda b, v: b._reduced("ReduceProd", v, [1], array_type((2,), v.type.dtype))
    with enable_x64(), pytest.raises(ExportError, match=r"has no ReduceProd of uint64"):
        written(write, x)
