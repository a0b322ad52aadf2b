"""Operations that hold programs, and those across named axes: JAX's name and parameters for each.

Programs are shown as closed jaxprs.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.config import settings
from stretto._engine.higher_order.call import Call
from stretto._engine.higher_order.callback import IoCallback, PureCallback
from stretto._engine.higher_order.checkpoint import Checkpoint
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.custom_derivatives import CustomJvp, CustomVjp
from stretto._engine.higher_order.custom_vmap import CustomVmap
from stretto._engine.higher_order.implicit import CustomLinearSolve
from stretto._engine.higher_order.reduce import Reduce, ReduceWindow
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.while_loop import While
from stretto._engine.ops.collective.primitives import (
    AllGather,
    AllToAll,
    AxisIndex,
    PPermute,
    PSum,
    PSumScatter,
)
from stretto.compat.jax.avals import aval_of, type_of_aval
from stretto.compat.jax.jaxprs.arrays import window_params, windows_of
from stretto.compat.jax.jaxprs.primitive import find_primitive
from stretto.compat.jax.jaxprs.views import (
    NONE,
    Entry,
    Field,
    Fixed,
    closed_jaxpr_of,
    eval_jaxpr,
    meant,
    open_jaxpr_of,
    spell,
    spell_by_hand,
)
from stretto.compat.jax.util import WrappedFun, wrap_init

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
