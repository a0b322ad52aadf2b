"""Operations under JAX's names and with its parameters, and every primitive that JAX names.

First those on arrays: those of ``lax/primitives`` have JAX's names there, and are in this table
where they have parameters as well. Then those that hold programs, which are shown as closed jaxprs,
and those across named axes. A primitive that ``jax.extend.core.primitives`` or ``jax.lax`` names
and that has no counterpart here is there to be compared with, and says so when it is applied.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.primitive import Primitive as Operation
from stretto._engine.higher_order.callback import IoCallback, PureCallback
from stretto._engine.higher_order.checkpoint import Checkpoint
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.custom_derivatives import CustomJvp, CustomVjp
from stretto._engine.higher_order.custom_vmap import CustomVmap
from stretto._engine.higher_order.family import Call
from stretto._engine.higher_order.implicit import CustomLinearSolve
from stretto._engine.higher_order.reduce import Reduce, ReduceWindow
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.while_loop import While
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.collective.primitives import (
    AllGather,
    AllToAll,
    AxisIndex,
    PPermute,
    PSum,
    PSumScatter,
)
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.complex_parts import Conj
from stretto._engine.ops.identities import Name
from stretto._engine.ops.index.geometry import GatherScatterMode
from stretto._engine.ops.linalg.eigenvalues import Eig, Eigh, Hessenberg, Schur
from stretto._engine.ops.linalg.lu import Lu
from stretto._engine.ops.linalg.qr import HouseholderProduct, Qr
from stretto._engine.ops.linalg.svd import Svd, SvdAlgorithm
from stretto._engine.ops.linalg.triangular import Cholesky, TriangularSolve, TridiagonalSolve
from stretto._engine.ops.random_bits import RandomBits, Threefry2x32
from stretto._engine.ops.reducing.window import AxisWindow
from stretto._engine.ops.rounding import Round, RoundAway
from stretto._engine.ops.sharding_constraint import ShardingConstraint
from stretto.compat.jax.avals import aval_of, type_of_aval
from stretto.compat.jax.jaxprs.jaxpr import (
    NONE,
    Entry,
    Field,
    Fixed,
    closed_jaxpr_of,
    eval_jaxpr,
    meant,
    open_jaxpr_of,
    spell,
    spell_as_it_is,
    spell_by_hand,
)
from stretto.compat.jax.jaxprs.primitive import (
    CallPrimitive,
    KnownPrimitive,
    Primitive,
    find_primitive,
    known,
)
from stretto.compat.jax.util import WrappedFun, wrap_init
from stretto.lax import primitives
from stretto.lax.elementary import RoundingMethod


def _mode(mode: Any, outside: str) -> str:
    """Return a mode's name here; ``outside`` is what becomes of windows out of bounds."""
    mode = GatherScatterMode.from_any(mode)
    return outside if mode is GatherScatterMode.FILL_OR_DROP else mode.name.lower()


_AXIS = Field("axis", lambda a: (a,), lambda axes: axes[0])
_ACCURACY: dict[str, Entry] = {"accuracy": NONE}
_CUMULATIVE: dict[str, Entry] = {"axis": "axis", "reverse": "reverse"}
_AXES: dict[str, Entry] = {"axes": "axes"}
_PLACES: dict[str, Entry] = {"axes": _AXIS, "index_dtype": "index_dtype"}
_SCATTER: dict[str, Entry] = {
    "dimension_numbers": "dimension_numbers",
    "indices_are_sorted": "indices_are_sorted",
    "unique_indices": "unique_indices",
    "mode": Field("mode", GatherScatterMode.from_any, lambda m: _mode(m, "drop")),
    "update_jaxpr": NONE,
    "update_consts": Fixed(()),
}


def _strides(strides: tuple[int, ...]) -> tuple[int, ...] | None:
    return None if all(n == 1 for n in strides) else strides


