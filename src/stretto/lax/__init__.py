"""``stretto.lax``: the operations under their StableHLO and ``jax.lax`` names, and control flow."""

from stretto._engine.control.associative_scan import associative_scan
from stretto._engine.control.cond import cond, switch
from stretto._engine.control.linear_solve import custom_linear_solve
from stretto._engine.control.loops import fori_loop
from stretto._engine.control.loops import map_ as map
from stretto._engine.control.reduce import reduce
from stretto._engine.control.root import custom_root
from stretto._engine.control.scan import scan
from stretto._engine.control.stop_gradient import stop_gradient
from stretto._engine.control.while_loop import while_loop
from stretto._engine.control.window import reduce_window
from stretto._engine.ops.arithmetic import absolute as abs
from stretto._engine.ops.arithmetic import (
    add,
    ceil,
    conj,
    floor,
    imag,
    is_finite,
    nextafter,
    real,
    sign,
    square,
)
from stretto._engine.ops.arithmetic import complex_ as complex
from stretto._engine.ops.arithmetic import divide as div
from stretto._engine.ops.arithmetic import negative as neg
from stretto._engine.ops.arithmetic import remainder as rem
from stretto._engine.ops.arithmetic import subtract as sub
from stretto._engine.ops.barrier import optimization_barrier
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.bits import (
    clz,
    mulhi,
    reduce_precision,
)
from stretto._engine.ops.bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    population_count,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.collective.functions import (
    all_gather,
    all_to_all,
    axis_index,
    axis_size,
    ppermute,
    pshuffle,
    psum_scatter,
    pswapaxes,
)
from stretto._engine.ops.collective.reductions import pmax, pmean, pmin, psum
from stretto._engine.ops.comparison import eq, ge, gt, le, lt, ne, select
from stretto._engine.ops.contract import dot_general
from stretto._engine.ops.convert import convert_element_type
from stretto._engine.ops.convolution.general import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    conv_general_dilated,
)
from stretto._engine.ops.convolution.kinds import conv, conv_transpose, conv_with_general_padding
from stretto._engine.ops.extrema import clamp
from stretto._engine.ops.extrema import maximum as max
from stretto._engine.ops.extrema import minimum as min
from stretto._engine.ops.fft import FftType, fft
from stretto._engine.ops.index.dynamic import (
    dynamic_index_in_dim,
    dynamic_slice,
    dynamic_slice_in_dim,
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
)
from stretto._engine.ops.index.gather_scatter import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    gather,
    scatter,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_sub,
)
from stretto._engine.ops.index.geometry import (
    GatherScatterMode,
)
from stretto._engine.ops.inverse_trigonometric import acos, acosh, asin, asinh, atan, atan2, atanh
from stretto._engine.ops.iota import broadcasted_iota, iota
from stretto._engine.ops.layout import expand_dims, reshape, squeeze, transpose
from stretto._engine.ops.powers import integer_pow, reciprocal
from stretto._engine.ops.powers import power as pow
from stretto._engine.ops.precision import (
    AccuracyMode,
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
    Tolerance,
)
from stretto._engine.ops.random.rng_bit_generator import RandomAlgorithm, rng_bit_generator
from stretto._engine.ops.reducing.cumulative import cumlogsumexp, cummax, cummin, cumprod, cumsum
from stretto._engine.ops.reducing.places import argmax, argmin
from stretto._engine.ops.reducing.reduce import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from stretto._engine.ops.shape import concatenate, pad, rev, slice, slice_in_dim, split
from stretto._engine.ops.sharding import with_sharding_constraint
from stretto._engine.ops.sort import argsort, top_k
from stretto._engine.ops.sort import sort_operands as sort
from stretto._engine.ops.special.bessel import bessel_i0e, bessel_i1e
from stretto._engine.ops.special.error_functions import erf, erf_inv, erfc
from stretto._engine.ops.special.gamma import digamma, lgamma
from stretto._engine.ops.special.incomplete import igamma, igamma_grad_a, igammac, random_gamma_grad
from stretto._engine.ops.special.incomplete_beta import betainc
from stretto._engine.ops.special.zeta import polygamma, zeta
from stretto._engine.ops.trigonometric import cosh, sinh
from stretto.lax import linalg, primitives
from stretto.lax.arrays import (
    broadcast,
    broadcast_like,
    broadcast_shapes,
    broadcast_to_rank,
    collapse,
    index_in_dim,
    index_take,
    select_n,
    sort_key_val,
    stack,
    tile,
    unstack,
)
from stretto.lax.convolutions import (
    ConvGeneralDilatedDimensionNumbers,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
    padtype_to_pads,
    reduce_window_shape_tuple,
)
from stretto.lax.creation import dtype, empty, full, full_like, shape_as_value, stage
from stretto.lax.elementary import (
    RoundingMethod,
    cbrt,
    cos,
    exp,
    exp2,
    expm1,
    log,
    log1p,
    logistic,
    mul,
    round,
    rsqrt,
    sin,
    sqrt,
    tan,
    tanh,
)
from stretto.lax.platforms import (
    after_all,
    composite,
    create_token,
    dce_sink,
    pbroadcast,
    pcast,
    platform_dependent,
    precv,
    psend,
    ragged_all_to_all,
    rng_uniform,
)
from stretto.lax.primitives import *  # noqa: F403
from stretto.lax.products import (
    DotDimensionNumbers,
    PrecisionLike,
    RaggedDotDimensionNumbers,
    batch_matmul,
    dot,
    ragged_dot,
    ragged_dot_general,
    scaled_dot,
)
from stretto.lax.scattering import (
    scatter_apply,
)
from stretto.lax.selection import (
    approx_max_k,
    approx_min_k,
)

