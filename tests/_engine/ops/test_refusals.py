"""What operations refuse themselves, whichever function made them: types without a result.

Functions check their arguments first, in their own words; rules of derivatives and passes make
operations without them.
"""

import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.types import array_type
from stretto._engine.ops.arithmetic import Add
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.collective.primitives import AllToAll, PSum, PSumScatter
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import conv_dimension_numbers
from stretto._engine.ops.exponential import Exp
from stretto._engine.ops.fft import Fft, FftType
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.index.geometry import ScatterDimensionNumbers
from stretto._engine.ops.index.primitives import ScatterSet
from stretto._engine.ops.iota import Iota
from stretto._engine.ops.linalg import eigenvalues, lu, svd, triangular
from stretto._engine.ops.linalg.lu import LuSolve
from stretto._engine.ops.linalg.qr import Ormqr
from stretto._engine.ops.linalg.triangular import TriangularSolve, TridiagonalSolve
from stretto._engine.ops.reducing.cumulative import Cumsum
from stretto._engine.ops.reducing.reduce import Argmax, Argmin, ReduceMax
from stretto._engine.ops.reducing.window import (
    AxisWindow,
    SelectAndGatherAdd,
    SelectAndScatterAdd,
    WindowPlace,
)
from stretto._engine.ops.shape import Concatenate, Rev
from stretto._engine.ops.sort import Sort

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
PAIRS = AxisWindow(2, 2)


def t(*shape, dtype="float32"):
    return array_type(shape, np.dtype(dtype))


LINE = conv_dimension_numbers((1, 1, 3), (1, 1, 3), None)


def convolution(strides=(1,), padding=((0, 0),), spread=(1,), dilation=(1,)):
    return ConvGeneralDilated(strides, padding, spread, dilation, LINE)