TABLE: dict[str, dict[str, Entry]] = {
    "argmax": _PLACES,
    "argmin": _PLACES,
    "bitcast_convert_type": {"new_dtype": "dtype"},
    "broadcast_in_dim": {"shape": "shape", "broadcast_dimensions": "dims", "sharding": NONE},
    "cbrt": _ACCURACY,
    "concatenate": {"dimension": "axis"},
    "conv_general_dilated": {
        "window_strides": "strides",
        "padding": "padding",
        "lhs_dilation": "lhs_dilation",
        "rhs_dilation": "rhs_dilation",
        "dimension_numbers": "dims",
        "feature_group_count": "feature_groups",
        "batch_group_count": "batch_groups",
        "precision": "precision",
        "preferred_element_type": "preferred",
        "out_sharding": NONE,
    },
    "convert_element_type": {"new_dtype": "dtype", "weak_type": "weak", "sharding": NONE},
    "cos": _ACCURACY,
    "cumlogsumexp": _CUMULATIVE,
    "cummax": _CUMULATIVE,
    "cummin": _CUMULATIVE,
    "cumprod": _CUMULATIVE,
    "cumsum": _CUMULATIVE,
    "dynamic_slice": {"slice_sizes": "sizes"},
    "exp": _ACCURACY,
    "exp2": _ACCURACY,
    "expm1": _ACCURACY,
    "fft": {"fft_type": "kind", "fft_lengths": "lengths"},
    "integer_pow": {"y": "exponent"},
    "iota": {"dtype": "dtype", "shape": "shape", "dimension": "dimension", "sharding": NONE},
    "log": _ACCURACY,
    "log1p": _ACCURACY,
    "logistic": _ACCURACY,
    "mul": {"out_dtype": NONE},
    "pad": {"padding_config": "config"},
    "reduce_and": _AXES,
    "reduce_max": _AXES,
    "reduce_min": _AXES,
    "reduce_or": _AXES,
    "reduce_precision": {"exponent_bits": "exponent_bits", "mantissa_bits": "mantissa_bits"},
    "reduce_prod": _AXES,
    "reduce_sum": {**_AXES, "out_sharding": NONE},
    "reduce_xor": _AXES,
    "reshape": {"new_sizes": "shape", "dimensions": NONE, "sharding": NONE},
    "rev": {"dimensions": "axes"},
    "rng_bit_generator": {
        "shape": "shape",
        "dtype": "dtype",
        "algorithm": "algorithm",
        "out_sharding": NONE,
    },
    "rsqrt": _ACCURACY,
    "scatter": _SCATTER,
    "scatter_add": _SCATTER,
    "scatter_max": _SCATTER,
    "scatter_min": _SCATTER,
    "scatter_mul": _SCATTER,
    "scatter_sub": _SCATTER,
    "sin": _ACCURACY,
    "sort": {"dimension": "dimension", "is_stable": "is_stable", "num_keys": "num_keys"},
    "sqrt": _ACCURACY,
    "tan": _ACCURACY,
    "tanh": _ACCURACY,
    "transpose": {"permutation": "permutation"},
}
"""JAX's parameters of each operation, by its name."""

_BY_HAND = {"conj", "dot_general", "gather", "round", "slice", "top_k"}
_CONTROL = {"cond", "linear_solve", "reduce", "reduce_window", "scan", "while"}
_COLLECTIVE = {"all_gather", "all_to_all", "axis_index", "ppermute", "psum"}
_AS_THEY_ARE = {"select_and_gather_add", "select_and_scatter_add"}
_WINDOWS = {"reduce_window_max", "reduce_window_min", "reduce_window_sum"}


def _spell_all() -> None:
    others = _BY_HAND | _CONTROL | _COLLECTIVE | _AS_THEY_ARE | _WINDOWS
    for spelled, own in vars(primitives).items():
        name = spelled.removesuffix("_p")
        if spelled.endswith("_p") and name not in others:
            cls = type(own) if isinstance(own, Operation) else own
            jax_name = name.replace("scatter_", "scatter-") if name.startswith("scatter") else name
            spell(cls, jax_name, TABLE.get(name, {}))


_spell_all()
spell(Select, "select_n", {}, order=(0, 2, 1))
spell(Cholesky, "cholesky", {})
spell(Name, "name", {"name": "label"})
for _cls in (Hessenberg, HouseholderProduct, Threefry2x32):
    spell(_cls)
