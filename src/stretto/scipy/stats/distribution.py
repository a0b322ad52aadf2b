"""Distributions: the arguments, location, scale and edges of the support that all have.

A distribution gives formulas for its standard form; the public methods here add what holds for all
of them: arguments of one dtype that broadcast, ``y = (x - loc) / scale``, -inf or 0 outside the
support, NaN for parameters that are not allowed, and derivatives that are finite wherever the
function is.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stretto._engine import core
from stretto._engine.core.functions import described
from stretto._engine.core.lazy import shown
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values
from stretto.numpy.arithmetic import floor
from stretto.numpy.elementary import exp, log
from stretto.numpy.logic import isfinite, isnan
from stretto.numpy.searching import where

if TYPE_CHECKING:
    from stretto._engine.core.cards import Card

_SHARED = (
    "Its methods take a value, and these parameters, by position or by name. All are promoted and\n"
    "broadcast together; the result is NaN where a parameter is out of its range."
)
"""The words of all distributions' docstrings after the first sentence."""


@shown("stretto.scipy.stats.distribution", "card_of")
class Distribution:
    """A distribution: its parameters, and public methods that take them by position or by name."""

    shapes: ClassVar[tuple[str, ...]] = ()
    """The parameters besides location and scale."""
    placing: ClassVar[dict[str, float]] = {"loc": 0, "scale": 1}
    """Location and scale, where the distribution takes them, with their defaults."""
    placed: ClassVar[dict[str, str]] = {
        "loc": "the location; 0 by default.",
        "scale": "the scale, positive; 1 by default.",
    }
    """The words of docstrings about them."""
    methods: ClassVar[dict[str, str]] = {}
    """The public methods, and the name of the first argument of each."""

    def __init_subclass__(cls) -> None:
        """Complete the docstring, and give public methods the signature of these parameters."""
        if cls.__doc__ and cls.__module__ != __name__:  # the kinds are in this module
            cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("\n\n", f"\n\n{_SHARED}\n\n", 1)
            described(cls.placed, names=(*cls.shapes, *cls.placing))(cls)
        for name, first in cls.methods.items():
            setattr(cls, name, _public(name, first, cls))

    @property
    def name(self) -> str:
        """The name users know it by."""
        return type(self).__name__.lower()

    def __repr__(self) -> str:
        return f"<distribution {self.name}: {', '.join(self.methods)}>"

    def allowed(self, *shapes: Array) -> Array | bool:
        """Say where the parameters are allowed: by default, where all are positive."""
        return functools.reduce(operator.and_, [x > 0 for x in shapes]) if shapes else True

    def support(self, *shapes: Array) -> tuple[ArrayLike, ArrayLike]:
        """Return the smallest and the largest value of the standard form."""
        return -math.inf, math.inf

    def inner(self, *shapes: Array) -> ArrayLike:
        """Return a value inside the support: what formulas get in place of one outside."""
        return 0.0


def _public(name: str, first: str, cls: type[Distribution]) -> Callable[..., Array]:
    """Return the method that binds arguments to names, promotes them, and calls ``_{name}_of``."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(n, kind) for n in ("self", first, *cls.shapes)]
    parameters += [inspect.Parameter(n, kind, default=v) for n, v in cls.placing.items()]
    signature = inspect.Signature(parameters)
    body = getattr(cls, f"_{name}_of")

    @rounded_once
    @functools.wraps(body)
    def method(self: Distribution, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        caller = f"{self.name}.{name}"
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            expected = signature.replace(parameters=parameters[1:])
            raise TypeError(f"{caller}: {error}; it takes {expected}") from None
        bound.apply_defaults()
        _, *values = bound.arguments.values()
        x, *values = promote_values(caller, *values, inexact=True)
        check_kind(caller, FLOAT, x.type)
        shapes, placement = values[: len(cls.shapes)], values[len(cls.shapes) :]
        return body(self, x, shapes, *placement)

    method.__name__ = method.__qualname__ = name
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


class Density(Distribution):
    """A continuous distribution with a density."""

    methods: ClassVar[dict[str, str]] = {"logpdf": "x", "pdf": "x"}

    if TYPE_CHECKING:  # what ``methods`` names, made by ``_public``

        def logpdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the logarithm of the probability density: -inf outside the support."""
            ...

        def pdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the probability density: 0 outside the support."""
            ...

    def logpdf_formula(self, y: Array, *shapes: Array) -> Array:
        """Return the logarithm of the density of the standard form, inside the support."""
        raise NotImplementedError

    def _is_valid(self, y: Array, shapes: Sequence[Array], scale: Array | float) -> Array:
        return (scale > 0) & self.allowed(*shapes) & ~isnan(y)

    def _inside(self, y: Array, shapes: Sequence[Array]) -> tuple[Array, Array]:
        """Say where y is in the support, and y with the others replaced by an inner value."""
        low, high = self.support(*shapes)
        inside = (y >= low) & (y <= high) & isfinite(y)
        return inside, where(inside, y, self.inner(*shapes))

    def _logpdf_of(
        self,
        x: Array,
        shapes: Sequence[Array],
        loc: Array | float = 0.0,
        scale: Array | float = 1.0,
    ) -> Array:
        """Return the logarithm of the probability density: -inf outside the support."""
        y = (x - loc) / scale
        inside, safe = self._inside(y, shapes)
        out = where(inside, self.logpdf_formula(safe, *shapes) - log(scale), -math.inf)
        return where(self._is_valid(y, shapes, scale), out, math.nan)

    def _pdf_of(self, x: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the probability density: 0 outside the support."""
        return exp(self._logpdf_of(x, shapes, *placement))