__all__ = [
    "AccuracyMode",
    "ConvDimensionNumbers",
    "ConvGeneralDilatedDimensionNumbers",
    "DotAlgorithm",
    "DotAlgorithmPreset",
    "DotDimensionNumbers",
    "FftType",
    "GatherDimensionNumbers",
    "GatherScatterMode",
    "Precision",
    "PrecisionLike",
    "RaggedDotDimensionNumbers",
    "RandomAlgorithm",
    "RoundingMethod",
    "ScatterDimensionNumbers",
    "Tolerance",
    "abs",
    "acos",
    "acosh",
    "add",
    "after_all",
    "all_gather",
    "all_to_all",
    "approx_max_k",
    "approx_min_k",
    "argmax",
    "argmin",
    "argsort",
    "asin",
    "asinh",
    "associative_scan",
    "atan",
    "atan2",
    "atanh",
    "axis_index",
    "axis_size",
    "batch_matmul",
    "bessel_i0e",
    "bessel_i1e",
    "betainc",
    "bitcast_convert_type",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "broadcast",
    "broadcast_in_dim",
    "broadcast_like",
    "broadcast_shapes",
    "broadcast_to_rank",
    "broadcasted_iota",
    "cbrt",
    "ceil",
    "clamp",
    "clz",
    "collapse",
    "complex",
    "composite",
    "concatenate",
    "cond",
    "conj",
    "conv",
    "conv_dimension_numbers",
    "conv_general_dilated",
    "conv_general_dilated_local",
    "conv_general_dilated_patches",
    "conv_general_permutations",
    "conv_general_shape_tuple",
    "conv_shape_tuple",
    "conv_transpose",
    "conv_transpose_shape_tuple",
    "conv_with_general_padding",
    "convert_element_type",
    "cos",
    "cosh",
    "create_token",
    "cumlogsumexp",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "custom_linear_solve",
    "custom_root",
    "dce_sink",
    "digamma",
    "div",
    "dot",
    "dot_general",
    "dtype",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "empty",
    "eq",
    "erf",
    "erf_inv",
    "erfc",
    "exp",
    "exp2",
    "expand_dims",
    "expm1",
    "fft",
    "floor",
    "fori_loop",
    "full",
    "full_like",
    "gather",
    "ge",
    "gt",
    "igamma",
    "igamma_grad_a",
    "igammac",
    "imag",
    "index_in_dim",
    "index_take",
    "integer_pow",
    "iota",
    "is_finite",
    "le",
    "lgamma",
    "linalg",
    "log",
    "log1p",
    "logistic",
    "lt",
    "map",
    "max",
    "min",
    "mul",
    "mulhi",
    "ne",
    "neg",
    "nextafter",
    "optimization_barrier",
    "pad",
    "padtype_to_pads",
    "pbroadcast",
    "pcast",
    "platform_dependent",
    "pmax",
    "pmean",
    "pmin",
    "polygamma",
    "population_count",
    "pow",
    "ppermute",
    "precv",
    "psend",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
    "ragged_all_to_all",
    "ragged_dot",
    "ragged_dot_general",
    "random_gamma_grad",
    "real",
    "reciprocal",
    "reduce",
    "reduce_and",
    "reduce_max",
    "reduce_min",
    "reduce_or",
    "reduce_precision",
    "reduce_prod",
    "reduce_sum",
    "reduce_window",
    "reduce_window_shape_tuple",
    "reduce_xor",
    "rem",
    "reshape",
    "rev",
    "rng_bit_generator",
    "rng_uniform",
    "round",
    "rsqrt",
    "scaled_dot",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_apply",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_sub",
    "select",
    "select_n",
    "shape_as_value",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sin",
    "sinh",
    "slice",
    "slice_in_dim",
    "sort",
    "sort_key_val",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "stage",
    "stop_gradient",
    "sub",
    "switch",
    "tan",
    "tanh",
    "tile",
    "top_k",
    "transpose",
    "unstack",
    "while_loop",
    "with_sharding_constraint",
    "zeta",
]
__all__ += primitives.__all__
