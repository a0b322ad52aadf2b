"""The law of slopes: in float32, of each function of one real number, against those in float64.

A derivative that is computed from a saturated output, as 1 - tanh(x)² is, has no digit left where
the output rounds to its limit, however well the function itself is computed. The law takes a dense
grid over ±80, with small numbers and neighbours of ±1, and compares derivatives of first and second
order in float32, forward and reverse, at rest and compiled, with those in float64.

The tolerance: 32 units in the last place, times 1 + |x g'(x) / g(x)| for a derivative g. That
factor is the condition number: a function of x cannot be known better than rounding x once allows,
and every formula rounds on its way to x. The units are for the operations of a formula, ten to
twenty of which are off by a unit or two each. What lies below float32's least normal number counts
as 0, as compiled programs flush it; a factor of a product is flushed as well, so that bound grows
with the polynomial that an exponential is multiplied by, |x|³ at most.

Softmax of more than two classes is not here, nor cross-entropy of more than 32: to leave the sure
class out of a sum costs up to three times as much as the sum of all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.compat.jax import nn as jax_nn
from stretto.nn import functional as F
from stretto.scipy import stats
from tests.functions import table

UNITS = 32
LEAST = float(np.finfo(np.float32).tiny)
MOST = float(np.finfo(np.float32).max)

_SIZES = np.concatenate(
    [
        np.arange(0, 80.01, 0.73),
        np.logspace(-12, 1.9, 60),
        1 - np.logspace(-6, -1, 8),
        1 + np.logspace(-6, -1, 8),
        np.arange(0, 10),
    ]
)
GRID = np.unique(np.concatenate([-_SIZES, _SIZES]).astype(np.float32))

_PROBE = np.array([0.3, 0.7, -0.4, 0.55], np.float32)


def elementwise(name: str) -> bool:
    """Whether an entry of the table is a function of one array of floats, element by element."""
    entry = table.ENTRIES[name]
    if entry.undifferentiated or not any("f32" in d for d in entry.dtypes):
        return False
    alone = [c for c in entry.calls if len(c.args) == 1 and not c.kwargs]
    if not alone or not isinstance(alone[0].args[0], table.Draw):
        return False
    try:
        out, moved = entry.function(_PROBE), entry.function(np.roll(_PROBE, 1))
    except (TypeError, ValueError):
        return False  # of integers, or of a matrix
    return _each_alone(entry.function, out, moved)


def _each_alone(function: Callable, out: object, moved: object) -> bool:
    """Whether the results for the probe, and for it moved by one, are made element by element."""
    if not isinstance(out, st.Array) or out.shape != (4,) or out.dtype != np.float32:
        return False
    alone = np.asarray(function(_PROBE[:2]))
    both = np.asarray(out), np.roll(np.asarray(moved), -1)
    return np.array_equal(*both, equal_nan=True) and np.allclose(alone, both[0][:2], equal_nan=True)


def _activations(module) -> dict[str, Callable]:
    """The public functions of a module that take one array and need nothing else."""
    found = {}
    for name in sorted(dir(module)):
        function = getattr(module, name)
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        try:
            out, moved = function(_PROBE), function(np.roll(_PROBE, 1))
        except Exception:
            continue  # it needs other arguments, a key, or a matrix
        if _each_alone(function, out, moved):
            found[f"{module.__name__.removeprefix('stretto.')}.{name}"] = function
    return found


DISTRIBUTIONS = {
    "cauchy": (),
    "expon": (),
    "gumbel_l": (),
    "gumbel_r": (),
    "laplace": (),
    "logistic": (),
    "norm": (),
    "pareto": (2.5,),
    "t": (4.0,),
    "uniform": (),
}
METHODS = ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf")

OTHERS: dict[str, Callable] = {
    "gelu(approximate=False)": lambda x: jax_nn.gelu(x, approximate=False),
    "gelu(approximate=True)": lambda x: jax_nn.gelu(x, approximate=True),
    "functional.gelu('tanh')": lambda x: F.gelu(x, "tanh"),
    "functional.softplus(beta=2)": lambda x: F.softplus(x, beta=2.0),
    "functional.softplus(beta=0.5)": lambda x: F.softplus(x, beta=0.5),
    "logaddexp(x, 0)": lambda x: snp.logaddexp(x, 0.0),
    "logaddexp(-3, x)": lambda x: snp.logaddexp(-3.0, x),
    "logaddexp(x, -x)": lambda x: snp.logaddexp(x, -x),
    "xlogy(2, x)": lambda x: st.special.xlogy(2.0, x),
    "xlogy(x, 2)": lambda x: st.special.xlogy(x, 2.0),
    "xlog1py(2, x)": lambda x: st.special.xlog1py(2.0, x),
    "hypot(x, 1)": lambda x: snp.hypot(x, 1.0),
    "arctan2(x, 1)": lambda x: snp.arctan2(x, 1.0),
    "arctan2(1, x)": lambda x: snp.arctan2(1.0, x),
    "sigmoid(x) of two classes": lambda x: nn.softmax(snp.stack([x, 0 * x]), 0)[0],
    "softmax of two classes, the other": lambda x: nn.softmax(snp.stack([x, 0 * x]), 0)[1],
    "log_softmax of two classes": lambda x: nn.log_softmax(snp.stack([x, 0 * x]), 0)[0],
    "softmax of two classes, both vary": lambda x: nn.softmax(snp.stack([x, -x]), 0)[0],
    **{
        f"binary_cross_entropy_with_logits(x, {t})": lambda x, t=t: (
            F.binary_cross_entropy_with_logits(x, t + 0 * x, reduction="none")
        )
        for t in (0.0, 1.0, 0.3)
    },
    **{
        f"cross_entropy of {n} classes, {label}": lambda x, n=n, label=label: F.cross_entropy(
            snp.stack([x, *[i * 0.25 - 0 * x for i in range(n - 1)]], -1),
            snp.full(x.shape, label),
            reduction="none",
        )
        for n in (2, 3)
        for label in (0, 1)
    },
}


def functions() -> dict[str, Callable]:
    """All that the law is for, by name."""
    found = {name: table.ENTRIES[name].function for name in table.ENTRIES if elementwise(name)}
    found.update(_activations(nn))
    found.update(_activations(F))
    found.update(_activations(jax_nn))
    for name, shapes in DISTRIBUTIONS.items():
        for method in METHODS:
            function = getattr(getattr(stats, name), method)
            found[f"{name}.{method}"] = lambda x, f=function, shapes=shapes: f(x, *shapes)
    # One of those that are traced to the same program.
    first: dict[str, str] = {}
    for name, function in {**found, **OTHERS}.items():
        try:
            text = str(st.make_graph(function)(snp.ones(3)))
        except st.errors.TracedValueError:
            continue  # its shape depends on values
        first.setdefault(text.partition("\n")[2], name)
    return {name: {**found, **OTHERS}[name] for name in first.values()}


def _total(f: Callable) -> Callable:
    return lambda x: snp.sum(f(x))


def forward(f: Callable) -> Callable:
    """The derivative, by jvp."""
    return lambda x: st.jvp(f, (x,), (snp.ones_like(x),))[1]


def reverse(f: Callable) -> Callable:
    """The derivative, by grad."""
    return st.grad(_total(f))


WAYS: dict[str, tuple[Callable, Callable]] = {
    "forward": (forward, lambda f: f),
    "reverse": (reverse, lambda f: f),
    "forward, compiled": (forward, st.jit),
    "reverse, compiled": (reverse, st.jit),
}
SECOND = ("forward", "reverse, compiled")
"""The ways that second order is taken in; all share the rules of the first."""


def units_off(f: Callable, scale: Callable[[np.ndarray], np.ndarray] = np.abs):
    """For each way and order: by how many units, at most, slopes are off; where; and the slopes.

    `scale` is the size of x that one rounding of it is relative to.
    """
    wide = GRID.astype(np.float64)
    with st.enable_x64(), np.errstate(all="ignore"):
        exact = [np.asarray(f(snp.array(wide)))]
        for k in range(3):
            g = f
            for _ in range(k + 1):
                g = forward(g)
            exact.append(np.asarray(g(snp.array(wide))))
    known = np.all([np.isfinite(v) & (np.abs(v) < MOST / 1e3) for v in exact], axis=0)
    x = snp.array(GRID)
    for order in (1, 2):
        want, then = exact[order], exact[order + 1]
        with np.errstate(all="ignore"):
            size = np.abs(want) + scale(wide) * np.abs(then)
        floor = LEAST * np.maximum(np.abs(wide), 1) ** 3
        for way in WAYS if order == 1 else SECOND:
            derive, compiled = WAYS[way]
            g = derive(f) if order == 1 else forward(derive(f))
            got = np.asarray(compiled(g)(x)).astype(np.float64)
            with np.errstate(all="ignore"):
                over = np.maximum(np.abs(got - want) - floor, 0)
                off = np.where(over == 0, 0, over / (size * 2.0**-23))
            off = np.where(known, np.where(np.isnan(off), np.inf, off), 0)
            at = int(np.argmax(off))
            yield way, order, off[at], GRID[at], got[at], want[at]