class Continuous(Density):
    """A continuous distribution with a cumulative distribution function too."""

    methods: ClassVar[dict[str, str]] = {
        **Density.methods,
        "cdf": "x",
        "logcdf": "x",
        "sf": "x",
        "logsf": "x",
    }

    if TYPE_CHECKING:  # what ``methods`` names, made by ``_public``

        def cdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the probability of a value of at most the first argument."""
            ...

        def logcdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the logarithm of ``cdf``."""
            ...

        def sf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the survival function: the probability of a greater value."""
            ...

        def logsf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the logarithm of ``sf``."""
            ...

    def cdf_formula(self, y: Array, *shapes: Array) -> Array:
        """Return the probability of at most y, inside the support."""
        raise NotImplementedError

    def sf_formula(self, y: Array, *shapes: Array) -> Array:
        """Return the probability of more than y, inside the support."""
        return 1 - self.cdf_formula(y, *shapes)

    def logcdf_formula(self, y: Array, *shapes: Array) -> Array:
        """Return the logarithm of ``cdf_formula``; overridden where it can be more accurate."""
        return log(self.cdf_formula(y, *shapes))

    def logsf_formula(self, y: Array, *shapes: Array) -> Array:
        """Return the logarithm of the probability of more than y."""
        return log(self.sf_formula(y, *shapes))

    def _cumulative(
        self,
        formula: Callable[..., Array],
        ends: tuple[float, float],
        x: Array,
        shapes: Sequence[Array],
        loc: Array | float = 0.0,
        scale: Array | float = 1.0,
    ) -> Array:
        y = (x - loc) / scale
        inside, safe = self._inside(y, shapes)
        low, _ = self.support(*shapes)
        out = where(inside, formula(safe, *shapes), where(y <= low, ends[0], ends[1]))
        return where(self._is_valid(y, shapes, scale), out, math.nan)

    def _cdf_of(self, x: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the probability of a value of at most ``x``."""
        return self._cumulative(self.cdf_formula, (0, 1), x, shapes, *placement)

    def _logcdf_of(self, x: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the logarithm of the probability of a value of at most ``x``."""
        return self._cumulative(self.logcdf_formula, (-math.inf, 0), x, shapes, *placement)

    def _sf_of(self, x: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the survival function: the probability of a value above ``x``."""
        return self._cumulative(self.sf_formula, (1, 0), x, shapes, *placement)

    def _logsf_of(self, x: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the logarithm of the probability of a value above ``x``."""
        return self._cumulative(self.logsf_formula, (0, -math.inf), x, shapes, *placement)


class Invertible(Continuous):
    """A continuous distribution with quantiles too."""

    methods: ClassVar[dict[str, str]] = {**Continuous.methods, "ppf": "q", "isf": "q"}

    if TYPE_CHECKING:  # what ``methods`` names, made by ``_public``

        def ppf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the quantile, the inverse of ``cdf``."""
            ...

        def isf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the inverse of ``sf``."""
            ...

    def ppf_formula(self, q: Array, *shapes: Array) -> Array:
        """Return the y at which the cumulative distribution is q."""
        raise NotImplementedError

    def isf_formula(self, q: Array, *shapes: Array) -> Array:
        """Return the y at which the survival function is q."""
        return self.ppf_formula(1 - q, *shapes)

    def _quantile(
        self,
        formula: Callable[..., Array],
        ends: tuple[ArrayLike, ArrayLike],
        q: Array,
        shapes: Sequence[Array],
        loc: Array | float = 0.0,
        scale: Array | float = 1.0,
    ) -> Array:
        inside = (q > 0) & (q < 1)
        y = where(inside, formula(where(inside, q, 0.5), *shapes), where(q == 0, *ends))
        valid = (q >= 0) & (q <= 1) & self._is_valid(q, shapes, scale)
        return where(valid, y * scale + loc, math.nan)

    def _ppf_of(self, q: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the quantile: the value at which the ``cdf`` is ``q``; NaN outside [0, 1]."""
        ends = self.support(*shapes)
        return self._quantile(self.ppf_formula, ends, q, shapes, *placement)

    def _isf_of(self, q: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the value at which the survival function is ``q``; NaN outside [0, 1]."""
        low, high = self.support(*shapes)
        return self._quantile(self.isf_formula, (high, low), q, shapes, *placement)


class Discrete(Distribution):
    """A distribution on integers, with their probabilities."""

    placing: ClassVar[dict[str, float]] = {"loc": 0}
    placed: ClassVar[dict[str, str]] = {
        "loc": "the location; 0 by default. Values are shifted by it."
    }
    methods: ClassVar[dict[str, str]] = {"logpmf": "k", "pmf": "k"}

    if TYPE_CHECKING:  # what ``methods`` names, made by ``_public``

        def logpmf(self, k: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the logarithm of the probability: -inf where it is not one of the values."""
            ...

        def pmf(self, k: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the probability of the value."""
            ...

    def logpmf_formula(self, k: Array, *shapes: Array) -> Array:
        """Return the logarithm of the probability of an integer inside the support."""
        raise NotImplementedError

    def _logpmf_of(self, k: Array, shapes: Sequence[Array], loc: Array | float = 0.0) -> Array:
        """Return the logarithm of the probability of ``k``, -inf where it is none of the values."""
        k = k - loc
        low, high = self.support(*shapes)
        inside = (k >= low) & (k <= high) & (k < math.inf) & (k == floor(k))
        safe = where(inside, k, self.inner(*shapes))
        out = where(inside, self.logpmf_formula(safe, *shapes), -math.inf)
        return where(self.allowed(*shapes) & ~isnan(k), out, math.nan)

    def _pmf_of(self, k: Array, shapes: Sequence[Array], *placement: Array) -> Array:
        """Return the probability of ``k``."""
        return exp(self._logpmf_of(k, shapes, *placement))


class Cumulative(Discrete):
    """A distribution on integers, also with the probabilities of at most each of them."""

    methods: ClassVar[dict[str, str]] = {**Discrete.methods, "cdf": "k"}

    if TYPE_CHECKING:  # what ``methods`` names, made by ``_public``

        def cdf(self, k: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the probability of a value of at most the first argument."""
            ...

    def cdf_formula(self, k: Array, *shapes: Array) -> Array:
        """Return the probability of at most k, inside the support."""
        raise NotImplementedError

    def _cdf_of(self, k: Array, shapes: Sequence[Array], loc: Array | float = 0.0) -> Array:
        """Return the probability of a value of at most ``k``."""
        k = floor(k - loc)
        low, high = self.support(*shapes)
        inside = (k >= low) & (k < high)
        safe = where(inside, k, self.inner(*shapes))
        out = where(inside, self.cdf_formula(safe, *shapes), where(k < low, 0, 1))
        return where(self.allowed(*shapes) & ~isnan(k), out, math.nan)


def card_of(distribution: Distribution) -> Card:
    """Show a distribution, and its density where the standard form has no parameters."""
    parameters = [*distribution.shapes, *[f"{n}={v}" for n, v in distribution.placing.items()]]
    body = (
        core.cards.line(f"parameters: {', '.join(parameters) or 'none'}"),
        core.cards.line(f"methods: {', '.join(distribution.methods)}"),
    )
    facts: tuple[str, ...] = ()
    picture = ""
    if not distribution.shapes:
        low, high = [float(edge) for edge in distribution.support()]  # type: ignore[arg-type]
        facts = (f"support from {low:g} to {high:g}",)
        picture = _density(distribution, low, high)
    return core.cards.Card(f"distribution {distribution.name}", facts, body, picture=picture)


def _density(distribution: Distribution, low: float, high: float) -> str:
    """Draw the curve of the standard form's density, over most of the support."""
    pdf: Any = getattr(distribution, "pdf", None)
    if pdf is None:
        return ""
    start, stop = max(low, -5.0 if high > 0 else -10.0), min(high, 5.0 if low < 0 else 8.0)
    margin = 0.1 * (stop - start)
    places = np.linspace(start - margin, stop + margin, 200, dtype=np.float32)
    return core.cards.curve(np.asarray(pdf(places), np.float64))
