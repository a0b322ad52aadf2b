"""What products share: accumulators, precision by name, preferred dtypes, their derivative."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops import bilinear
from stretto._engine.ops.bilinear import Precision
from stretto._engine.ops.contract import DotGeneral


@pytest.mark.parametrize(
    "dtype, wide",
    [(np.float16, "float32"), (ml_dtypes.bfloat16, "float32"), (ml_dtypes.float8_e5m2, "float32"),
     (np.float32, "float32"), (np.float64, "float64"), (np.complex64, "complex64"),
     (np.int8, "int8"), (ml_dtypes.int4, "int32"), (np.bool_, "bool")],
)  # fmt: skip
def test_what_sums_are_added_up_in(dtype, wide):
    assert bilinear.accumulator(np.dtype(dtype)) == wide


def test_names_of_precisions():
    name = lambda p: bilinear.precision_name(p, "dot")
    assert name(None) is None
    assert name("high") == name("HIGH") == name(Precision.HIGH) == "HIGH"
    assert name(("highest", Precision.HIGHEST)) == "HIGHEST"
    assert name(("default", None)) == "DEFAULT"
    assert name(["default", "highest"]) == ("DEFAULT", "HIGHEST")
    with st.config(default_matmul_precision="highest"):
        assert name(None) == "HIGHEST" and name("default") == "DEFAULT"
    for bad in ("fast", 3, ("high",), ("high", "fast")):
        with pytest.raises(ValueError, match="dot: precision must be None, a Precision, 'default'"):
            name(bad)


def test_precisions_as_attributes():
    assert bilinear.precision_config(None, "cpu") == ""
    one, two = (bilinear.precision_config(p, "cpu") for p in ("HIGH", ("HIGH", "DEFAULT")))
    assert one.count("HIGH") == 2 and one.startswith(", precision_config = [")
    assert two.index("HIGH") < two.index("DEFAULT")
    algorithm = bilinear.precision_config("BF16_BF16_F32", "gpu")
    assert algorithm.startswith(", algorithm = #stablehlo.dot_algorithm<")
    assert "bf16" in algorithm and "f32" in algorithm


def test_dtypes_that_are_preferred():
    preferred = lambda p, own: bilinear.preferred_dtype(p, np.dtype(own), "dot")
    assert preferred(None, "f4") is preferred("float32", "f4") is None
    assert preferred("float32", "f2") == np.float32
    assert preferred("int32", "i1") == np.int32 and preferred("int32", "?") == np.int32
    assert preferred("uint32", "i4") == np.uint32 and preferred("bfloat16", "f2") == "bfloat16"
    for bad, own in (("float16", "f4"), ("int32", "f4"), ("complex64", "f4"), ("float32", "i4")):
        with pytest.raises(TypeError, match="dot: preferred_element_type must be of the operands'"):
            preferred(bad, own)


def test_products_of_one_dtype_in_another():
    seen = []

    def product(x, y, dtype):
        seen.append((x.dtype.name, dtype and dtype.name))
        return as_value(np.zeros(1, dtype or x.dtype))

    def out(own, preferred):
        x = as_value(np.ones(1, own))
        return bilinear.accumulated("dot", x, x, preferred, product).dtype.name, *seen.pop()

    assert out(np.float32, None) == ("float32", "float32", None)
    assert out(np.float16, "float32") == ("float32", "float16", "float32")
    assert out(np.int8, "float32") == ("float32", "float32", None)  # floats before
    assert out(np.float32, "float16") == ("float16", "float32", None)  # narrower after
    assert out(ml_dtypes.bfloat16, "float16") == ("float16", "bfloat16", "float32")
    for own in ("bfloat16", "float32"):
        assert out(own, own) == (own, own, None)


def test_two_values_of_one_dtype():
    x, y = bilinear.promote_dtypes("dot", np.int32(1), np.ones(2, np.float32))
    assert x.dtype == y.dtype == np.float32 and x.shape == () and not x.type.weak_type
    x, y = bilinear.promote_dtypes("dot", 2, np.ones(2, np.float16))
    assert x.dtype == np.float16
    with pytest.raises(TypeError, match=r"dot: .*y"):
        bilinear.promote_dtypes("dot", 1.0, "text")


def test_cotangents_go_with_what_is_known_even_where_promotion_is_strict():
    ct, known = as_value(np.ones(1, np.float32)), as_value(np.ones(1, np.float16))
    with st.config(numpy_dtype_promotion="strict"):
        a, b = bilinear.cotangent_and_known(ct, known)
    assert a.dtype == b.dtype == np.float32
    assert bilinear.cotangent_and_known(ct, ct) == (ct, ct)


def test_the_derivative_is_the_product_with_a_tangent_for_one():
    """d B(x, y) = B(dx, y) + B(x, dy), each only where there is a tangent."""
    dot = DotGeneral(((0,), (0,)), ((), ()))
    x, y, dx, dy = (snp.array(v) for v in ([1.0, 2.0], [3.0, 5.0], [1.0, 0.0], [0.0, 2.0]))
    for tangents, want in [((dx, None), 3), ((None, dy), 4), ((dx, dy), 7), ((None, None), None)]:
        out, slope = dot.jvp((x, y), tangents)
        assert float(out) == 13
        assert slope is None if want is None else float(slope) == want
    whole = as_value(np.arange(2, dtype=np.int32))
    assert dot.jvp((whole, whole), (None, None))[1] is None
