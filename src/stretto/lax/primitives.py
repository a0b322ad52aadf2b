"""The primitives of ``jax.lax`` that exist here, under JAX's names, to tell equations apart by.

For an equation of a program,

    isinstance(equation.primitive, lax.exp_p)

tells whether it is that operation, for every name. A name stands for the primitive itself where it
has no parameters, and then ``equation.primitive is lax.exp_p``, and a table may have it as a key;
where it has parameters (``integer_pow_p``), of which each set makes a primitive of its own, the
name stands for their class. Operands and parameters are this package's, which may differ from
JAX's: see the class.
"""

from __future__ import annotations

from stretto._engine.control.cond import Cond
from stretto._engine.control.linear_solve import CustomLinearSolve
from stretto._engine.control.reduce import Reduce
from stretto._engine.control.scan import Scan
from stretto._engine.control.stop_gradient import StopGradient
from stretto._engine.control.while_loop import While
from stretto._engine.control.window import ReduceWindow
from stretto._engine.ops.arithmetic import Abs, Add, Div, Mul, Neg, Rem, Sign, Square, Sub
from stretto._engine.ops.barrier import OptimizationBarrier
from stretto._engine.ops.bitcast import BitcastConvertType
from stretto._engine.ops.bits import Clz, Mulhi, ReducePrecision
from stretto._engine.ops.bitwise import (
    And,
    Not,
    Or,
    PopulationCount,
    ShiftLeft,
    ShiftRightArithmetic,
    ShiftRightLogical,
    Xor,
)
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.collective.primitives import AllGather, AllToAll, AxisIndex, PPermute, PSum
from stretto._engine.ops.comparison import Eq, Ge, Gt, Le, Lt, Ne
from stretto._engine.ops.complex_parts import Complex, Conj, Imag, Real
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.exponential import Exp, Exp2, Expm1, Log, Log1p, Logistic
from stretto._engine.ops.extrema import Clamp, Max, Min
from stretto._engine.ops.fft import Fft
from stretto._engine.ops.index.combine import ScatterMax, ScatterMin, ScatterMul
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.index.primitives import Gather, ScatterAdd, ScatterSet, ScatterSub
from stretto._engine.ops.inverse_trigonometric import Acos, Acosh, Asin, Asinh, Atan, Atan2, Atanh
from stretto._engine.ops.iota import Iota
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.powers import Cbrt, IntegerPow, Pow, Rsqrt, Sqrt
from stretto._engine.ops.random.rng_bit_generator import RngBitGenerator
from stretto._engine.ops.reducing.cumulative import Cumlogsumexp, Cummax, Cummin, Cumprod, Cumsum
from stretto._engine.ops.reducing.places import Argmax, Argmin
from stretto._engine.ops.reducing.reduce import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
)
from stretto._engine.ops.reducing.window import ReduceWindowMax, ReduceWindowMin, ReduceWindowSum
from stretto._engine.ops.reducing.window_select import SelectAndGatherAdd, SelectAndScatterAdd
from stretto._engine.ops.rounding import Ceil, Floor, IsFinite, Nearest, Nextafter
from stretto._engine.ops.shape import Concatenate, Pad, Rev, Slice
from stretto._engine.ops.sort import Sort, TopK
from stretto._engine.ops.special.bessel import BesselI0e, BesselI1e
from stretto._engine.ops.special.error_functions import Erf, Erfc, ErfInv
from stretto._engine.ops.special.gamma import Digamma, Lgamma
from stretto._engine.ops.special.incomplete import Igamma, Igammac, IgammaGradA
from stretto._engine.ops.special.incomplete_beta import RegularizedIncompleteBeta
from stretto._engine.ops.special.zeta import Polygamma, Zeta
from stretto._engine.ops.trigonometric import Cos, Cosh, Sin, Sinh, Tan, Tanh

__all__ = [
    "abs_p",
    "acos_p",
    "acosh_p",
    "add_p",
    "all_gather_p",
    "all_to_all_p",
    "and_p",
    "argmax_p",
    "argmin_p",
    "asin_p",
    "asinh_p",
    "atan_p",
    "atan2_p",
    "atanh_p",
    "axis_index_p",
    "bessel_i0e_p",
    "bessel_i1e_p",
    "bitcast_convert_type_p",
    "broadcast_in_dim_p",
    "cbrt_p",
    "ceil_p",
    "clamp_p",
    "clz_p",
    "complex_p",
    "concatenate_p",
    "cond_p",
    "conj_p",
    "conv_general_dilated_p",
    "convert_element_type_p",
    "cos_p",
    "cosh_p",
    "cumlogsumexp_p",
    "cummax_p",
    "cummin_p",
    "cumprod_p",
    "cumsum_p",
    "digamma_p",
    "div_p",
    "dot_general_p",
    "dynamic_slice_p",
    "dynamic_update_slice_p",
    "eq_p",
    "erf_p",
    "erf_inv_p",
    "erfc_p",
    "exp_p",
    "exp2_p",
    "expm1_p",
    "fft_p",
    "floor_p",
    "gather_p",
    "ge_p",
    "gt_p",
    "igamma_p",
    "igamma_grad_a_p",
    "igammac_p",
    "imag_p",
    "integer_pow_p",
    "iota_p",
    "is_finite_p",
    "le_p",
    "lgamma_p",
    "linear_solve_p",
    "log_p",
    "log1p_p",
    "logistic_p",
    "lt_p",
    "max_p",
    "min_p",
    "mul_p",
    "mulhi_p",
    "ne_p",
    "neg_p",
    "nextafter_p",
    "not_p",
    "optimization_barrier_p",
    "or_p",
    "pad_p",
    "polygamma_p",
    "population_count_p",
    "pow_p",
    "ppermute_p",
    "psum_p",
    "real_p",
    "reduce_p",
    "reduce_and_p",
    "reduce_max_p",
    "reduce_min_p",
    "reduce_or_p",
    "reduce_precision_p",
    "reduce_prod_p",
    "reduce_sum_p",
    "reduce_window_p",
    "reduce_window_max_p",
    "reduce_window_min_p",
    "reduce_window_sum_p",
    "reduce_xor_p",
    "regularized_incomplete_beta_p",
    "rem_p",
    "reshape_p",
    "rev_p",
    "rng_bit_generator_p",
    "round_p",
    "rsqrt_p",
    "scan_p",
    "scatter_p",
    "scatter_add_p",
    "scatter_max_p",
    "scatter_min_p",
    "scatter_mul_p",
    "scatter_sub_p",
    "select_and_gather_add_p",
    "select_and_scatter_add_p",
    "shift_left_p",
    "shift_right_arithmetic_p",
    "shift_right_logical_p",
    "sign_p",
    "sin_p",
    "sinh_p",
    "slice_p",
    "sort_p",
    "sqrt_p",
    "square_p",
    "stop_gradient_p",
    "sub_p",
    "tan_p",
    "tanh_p",
    "top_k_p",
    "transpose_p",
    "while_p",
    "xor_p",
    "zeta_p",
]

