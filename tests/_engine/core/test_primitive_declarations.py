"""What operations declare of themselves, which decides how they are run and differentiated.

A wrong one often changes no result, only what it costs: so all that differ from the default are
listed here. That those which are said to keep zeros, or to commute, do so is for the laws.
"""

import importlib
import pkgutil

import pytest

import stretto._engine
from stretto._engine.core.primitive import Primitive

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
        CustomRoot CustomVjp CustomVjpForward CustomVmap DebugCallback Implicit IoCallback
        LinearCall Mapped PureCallback Reduce ReduceWindow Scan ShardMap SizedCall
        UserPrimitive While WithRule _Callback
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
    "widens": """
        Abs Acos Acosh Add And Asin Asinh Atan Atan2 Atanh Ceil Clamp Conj Cos Cosh Div Eq
        Exp Exp2 Expm1 Extremum Floor Ge Gt Imag IsFinite Le Log Log1p Lt Mul Mulhi Ne Neg
        Not Or Real Rem Round Sign Sin Sinh Sqrt Square Sub Tan Tanh Xor
    """,
    "only_compiled": """
        Call Checkpoint Mapped ShardMap ShardingConstraint SizedCall TridiagonalSolve
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
        Constant Mapped SizedCall
    """,
}
"""By declaration: the classes for which it is not what ``Primitive`` says."""


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


def test_what_is_usual():
    assert Primitive.interned and Primitive.mergeable and Primitive.rollable
    assert not any(
        getattr(Primitive, n) for n in {*DIFFERENT} - {"interned", "mergeable", "rollable"}
    )


NEVER = "Checkpoint Cond Factored PivotsToPermutation While"
ALWAYS = "Call Mapped ShardMap ShardingConstraint SizedCall"


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
