"""Precisions by name, algorithms of products, and the dtypes in which products are added up."""

import ml_dtypes
import numpy as np
import pytest

import stretto.numpy as snp
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.graph import make_graph
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config
from stretto._engine.ops.bilinear import (
    ALGORITHMS,
    AccuracyMode,
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    Tolerance,
    algorithm_name,
    check_accuracy,
    precision_config,
    precision_name,
    promote_dtypes,
)
from stretto._engine.ops.contract import dot_general, matmul
from stretto._engine.ops.convolution.general import conv_general_dilated

PLAIN = (((1,), (0,)), ((), ()))
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(5, 7)).astype(np.float32), RNG.normal(size=(7, 3)).astype(np.float32)


def test_precisions_have_names():
    assert Precision("fastest") is Precision(None) is Precision("DEFAULT") is Precision.DEFAULT
    assert Precision("tensorfloat32") is Precision.HIGH
    assert str(Precision("float32")) == "HIGHEST"
    assert precision_name(("high", None), "dot") == ("HIGH", "DEFAULT")
    assert precision_name((Precision.HIGH, "high"), "dot") == "HIGH"
    with pytest.raises(ValueError, match="dot: precision must be None, a Precision"):
        precision_name("best", "dot")


@pytest.mark.parametrize(
    ("names", "number"),
    [
        (("default", "fastest", "bfloat16", None), 0),
        (("high", "bfloat16_3x", "tensorfloat32"), 1),
        (("highest", "float32"), 2),
    ],
)
def test_all_names_of_a_precision(names, number):
    for name in names:
        assert Precision(name).value == number
        assert Precision(name) is Precision(number)


def test_modes_of_accuracy_have_jax_s_numbers():
    assert [(mode.name, mode.value) for mode in AccuracyMode] == [("HIGHEST", 1), ("DEFAULT", 2)]


def precisions(fun, *args):
    return [e.primitive.precision for e in make_graph(fun, simplified=True)(*args).equations]


PRODUCTS = {
    "@": lambda x, y: x @ y,
    "dot": snp.dot,
    "dot_general": lambda x, y: dot_general(x, y, PLAIN),
    "tensordot": lambda x, y: snp.tensordot(x, y, 1),
    "einsum": lambda x, y: snp.einsum("ij,jk->ik", x, y),
    "einsum of three": lambda x, y: snp.einsum("ij,jk,kl->il", x, y, y.T),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_default_precision_is_that_of_products_without_one(name):
    product = PRODUCTS[name]
    count = 2 if "three" in name else 1
    plain = [e for e in make_graph(product)(X, Y).equations if e.primitive.name == "dot_general"]
    assert [e.primitive.precision for e in plain] == [None] * count
    for setting, want in (("highest", "HIGHEST"), ("bfloat16", "DEFAULT"), ("high", "HIGH")):
        with config(default_matmul_precision=setting):
            graph = make_graph(product)(X, Y)
        products = [e.primitive for e in graph.equations if e.primitive.name == "dot_general"]
        assert [p.precision for p in products] == [want] * count


def test_a_precision_that_is_given_counts():
    with config(default_matmul_precision="highest"):
        assert precisions(lambda x, y: matmul(x, y, "default"), X, Y) == ["DEFAULT"]
        assert precisions(lambda x, y: matmul(x, y, (None, "high")), X, Y) == [("DEFAULT", "HIGH")]
        assert precisions(lambda x, y: dot_general(x, y, PLAIN, "F32_F32_F32"), X, Y) == [
            "F32_F32_F32"
        ]


def test_the_default_precision_is_that_of_convolutions_derivatives_and_stacks():
    image, kernel = np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 2, 2), np.float32)
    convolve = lambda x, k: conv_general_dilated(x, k, (1, 1), "SAME")
    loss = lambda x, y: snp.sum(x @ y)
    with config(default_matmul_precision="high"):
        assert precisions(convolve, image, kernel) == ["HIGH"]
        graph = make_graph(grad(lambda x, k: snp.sum(convolve(x, k))))(image, kernel)
        assert {e.primitive.precision for e in graph.equations if "conv" in e.primitive.name} == {
            "HIGH"
        }
        assert precisions(grad(loss), X, Y) == ["HIGH"]
        graph = make_graph(vmap(lambda x: x @ Y))(np.stack([X, X]))
        assert "precision=HIGH" in str(graph)