spell(TridiagonalSolve, "tridiagonal_solve", {"perturb_singular": "perturb"})
spell(
    Eig,
    "eig",
    {
        "compute_left_eigenvectors": "left",
        "compute_right_eigenvectors": "right",
        "enable_eigvec_derivs": "differentiable",
        "implementation": NONE,
    },
)
spell(
    Schur,
    "schur",
    {
        "compute_schur_vectors": "vectors",
        "sort_eig_vals": Fixed(False),
        "select_callable": NONE,
        "differentiable": "differentiable",
    },
)
_SVD_ROUTINE = Field(
    "routine",
    lambda routine: SvdAlgorithm.QR if routine == "gesvd" else None,
    lambda algorithm: "gesvd" if algorithm is SvdAlgorithm.QR else "gesdd",
)
spell(
    Svd,
    "svd",
    {
        "full_matrices": "full",
        "compute_uv": "vectors",
        "subset_by_index": NONE,
        "algorithm": _SVD_ROUTINE,
    },
    results=(1, 0, 2),  # the values first
)
spell_as_it_is(
    Lu, ShardingConstraint, primitives.select_and_gather_add_p, primitives.select_and_scatter_add_p
)
spell(RandomBits, "random_bits", {"bit_width": "width", "shape": "shape", "layout": "layout"})
spell(
    Eigh,
    "eigh",
    {
        "lower": Fixed(True),
        "sort_eigenvalues": Fixed(True),
        "subset_by_index": NONE,
        "algorithm": NONE,
        "vectors": "vectors",
    },
)
spell_by_hand(
    Conj, "conj", lambda p, e: {"input_dtype": e.inputs[0].type.dtype}, lambda params, types: Conj()
)


def _dot_params(p: Any, e: Any) -> dict[str, Any]:
    return {
        "dimension_numbers": (p.summed, p.shared),
        "precision": p.precision,
        "preferred_element_type": p.preferred,
        "out_sharding": None,
    }


def _dot(params: dict[str, Any], types: Any) -> Any:
    summed, shared = [tuple(map(tuple, pairs)) for pairs in params["dimension_numbers"]]
    preferred = params.get("preferred_element_type")
    preferred = None if preferred is None else np.dtype(preferred)
    return primitives.dot_general_p(summed, shared, params.get("precision"), preferred)


spell_by_hand(primitives.dot_general_p, "dot_general", _dot_params, _dot)


def _gather_params(p: Any, e: Any) -> dict[str, Any]:
    dtype = e.inputs[0].type.dtype
    return {
        "dimension_numbers": p.dimension_numbers,
        "slice_sizes": p.slice_sizes,
        "indices_are_sorted": p.indices_are_sorted,
        "unique_indices": p.unique_indices,
        "mode": GatherScatterMode.from_any(p.mode),
        "fill_value": np.frombuffer(p.fill, dtype)[0] if p.fill else None,
    }


def _gather(params: dict[str, Any], types: Any) -> Any:
    fill = params.get("fill_value")
    return primitives.gather_p(
        params["dimension_numbers"],
        tuple(params["slice_sizes"]),
        _mode(params.get("mode"), "fill"),
        b"" if fill is None else np.asarray(fill, types[0].dtype).tobytes(),
        params.get("indices_are_sorted", False),
        params.get("unique_indices", False),
    )


spell_by_hand(primitives.gather_p, "gather", _gather_params, _gather)


def _slice(params: dict[str, Any], types: Any) -> Any:
    starts, limits = tuple(params["start_indices"]), tuple(params["limit_indices"])
    return primitives.slice_p(starts, limits, params.get("strides") or (1,) * len(starts))


def _slice_params(p: Any, e: Any) -> dict[str, Any]:
    return {"start_indices": p.starts, "limit_indices": p.limits, "strides": _strides(p.strides)}


spell_by_hand(primitives.slice_p, "slice", _slice_params, _slice)


def _top_k(params: dict[str, Any], types: Any) -> Any:
    if params.get("axis", -1) not in (-1, types[0].ndim - 1):
        raise NotImplementedError(
            f"top_k: axis must be the last, {types[0].ndim - 1}, got {params['axis']}: move it "
            f"there with jax.numpy.moveaxis"
        )
    return primitives.top_k_p(params["k"])


def _top_k_params(p: Any, e: Any) -> dict[str, Any]:
    return {"k": p.k, "axis": e.inputs[0].type.ndim - 1}


spell_by_hand(primitives.top_k_p, "top_k", _top_k_params, _top_k)


