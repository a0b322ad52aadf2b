"""``stretto.lax``: the operations under their StableHLO and ``jax.lax`` names, and control flow."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto._engine.api.vectorize import scan as scan
    from stretto._engine.higher_order.loops import (
        associative_scan as associative_scan,
        fori_loop as fori_loop,
    )
    from stretto._engine.higher_order.cond import cond as cond, switch as switch
    from stretto._engine.higher_order.implicit import (
        custom_linear_solve as custom_linear_solve,
        custom_root as custom_root,
    )
    from stretto._engine.higher_order.reduce import reduce as reduce, reduce_window as reduce_window
    from stretto._engine.higher_order.stop_gradient import stop_gradient as stop_gradient
    from stretto._engine.higher_order.while_loop import while_loop as while_loop
    from stretto._engine.higher_order.linear_call import linear_call as linear_call
    from stretto._engine.ops.arithmetic import add as add, sign as sign, square as square
    from stretto._engine.ops.identities import optimization_barrier as optimization_barrier
    from stretto._engine.ops.bitcast import bitcast_convert_type as bitcast_convert_type
    from stretto._engine.ops.bits import (
        clz as clz,
        mulhi as mulhi,
        reduce_precision as reduce_precision,
    )
    from stretto._engine.ops.bits import (
        bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor, population_count as population_count, shift_left as shift_left,
        shift_right_arithmetic as shift_right_arithmetic,
        shift_right_logical as shift_right_logical,
    )  # fmt: skip
    from stretto._engine.ops.broadcast import (
        broadcast_in_dim as broadcast_in_dim,
        reduce_sum as reduce_sum,
    )
    from stretto._engine.ops.collective.functions import (
        all_gather as all_gather, all_to_all as all_to_all, axis_index as axis_index,
        axis_size as axis_size, ppermute as ppermute, pshuffle as pshuffle,
        psum_scatter as psum_scatter, pswapaxes as pswapaxes,
    )  # fmt: skip
    from stretto._engine.ops.collective.functions import (
        pmax as pmax, pmean as pmean, pmin as pmin, psum as psum,
    )  # fmt: skip
    from stretto._engine.ops.comparison import (
        eq as eq, ge as ge, gt as gt, le as le, lt as lt, ne as ne, select as select,
    )  # fmt: skip
    from stretto._engine.ops.complex_parts import conj as conj, imag as imag, real as real
    from stretto._engine.ops.contract import dot_general as dot_general
    from stretto._engine.ops.convert import convert_element_type as convert_element_type
    from stretto._engine.ops.convolution.general import conv_general_dilated as conv_general_dilated
    from stretto._engine.ops.convolution.geometry import (
        ConvDimensionNumbers as ConvDimensionNumbers,
        conv_dimension_numbers as conv_dimension_numbers,
    )
    from stretto._engine.ops.convolution.general import (
        conv as conv,
        conv_transpose as conv_transpose,
        conv_with_general_padding as conv_with_general_padding,
    )
    from stretto._engine.ops.extrema import clamp as clamp
    from stretto._engine.ops.fft import FftType as FftType, fft as fft
    from stretto._engine.ops.index.dynamic import (
        dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim,
        dynamic_update_slice as dynamic_update_slice,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    )  # fmt: skip
    from stretto._engine.ops.index.gather_scatter import (
        gather as gather, scatter as scatter, scatter_add as scatter_add,
        scatter_max as scatter_max, scatter_min as scatter_min, scatter_mul as scatter_mul,
        scatter_sub as scatter_sub,
    )  # fmt: skip
    from stretto._engine.ops.index.geometry import (
        GatherDimensionNumbers as GatherDimensionNumbers,
        GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
    )
    from stretto._engine.ops.inverse_trigonometric import (
        acos as acos, acosh as acosh, asin as asin, asinh as asinh, atan as atan, atan2 as atan2,
        atanh as atanh,
    )  # fmt: skip
    from stretto._engine.ops.iota import broadcasted_iota as broadcasted_iota, iota as iota
    from stretto._engine.ops.shape import concatenate as concatenate
    from stretto._engine.ops.index.segments import (
        segment_max as segment_max, segment_min as segment_min, segment_prod as segment_prod,
        segment_sum as segment_sum,
    )  # fmt: skip
    from stretto._engine.ops.layout import (
        expand_dims as expand_dims, reshape as reshape, squeeze as squeeze, transpose as transpose,
    )  # fmt: skip
    from stretto._engine.ops.exponential import integer_pow as integer_pow, reciprocal as reciprocal
    from stretto._engine.ops.bilinear import (
        AccuracyMode as AccuracyMode, DotAlgorithm as DotAlgorithm,
        DotAlgorithmPreset as DotAlgorithmPreset, Precision as Precision, Tolerance as Tolerance,
    )  # fmt: skip
    from stretto._engine.ops.random_bits import (
        RandomAlgorithm as RandomAlgorithm,
        rng_bit_generator as rng_bit_generator,
    )
    from stretto._engine.ops.reducing.cumulative import (
        cumlogsumexp as cumlogsumexp, cummax as cummax, cummin as cummin, cumprod as cumprod,
        cumsum as cumsum,
    )  # fmt: skip
    from stretto._engine.ops.reducing.reduce import argmax as argmax, argmin as argmin
    from stretto._engine.ops.reducing.reduce import (
        reduce_and as reduce_and, reduce_max as reduce_max, reduce_min as reduce_min,
        reduce_or as reduce_or, reduce_prod as reduce_prod, reduce_xor as reduce_xor,
    )  # fmt: skip
    from stretto._engine.ops.rounding import (
        ceil as ceil, floor as floor, is_finite as is_finite, nextafter as nextafter,
    )  # fmt: skip
    from stretto._engine.ops.shape import (
        pad as pad, rev as rev, slice as slice, slice_in_dim as slice_in_dim, split as split,
    )  # fmt: skip
    from stretto._engine.ops.sharding_constraint import (
        with_sharding_constraint as with_sharding_constraint,
    )
    from stretto._engine.ops.sort import argsort as argsort, top_k as top_k
    from stretto._engine.ops.special.bessel import (
        bessel_i0e as bessel_i0e,
        bessel_i1e as bessel_i1e,
    )
    from stretto._engine.ops.special.error_functions import (
        erf as erf,
        erf_inv as erf_inv,
        erfc as erfc,
    )
    from stretto._engine.ops.special.gamma import (
        digamma as digamma, lgamma as lgamma, polygamma as polygamma, zeta as zeta,
    )  # fmt: skip
    from stretto._engine.ops.special.incomplete import (
        igamma as igamma, igamma_grad_a as igamma_grad_a, igammac as igammac,
        random_gamma_grad as random_gamma_grad,
    )  # fmt: skip
    from stretto._engine.ops.special.incomplete import betainc as betainc
    from stretto._engine.ops.trigonometric import cosh as cosh, sinh as sinh
    from stretto.lax import linalg as linalg
    from stretto.lax.elementary import *
    from stretto.lax.arrays import *
    from stretto.lax.convolutions import *
    from stretto.lax.platforms import *
    from stretto.lax.primitives import *
    from stretto.lax.products import *

exports(
    __name__,
    """
    stretto._engine.api.vectorize: scan
    stretto._engine.higher_order.loops: associative_scan fori_loop
    stretto._engine.higher_order.cond: cond switch
    stretto._engine.higher_order.implicit: custom_linear_solve custom_root
    stretto._engine.higher_order.reduce: reduce reduce_window
    stretto._engine.higher_order.stop_gradient: stop_gradient
    stretto._engine.higher_order.while_loop: while_loop
    stretto._engine.higher_order.linear_call: linear_call
    stretto._engine.ops.arithmetic: add sign square
    stretto._engine.ops.identities: optimization_barrier
    stretto._engine.ops.bitcast: bitcast_convert_type
    stretto._engine.ops.bits: clz mulhi reduce_precision bitwise_and bitwise_not bitwise_or
        bitwise_xor population_count shift_left shift_right_arithmetic shift_right_logical
    stretto._engine.ops.broadcast: broadcast_in_dim reduce_sum
    stretto._engine.ops.collective.functions: all_gather all_to_all axis_index axis_size ppermute
        pshuffle psum_scatter pswapaxes pmax pmean pmin psum
    stretto._engine.ops.comparison: eq ge gt le lt ne select
    stretto._engine.ops.complex_parts: conj imag real
    stretto._engine.ops.contract: dot_general
    stretto._engine.ops.convert: convert_element_type
    stretto._engine.ops.convolution.general: conv_general_dilated conv conv_transpose
        conv_with_general_padding
    stretto._engine.ops.convolution.geometry: ConvDimensionNumbers conv_dimension_numbers
    stretto._engine.ops.extrema: clamp
    stretto._engine.ops.fft: FftType fft
    stretto._engine.ops.index.dynamic: dynamic_index_in_dim dynamic_slice dynamic_slice_in_dim
        dynamic_update_index_in_dim dynamic_update_slice dynamic_update_slice_in_dim
    stretto._engine.ops.index.gather_scatter: gather scatter scatter_add scatter_max scatter_min
        scatter_mul scatter_sub
    stretto._engine.ops.index.geometry: GatherDimensionNumbers GatherScatterMode
        ScatterDimensionNumbers
    stretto._engine.ops.inverse_trigonometric: acos acosh asin asinh atan atan2 atanh
    stretto._engine.ops.iota: broadcasted_iota iota
    stretto._engine.ops.shape: concatenate pad rev slice slice_in_dim split
    stretto._engine.ops.index.segments: segment_max segment_min segment_prod segment_sum
    stretto._engine.ops.layout: expand_dims reshape squeeze transpose
    stretto._engine.ops.exponential: integer_pow reciprocal
    stretto._engine.ops.bilinear: AccuracyMode DotAlgorithm DotAlgorithmPreset Precision Tolerance
    stretto._engine.ops.random_bits: RandomAlgorithm rng_bit_generator
    stretto._engine.ops.reducing.cumulative: cumlogsumexp cummax cummin cumprod cumsum
    stretto._engine.ops.reducing.reduce: argmax argmin reduce_and reduce_max reduce_min reduce_or
        reduce_prod reduce_xor
    stretto._engine.ops.rounding: ceil floor is_finite nextafter
    stretto._engine.ops.sharding_constraint: with_sharding_constraint
    stretto._engine.ops.sort: argsort top_k
    stretto._engine.ops.special.bessel: bessel_i0e bessel_i1e
    stretto._engine.ops.special.error_functions: erf erf_inv erfc
    stretto._engine.ops.special.gamma: digamma lgamma polygamma zeta
    stretto._engine.ops.special.incomplete: igamma igamma_grad_a igammac random_gamma_grad betainc
    stretto._engine.ops.trigonometric: cosh sinh
    .: linalg
    .elementary: RoundingMethod abs cbrt complex cos div exp exp2 expm1 log log1p logistic map max
        min mul neg pow rem round rsqrt sin sort sqrt sub tan tanh
    .arrays: approx_max_k approx_min_k broadcast broadcast_like broadcast_shapes broadcast_to_rank
        collapse dtype empty full full_like index_in_dim index_take scatter_apply select_n
        shape_as_value sort_key_val stack stage tile unstack
    .convolutions: ConvGeneralDilatedDimensionNumbers conv_general_dilated_local
        conv_general_dilated_patches conv_general_permutations conv_general_shape_tuple
        conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads reduce_window_shape_tuple
    .platforms: after_all composite create_token dce_sink pbroadcast pcast platform_dependent precv
        psend ragged_all_to_all rng_uniform
    .primitives: abs_p acos_p acosh_p add_p all_gather_p all_to_all_p and_p argmax_p argmin_p asin_p
        asinh_p atan2_p atan_p atanh_p axis_index_p bessel_i0e_p bessel_i1e_p bitcast_convert_type_p
        broadcast_in_dim_p cbrt_p ceil_p clamp_p clz_p complex_p concatenate_p cond_p conj_p
        conv_general_dilated_p convert_element_type_p cos_p cosh_p cumlogsumexp_p cummax_p cummin_p
        cumprod_p cumsum_p digamma_p div_p dot_general_p dynamic_slice_p dynamic_update_slice_p eq_p
        erf_inv_p erf_p erfc_p exp2_p exp_p expm1_p fft_p floor_p gather_p ge_p gt_p igamma_grad_a_p
        igamma_p igammac_p imag_p integer_pow_p iota_p is_finite_p le_p lgamma_p linear_solve_p
        log1p_p log_p logistic_p lt_p max_p min_p mul_p mulhi_p ne_p neg_p nextafter_p not_p
        optimization_barrier_p or_p pad_p polygamma_p population_count_p pow_p ppermute_p psum_p
        real_p reduce_and_p reduce_max_p reduce_min_p reduce_or_p reduce_p reduce_precision_p
        reduce_prod_p reduce_sum_p reduce_window_max_p reduce_window_min_p reduce_window_p
        reduce_window_sum_p reduce_xor_p regularized_incomplete_beta_p rem_p reshape_p rev_p
        rng_bit_generator_p round_p rsqrt_p scan_p scatter_add_p scatter_max_p scatter_min_p
        scatter_mul_p scatter_p scatter_sub_p select_and_gather_add_p select_and_scatter_add_p
        shift_left_p shift_right_arithmetic_p shift_right_logical_p sign_p sin_p sinh_p slice_p
        sort_p sqrt_p square_p stop_gradient_p sub_p tan_p tanh_p top_k_p transpose_p while_p xor_p
        zeta_p
    .products: DotDimensionNumbers PrecisionLike RaggedDotDimensionNumbers batch_matmul dot
        ragged_dot ragged_dot_general scaled_dot
    """,
)