def test_the_default_precision_is_part_of_what_is_traced_for():
    traces = []

    @jit
    def f(x, y):
        traces.append(config.default_matmul_precision)
        return x @ y

    rest = f(X, Y)
    with config(default_matmul_precision="float32"):
        assert "precision HIGHEST" in f.lower(X, Y).as_text()
        np.testing.assert_allclose(f(X, Y), rest, rtol=1e-6)
    f(X, Y)
    assert traces == [None, "float32"]

    @jit
    def inside(x, y):
        with config(default_matmul_precision="float32"):
            return x @ y

    assert "precision HIGHEST" in inside.lower(X, Y).as_text()


def test_both_precisions_are_lowered():
    text = jit(lambda x, y: matmul(x, y, precision=("high", "default"))).lower(X, Y).as_text()
    assert "precision HIGH>, #stablehlo<precision DEFAULT>" in text or "[HIGH, DEFAULT]" in text


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_algorithms_are_the_same_compiled(dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x, y = X.astype(dtype), Y.astype(dtype)

    def products(x, y):
        return [dot_general(x, y, PLAIN, name) for name in ALGORITHMS]

    exact = x.astype(float) @ y.astype(float)
    for eager, compiled in zip(products(x, y), jit(products)(x, y), strict=True):
        assert eager.dtype == compiled.dtype == dtype
        np.testing.assert_allclose(
            eager.astype(np.float32), compiled.astype(np.float32), rtol=1e-6, atol=1e-6
        )
        np.testing.assert_allclose(eager.astype(np.float32), exact, rtol=0.02, atol=0.03)


def test_factors_narrower_than_the_operands_are_rounded():
    half = X.astype(np.float16).astype(float) @ Y.astype(np.float16).astype(float)
    got = dot_general(X, Y, PLAIN, DotAlgorithmPreset.F16_F16_F16)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, half, rtol=2e-3, atol=2e-3)
    algorithm = DotAlgorithm(np.float16, np.float16, np.float16)
    np.testing.assert_array_equal(dot_general(X, Y, PLAIN, algorithm), got)
    plain = dot_general(X, Y, PLAIN)
    np.testing.assert_array_equal(dot_general(X, Y, PLAIN, DotAlgorithmPreset.DEFAULT), plain)
    np.testing.assert_array_equal(dot_general(X, Y, PLAIN, "F32_F32_F32"), plain)


def test_sums_come_in_the_dtype_in_which_an_algorithm_adds_up():
    """In bfloat16 257 would be 256."""
    ones = np.ones((1, 257), ml_dtypes.bfloat16)
    for name in ("BF16_BF16_F32", "F32_F32_F32"):
        (got,) = dot_general(ones, ones.T, PLAIN, name, np.float32)
        assert got.dtype == np.float32 and got == 257
    got = dot_general(ones, ones.T, PLAIN, "BF16_BF16_F32")
    assert got.dtype == ml_dtypes.bfloat16


@pytest.mark.parametrize(
    ("name", "factor", "total", "products"),
    [
        ("F16_F16_F16", "f16", "f16", 1),
        ("BF16_BF16_F32", "bf16", "f32", 1),
        ("BF16_BF16_F32_X3", "bf16", "f32", 3),
        ("BF16_BF16_F32_X6", "bf16", "f32", 6),
        ("F32_F32_F32", "f32", "f32", 1),
        ("F64_F64_F64", "f64", "f64", 1),
    ],
)
def test_algorithms_are_written_as_stablehlo_has_them(name, factor, total, products):
    assert precision_config(name, "cpu") == (
        f", algorithm = #stablehlo.dot_algorithm<lhs_precision_type = {factor}, "
        f"rhs_precision_type = {factor}, accumulation_type = {total}, lhs_component_count = 1, "
        f"rhs_component_count = 1, num_primitive_operations = {products}, "
        "allow_imprecise_accumulation = false>"
    )


