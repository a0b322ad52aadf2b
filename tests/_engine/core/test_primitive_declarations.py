"""What operations declare of themselves, which decides how they are run and differentiated.

A wrong one often changes no result, only what it costs: so all that differ from the default are
listed here. That those which are said to keep zeros, or to commute, do so is for the laws.
"""

import importlib
import inspect
import pkgutil

import pytest

import stretto._engine
from stretto._engine.core.primitive import Primitive
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.linalg.family import MatrixOperation

DIFFERENT = {
    "has_factors": """
        Eigh Svd
    """,
    "backward_at_zero": """
        LinearCall
    """,
    "calls_python": """
        DebugCallback IoCallback PureCallback _Callback
    """,
    "interned": """
        Call Checkpoint Combination Cond Constant ControlFlow CustomJvp CustomLinearSolve
        CustomRoot CustomVjp CustomVjpForward CustomVmap DebugCallback FusedAttention
        FusedGather FusedProgram FusedRows FusedScan FusedUpdates Implicit IoCallback LinearCall
        Mapped ModuleCall PureCallback Reduce ReduceWindow Scan ShardMap SizedCall UserPrimitive
        While WithRule _Callback
    """,
    "light": """
        Abs Acos Acosh Add And Asin Asinh Atan Atan2 Atanh Bits Bitwise BroadcastInDim
        ByParts Cbrt Ceil Choice Chooser Clamp Clz Comparison Complex Concatenate Conj
        Constant ConvertElementType Cos Cosh Div DotGeneral Elementwise Eq Erf ErfInv Erfc
        Example Exp Exp2 Expm1 Extremum Floor Ge Gt Hyperbolic Imag IntegerPow Inverse Iota
        IsFinite Le Log Log1p Logistic LogisticSlope Lt Marked Max Min Mul Mulhi Name Ne
        Nearest Neg Nextafter Not Or PopulationCount Pow Real ReduceAnd ReduceMax ReduceMin
        ReduceOr ReducePrecision ReduceProd ReduceSum ReduceXor Reduction Rem Reshape Rev
        Round RoundAway Rsqrt SechSquared Select Shift ShiftLeft ShiftRightArithmetic
        ShiftRightLogical Sign Sin Sinh SizeOf Slice Sqrt Square StopGradient Sub Tan Tanh
        Transpose UnitFloat WideRemainder WithEdges Xor
    """,
    "multiple": """
        Call Checkpoint Combination Cond ControlFlow CustomJvp CustomLinearSolve CustomRoot
        CustomVjp CustomVjpForward CustomVmap DebugCallback Eig Eigh FusedAttention FusedGather
        FusedProgram FusedRows FusedScan FusedUpdates Geqp3 Geqrf Hessenberg Implicit
        IoCallback LinearCall LogDeterminant Lu Mapped ModuleCall OptimizationBarrier
        PivotedQr PureCallback Qr Reduce ReduceWindow RngBitGenerator Scan Schur ShardMap
        SizedCall Sort Svd Threefry2x32 TopK TotalsTogether TridiagonalReduction
        UserPrimitive While WithRule _Callback
    """,
    "holds_programs": """
        Call Checkpoint Combination Cond ControlFlow CustomJvp CustomLinearSolve CustomRoot
        CustomVjp CustomVjpForward CustomVmap Implicit LinearCall Mapped Reduce ReduceWindow
        Scan ShardMap SizedCall UserPrimitive While WithRule
    """,
    "reducible": """
        BroadcastInDim Reshape StopGradient Transpose
    """,
    "chooses": """
        Clamp Max Min Select
    """,
    "widens": """
        Abs Acos Acosh Add And Asin Asinh Atan Atan2 Atanh Ceil Clamp Conj Cos Cosh Div Eq
        Exp Exp2 Expm1 Extremum Floor Ge Gt Imag IsFinite Le Log Log1p Lt Mul Mulhi Ne Neg
        Not Or Real Rem Round Sign Sin Sinh Sqrt Square Sub Tan Tanh Xor
    """,
    "only_compiled": """
        Call Checkpoint Mapped ModuleCall PlatformNumber ShardMap ShardingConstraint SizedCall
        TridiagonalSolve
    """,
    "by_platform": """
        PlatformNumber
    """,
    "keeps_zeros": """
        Add BroadcastInDim Complex Concatenate Conj ConvertElementType Example Imag Neg
        OptimizationBarrier Pad Real ReducePrecision ReduceSum Reshape Rev
        ShardingConstraint Slice Sub Transpose
    """,
    "hands_on": """
        Add Name
    """,
    "rearranges": """
        Concatenate Reshape Rev Slice Transpose
    """,
    "takes_masked": """
        Call Checkpoint Cond CustomJvp CustomVmap Mapped Scan
    """,
    "pushes_masked": """
        Call Checkpoint Mapped
    """,
    "splat": """
        Abs Acos Acosh Add And Asin Asinh Atan Atan2 Atanh BesselI0 BesselI0e BesselI1
        BesselI1e BetaDensity BetaincGradA Bitwise BroadcastInDim ByParts Cbrt Ceil Choice
        Clamp Clz Comparison Complex ComplexGamma Conj ConvertElementType Cos Cosh Digamma
        Div Elementwise Eq Erf ErfInv Erfc Exp Exp2 Expm1 Extremum Floor Gamma GammaDensity
        Ge Gt Hyperbolic Igamma IgammaGradA Igammac Imag IntegerPow Inverse IsFinite Le
        Lgamma Log Log1p Logistic LogisticSlope Lt Max Min Mul Mulhi Ne Nearest Neg
        Nextafter Not Or Polygamma PopulationCount Pow RandomGammaGrad Real ReducePrecision
        RegularizedIncompleteBeta Rem Reshape Round RoundAway Rsqrt SechSquared Select Shift
        ShiftLeft ShiftRightArithmetic ShiftRightLogical Sign Sin Sinh Sqrt Square Sub Tan
        Tanh Transpose WithEdges Written Xor Zeta ZetaSlope
    """,
    "same": """
        StopGradient
    """,
    "mergeable": """
        OptimizationBarrier
    """,
    "commutative": """
        Add Mul
    """,
    "rollable": """
        Constant Mapped ModuleCall SizedCall
    """,
}
"""By declaration: the classes for which it is not what ``Primitive`` says."""

