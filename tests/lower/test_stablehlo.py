"""Programs as StableHLO text: constants exactly, names, functions, regions, positions."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp
from stretto.core.program import Equation, Program, Var, literal
from stretto.core.recorder import record
from stretto.core.types import array_type
from stretto.lower.stablehlo import Builder, element_type, lower, tensor_type
from stretto.ops.arithmetic import ADD
from stretto.runtime.pjrt import compile_text, to_device, to_host

FLOAT8 = [name for name in dir(ml_dtypes) if name.startswith("float8_")]
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
    "int4",
    "uint4",
    "int2",
    "uint2",
    *FLOAT8,
]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


@pytest.mark.parametrize(
    "name, want",
    [
        ("bool", "i1"),
        ("uint8", "ui8"),
        ("int4", "i4"),
        ("bfloat16", "bf16"),
        ("complex64", "complex<f32>"),
        ("float8_e4m3fn", "f8E4M3FN"),
        ("float8_e4m3b11fnuz", "f8E4M3B11FNUZ"),
        ("float8_e8m0fnu", "f8E8M0FNU"),
    ],
)
def test_element_types(name, want):
    assert element_type(dtype_of(name)) == want
    assert tensor_type(array_type((2, 0), dtype_of(name))) == f"tensor<2x0x{want}>"
    assert tensor_type(array_type((), dtype_of(name))) == f"tensor<{want}>"


def constants(values):
    """What compiled code makes of these scalars, each written into the text."""
    atoms = [literal(v, array_type((), v.dtype)) for v in values]
    program = Program((), (), atoms)
    outs = compile_text(lower(program), program.out_types)([])
    return [to_host(b) for b in outs]


def bits(x):
    return np.asarray(x).tobytes()


@pytest.mark.parametrize("name", DTYPES)
def test_constants_are_exact(name):
    dtype = dtype_of(name)
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        values = [np.bool_(False), np.bool_(True)]
    elif dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [dtype.type(v) for v in (info.min, info.max, 0, 1)]
    elif name.startswith(("int", "uint")):
        info = ml_dtypes.iinfo(dtype)
        values = [np.asarray(v).astype(dtype)[()] for v in (info.min, info.max, 0, 1)]
    else:
        raw = rng.integers(0, 256, (20, dtype.itemsize), dtype=np.uint8).view(dtype)[:, 0]
        special = np.array([0.0, -0.0, 1.0, 1e-45, 3e38, np.inf, -np.inf, 0.1], np.float64)
        with np.errstate(all="ignore"):
            special = special.astype(dtype)
        # A NaN's payload need not survive arithmetic, and XLA gives no promise for it.
        values = [v for v in [*raw, *special] if v == v]
    for got, want in zip(constants(values), values, strict=True):
        assert bits(got) == bits(want), (got, want)


@pytest.mark.parametrize(
    "name", ["float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "complex64"]
)
def test_nan(name):
    (got,) = constants([np.asarray(np.nan).astype(dtype_of(name))[()]])
    assert np.isnan(got)


@settings(max_examples=10, deadline=None)
@given(hs.lists(hs.floats(width=64), min_size=1, max_size=30))
def test_doubles_are_exact(numbers):
    for got, want in zip(constants([np.float64(n) for n in numbers]), numbers, strict=True):
        assert bits(got) == bits(np.float64(want)) or (np.isnan(got) and np.isnan(want))


def test_constants_are_written_once():
    text = st.jit(lambda x: (x + 2.0) * 2.0 + 2.0).lower(snp.float32(1)).as_text()
    assert text.count("stablehlo.constant") == 1


def test_a_constant_made_in_a_region_stays_there():
    def f(p, x):
        y = st.lax.cond(p, lambda: x * 3.0, lambda: x - 3.0)
        return y + 3.0

    text = st.jit(f).lower(True, snp.float32(1)).as_text()
    assert text.count("dense<3.0>") == 3
    assert [float(st.jit(f)(p, snp.float32(1))) for p in (True, False)] == [6.0, 1.0]


def test_arrays_and_splats():
    def build(b, x):
        table = b.array(np.array([1.5, -2.0, 0.25], np.float32))
        return [b.emit("add", x, table), b.splat(7, array_type((2, 2), np.dtype(np.int32)))]

    class Table:
        multiple = True
        lower = staticmethod(build)

    x = Var(array_type((3,), np.dtype(np.float32)))
    outs = [Var(x.type), Var(array_type((2, 2), np.dtype(np.int32)))]
    program = Program([x], [Equation(Table, [x], outs)], outs)
    y, splat = map(
        to_host,
        compile_text(lower(program), program.out_types)(
            [to_device(np.zeros(3, "f4"), x.type, True)]
        ),
    )
    np.testing.assert_array_equal(y, [1.5, -2.0, 0.25])
    np.testing.assert_array_equal(splat, np.full((2, 2), 7))


def test_loops_in_branches_in_loops():
    @st.jit
    def called(x):
        return snp.sin(x) + x + 2.0  # more than x

    def f(x):
        def body(c, i):
            c = st.lax.cond(
                i % 2 == 0,
                lambda: st.lax.while_loop(lambda c: c < 3, called, c),
                lambda: c - called(c),
            )
            return c, st.lax.switch(i, [lambda: c, lambda: called(c), lambda: -c])

        return st.lax.scan(body, x, snp.arange(4))

    with st.config(disable_jit=True):
        want = f(0.5)
    got = st.jit(f)(0.5)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
    assert st.jit(f).lower(0.5).as_text().count("func.func private") == 1


def test_names_that_mlir_does_not_take():
    def f(x):
        return x + 1

    for name in ("λ", "a-b c", "", "main", '"quoted"', "f.<locals>.g", "9"):
        f.__name__ = name
        assert float(st.jit(f)(1.0)) == 2
        inner = st.jit(f)
        assert float(st.jit(lambda x, inner=inner: inner(x))(1.0)) == 2


@pytest.mark.parametrize(
    "file", ["plain.py", 'quo"te.py', "back\\slash.py", "ünï.py", "new\nline.py", "<stdin>"]
)
def test_positions_in_files_of_any_name(file):
    space = {"snp": snp}
    exec(compile("\n\ndef f(x):\n    return snp.sin(x) * 2\n", file, "exec"), space)
    lowered = st.jit(space["f"]).lower(1.0)
    if file == "plain.py":
        assert 'loc("plain.py":4:0)' in lowered.as_text()
    np.testing.assert_allclose(lowered.compile()(1.0), 2 * np.sin(1), rtol=1e-6)


def test_positions_reach_the_compiled_program():
    text = st.jit(lambda x: snp.sin(x) * x).lower(snp.ones(3)).compile().as_text()
    assert "test_stablehlo.py" in text


def test_no_inputs_and_no_outputs():
    assert compile_text(lower(Program((), (), ())), ())([]) == []
    x = Var(array_type((), np.dtype(np.float32)))
    assert "return\n" in lower(Program([x], [], []))


def test_inline_takes_no_captured_values():
    outside = snp.arange(3.0)
    type = array_type((3,), np.dtype(np.float32))

    class Greedy:
        multiple = False
        lower = staticmethod(lambda b, x: b.inline(lambda v: v + outside, x))

    x, y = Var(type), Var(type)
    with pytest.raises(AssertionError, match="captured a value while being lowered"):
        lower(Program([x], [Equation(Greedy, [x], [y])], [y]))


def test_regions_restore_what_was_outside():
    b = Builder()
    type = array_type((), np.dtype(np.float32))
    outer = b.scalar(1.0, type.dtype)
    text = b.region((type,), lambda x: [b.emit("add", x, b.scalar(1.0, type.dtype), out=type)])
    assert text.count("stablehlo.constant") == 1 and "stablehlo.return" in text
    assert b.scalar(1.0, type.dtype).name == outer.name


def test_a_program_lowered_alone_or_as_part_is_the_same():
    type = array_type((2,), np.dtype(np.float32))
    program = record(lambda x, y: ([ADD(x, y), x], None), [type, type])[0]
    args = [to_device(np.array(v, np.float32), type, True) for v in ([1, 2], [3, 4])]
    outs = compile_text(lower(program), program.out_types)(args)
    np.testing.assert_array_equal(to_host(outs[0]), [4, 6])
    np.testing.assert_array_equal(to_host(outs[1]), [1, 2])