def _round(params: dict[str, Any], types: Any) -> Any:
    method = RoundingMethod(params.get("rounding_method", 0))
    return Round() if method is RoundingMethod.TO_NEAREST_EVEN else RoundAway()


for _cls, _method in (
    (RoundAway, RoundingMethod.AWAY_FROM_ZERO),
    (Round, RoundingMethod.TO_NEAREST_EVEN),
):
    _fixed = {"rounding_method": _method}
    spell_by_hand(_cls, "round", lambda p, e, fixed=_fixed: dict(fixed), _round)


def _triangular_params(p: Any, e: Any) -> dict[str, Any]:
    return {
        "left_side": p.left,
        "lower": p.lower_triangle,
        "transpose_a": p.form != "N",
        "conjugate_a": p.form == "C",
        "unit_diagonal": p.unit_diagonal,
    }


def _triangular(params: dict[str, Any], types: Any) -> Any:
    form = "N" if not params["transpose_a"] else "C" if params["conjugate_a"] else "T"
    return TriangularSolve(params["left_side"], params["lower"], form, params["unit_diagonal"])


spell_by_hand(TriangularSolve, "triangular_solve", _triangular_params, _triangular)
spell(Qr, "qr", {"pivoting": Fixed(False), "full_matrices": "full", "use_magma": NONE})


def window_params(p: Any) -> dict[str, Any]:
    """Return the parameters of windows."""
    return {
        "window_dimensions": tuple([w.size for w in p.windows]),
        "window_strides": tuple([w.stride for w in p.windows]),
        "padding": tuple([(w.low, w.high) for w in p.windows]),
        "base_dilation": tuple([w.base_dilation for w in p.windows]),
        "window_dilation": tuple([w.dilation for w in p.windows]),
    }


_WINDOW_PARAMS = (
    "window_dimensions",
    "window_strides",
    "padding",
    "base_dilation",
    "window_dilation",
)


def windows_of(params: dict[str, Any]) -> tuple[AxisWindow, ...]:
    """Return the windows that parameters say."""
    sizes, strides, padding, base, dilation = [params[name] for name in _WINDOW_PARAMS]
    lows, highs = zip(*padding, strict=True)
    along = zip(sizes, strides, lows, highs, base, dilation, strict=True)
    return tuple([AxisWindow(*axis) for axis in along])


for _cls in (
    primitives.reduce_window_max_p,
    primitives.reduce_window_min_p,
    primitives.reduce_window_sum_p,
):
    spell_by_hand(
        _cls,
        _cls.name,
        lambda p, e: window_params(p),
        lambda params, types, cls=_cls: cls(windows_of(params)),
    )

known("add_any", lambda: KnownPrimitive("add_any", lambda params, types: ADD))


__all__: list[str] = []

# Loops and branches

spell(
    Scan,
    "scan",
    {
        "jaxpr": "body",
        "length": "length",
        "num_consts": "consts",
        "num_carry": "carry",
        "reverse": "reverse",
        "unroll": "unroll",
    },
)
spell(
    While,
    "while",
    {
        "cond_jaxpr": "cond",
        "body_jaxpr": "body",
        "cond_nconsts": "cond_consts",
        "body_nconsts": "body_consts",
    },
)


def _cond_params(p: Any, e: Any) -> dict[str, Any]:
    params: dict[str, Any] = {"branches": tuple([closed_jaxpr_of(b) for b in p.branches])}
    if p.size is not None:  # of many examples, each with a number of its own
        params |= {"size": p.size, "mapped": p.mapped}
    return params


def _cond(params: dict[str, Any], types: Any) -> Any:
    branches = meant(tuple(params["branches"]))
    return Cond(branches, params.get("size"), params.get("mapped", ()))


spell_by_hand(Cond, "cond", _cond_params, _cond)
spell(Reduce, "reduce", {"jaxpr": "computation", "dimensions": "axes", "computation": NONE})
spell_by_hand(
    ReduceWindow,
    "reduce_window",
    lambda p, e: {"jaxpr": closed_jaxpr_of(p.computation), "consts": (), **window_params(p)},
    lambda params, types: ReduceWindow(meant(params["jaxpr"]), windows_of(params)),
)
spell(
    CustomLinearSolve,
    "custom_linear_solve",
    {
        "matvec": "equation",
        "solve": "solve",
        "vecmat": "vecmat",
        "transpose_solve": "transpose_solve",
        "consts": "consts",
    },
)

