"""How StableHLO is spelt: types, and constants exactly."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.program import Program, literal
from stretto._engine.core.types import array_type
from stretto._engine.kernels import kernels
from stretto._engine.lowering.stablehlo import lower
from stretto._engine.lowering.text import Facts, element_type, escape, identifier, tensor_type
from stretto._engine.xla.pjrt import compile_text, to_host

FLOAT8 = [name for name in dir(snp) if name.startswith("float8_")]
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


@settings(max_examples=10)
@given(hs.lists(hs.floats(width=64), min_size=1, max_size=30))
def test_doubles_are_exact(numbers):
    for got, want in zip(constants([np.float64(n) for n in numbers]), numbers, strict=True):
        assert bits(got) == bits(np.float64(want)) or (np.isnan(got) and np.isnan(want))


def test_names():
    assert identifier("f") == "f"
    assert identifier("<lambda> ü2") == "_lambda___2"
    assert identifier("2d") == "_2d"
    assert identifier("") == "_"
    assert escape('a "b"\\\n') == "a \\22b\\22\\5C\\0A"


# What is noted about programs while they are written.


SQUARE = snp.ones((4, 4))


def facts_of(f, *args):
    return st.jit(f).lower(*args)._entry.text().facts


def test_results_are_counted_by_type():
    facts = facts_of(lambda x: snp.sin(x) + snp.cos(x), SQUARE)
    assert facts.results == {array_type((4, 4), np.dtype(np.float32)): 3}
    assert facts.name == "function"


def test_products_say_how_their_operands_lie():
    (product,) = facts_of(lambda x, y: x @ y.T, SQUARE, SQUARE).products
    assert (product.summed, product.is_batch) == (((1,), (0,)), False)
    assert (product.swapped, product.repeats, product.in_loop) == ((False, True), False, False)
    one = lambda x, y: snp.matmul(snp.broadcast_to(x, (3, 4, 4)), y)
    (product,) = facts_of(one, SQUARE, snp.ones((3, 4, 4))).products
    assert product.is_batch and product.repeats


@pytest.mark.skipif(kernels is None, reason="needs the kernels")
@pytest.mark.parametrize(
    ("f", "fused"),
    [
        (lambda x, y: x @ y, 0),
        (lambda x, y: x @ y + y, 1),
        (lambda x, y: snp.maximum(x @ y + y, 0), 1),
    ],
    ids=["alone", "added", "added and cut off"],
)
def test_products_in_kernels_are_counted_and_those_with_more_inside(f, fused):
    facts = facts_of(f, snp.ones((32, 32)), snp.ones((32, 32)))
    assert (facts.kernel_products, facts.fused_products) == (1, fused)


@pytest.mark.parametrize("ndim", [2, 3, 4, 5])
def test_transposes_that_swap_the_last_two_axes(ndim):
    """Products of matrices, and of batches of them along one axis or two, are told so."""
    x = snp.ones((2,) * ndim)
    (product,) = facts_of(lambda x, y: snp.swapaxes(x, -1, -2) @ y, x, x).products
    assert product.swapped == (ndim < 5, False)
    if ndim > 2:  # others do not swap them
        (product,) = facts_of(lambda x, y: snp.swapaxes(x, 0, -1) @ y, x, x).products
        assert product.swapped == (False, False)


def test_nothing_is_in_a_program_of_one_operation():
    facts, nothing = facts_of(snp.sin, SQUARE), Facts()
    for field in dataclasses.fields(Facts):
        assert not getattr(nothing, field.name) or field.name == "name"
        assert not getattr(facts, field.name) or field.name in ("name", "results")


def test_loops_and_what_is_in_them():
    outside = facts_of(lambda x: lax.optimization_barrier(x) @ x, SQUARE)
    assert outside.has_barriers and not outside.has_barriers_in_loops and not outside.has_loops
    f = lambda x: lax.fori_loop(0, 5, lambda _, x: lax.optimization_barrier(x) @ x, x)
    inside = facts_of(f, SQUARE)
    assert inside.has_loops and inside.has_barriers_in_loops and inside.products[0].in_loop
    called = st.jit(lambda x: snp.tanh(x @ x))
    facts = facts_of(lambda x: called(called(x)), SQUARE)  # a loop may call it
    assert [p.in_loop for p in facts.products] == [True]


def test_calls():
    kept_apart = lambda x: lax.fori_loop(
        0, 5, lambda _, x: x + st.random.uniform(st.random.key(0), (300,)), x
    )
    assert facts_of(kept_apart, snp.ones(300)).largest_call_in_loops >= 300
    assert facts_of(snp.sin, snp.ones(300)).largest_call_in_loops == 0
    assert any("potrf" in name for name in facts_of(snp.linalg.cholesky, SQUARE).targets)


def test_reductions_whose_region_is_not_taken_leave_no_facts():
    """A user's computation with a loop is written, found to be none for a region, and dropped."""
    combine = lambda x, y: lax.fori_loop(0, 2, lambda _, z: z + y, x)
    facts = facts_of(lambda x: lax.reduce(x, np.float32(0), combine, (0,)), snp.ones(8))
    assert not facts.has_reductions
    plain = facts_of(
        lambda x: lax.reduce(x, np.float32(0), lambda x, y: x * y + y, (0,)), snp.ones(8)
    )
    assert plain.has_reductions and not plain.has_loops