abs_p = Abs()
acos_p = Acos()
acosh_p = Acosh()
add_p = Add()
all_gather_p = AllGather
all_to_all_p = AllToAll
and_p = And()
argmax_p = Argmax
argmin_p = Argmin
asin_p = Asin()
asinh_p = Asinh()
atan_p = Atan()
atan2_p = Atan2()
atanh_p = Atanh()
axis_index_p = AxisIndex
bessel_i0e_p = BesselI0e()
bessel_i1e_p = BesselI1e()
bitcast_convert_type_p = BitcastConvertType
broadcast_in_dim_p = BroadcastInDim
cbrt_p = Cbrt()
ceil_p = Ceil()
clamp_p = Clamp()
clz_p = Clz()
complex_p = Complex()
concatenate_p = Concatenate
cond_p = Cond
conj_p = Conj()
conv_general_dilated_p = ConvGeneralDilated
convert_element_type_p = ConvertElementType
cos_p = Cos()
cosh_p = Cosh()
cumlogsumexp_p = Cumlogsumexp
cummax_p = Cummax
cummin_p = Cummin
cumprod_p = Cumprod
cumsum_p = Cumsum
digamma_p = Digamma()
div_p = Div()
dot_general_p = DotGeneral
dynamic_slice_p = DynamicSlice
dynamic_update_slice_p = DynamicUpdateSlice()
eq_p = Eq()
erf_p = Erf()
erf_inv_p = ErfInv()
erfc_p = Erfc()
exp_p = Exp()
exp2_p = Exp2()
expm1_p = Expm1()
fft_p = Fft
floor_p = Floor()
gather_p = Gather
ge_p = Ge()
gt_p = Gt()
igamma_p = Igamma()
igamma_grad_a_p = IgammaGradA()
igammac_p = Igammac()
imag_p = Imag()
integer_pow_p = IntegerPow
iota_p = Iota
is_finite_p = IsFinite()
le_p = Le()
lgamma_p = Lgamma()
linear_solve_p = CustomLinearSolve
log_p = Log()
log1p_p = Log1p()
logistic_p = Logistic()
lt_p = Lt()
max_p = Max()
min_p = Min()
mul_p = Mul()
mulhi_p = Mulhi()
ne_p = Ne()
neg_p = Neg()
nextafter_p = Nextafter()
not_p = Not()
optimization_barrier_p = OptimizationBarrier()
or_p = Or()
pad_p = Pad
polygamma_p = Polygamma()
population_count_p = PopulationCount()
pow_p = Pow()
ppermute_p = PPermute
psum_p = PSum
real_p = Real()
reduce_p = Reduce
reduce_and_p = ReduceAnd
reduce_max_p = ReduceMax
reduce_min_p = ReduceMin
reduce_or_p = ReduceOr
reduce_precision_p = ReducePrecision
reduce_prod_p = ReduceProd
reduce_sum_p = ReduceSum
reduce_window_p = ReduceWindow
reduce_window_max_p = ReduceWindowMax
reduce_window_min_p = ReduceWindowMin
reduce_window_sum_p = ReduceWindowSum
reduce_xor_p = ReduceXor
regularized_incomplete_beta_p = RegularizedIncompleteBeta()
rem_p = Rem()
reshape_p = Reshape
rev_p = Rev
rng_bit_generator_p = RngBitGenerator
round_p = Nearest
rsqrt_p = Rsqrt()
scan_p = Scan
scatter_p = ScatterSet
scatter_add_p = ScatterAdd
scatter_max_p = ScatterMax
scatter_min_p = ScatterMin
scatter_mul_p = ScatterMul
scatter_sub_p = ScatterSub
select_and_gather_add_p = SelectAndGatherAdd
select_and_scatter_add_p = SelectAndScatterAdd
shift_left_p = ShiftLeft()
shift_right_arithmetic_p = ShiftRightArithmetic()
shift_right_logical_p = ShiftRightLogical()
sign_p = Sign()
sin_p = Sin()
sinh_p = Sinh()
slice_p = Slice
sort_p = Sort
sqrt_p = Sqrt()
square_p = Square()
stop_gradient_p = StopGradient()
sub_p = Sub()
tan_p = Tan()
tanh_p = Tanh()
top_k_p = TopK
transpose_p = Transpose
while_p = While
xor_p = Xor()
zeta_p = Zeta()
