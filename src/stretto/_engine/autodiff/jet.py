"""Taylor series: each value travels with its derivatives along a curve.

For y(t) = f(x(t)) the rule is the one for first derivatives: y' is what the jvp rule of f makes of
x and x', taken as series of one term less. Terms are computed when they are asked for, so that a
derivative may be written with the value itself, as that of exp is. Products and quotients have
rules of their own (``Primitive.taylor``), which cost less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.interpreter import Interpreter, Tracer, Value, state
from stretto._engine.core.threads import holding
from stretto._engine.core.types import is_inexact
from stretto._engine.ops.comparison import zeros_like


class Series(Tracer):
    """A value and its derivatives along the curve, as far as they were asked for.

    Args:
        interpreter: the one that it belongs to.
        first: the value; None if it is computed when it is asked for.
        type: the type of all terms.
        more: computes a term, from all before it; None stands for zero.
    """

    __slots__ = ("_derivative", "_more", "_terms")

    def __init__(
        self, interpreter: Expander, first: Any, type: Any, more: Callable[[int], Any]
    ) -> None:
        self.interpreter = interpreter
        self.type = type
        self._terms: list[Any] = [] if first is None else [first]
        self._more = more
        self._derivative: Series | None = None

    position = None  # type: ignore[assignment]

    def term(self, k: int) -> Any:
        """Return the derivative of order ``k``, None for zero; of order 0, the value."""
        while len(self._terms) <= k:
            self._terms.append(self._more(len(self._terms)))
        return self._terms[k]

    def derivative(self) -> Series:
        """Return the series of the derivative, which has one term less."""
        if self._derivative is None:
            self._derivative = Series(self.interpreter, None, self.type, self._following)
        return self._derivative

    def _following(self, k: int) -> Any:
        """Return term ``k`` of the derivative, whose value is there even if it is zero."""
        term = self.term(k + 1)
        if term is None and k == 0:
            parent = self.interpreter.parent
            return holding(state, "interpreter", parent, zeros_like, self.term(0))
        return term

    def origin(self) -> str:
        """Say where the value comes from."""
        first = self.term(0)
        return first.origin() if isinstance(first, Tracer) else "a value expanded as a series"

    def concrete(self) -> Any:
        """Return the value if it is concrete: Python may branch on it."""
        first = self.term(0)
        return first.concrete() if isinstance(first, Tracer) else first


class Expander(Interpreter):
    """Computes series up to an order; the rules' operations go to the interpreter around it."""

    __slots__ = ("_known", "_within", "ended", "order", "parent", "recorder")

    def __init__(self, order: int) -> None:
        self.parent = state.interpreter
        self.recorder = self.parent.recorder
        self.order = order
        self.ended = False
        self._within = False
        self._known: dict[Any, tuple[Any, Any]] = {}

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Return the outputs' series if any argument is one; otherwise hand the operation on."""
        if not any([self.owns(a) for a in args]):
            return self.parent.process(primitive, args)
        called = primitive.called() if primitive.holds_programs else None
        if called is not None:
            return tuple(evaluate(called, args))
        # A rule that computes the same operation of the same values again means these series.
        key = (primitive, tuple(map(id, args)))
        if key in self._known:
            return self._known[key][1]
        outs = self._expanded(primitive, args)
        result = tuple(outs) if primitive.multiple else outs[0]
        self._known[key] = (args, result)
        if not self._within:  # an operation of the function's: nothing is left for later
            for out in outs:
                if self.owns(out):
                    out.term(self.order)
            self._known.clear()
        return result

    def owns(self, x: Any) -> bool:
        """Say if it is a series of this interpreter's."""
        return x.__class__ is Series and x.interpreter is self

    def terms(self, x: Any) -> list[Any]:
        """Return the value, then its derivatives up to the order."""
        if self.owns(x):
            return [x.term(k) for k in range(self.order + 1)]
        return [x] + [None] * self.order

    def _expanded(self, primitive: Any, args: Sequence[Any]) -> list[Any]:
        values = [a.term(0) if self.owns(a) else a for a in args]
        result = holding(state, "interpreter", self.parent, primitive, *values)
        outs = result if primitive.multiple else (result,)
        slopes: list[Any] = []

        def slope(i: int) -> Any:
            if not slopes:
                slopes.extend(self._slopes(primitive, args))
            return slopes[i]

        def from_slope(i: int, k: int) -> Any:
            dy = slope(i)
            if self.owns(dy):
                return dy.term(k - 1)
            return dy if k == 1 else None

        made: list[Any] = []
        for i, out in enumerate(outs):
            if not is_inexact(out.dtype):
                made.append(out)
                continue
            if primitive.taylor is None:
                more: Any = lambda k, i=i: from_slope(i, k)
            else:
                more = lambda k: self._by_rule(primitive, made[0], args, k)
            made.append(Series(self, out, out.type, more))
        return made

    def _slopes(self, primitive: Any, args: Sequence[Any]) -> Sequence[Any]:
        """Return the derivatives of the outputs, as series, by the jvp rule."""
        tangents = [a.derivative() if self.owns(a) else None for a in args]
        within, self._within = self._within, True
        try:
            _, found = holding(state, "interpreter", self, primitive.jvp, list(args), tangents)
        finally:
            self._within = within
        return found if primitive.multiple else (found,)

    def _by_rule(self, primitive: Any, out: Series, args: Sequence[Any], k: int) -> Any:
        terms = [a.term if self.owns(a) else _constant(a) for a in args]
        return holding(state, "interpreter", self.parent, primitive.taylor, k, out.term, *terms)


def _constant(value: Any) -> Callable[[int], Any]:
    return lambda k: None if k else value


def jet_flat(
    fun: Callable[..., Sequence[Value]], series: Sequence[Sequence[Any]], order: int
) -> list[list[Any]]:
    """Give the outputs of ``fun`` and their derivatives up to an order, for those of the arguments.

    ``series`` has for each argument its value, then its derivatives; None stands for zero.
    """
    expander = Expander(order)
    expander.begin(fun)

    def argument(terms: Sequence[Any]) -> Any:
        rest = [*terms[1 : order + 1], *[None] * (order + 1 - len(terms))]
        if not is_inexact(terms[0].dtype) or not any([t is not None for t in rest]):
            return terms[0]
        return Series(expander, terms[0], terms[0].type, lambda k: rest[k - 1])

    def expanded() -> list[list[Any]]:
        return [expander.terms(out) for out in fun(*map(argument, series))]

    try:
        return holding(state, "interpreter", expander, expanded)
    finally:
        expander.ended = True
