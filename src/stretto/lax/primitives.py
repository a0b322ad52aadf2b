"""The primitives of ``jax.lax`` that exist here, under JAX's names, to tell equations apart by.

For an equation of a program,

    isinstance(equation.primitive, lax.exp_p)

tells whether it is that operation, for every name. A name stands for the primitive itself where it
has no parameters, and then ``equation.primitive is lax.exp_p``, and a table may have it as a key;
where it has parameters (``integer_pow_p``), of which each set makes a primitive of its own, the
name stands for their class. Operands and parameters are this package's, which may differ from
JAX's: see the class.

``stretto.lax`` has all that is defined here. Modules have underscores, so as not to be among it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stretto._engine.higher_order import cond as _cond
from stretto._engine.higher_order import implicit as _implicit
from stretto._engine.higher_order import reduce as _reduce
from stretto._engine.higher_order import scan as _scan
from stretto._engine.higher_order import stop_gradient as _stop_gradient
from stretto._engine.higher_order import while_loop as _while_loop
from stretto._engine.ops import arithmetic as _arithmetic
from stretto._engine.ops import bitcast as _bitcast
from stretto._engine.ops import bits as _bits
from stretto._engine.ops import broadcast as _broadcast
from stretto._engine.ops import comparison as _comparison
from stretto._engine.ops import complex_parts as _complex_parts
from stretto._engine.ops import contract as _contract
from stretto._engine.ops import convert as _convert
from stretto._engine.ops import exponential as _exponential
from stretto._engine.ops import extrema as _extrema
from stretto._engine.ops import fft as _fft
from stretto._engine.ops import identities as _identities
from stretto._engine.ops import inverse_trigonometric as _inverse_trigonometric
from stretto._engine.ops import iota as _iota
from stretto._engine.ops import layout as _layout
from stretto._engine.ops import random_bits as _random_bits
from stretto._engine.ops import rounding as _rounding
from stretto._engine.ops import shape as _shape
from stretto._engine.ops import sort as _sort
from stretto._engine.ops import trigonometric as _trigonometric
from stretto._engine.ops.collective import primitives as _collective
from stretto._engine.ops.convolution import general as _general
from stretto._engine.ops.index import dynamic as _dynamic
from stretto._engine.ops.index import gather_scatter as _gather_scatter
from stretto._engine.ops.index import primitives as _index
from stretto._engine.ops.reducing import cumulative as _cumulative
from stretto._engine.ops.reducing import reduce as _reducing
from stretto._engine.ops.reducing import window as _reducing_window
from stretto._engine.ops.special import bessel as _bessel
from stretto._engine.ops.special import error_functions as _error_functions
from stretto._engine.ops.special import gamma as _gamma
from stretto._engine.ops.special import incomplete as _incomplete

abs_p = _arithmetic.Abs()
acos_p = _inverse_trigonometric.Acos()
acosh_p = _inverse_trigonometric.Acosh()
add_p = _arithmetic.Add()
all_gather_p = _collective.AllGather
all_to_all_p = _collective.AllToAll
and_p = _bits.And()
argmax_p = _reducing.Argmax
argmin_p = _reducing.Argmin
asin_p = _inverse_trigonometric.Asin()
asinh_p = _inverse_trigonometric.Asinh()
atan_p = _inverse_trigonometric.Atan()
atan2_p = _inverse_trigonometric.Atan2()
atanh_p = _inverse_trigonometric.Atanh()
axis_index_p = _collective.AxisIndex
bessel_i0e_p = _bessel.BesselI0e()
bessel_i1e_p = _bessel.BesselI1e()
bitcast_convert_type_p = _bitcast.BitcastConvertType
broadcast_in_dim_p = _broadcast.BroadcastInDim
cbrt_p = _exponential.Cbrt()
ceil_p = _rounding.Ceil()
clamp_p = _extrema.Clamp()
clz_p = _bits.Clz()
complex_p = _complex_parts.Complex()
concatenate_p = _shape.Concatenate
cond_p = _cond.Cond
conj_p = _complex_parts.Conj()
conv_general_dilated_p = _general.ConvGeneralDilated
convert_element_type_p = _convert.ConvertElementType
cos_p = _trigonometric.Cos()
cosh_p = _trigonometric.Cosh()
cumlogsumexp_p = _cumulative.Cumlogsumexp
cummax_p = _cumulative.Cummax
cummin_p = _cumulative.Cummin
cumprod_p = _cumulative.Cumprod
cumsum_p = _cumulative.Cumsum
digamma_p = _gamma.Digamma()
div_p = _arithmetic.Div()
dot_general_p = _contract.DotGeneral
dynamic_slice_p = _dynamic.DynamicSlice
dynamic_update_slice_p = _dynamic.DynamicUpdateSlice()
eq_p = _comparison.Eq()
erf_p = _error_functions.Erf()
erf_inv_p = _error_functions.ErfInv()
erfc_p = _error_functions.Erfc()
exp_p = _exponential.Exp()
exp2_p = _exponential.Exp2()
expm1_p = _exponential.Expm1()
fft_p = _fft.Fft
floor_p = _rounding.Floor()
gather_p = _index.Gather
ge_p = _comparison.Ge()
gt_p = _comparison.Gt()
igamma_p = _incomplete.Igamma()
igamma_grad_a_p = _incomplete.IgammaGradA()
igammac_p = _incomplete.Igammac()
imag_p = _complex_parts.Imag()
integer_pow_p = _exponential.IntegerPow
iota_p = _iota.Iota
is_finite_p = _rounding.IsFinite()
le_p = _comparison.Le()
lgamma_p = _gamma.Lgamma()
linear_solve_p = _implicit.CustomLinearSolve
log_p = _exponential.Log()
log1p_p = _exponential.Log1p()
logistic_p = _exponential.Logistic()
lt_p = _comparison.Lt()
max_p = _extrema.Max()
min_p = _extrema.Min()
mul_p = _arithmetic.Mul()
mulhi_p = _bits.Mulhi()
ne_p = _comparison.Ne()
neg_p = _arithmetic.Neg()
nextafter_p = _rounding.Nextafter()
not_p = _bits.Not()
optimization_barrier_p = _identities.OptimizationBarrier()
or_p = _bits.Or()
pad_p = _shape.Pad
polygamma_p = _gamma.Polygamma()
population_count_p = _bits.PopulationCount()
pow_p = _exponential.Pow()
ppermute_p = _collective.PPermute
psum_p = _collective.PSum
real_p = _complex_parts.Real()
reduce_p = _reduce.Reduce
reduce_and_p = _reducing.ReduceAnd
reduce_max_p = _reducing.ReduceMax
reduce_min_p = _reducing.ReduceMin
reduce_or_p = _reducing.ReduceOr
reduce_precision_p = _bits.ReducePrecision
reduce_prod_p = _reducing.ReduceProd
reduce_sum_p = _broadcast.ReduceSum
reduce_window_p = _reduce.ReduceWindow
reduce_window_max_p = _reducing_window.ReduceWindowMax
reduce_window_min_p = _reducing_window.ReduceWindowMin
reduce_window_sum_p = _reducing_window.ReduceWindowSum
reduce_xor_p = _reducing.ReduceXor
regularized_incomplete_beta_p = _incomplete.RegularizedIncompleteBeta()
rem_p = _arithmetic.Rem()
reshape_p = _layout.Reshape
rev_p = _shape.Rev
rng_bit_generator_p = _random_bits.RngBitGenerator
round_p = _rounding.Nearest
rsqrt_p = _exponential.Rsqrt()
scan_p = _scan.Scan
scatter_p = _index.ScatterSet
scatter_add_p = _index.ScatterAdd
scatter_max_p = _gather_scatter.ScatterMax
scatter_min_p = _gather_scatter.ScatterMin
scatter_mul_p = _gather_scatter.ScatterMul
scatter_sub_p = _index.ScatterSub
select_and_gather_add_p = _reducing_window.SelectAndGatherAdd
select_and_scatter_add_p = _reducing_window.SelectAndScatterAdd
shift_left_p = _bits.ShiftLeft()
shift_right_arithmetic_p = _bits.ShiftRightArithmetic()
shift_right_logical_p = _bits.ShiftRightLogical()
sign_p = _arithmetic.Sign()
sin_p = _trigonometric.Sin()
sinh_p = _trigonometric.Sinh()
slice_p = _shape.Slice
sort_p = _sort.Sort
sqrt_p = _exponential.Sqrt()
square_p = _arithmetic.Square()
stop_gradient_p = _stop_gradient.StopGradient()
sub_p = _arithmetic.Sub()
tan_p = _trigonometric.Tan()
tanh_p = _trigonometric.Tanh()
top_k_p = _sort.TopK
transpose_p = _layout.Transpose
while_p = _while_loop.While
xor_p = _bits.Xor()
zeta_p = _gamma.Zeta()

if not TYPE_CHECKING:  # they take all without an underscore
    __all__ = [name for name in globals() if name.endswith("_p")]
