"""Compute formulas written by hand in another way, where that keeps the digits they lose.

``log(1 - sigmoid(x))`` is infinite where ``sigmoid(x)`` rounds to 1, and its slope infinity times
zero. While operations are traced or differentiated, a result may remember what formula it is the
value of (``Form``); the rules here, one for each primitive, make such notes, and answer an
operation on noted values with its stable form. ``wiring`` gives the rules to the primitives, whose
``formed`` they are; ``core/recorder`` and ``autodiff/jvp`` ask them.

A rule answers only where the stable form is, for every real argument, as near to the exact value or
nearer, infinities and NaN included (decision 64).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import stretto.numpy as snp
from stretto._engine.core.interpreter import Form, form_of, state
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.recorder import element_of
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array
from stretto._engine.ops import arithmetic, exponential, trigonometric
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum, broadcast_to
from stretto._engine.ops.comparison import Select, eq, full_like, lt, ne, select, zeros_like
from stretto._engine.ops.exponential import expm1, log1p, logistic
from stretto._engine.ops.layout import Reshape, reshape
from stretto._engine.ops.reducing.reduce import reduce_max
from stretto._engine.ops.trigonometric import sech_squared

_Answer: TypeAlias = "Array | Form | None"

_GUARDED = Form("guarded")
"""Stands for what a ``select`` gives, or minus a magnitude: who writes ``log1p(exp(-abs(x)))`` has
seen to it that nothing overflows."""


def _said(words: str, stable: Callable[..., Array]) -> Callable[..., Array]:
    """Return the stable form, which ``explain`` reports in these words."""

    def form(*of: Array) -> Array:
        recorder = state.interpreter.recorder
        if recorder is not None:
            recorder.noted.append((words, recorder.locate()))
        return stable(*of)

    return form


def _later(name: str) -> Callable[..., Array]:
    """Return the function of ``normalized``, which is not loaded before it is needed."""

    def function(*of: Array) -> Array:
        return getattr(snp.normalized, name)(*of)

    return function


_softplus, _log1mexp = _later("softplus"), _later("log1mexp")


def _log_softmax(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the logarithm; beside an infinite element others are 0 as it is written, not NaN."""
    shape = tuple([1 if d in axes else n for d, n in enumerate(x.shape)])
    top = broadcast_to(reshape(reduce_max(x, axes), shape), x.shape)
    infinite = full_like(x, math.inf)
    beside = eq(top, infinite) & ne(x, infinite)
    return select(beside, -infinite, _later("log_softmax")(x, axes))


def _real(x: Array) -> bool:
    return kind_of(x.dtype) == "float"


def _is_one(x: Array) -> bool:
    return element_of(x) == 1


def _noted(kind: str) -> Callable[..., _Answer]:
    """Return the rule of a function whose result is noted with its argument."""
    return lambda primitive, x: Form(kind, x) if _real(x) else None


_NEGATED = {
    "exp": "-exp",
    "logistic": "-logistic",
    "expm1": "1-exp",
    "abs": "guarded",
    "guarded": "guarded",
}


def _neg(primitive: Primitive, x: Array) -> _Answer:
    form = form_of(x)
    if form is not None and form.kind in _NEGATED:
        return Form(_NEGATED[form.kind], *form.of)
    # Not again: a chain of notes would keep all its values alive.
    return Form("-", x) if _real(x) and (form is None or form.kind != "-") else None


def _minus(x: Array) -> Array:
    """Negate ``x``; of a negative, return what was negated."""
    form = form_of(x)
    return form.of[0] if form is not None and form.kind == "-" else -x


def _guarded(x: Array) -> bool:
    form = form_of(x)
    return form is not None and form.kind == "guarded"


def _select(primitive: Primitive, which: Array, *cases: Array) -> _Answer:
    return _GUARDED


def _add(primitive: Primitive, x: Array, y: Array) -> _Answer:
    if _is_one(x):
        x, y = y, x
    if not _is_one(y) or not _real(x):
        return None
    form = form_of(x)
    if form is not None and form.kind == "exp":
        return Form("1+exp", *form.of)
    return Form("1+", x) if form is None or form.kind != "1+" else None


def _sub(primitive: Primitive, x: Array, y: Array) -> _Answer:
    form = form_of(y)
    if form is not None and form.kind in _LESS_THAN_ONE and _is_one(x):
        return _LESS_THAN_ONE[form.kind](*form.of)
    form = form_of(x)
    if form is not None and form.kind == "exp" and _is_one(y):
        return _EXPM1(*form.of)
    form = form_of(y)
    again = form is not None and form.kind == "1-"
    return Form("1-", y) if _real(y) and _is_one(x) and not again else None


_LESS_THAN_ONE: dict[str, Callable[..., Array]] = {
    "exp": _said("1 - exp(x) as -expm1(x)", lambda x: -expm1(x)),
    "logistic": _said("1 - sigmoid(x) as sigmoid(-x)", lambda x: logistic(_minus(x))),
    "tanh squared": _said("1 - tanh(x)**2 as sech(x)**2", sech_squared),
}
"""Gives what 1 minus a value is."""

_EXPM1 = _said("exp(x) - 1 as expm1(x)", expm1)


def _mul(primitive: Primitive, x: Array, y: Array) -> _Answer:
    return _square(primitive, x) if x is y else None


def _square(primitive: Primitive, x: Array) -> _Answer:
    form = form_of(x)
    return Form("tanh squared", *form.of) if form is not None and form.kind == "tanh" else None