OF_FAMILIES = {
    "derives_widely": (Elementwise, """
        Acosh Asinh Atan Atan2 BesselI0 BesselI0e BesselI1 BesselI1e BetaDensity
        BetaincGradA ComplexGamma Digamma Gamma GammaDensity Igamma IgammaGradA Igammac
        Lgamma Polygamma RandomGammaGrad RegularizedIncompleteBeta Written Zeta ZetaSlope
    """),
    "in_blocks": (MatrixOperation, """
        Cholesky CholeskyUpdate Determinant Factored Hessenberg LogDeterminant Lu LuSolve
        PivotsToPermutation TriangularSolve TriangularSylvester TridiagonalReduction
    """),
    "with_zeros": (MatrixOperation, """
        Geqp3 Geqrf HouseholderProduct Ormqr Pinv PivotedQr Qr
    """),
    "rank": (MatrixOperation, """
        PivotsToPermutation TridiagonalSolve
    """),
}  # fmt: skip
"""The same of what a family adds: the family, and the classes that differ from it."""

PARAMETERS = {
    "Checkpoint": "policy=None prevent_cse=True again=False",
    "Cond": "size=None mapped=() routed=True",
    "ConvGeneralDilated": "feature_groups=1 batch_groups=1 precision=None preferred=None",
    "ConvertElementType": "weak=False",
    "CustomVjp": "optimize_remat=False",
    "DebugCallback": "ordered=False",
    "DotGeneral": "shared=((), ()) precision=None preferred=None",
    "Eig": "differentiable=False",
    "Eigh": "vectors=True",
    "Gather": "mode=clip fill=b'' indices_are_sorted=False unique_indices=False",
    "IoCallback": "ordered=False",
    "Lu": "constant=False",
    "PureCallback": "vmap_method=None",
    "Scan": "reverse=False unroll=1",
    "ScatterFamily": "mode=drop indices_are_sorted=False unique_indices=False",
    "Schur": "differentiable=False",
    "SizeOf": "dtype=int32",
    "SizedCall": "batch=() over=() rooms=() summed=()",
    "Slice": "hidden=False",
    "Sort": "num_keys=1 is_stable=True",
    "Svd": "routine=gesdd",
}
"""The parameters that need not be given, and what they are then."""


def kinds_of(cls):
    for kind in cls.__subclasses__():
        yield kind
        yield from kinds_of(kind)


@pytest.fixture(scope="module")
def kinds():
    for module in pkgutil.walk_packages(stretto._engine.__path__, "stretto._engine."):
        if "native" not in module.name:
            importlib.import_module(module.name)
    return [kind for kind in kinds_of(Primitive) if kind.__module__.startswith("stretto._engine.")]


@pytest.mark.parametrize("name", DIFFERENT)
def test_all_that_differ_are_listed(name, kinds):
    usual = getattr(Primitive, name)
    found = {kind.__name__ for kind in kinds if getattr(kind, name) != usual}
    assert found == {*DIFFERENT[name].split()}


@pytest.mark.parametrize("name", OF_FAMILIES)
def test_all_that_differ_from_their_family_are_listed(name, kinds):
    family, different = OF_FAMILIES[name]
    usual = getattr(family, name)
    own = [kind for kind in kinds if issubclass(kind, family)]
    found = {kind.__name__ for kind in own if getattr(kind, name) != usual}
    assert found == {*different.split()}


def test_what_is_usual_in_families():
    assert MatrixOperation.rank == 2
    assert not (MatrixOperation.in_blocks or MatrixOperation.with_zeros)
    assert not Elementwise.derives_widely


def test_what_parameters_are_where_they_are_not_given(kinds):
    found = {}
    for kind in kinds:
        annotations = inspect.get_annotations(kind)
        names = [name for name, of in annotations.items() if "ClassVar" not in str(of)]
        given = {n: vars(kind)[n] for n in names if n in vars(kind)}
        given = {n: x for n, x in given.items() if not hasattr(x, "__get__")}  # no default
        if given:
            found[kind.__name__] = " ".join(f"{n}={x}" for n, x in given.items())
    assert found == PARAMETERS


def test_what_is_usual():
    assert Primitive.interned and Primitive.mergeable and Primitive.rollable
    assert not any(
        getattr(Primitive, n) for n in {*DIFFERENT} - {"interned", "mergeable", "rollable"}
    )


NEVER = "Checkpoint Cond Factored PivotsToPermutation While"
ALWAYS = "Call Mapped ModuleCall PlatformNumber ShardMap ShardingConstraint SizedCall"


def test_which_are_compiled_whatever_their_operands(kinds):
    said = {}
    for kind in kinds:
        if "compiled" in vars(kind):
            try:
                said[kind.__name__] = kind.compiled(None, ())
            except Exception:  # it depends on the operation, or on its operands
                continue
    assert {name for name, x in said.items() if x is False} == {*NEVER.split()}
    assert {name for name, x in said.items() if x is True} == {*ALWAYS.split()}