# Calls


def _jit_params(p: Any, e: Any) -> dict[str, Any]:
    ins, outs = len(e.inputs), len(e.outputs)
    return {
        "jaxpr": closed_jaxpr_of(p.program),
        "name": p.program.name,
        "in_shardings": (None,) * ins,
        "out_shardings": (None,) * outs,
        "in_layouts": (None,) * ins,
        "out_layouts": (None,) * outs,
        "donated_invars": (False,) * ins,
        "ctx_mesh": None,
        "keep_unused": False,
        "inline": False,
        "compiler_options_kvs": (),
    }


def _jit(params: dict[str, Any], types: Any) -> Any:
    return Call(meant(params["jaxpr"]))


spell_by_hand(Call, "jit", _jit_params, _jit)


def _remat_params(p: Any, e: Any) -> dict[str, Any]:
    return {
        "jaxpr": open_jaxpr_of(p.program),
        "prevent_cse": p.prevent_cse,
        "differentiated": p.again,
        "policy": p.policy,
    }


def _remat(params: dict[str, Any], types: Any) -> Any:
    program, again = meant(params["jaxpr"]), params.get("differentiated", False)
    return Checkpoint(program, params.get("policy"), params.get("prevent_cse", True), again)


spell_by_hand(Checkpoint, "remat2", _remat_params, _remat)
spell(
    CustomJvp,
    "custom_jvp_call",
    {
        "call_jaxpr": "program",
        "jvp_jaxpr_fun": "rule",
        "num_consts": Fixed(0),
        "symbolic_zeros": Fixed(True),
    },
)
spell(
    CustomVjp,
    "custom_vjp_call",
    {
        "call_jaxpr": "program",
        "fwd_jaxpr_thunk": "rule",
        "bwd": NONE,
        "num_consts": Fixed(0),
        "out_trees": NONE,
        "symbolic_zeros": Fixed(True),
        "optimize_remat": "optimize_remat",
    },
)


def _functions(params: dict[str, Any]) -> list[WrappedFun]:
    """Return the function without its rules."""
    called = params["call_jaxpr"]
    return [wrap_init(lambda *args: eval_jaxpr(called.jaxpr, called.consts, *args))]


for _name in ("custom_jvp_call", "custom_vjp_call"):
    _call: Any = find_primitive(_name)
    _call.subfuns = _functions
spell(CustomVmap, "custom_vmap_call", {"call": "program", "rule": "rule"})

# Python called

_CALLBACK: dict[str, Entry] = {
    "callback": "host",
    "result_avals": Field(
        "results",
        lambda types: tuple(map(aval_of, types)),
        lambda avals: tuple(map(type_of_aval, avals)),
    ),
    "sharding": NONE,
}
spell(PureCallback, "pure_callback", {**_CALLBACK, "vmap_method": "vmap_method"})
spell(IoCallback, "io_callback", {**_CALLBACK, "ordered": "ordered"})

# Across named axes


def _size(axis: Any) -> int:
    """Return the size of a named axis that is mapped over."""
    if axis not in settings.axes:
        raise NameError(f"no axis named {axis!r} is mapped over; there are {[*settings.axes]}")
    return settings.axes[axis]


def _only(axes: Any) -> Any:
    """Return the one axis of a tuple, or the axis itself."""
    return axes[0] if isinstance(axes, tuple) and len(axes) == 1 else axes


def _of_axes(p: Any, e: Any) -> dict[str, Any]:
    return {"axes": (p.axis,), "axis_index_groups": None}


def _psum(params: dict[str, Any], types: Any) -> Any:
    axis = _only(params["axes"])
    return PSum(axis, _size(axis))


spell_by_hand(PSum, "psum", _of_axes, _psum)
_NAMED = Field("axis", lambda axis: (axis,), _only)
_ALONG_ZERO = {"axis_name": _NAMED, "axis_size": "size", "tiled": Fixed(False)}
spell(
    AllGather,
    "all_gather",
    {**_ALONG_ZERO, "all_gather_dimension": Fixed(0), "axis_index_groups": NONE},
)
spell(
    PSumScatter,
    "reduce_scatter",
    {**_ALONG_ZERO, "scatter_dimension": Fixed(0), "axis_index_groups": NONE},
)