SYSTEM = (t(3, 3), t(3, 3), t(3, dtype="int32"))
REFUSED = [
    (
        DotGeneral(((1,), (0,))),
        (t(2, 3), t(3, 2, dtype="float64")),
        "dot_general: operands must have one dtype, got float32[2,3] and float64[3,2]",
    ),
    *[
        (
            DotGeneral(((a,), (c,))),
            (t(2, 3), t(3, 2)),
            f"dot_general: there is no contracted axis {a} of x: float32[2,3] or {c} of y",
        )
        for a, c in ((2, 0), (1, 2), (-1, 0), (1, -2))
    ],
    (
        DotGeneral(((1,), (0,)), ((2,), (1,))),
        (t(2, 3), t(3, 2)),
        "dot_general: there is no shared axis 2 of x: float32[2,3] or 1 of y: float32[3,2]",
    ),
    (
        convolution(),
        (t(1, 1, 3), t(1, 1, 3, dtype="float64")),
        "conv_general_dilated: operands must have one dtype, got float32[1,1,3] and float64",
    ),
    (
        convolution(strides=(1, 1)),
        (t(1, 1, 3), t(1, 1, 3)),
        "conv_general_dilated: strides (1, 1) must have 1 entries for lhs: float32[1,1,3]",
    ),
    (
        convolution(padding=((0, 0), (0, 0))),
        (t(1, 1, 3), t(1, 1, 3)),
        "conv_general_dilated: padding ((0, 0), (0, 0)) must have 1 entries for lhs",
    ),
    (
        convolution(spread=(1, 1)),
        (t(1, 1, 3), t(1, 1, 3)),
        "conv_general_dilated: lhs_dilation (1, 1) must have 1 entries for lhs",
    ),
    (
        convolution(dilation=()),
        (t(1, 1, 3), t(1, 1, 3)),
        "conv_general_dilated: rhs_dilation () must have 1 entries for lhs",
    ),
    (
        Fft(FftType.FFT, (3,)),
        (t(3),),
        "fft: kind FFT takes complex64 or complex128, got float32[3]; use .astype(...)",
    ),
    (
        Fft(FftType.IRFFT, (3,)),
        (t(3),),
        "fft: kind IRFFT takes complex64 or complex128, got float32[3]",
    ),
    (
        Fft(FftType.RFFT, (3,)),
        (t(3, dtype="complex64"),),
        "fft: kind RFFT takes float32 or float64, got complex64[3]",
    ),
    (
        DynamicUpdateSlice(),
        (t(3), t(2, dtype="int32"), t(dtype="int32")),
        "dynamic_update_slice: expected an update of dtype float32, got int32[2]",
    ),
    (Iota(F32, (3,), 1), (), "iota: dimension 1 is not an axis of (3,)"),
    (Iota(F32, (3,), -1), (), "iota: dimension -1 is not an axis of (3,)"),
    (Iota(np.dtype(bool), (3,), 0), (), "iota: expected a dtype of numbers, got bool"),
    (
        LuSolve("N"),
        (t(3, 3), t(3, 1, dtype="float64"), *SYSTEM[1:]),
        "solve: a and b must have one dtype and equal sizes, got float32[3,3] and float64[3,1]",
    ),
    (
        LuSolve("N"),
        (t(3, 3), t(4, 1), *SYSTEM[1:]),
        "solve: a and b must have one dtype and equal sizes, got float32[3,3] and float32[4,1]",
    ),
    (Cumsum(1, False), (t(3),), "cumsum: axis 1 is not an axis of float32[3]"),
    (Cumsum(-1, False), (t(3),), "cumsum: axis -1 is not an axis of float32[3]"),
    (PSum("i", 4), (t(3, dtype="bool"),), "psum: expected numbers, got bool[3]"),
    (PSumScatter("i", 4), (t(4, dtype="bool"),), "psum_scatter: expected numbers, got bool[4]"),
    (PSumScatter("i", 4), (t(3),), "psum_scatter: axis 0 must have size 4, got float32[3]"),
    (PSumScatter("i", 4), (t(),), "psum_scatter: axis 0 must have size 4, got float32[]"),
    (AllToAll("i", 4), (t(3, 4),), "all_to_all: axis 0 must have size 4, got float32[3,4]"),
    (
        TridiagonalSolve(False),
        (t(), t(), t(), t(3)),
        "tridiagonal_solve: expected an array of rank 2 or more, got float32[3]",
    ),
    (
        TriangularSolve(True, True, "N", False),
        (t(2, 3), t(2, 1)),
        "triangular_solve: expected square matrices in the last two axes, got 2 rows and 3",
    ),
    (
        Ormqr(True, False),
        (t(3, 3), t(3), t(3)),
        "ormqr: expected an array of rank 2 or more, got float32[3]",
    ),
    (LuSolve("N"), (t(3, 2), *SYSTEM), "solve: expected square matrices in the last two axes"),
    (ReduceSum((1,)), (t(3),), "reduce_sum: axes (1,) are not distinct axes of float32[3]"),
    (ReduceSum((0, 0)), (t(3, 3),), "reduce_sum: axes (0, 0) are not distinct axes"),
    (ReduceSum((0,)), (t(3, dtype="bool"),), "reduce_sum: expected numbers, got bool[3]; convert"),
    (ReduceMax((-1,)), (t(3),), "reduce_max: axes (-1,) are not distinct axes of float32[3]"),
    (
        ReduceMax((0,)),
        (t(3, dtype="complex64"),),
        "reduce_max: expected an array of kind bool or float or int or uint, got complex64[3]",
    ),
    (Argmax(1, I32), (t(3),), "argmax: axes (1,) are not distinct axes of float32[3]"),
    (Argmin(0, I32), (t(3, dtype="complex64"),), "argmin: expected real numbers or booleans"),
    (Argmin(0, F32), (t(3),), "argmin: expected an integer index_dtype, got float32"),
    (Rev((0, 0)), (t(3, 3),), "rev: axes (0, 0) are not distinct axes of float32[3,3]"),
    (Sort(1), (t(3),), "sort: axes (1,) are not distinct axes of float32[3]"),
    (Sort(0, 2), (t(3),), "sort: expected 1 to 1 keys for 1 operands, got 2"),
    (Sort(0, 0), (t(3),), "sort: expected 1 to 1 keys for 1 operands, got 0"),
    (Sort(0), (t(3), t(2)), "sort: operands must have one shape, got float32[3] (operand 0)"),
    (
        ScatterSet(ScatterDimensionNumbers((), (0,), (0,))),
        (t(3), t(2, 1, dtype="int32"), t(3)),
        "scatter: expected updates of type float32[2], got float32[3]",
    ),
    (
        DynamicSlice((4,)),
        (t(3), t(dtype="int32")),
        "dynamic_slice: the slice of sizes (4,) does not fit into float32[3]",
    ),
    (DynamicSlice((2,)), (t(3),), "dynamic_slice: expected one start index for each axis"),
    (DynamicSlice((2,)), (t(3), t()), "dynamic_slice: expected one start index for each axis"),
    (
        DynamicUpdateSlice(),
        (t(3), t(4), t(dtype="int32")),
        "dynamic_update_slice: the update of shape (4,) does not fit into float32[3]",
    ),
    (DynamicUpdateSlice(), (t(3), t(2)), "dynamic_update_slice: expected one start index for"),
    (Exp(), (t(3, dtype="int32"),), "exp: expected an array of kind complex or float, got int32"),
    (
        Add(),
        (t(3), t(2)),
        "add: operands must have one shape and dtype, got float32[3] (operand 0)",
    ),
    (Add(), (t(3), t(3, dtype="int32")), "add: operands must have one shape and dtype"),
    (
        SelectAndGatherAdd(0, PAIRS),
        (t(4), t(3, dtype="int32")),
        "select_and_gather_add: expected places int32[2], got int32[3]",
    ),
    (
        SelectAndGatherAdd(0, PAIRS),
        (t(4), t(2)),
        "select_and_gather_add: expected places int32[2], got float32[2]",
    ),
    (
        SelectAndScatterAdd(0, PAIRS, 4),
        (t(2), t(3, dtype="int32")),
        "select_and_scatter_add: expected places int32[2], got int32[3]",
    ),
    (
        SelectAndScatterAdd(0, PAIRS, 4),
        (t(3), t(2, dtype="int32")),
        "select_and_scatter_add: expected values of shape (2,), got float32[3]",
    ),
    (
        WindowPlace(1, PAIRS, True),
        (t(4),),
        "window_place: expected floats with an axis 1, got float32[4]",
    ),
    (Concatenate(2), (t(3, 2), t(3, 2)), "concatenate: axis 2 is not an axis of float32[3,2]"),
    (Concatenate(-1), (t(3, 2), t(3, 2)), "concatenate: axis -1 is not an axis of float32[3,2]"),
]