def test_an_algorithm_counts_one_component_and_one_product_unless_told():
    assert DotAlgorithm("f4", "f4", "f4")[3:] == (1, 1, 1, False)


def test_algorithms_that_cpus_lack_are_refused():
    with pytest.raises(ValueError, match="precision TF32_TF32_F32 is not one that a CPU computes"):
        dot_general(X, Y, PLAIN, DotAlgorithmPreset.TF32_TF32_F32)
    with pytest.raises(ValueError, match="is not one that a CPU computes"):
        dot_general(X, Y, PLAIN, DotAlgorithm(np.float32, np.float16, np.float32))


SUMS = [
    ("int8", "int32", "int32"),
    ("int8", "float32", "float32"),
    ("bfloat16", "float32", "float32"),
    ("bfloat16", "float16", "float16"),
    ("float32", "bfloat16", "bfloat16"),
    ("float16", None, "float16"),
]


@pytest.mark.parametrize(("operand", "preferred", "out"), SUMS, ids=str)
def test_preferred_dtypes(operand, preferred, out):
    operand = np.dtype(getattr(ml_dtypes, operand, operand))
    x, y = (7 * X).astype(operand), (7 * Y).astype(operand)
    image, kernel = x.reshape(1, 1, 5, 7), y.reshape(1, 1, 7, 3)[:, :, :2]

    def products(x, y, image, kernel):
        return (
            dot_general(x, y, PLAIN, preferred_element_type=preferred),
            matmul(x, y, preferred_element_type=preferred),
            conv_general_dilated(image, kernel, (1, 1), "SAME", preferred_element_type=preferred),
        )

    eager, compiled = products(x, y, image, kernel), jit(products)(x, y, image, kernel)
    for a, b in zip(eager, compiled, strict=True):
        assert a.dtype == b.dtype == np.dtype(getattr(ml_dtypes, out, out))
        np.testing.assert_allclose(
            a.astype(np.float32), b.astype(np.float32), rtol=1e-2 if out != "float32" else 1e-5
        )


def test_narrow_floats_add_up_in_float32():
    ones = np.ones((1, 4096), ml_dtypes.bfloat16)
    for run in (lambda f: f, jit):
        assert float(run(lambda x: matmul(x, x.T))(ones)[0, 0]) == 4096  # in bfloat16: 256


def test_tolerances():
    assert repr(Tolerance(ulps=2)) == "Tolerance(atol=0.0, rtol=0.0, ulps=2)"
    assert repr(Tolerance(0.5)) == "Tolerance(atol=0.5, rtol=0.0, ulps=0)"
    for wrong in ({}, {"atol": -1.0}):
        with pytest.raises(ValueError, match="Tolerance: atol, rtol and ulps"):
            Tolerance(**wrong)
    for right in (None, AccuracyMode.HIGHEST, Tolerance(rtol=1e-3)):
        check_accuracy("exp", right)
    with pytest.raises(TypeError, match="exp: accuracy must be None, a Tolerance"):
        check_accuracy("exp", "high")


@pytest.mark.parametrize(
    ("left", "right", "preferred", "dtype"),
    [
        ("float8_e4m3fn", "float8_e5m2", "float32", "float32"),
        ("float8_e4m3fn", "float8_e4m3fn", "float32", "float8_e4m3fn"),
        ("float16", "float32", "bfloat16", "float32"),
        ("int8", "uint8", "int32", "int16"),
    ],
)
def test_the_dtype_of_factors(left, right, preferred, dtype):
    """What is preferred is the dtype of sums; only floats of 8 bits have no other in common."""
    x, y = (np.ones(2, getattr(ml_dtypes, name, name)) for name in (left, right))
    for value in promote_dtypes("f", x, y, preferred):
        assert value.dtype == getattr(ml_dtypes, dtype, dtype)
    with pytest.raises(TypeError, match=r"f: types .* have no implicit common type"):
        promote_dtypes("f", np.ones(2, ml_dtypes.float8_e5m2), np.ones(2, np.float32), "float16")


@pytest.mark.parametrize("precision", [None, Precision.HIGH, "highest", "default", "nobody's"])
def test_precisions_that_name_no_algorithm(precision):
    assert algorithm_name(precision, "f") is None
