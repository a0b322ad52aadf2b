"""``stretto.lax``: the operations under their StableHLO and ``jax.lax`` names, and control flow.

Layer 7.
"""

from stretto.control.cond import cond, switch
from stretto.control.custom import stop_gradient
from stretto.control.scan import fori_loop, scan
from stretto.control.scan import map_ as map  # noqa: A001
from stretto.control.while_loop import while_loop
from stretto.ops.arithmetic import absolute as abs  # noqa: A001
from stretto.ops.arithmetic import (
    add,
    ceil,
    clamp,
    conj,
    floor,
    imag,
    is_finite,
    nextafter,
    real,
    sign,
    square,
)
from stretto.ops.arithmetic import complex_ as complex  # noqa: A001
from stretto.ops.arithmetic import divide as div
from stretto.ops.arithmetic import maximum as max  # noqa: A001
from stretto.ops.arithmetic import minimum as min  # noqa: A001
from stretto.ops.arithmetic import multiply as mul
from stretto.ops.arithmetic import negative as neg
from stretto.ops.arithmetic import remainder as rem
from stretto.ops.arithmetic import round_ as round  # noqa: A001
from stretto.ops.arithmetic import subtract as sub
from stretto.ops.broadcast import (
    broadcast_in_dim,
    expand_dims,
    reduce_sum,
    reshape,
    squeeze,
    transpose,
)
from stretto.ops.comparison import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    eq,
    ge,
    gt,
    le,
    lt,
    ne,
    population_count,
    select,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from stretto.ops.convert import convert_element_type
from stretto.ops.exponential import (
    cbrt,
    erf,
    erf_inv,
    erfc,
    exp,
    exp2,
    expm1,
    integer_pow,
    log,
    log1p,
    logistic,
    rsqrt,
    sqrt,
)
from stretto.ops.exponential import power as pow  # noqa: A001
from stretto.ops.exponential import reciprocal
from stretto.ops.trigonometric import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
