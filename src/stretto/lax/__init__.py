"""``stretto.lax``: the operations under their StableHLO and ``jax.lax`` names, and control flow."""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto._engine.api.loops import scan as scan
    from stretto._engine.higher_order.associative_scan import associative_scan as associative_scan
    from stretto._engine.higher_order.cond import cond as cond, switch as switch
    from stretto._engine.higher_order.implicit import (
        custom_linear_solve as custom_linear_solve,
        custom_root as custom_root,
    )
    from stretto._engine.higher_order.loops import fori_loop as fori_loop
    from stretto._engine.higher_order.reduce import reduce as reduce
    from stretto._engine.higher_order.stop_gradient import stop_gradient as stop_gradient
    from stretto._engine.higher_order.while_loop import while_loop as while_loop
    from stretto._engine.higher_order.window import reduce_window as reduce_window
    from stretto._engine.ops.arithmetic import (
        add as add,
        sign as sign,
        square as square,
    )
    from stretto._engine.ops.identities import optimization_barrier as optimization_barrier
    from stretto._engine.ops.bitcast import bitcast_convert_type as bitcast_convert_type
    from stretto._engine.ops.bits import (
        clz as clz,
        mulhi as mulhi,
        reduce_precision as reduce_precision,
    )
    from stretto._engine.ops.bitwise import (
        bitwise_and as bitwise_and,
        bitwise_not as bitwise_not,
        bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor,
        population_count as population_count,
        shift_left as shift_left,
        shift_right_arithmetic as shift_right_arithmetic,
        shift_right_logical as shift_right_logical,
    )
    from stretto._engine.ops.broadcast import (
        broadcast_in_dim as broadcast_in_dim,
        reduce_sum as reduce_sum,
    )
    from stretto._engine.ops.collective.functions import (
        all_gather as all_gather,
        all_to_all as all_to_all,
        axis_index as axis_index,
        axis_size as axis_size,
        ppermute as ppermute,
        pshuffle as pshuffle,
        psum_scatter as psum_scatter,
        pswapaxes as pswapaxes,
    )
    from stretto._engine.ops.collective.reductions import (
        pmax as pmax,
        pmean as pmean,
        pmin as pmin,
        psum as psum,
    )
    from stretto._engine.ops.comparison import (
        eq as eq,
        ge as ge,
        gt as gt,
        le as le,
        lt as lt,
        ne as ne,
        select as select,
    )
    from stretto._engine.ops.complex_parts import (
        conj as conj,
        imag as imag,
        real as real,
    )
    from stretto._engine.ops.contract import dot_general as dot_general
    from stretto._engine.ops.convert import convert_element_type as convert_element_type
    from stretto._engine.ops.convolution.general import conv_general_dilated as conv_general_dilated
    from stretto._engine.ops.convolution.geometry import (
        ConvDimensionNumbers as ConvDimensionNumbers,
        conv_dimension_numbers as conv_dimension_numbers,
    )
    from stretto._engine.ops.convolution.kinds import (
        conv as conv,
        conv_transpose as conv_transpose,
        conv_with_general_padding as conv_with_general_padding,
    )
    from stretto._engine.ops.extrema import clamp as clamp
    from stretto._engine.ops.fft import FftType as FftType, fft as fft
    from stretto._engine.ops.index.dynamic import (
        dynamic_index_in_dim as dynamic_index_in_dim,
        dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim,
        dynamic_update_slice as dynamic_update_slice,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    )
    from stretto._engine.ops.index.gather_scatter import (
        gather as gather,
        scatter as scatter,
        scatter_add as scatter_add,
        scatter_max as scatter_max,
        scatter_min as scatter_min,
        scatter_mul as scatter_mul,
        scatter_sub as scatter_sub,
    )
    from stretto._engine.ops.index.geometry import (
        GatherDimensionNumbers as GatherDimensionNumbers,
        GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
    )
    from stretto._engine.ops.inverse_trigonometric import (
        acos as acos,
        acosh as acosh,
        asin as asin,
        asinh as asinh,
        atan as atan,
        atan2 as atan2,
        atanh as atanh,
    )
    from stretto._engine.ops.iota import broadcasted_iota as broadcasted_iota, iota as iota
    from stretto._engine.ops.joining import concatenate as concatenate
    from stretto._engine.ops.layout import (
        expand_dims as expand_dims,
        reshape as reshape,
        squeeze as squeeze,
        transpose as transpose,
    )
    from stretto._engine.ops.powers import integer_pow as integer_pow, reciprocal as reciprocal
    from stretto._engine.ops.precision import (
        AccuracyMode as AccuracyMode,
        DotAlgorithm as DotAlgorithm,
        DotAlgorithmPreset as DotAlgorithmPreset,
        Precision as Precision,
        Tolerance as Tolerance,
    )
    from stretto._engine.ops.random.rng_bit_generator import (
        RandomAlgorithm as RandomAlgorithm,
        rng_bit_generator as rng_bit_generator,
    )
    from stretto._engine.ops.reducing.cumulative import (
        cumlogsumexp as cumlogsumexp,
        cummax as cummax,
        cummin as cummin,
        cumprod as cumprod,
        cumsum as cumsum,
    )
    from stretto._engine.ops.reducing.argminmax import argmax as argmax, argmin as argmin
    from stretto._engine.ops.reducing.reduce import (
        reduce_and as reduce_and,
        reduce_max as reduce_max,
        reduce_min as reduce_min,
        reduce_or as reduce_or,
        reduce_prod as reduce_prod,
        reduce_xor as reduce_xor,
    )
    from stretto._engine.ops.rounding import (
        ceil as ceil,
        floor as floor,
        is_finite as is_finite,
        nextafter as nextafter,
    )
    from stretto._engine.ops.shape import (
        pad as pad,
        rev as rev,
        slice as slice,
        slice_in_dim as slice_in_dim,
        split as split,
    )
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
        digamma as digamma,
        lgamma as lgamma,
        polygamma as polygamma,
        zeta as zeta,
    )
    from stretto._engine.ops.special.incomplete import (
        igamma as igamma,
        igamma_grad_a as igamma_grad_a,
        igammac as igammac,
        random_gamma_grad as random_gamma_grad,
    )
    from stretto._engine.ops.special.incomplete_beta import betainc as betainc
    from stretto._engine.ops.trigonometric import cosh as cosh, sinh as sinh
    from stretto.lax import linalg as linalg
    from stretto.lax.aliases import (
        abs as abs,
        complex as complex,
        div as div,
        map as map,
        max as max,
        min as min,
        neg as neg,
        pow as pow,
        rem as rem,
        sort as sort,
        sub as sub,
    )
    from stretto.lax.arrays import (
        broadcast as broadcast,
        broadcast_like as broadcast_like,
        broadcast_shapes as broadcast_shapes,
        broadcast_to_rank as broadcast_to_rank,
        collapse as collapse,
        index_in_dim as index_in_dim,
        index_take as index_take,
        select_n as select_n,
        sort_key_val as sort_key_val,
        stack as stack,
        tile as tile,
        unstack as unstack,
    )
    from stretto.lax.convolutions import (
        ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
        conv_general_dilated_local as conv_general_dilated_local,
        conv_general_dilated_patches as conv_general_dilated_patches,
        conv_general_permutations as conv_general_permutations,
        conv_general_shape_tuple as conv_general_shape_tuple,
        conv_shape_tuple as conv_shape_tuple,
        conv_transpose_shape_tuple as conv_transpose_shape_tuple,
        padtype_to_pads as padtype_to_pads,
        reduce_window_shape_tuple as reduce_window_shape_tuple,
    )
    from stretto.lax.creation import (
        dtype as dtype,
        empty as empty,
        full as full,
        full_like as full_like,
        shape_as_value as shape_as_value,
        stage as stage,
    )
    from stretto.lax.elementary import (
        RoundingMethod as RoundingMethod,
        cbrt as cbrt,
        cos as cos,
        exp as exp,
        exp2 as exp2,
        expm1 as expm1,
        log as log,
        log1p as log1p,
        logistic as logistic,
        mul as mul,
        round as round,
        rsqrt as rsqrt,
        sin as sin,
        sqrt as sqrt,
        tan as tan,
        tanh as tanh,
    )
    from stretto.lax.platforms import (
        after_all as after_all,
        composite as composite,
        create_token as create_token,
        dce_sink as dce_sink,
        pbroadcast as pbroadcast,
        pcast as pcast,
        platform_dependent as platform_dependent,
        precv as precv,
        psend as psend,
        ragged_all_to_all as ragged_all_to_all,
        rng_uniform as rng_uniform,
    )
    from stretto.lax.primitives import *
    from stretto.lax.products import (
        DotDimensionNumbers as DotDimensionNumbers,
        PrecisionLike as PrecisionLike,
        RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
        batch_matmul as batch_matmul,
        dot as dot,
        ragged_dot as ragged_dot,
        ragged_dot_general as ragged_dot_general,
        scaled_dot as scaled_dot,
    )
    from stretto.lax.scattering import scatter_apply as scatter_apply
    from stretto.lax.selection import approx_max_k as approx_max_k, approx_min_k as approx_min_k