def _across(cls: Any, **fixed: Any) -> Any:
    """Return the functions to and from parameters that have no size."""
    more = ("perm",) if cls is PPermute else ()

    def params(p: Any, e: Any) -> dict[str, Any]:
        name = (p.axis,) if cls is PPermute else p.axis
        return {"axis_name": name, **{n: getattr(p, n) for n in more}, **fixed}

    def build(params: dict[str, Any], types: Any) -> Any:
        axis = _only(params["axis_name"])
        return cls(axis, _size(axis), *[params[n] for n in more])

    return params, build


spell_by_hand(AxisIndex, "axis_index", *_across(AxisIndex))
spell_by_hand(PPermute, "ppermute", *_across(PPermute))
_whole = {"split_axis": 0, "concat_axis": 0, "axis_index_groups": None, "tiled": False}
spell_by_hand(AllToAll, "all_to_all", *_across(AllToAll, **_whole))


_NAMES = """
    abs acos acosh add add_jaxvals after_all all_gather all_to_all and approx_top_k argmax
    argmin asin asinh atan2 atan atanh axis_index bessel_i0e bessel_i1e bitcast_convert_type
    broadcast_in_dim call cbrt ceil cholesky clamp closed_call clz complex concatenate cond conj
    conv_general_dilated convert_element_type copy cos cosh create_token cumlogsumexp cummax
    cummin cumprod cumsum custom_jvp_call custom_lin custom_vjp_call device_put digamma div
    dot_general dynamic_slice dynamic_update_slice eig eigh empty2 eq eq_to erf_inv erf erfc
    exp2 exp expm1 fft floor gather ge get gt hessenberg householder_product igamma_grad_a
    igamma igammac imag integer_pow iota is_finite jit le le_to lgamma linear_solve log1p log
    logistic lt lt_to lu max min mul name ne neg nextafter not or pad pmax pmin polygamma
    population_count pow ppermute psum qr ragged_all_to_all random_bits random_fold_in
    random_gamma random_seed random_split real reduce_and reduce_max reduce_min reduce_or reduce
    reduce_precision reduce_prod reduce_sum reduce_window_max reduce_window_min reduce_window
    reduce_window_sum reduce_xor regularized_incomplete_beta rem remat reshape rev
    rng_bit_generator rng_uniform round rsqrt scan scatter_add scatter_max scatter_min
    scatter_mul scatter schur select_and_gather_add select_and_scatter_add select_and_scatter
    select_n sharding_constraint shift_left shift_right_arithmetic shift_right_logical sign sin
    sinh slice sort sqrt square squeeze stop_gradient sub svd swap tan tanh threefry2x32 top_k
    transpose triangular_solve tridiagonal tridiagonal_solve while xor zeta
"""
NAMES = _NAMES.split()
"""The names of these primitives, without the ``_p`` at the end."""

_OTHERWISE = {
    "add_jaxvals": "add_any",
    "linear_solve": "custom_linear_solve",
    "remat": "remat2",
    "scatter_add": "scatter-add",
    "scatter_max": "scatter-max",
    "scatter_min": "scatter-min",
    "scatter_mul": "scatter-mul",
    "scatter_sub": "scatter-sub",
}
"""The names of primitives in programs that are not those of the objects."""

_CALLS = {"call", "closed_call"}


def _absent(name: str) -> Primitive:
    def build(params: dict[str, Any], types: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}: Stretto has no such operation, so its programs never contain it, and it "
            f"cannot be applied: call the function of jax.numpy or jax.lax that means it"
        )

    return CallPrimitive(name) if name in _CALLS else KnownPrimitive(name, build)


def primitive_of(name: str) -> Primitive:
    """Return the primitive that JAX calls ``<name>_p``.

    Raises:
        AttributeError: there is none.
    """
    called = _OTHERWISE.get(name, name)
    found = find_primitive(called)
    if found is None and name in NAMES:
        found = known(called, lambda: _absent(called))
    if found is None:
        raise AttributeError(f"no primitive is called {name}_p")
    return found
