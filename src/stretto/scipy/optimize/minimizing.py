"""The function ``minimize``: its arguments and results."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import convert
from stretto.scipy.optimize.descent import Stop, minimize_bfgs, minimize_lbfgs


class OptimizeResults(NamedTuple):
    """The result of a search.

    ``x`` is the best point, ``fun`` and ``jac`` the value and gradient there, ``hess_inv`` the
    estimate of the inverse Hessian, None for ``"L-BFGS"``. ``success`` says whether the gradient,
    or the gain of the last step, is small enough; ``status`` is 0 if so, 1 if the limit of steps or
    values was reached, 5 where a line search found no lower value. ``nit`` counts steps, ``nfev``
    and ``njev`` values and gradients.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array
    njev: Array
    nit: Array


_COMMON = {"gtol": 1e-5, "norm": float("inf")}
_OPTIONS = {
    "BFGS": {**_COMMON, "line_search_maxiter": 10, "maxiter": None},
    "L-BFGS": {
        **_COMMON,
        "ftol": 1e7 * float(np.finfo(np.float64).eps),
        "maxcor": 10,
        "maxfun": 15000,
        "maxiter": 15000,
        "maxls": 20,
    },
}
_METHODS = {"bfgs": "BFGS", "l-bfgs": "L-BFGS", "l-bfgs-experimental-do-not-rely-on-this": "L-BFGS"}


def minimize(
    fun: Callable[..., ArrayLike],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Search for a minimum of a function of a vector.

    Works inside ``jit`` and ``vmap``, where each example stops by itself. The result has forward
    derivatives only; for reverse ones see ``lax.custom_root``.

    Args:
        fun: a function of ``x`` and ``args`` that returns a real number.
        x0: where to start, a vector.
        args: further arguments of ``fun``.
        method: ``"BFGS"``; or ``"L-BFGS"`` for many variables, which uses only the last steps
            (JAX's ``"l-bfgs-experimental-do-not-rely-on-this"`` is another name for it).
        tol: a default for ``gtol`` and ``ftol``.
        options: see below.

    Returns:
        An ``OptimizeResults``.

    Raises:
        TypeError: ``x0`` is not real, or ``args`` are not a tuple.
        ValueError: ``x0`` is not a vector, or there is no such method or option.

    Options of both methods: the search ends where the ``norm`` of the gradient (its largest
    element) is less than ``gtol`` (1e-5), or after ``maxiter`` steps. For ``"BFGS"`` these are 200
    for each element of ``x0``, with ``line_search_maxiter`` values each (10). For ``"L-BFGS"`` they
    are 15000, with ``maxls`` values each (20), ``maxfun`` in all (15000), and ``maxcor`` steps in
    memory (10); it also ends where a step lowers the value by no more than ``ftol`` (2.2e-9) times
    its size, or times 1 if that is larger.

    As SciPy's ``minimize``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> result = st.scipy.optimize.minimize(
    ...     lambda x: snp.sum((x - 1) ** 2), snp.zeros(2), method="BFGS"
    ... )
    >>> result.x.round(3), bool(result.success)
    (Array([1., 1.], dtype=float32), True)
    """
    caller = "minimize"
    name = _METHODS.get(method.lower()) if isinstance(method, str) else None
    if name is None:
        bounds = isinstance(method, str) and method.lower() == "l-bfgs-b"
        raise ValueError(
            f"{caller}: method must be 'BFGS' or 'L-BFGS'; got {method!r}"
            f"{'; bounds are not supported, use L-BFGS without them' * bounds}"
        )
    if not isinstance(args, tuple):
        raise TypeError(f"{caller}: args must be a tuple of further arguments; got {args!r}")
    settings = dict(_OPTIONS[name])
    unknown = sorted(set(options or ()) - set(settings))
    if unknown:
        raise ValueError(
            f"{caller}: method {name!r} has the options {', '.join(settings)}; got "
            f"{', '.join(unknown)}"
        )
    x = as_value(x0, caller, "x0")
    if is_complex(x.dtype):
        raise TypeError(
            f"{caller}: expected real numbers, got x0 {x.type}; pass real and imaginary parts"
        )
    if x.ndim != 1 or not x.size:
        raise ValueError(
            f"{caller}: expected x0 of rank 1 and not empty, got {x.type}; use .ravel()"
        )
    x = convert(x, inexact_dtype(x.dtype))
    if tol is not None:
        settings.update({key: tol for key in ("gtol", "ftol") if key in settings})
    settings.update(options or {})
    objective = lambda x: fun(x, *args)
    if name == "BFGS":
        steps = 200 * x.size if settings["maxiter"] is None else settings["maxiter"]
        stop = Stop(steps, settings["gtol"], settings["norm"], settings["line_search_maxiter"])
        end, inverse = minimize_bfgs(objective, x, stop)
    else:
        memory = operator.index(settings["maxcor"])
        if memory < 1:
            raise ValueError(f"{caller}: maxcor must be 1 or more; got {memory}")
        stop = Stop(
            settings["maxiter"],
            settings["gtol"],
            settings["norm"],
            settings["maxls"],
            settings["ftol"],
            settings["maxfun"],
        )
        end, inverse = minimize_lbfgs(objective, x, stop, memory), None
    return OptimizeResults(
        x=end.x,
        success=end.converged,
        status=end.status(),
        fun=end.value,
        jac=end.gradient,
        hess_inv=inverse,
        nfev=end.evaluations,
        njev=end.evaluations,
        nit=end.step,
    )