@pytest.mark.parametrize(("operation", "types", "message"), REFUSED, ids=lambda x: str(x)[:40])
def test_types_without_a_result(operation, types, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        operation.infer(*types)


SQUARE, WIDE = t(3, 3), t(2, 3)


@pytest.mark.parametrize(
    ("operation", "types"),
    [
        (eigenvalues.Eigh(True), (WIDE,)),
        (eigenvalues.Eig(True, True), (WIDE,)),
        (eigenvalues.Schur(True), (WIDE,)),
        (eigenvalues.Hessenberg(), (WIDE,)),
        (eigenvalues.TriangularSylvester("all"), (WIDE, SQUARE, t(2, 3))),
        (eigenvalues.TriangularSylvester("all"), (SQUARE, WIDE, t(3, 3))),
        (lu.Determinant(), (WIDE, WIDE, t(2, dtype="int32"))),
        (lu.LogDeterminant(), (WIDE, WIDE, t(2, dtype="int32"))),
        (svd.Pinv(True), (WIDE, t())),
        (triangular.TridiagonalReduction(True), (WIDE,)),
        (triangular.Cholesky(), (WIDE,)),
        (triangular.CholeskyUpdate(), (WIDE, t(3))),
    ],
    ids=lambda x: str(x)[:40],
)
def test_matrices_that_are_not_square(operation, types):
    with pytest.raises(ValueError, match=r"expected square matrices in the last two axes, got 2"):
        operation.infer(*types)


V, X = snp.ones(3), snp.ones((2, 3))
LINES = snp.ones((1, 1, 3))
LARGE = np.array([300])
CALLS = [
    (
        lambda: lax.dynamic_slice(X, (0, 0), (3, 1)),
        "dynamic_slice: the slice of sizes (3, 1) does not fit",
    ),
    (
        lambda: lax.dynamic_slice(X, (0, 0), (1,)),
        "dynamic_slice: the slice of sizes (1,) does not fit",
    ),
    (
        lambda: lax.dynamic_slice_in_dim(X, 0, 5, 1),
        "dynamic_slice_in_dim: the slice of sizes (2, 5) does not fit",
    ),
    (
        lambda: lax.dynamic_index_in_dim(X[:0], 0),
        "dynamic_index_in_dim: the slice of sizes (1, 3) does not fit",
    ),
    (
        lambda: lax.dynamic_update_slice(X, V, (0, 0)),
        "dynamic_update_slice: the update of shape (3,) does not fit",
    ),
    (
        lambda: lax.dynamic_update_slice(X, snp.ones((1, 1), "int32"), (0, 0)),
        "dynamic_update_slice: expected an update of dtype float32, got int32[1,1]",
    ),
    (
        lambda: lax.dynamic_update_slice_in_dim(X, snp.ones((2, 4)), 0, 1),
        "dynamic_update_slice_in_dim: the update of shape (2, 4) does not fit into float32[2,3]",
    ),
    (
        lambda: lax.dynamic_update_slice_in_dim(X, snp.ones((2, 1), "int32"), 0, 1),
        "dynamic_update_slice_in_dim: expected an update of dtype float32, got int32[2,1]",
    ),
    (
        lambda: lax.dynamic_update_index_in_dim(X, snp.ones(4), 0, 1),
        "dynamic_update_index_in_dim: the update of shape (4, 1) does not fit into float32[2,3]",
    ),
    (
        lambda: lax.batch_matmul(X[None], snp.ones((2, 3, 4))),
        "batch_matmul: shared sizes differ, 1 (axis 0 of x",
    ),
    (
        lambda: lax.batch_matmul(X[None], X[None]),
        "batch_matmul: contracted sizes differ, 3 (axis 2 of x",
    ),
    (lambda: lax.dot(X, X), "dot: contracted sizes differ, 3 (axis 1 of x: float32[2,3]) and 2"),
    (
        lambda: lax.dot_general(X, X, (((), ()), ((0,), (1,)))),
        "dot_general: shared sizes differ, 2 (axis 0",
    ),
    (
        lambda: snp.tensordot(X, X, 1),
        "tensordot: contracted sizes differ, 3 (axis 1 of x: float32[2,3])",
    ),
    (
        lambda: lax.conv(LINES, snp.ones((1, 2, 3)), (1,), "VALID"),
        "conv: lhs: float32[1,1,3] has 1 features (axis 1), but rhs: float32[1,2,3] takes 2",
    ),
    (
        lambda: lax.conv(LINES > 0, LINES > 0, (1,), "VALID"),
        "conv: expected numbers, got bool[1,1,3]; convert it with .astype(...)",
    ),
    (
        lambda: snp.asarray(LARGE, "int8"),
        "asarray: object is the integer 300, int64, which does not fit in int8",
    ),
    (lambda: lax.nextafter(1j, 1), "nextafter: expected an array of kind float, got complex64[]"),
    (
        lambda: snp.bitwise_and(1.5, 1),
        "bitwise_and: expected an array of kind bool or int or uint, got float32",
    ),
    (
        lambda: lax.betainc(1j, 1.0, 1.0),
        "betainc: expected an array of kind float, got complex64[]",
    ),
    (
        lambda: lax.linalg.ormqr(V, V[:1], snp.eye(3)),
        "ormqr: expected an array of rank 2 or more, got",
    ),
    (
        lambda: lax.linalg.ormqr(snp.eye(3), V[:1], V),
        "ormqr: expected an array of rank 2 or more, got",
    ),
    (
        lambda: lax.linalg.tridiagonal_solve(V, V, V, V),
        "tridiagonal_solve: expected an array of rank 2 or more, got",
    ),
    (
        lambda: lax.linalg.triangular_solve(V, V),
        "triangular_solve: expected an array of rank 2 or more, got",
    ),
    *[
        (
            call,
            f"{name}: expected square matrices in the last two axes, got 2 rows and 3",
        )
        for name, call in (
            ("triangular_solve", lambda: lax.linalg.triangular_solve(X, X[:, :1], left_side=True)),
            ("cholesky_update", lambda: lax.linalg.cholesky_update(X, V)),
            ("cholesky", lambda: lax.linalg.cholesky(X)),
            ("eigh", lambda: lax.linalg.eigh(X)),
            ("eig", lambda: lax.linalg.eig(X)),
            ("schur", lambda: lax.linalg.schur(X)),
            ("hessenberg", lambda: lax.linalg.hessenberg(X)),
            ("tridiagonal", lambda: lax.linalg.tridiagonal(X)),
            ("det", lambda: snp.linalg.det(X)),
            ("slogdet", lambda: snp.linalg.slogdet(X)),
        )
    ],
    (
        lambda: lax.linalg.symmetric_product(X, snp.eye(3)),
        "symmetric_product: c_matrix must have 2 rows, as a_matrix has; got float32[2,3]",
    ),
]


@pytest.mark.parametrize(("call", "message"), CALLS)
def test_errors_name_the_function_that_was_called(call, message):
    with pytest.raises((TypeError, ValueError, OverflowError)) as error:
        call()
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_symmetric_products_take_numbers_as_factors(name):
    x = snp.ones((2, 2))
    with pytest.raises(TypeError, match=rf"symmetric_product: {name} must be a number, got float"):
        lax.linalg.symmetric_product(x, x, **{name: snp.ones(2)})


def test_starts_of_unsigned_and_signed_numbers_of_64_bits_have_no_common_dtype():
    with st.enable_x64():
        starts = snp.array(1, dtype="uint64"), snp.array(1, dtype="int64")
        with pytest.raises(TypeError, match="dynamic_slice: start indices must have one dtype"):
            lax.dynamic_slice(snp.ones((3, 3)), starts, (1, 1))