def _div(primitive: Primitive, x: Array, y: Array) -> _Answer:
    below = form_of(y)
    if below is None:
        return None
    above = form_of(x)
    if below.kind == "1+exp":
        (z,) = below.of
        if _is_one(x):
            return _LOGISTIC(_minus(z))
        if above is not None and above.kind == "exp" and above.of[0] is z:
            return _LOGISTIC(z)
    elif below.kind == "sum of exp" and above is not None and above.kind == "exp":
        z, axes, origins = below.of
        stays = [d == o or (o is None and d in axes) for d, o in enumerate(origins)]
        if above.of[0] is z and len(stays) == z.ndim and all(stays):
            return Form("softmax", z, axes)
    return None


_LOGISTIC = _said("1 / (1 + exp(-x)) as sigmoid(x)", logistic)


def _reduce_sum(primitive: ReduceSum, x: Array) -> _Answer:
    form = form_of(x)
    if form is None or form.kind != "exp" or not primitive.axes:
        return None
    left = [d for d in range(x.ndim) if d not in primitive.axes]
    return Form("sum of exp", *form.of, tuple(sorted(primitive.axes)), tuple(left))


def _broadcast(primitive: BroadcastInDim, x: Array) -> _Answer:
    form = form_of(x)
    if form is None or form.kind != "sum of exp":
        return None
    z, axes, origins = form.of
    places: list[int | None] = [None] * len(primitive.shape)
    for d, origin in zip(primitive.dims, origins, strict=True):
        places[d] = origin
    return Form("sum of exp", z, axes, tuple(places))


def _reshape(primitive: Reshape, x: Array) -> _Answer:
    """Axes of size 1 come or go."""
    form = form_of(x)
    if form is None or form.kind != "sum of exp" or x.type.varies:
        return None
    z, axes, origins = form.of
    rest = [o for o, n in zip(origins, x.shape, strict=True) if n != 1]
    if [n for n in primitive.shape if n != 1] != [n for n in x.shape if n != 1]:
        return None
    moving = iter(rest)
    return Form(
        "sum of exp", z, axes, tuple([next(moving) if n != 1 else None for n in primitive.shape])
    )


def _log(primitive: Primitive, x: Array) -> _Answer:
    form = form_of(x)
    if form is None or form.kind not in _LOGS or (form.kind == "1-exp" and _guarded(form.of[0])):
        return None
    return _LOGS[form.kind](*form.of)


def _log_sech_squared(x: Array) -> Array:
    # log(1 - tanh²(x)) = 2 (log 2 - |x| - log(1 + e^(-2 |x|))), which cancels near 0
    near = lt(x * x, full_like(x, 1))
    inner = trigonometric.tanh(select(near, x, zeros_like(x)))
    size = select(lt(x, zeros_like(x)), -x, x)
    beyond = full_like(x, math.log(2)) - size - _softplus(full_like(x, -2) * size)
    return select(near, log1p(-(inner * inner)), full_like(x, 2) * beyond)


_LOGS: dict[str, Callable[..., Array]] = {
    "exp": _said("log(exp(x)) as x", lambda x: x),
    "1+": _said("log(1 + x) as log1p(x)", log1p),
    "1-": _said("log(1 - x) as log1p(-x)", lambda x: log1p(_minus(x))),
    "1+exp": _said("log(1 + exp(x)) as softplus(x)", _softplus),
    "1-exp": _said("log(1 - exp(x)) as log1mexp(-x)", lambda x: _log1mexp(_minus(x))),
    "logistic": _said("log(sigmoid(x)) as log_sigmoid(x)", lambda x: -_softplus(_minus(x))),
    "sech squared": _said("log(sech(x)**2) by log1p(exp(-2 * abs(x)))", _log_sech_squared),
    "softmax": _said("log(softmax(x)) as log_softmax(x)", _log_softmax),
}
"""Gives what the logarithm of a value is."""


def _log1p(primitive: Primitive, x: Array) -> _Answer:
    form = form_of(x)
    if form is None or form.kind not in _LOGS_1P or _guarded(form.of[0]):
        return None
    return _LOGS_1P[form.kind](*form.of)


_LOGS_1P: dict[str, Callable[..., Array]] = {
    "exp": _said("log1p(exp(x)) as softplus(x)", _softplus),
    "-exp": _said("log1p(-exp(x)) as log1mexp(-x)", lambda x: _log1mexp(_minus(x))),
    "-logistic": _said("log1p(-sigmoid(x)) as log_sigmoid(-x)", lambda x: -_softplus(x)),
}
"""Gives what the logarithm of 1 plus a value is."""


_RULES: dict[type[Primitive], Callable[..., _Answer]] = {
    arithmetic.Abs: _noted("abs"),
    arithmetic.Add: _add,
    arithmetic.Div: _div,
    arithmetic.Mul: _mul,
    arithmetic.Neg: _neg,
    arithmetic.Square: _square,
    arithmetic.Sub: _sub,
    BroadcastInDim: _broadcast,
    exponential.Exp: _noted("exp"),
    exponential.Expm1: _noted("expm1"),
    exponential.Log: _log,
    exponential.Log1p: _log1p,
    exponential.Logistic: _noted("logistic"),
    ReduceSum: _reduce_sum,
    Reshape: _reshape,
    Select: _select,
    trigonometric.SechSquared: _noted("sech squared"),
    trigonometric.Tanh: _noted("tanh"),
}


def attach() -> None:
    """Give the primitives their rules."""
    for primitive, rule in _RULES.items():
        primitive.formed = rule
