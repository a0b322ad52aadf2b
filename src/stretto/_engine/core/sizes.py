"""Sizes that are known while a program runs, and bounded while it is compiled: ``n``, ``2*n+1``.

The shape of an array may have such sizes in place of integers. They are polynomials with integer
coefficients of variables and of quotients rounded down, in a normal form, so that equal ones are
equal objects to a dictionary. What Python would need to know of them now, such as whether one is
less than another, follows from their bounds or is refused; ``core/size_guards`` adds what is known
of the sizes of a call.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeAlias

from stretto._engine.core.errors import SizeError
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.position import PACKAGE

fractions = LazyModule("fractions")


class SizeVariable(NamedTuple):
    """A variable by name, with the least and the greatest size that it stands for."""

    name: str
    least: int = 1
    most: float = math.inf

    def __str__(self) -> str:
        return self.name


class Floor(NamedTuple):
    """The quotient of a size and a positive integer, rounded down."""

    size: Size
    by: int

    def __str__(self) -> str:
        inner = f"({self.size})" if len(self.size.terms) > 1 else str(self.size)
        return f"({inner}//{self.by})"


class Positive(NamedTuple):
    """A size where it is positive, else 0."""

    size: Size

    def __str__(self) -> str:
        return f"max({self.size}, 0)"


Factor: TypeAlias = "SizeVariable | Floor | Positive"
Monomial: TypeAlias = tuple[tuple[Factor, int], ...]
"""Factors, each with its power, in the order of their text."""

Dimension: TypeAlias = "int | Size"
"""An entry of a shape."""


def size_variable(name: str, least: int = 1, most: float = math.inf) -> Size:
    """Return the size that is one variable."""
    return size_of(SizeVariable(name, least, most))


def size_of(factor: Factor) -> Size:
    """Return the size that is one factor."""
    return Size(((((factor, 1),), 1),))


def at_least(n: Dimension) -> int:
    """Return the least that it can be, as an integer: for estimates that change no value."""
    return max(0, int(n.bounds()[0])) if isinstance(n, Size) else n


def at_most(n: Dimension) -> float:
    """Return the greatest that it can be: for decisions that change no value."""
    return n.bounds()[1] if isinstance(n, Size) else n


def fixed(n: Dimension, caller: str, what: str, way_out: str) -> int:
    """Return the size, which must be known while tracing; else raise ``SizeError``."""
    if isinstance(n, Size):
        raise SizeError(
            f"{caller}: {what} must be known while the function is traced, and {n} is known only "
            f"while it runs: {way_out}"
        )
    return n


def alike(one: Dimension, other: Dimension, caller: str) -> bool:
    """Say whether two sizes are equal; ``SizeError`` if only known later."""
    difference: Any = one - other
    if isinstance(difference, Size):
        least, most = difference.bounds()
        if least <= 0 <= most:
            raise SizeError(
                f"{caller}: whether the sizes {one} and {other} are equal is known only while the "
                f"program runs: give both axes one size, by one name"
            )
    return one == other


def unnamed(n: Dimension) -> Any:
    """Return the number of examples without the name of their axis."""
    return n if isinstance(n, Size) else int(n)


def exceeds(n: Dimension, limit: float) -> bool:
    """Say whether it is known to be greater: for decisions that change no value."""
    return n.bounds()[0] > limit if isinstance(n, Size) else n > limit


def is_size(n: Any) -> bool:
    """Say whether this is a size that is not known as an integer."""
    return n.__class__ is Size


class Size:
    """A size that is known while the program runs: ``x.shape[0]`` of an axis whose size varies.

    It does arithmetic with integers and other sizes, makes shapes, and is a traced integer where a
    value is wanted. As a Python condition or integer it is refused, unless its bounds decide.
    """

    __slots__ = ("_hash", "terms")

    terms: tuple[tuple[Monomial, int], ...]
    """Products of factors with their coefficients, in the order of their text."""

    def __init__(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash = hash(terms)

    # What it is

    def __repr__(self) -> str:
        parts = []
        for monomial, coefficient in self.terms:
            factors = "*".join([f"{f}^{k}" if k > 1 else str(f) for f, k in monomial])
            if not factors:
                parts.append(str(coefficient))
            elif abs(coefficient) == 1:
                parts.append(factors if coefficient > 0 else f"-{factors}")
            else:
                parts.append(f"{coefficient}*{factors}")
        return "+".join(parts).replace("+-", "-")

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Size, (self.terms,)

    def variables(self) -> Iterator[SizeVariable]:
        """Yield the variables in it; one may come several times."""
        for monomial, _ in self.terms:
            for factor, _ in monomial:
                if isinstance(factor, SizeVariable):
                    yield factor
                else:
                    yield from factor.size.variables()

    def bounds(
        self, most: Callable[[SizeVariable], float] = lambda v: v.most
    ) -> tuple[float, float]:
        """Return the least and the greatest that it can be, with variables up to ``most(v)``."""
        return _bounds_of_terms(self.terms, most)

    def largest_sum(self, most: Callable[[SizeVariable], float]) -> float:
        """Return what the magnitudes of its terms add up to at most, also inside of its factors."""
        total, inside = 0.0, 0.0
        for monomial, coefficient in self.terms:
            total += max(map(abs, Size(((monomial, coefficient),)).bounds(most)))
            inner = [f.size for f, _ in monomial if not isinstance(f, SizeVariable)]
            inside = max([inside, *[n.largest_sum(most) for n in inner]])
        return max(total, inside)

    def at(
        self,
        value: Callable[[SizeVariable], Any],
        floor: Callable[[Any, int], Any],
        positive: Callable[[Any], Any],
    ) -> Any:
        """Return the size for values of the variables, which may be numbers or arrays."""
        total: Any = 0
        for monomial, coefficient in self.terms:
            product: Any = coefficient
            for factor, power in monomial:
                if isinstance(factor, Floor):
                    one = floor(factor.size.at(value, floor, positive), factor.by)
                elif isinstance(factor, Positive):
                    one = positive(factor.size.at(value, floor, positive))
                else:
                    one = value(factor)
                for _ in range(power):
                    product = product * one
            total = total + product
        return total

    def known(self, values: Mapping[SizeVariable, int]) -> int:
        """Return the size for these integers."""
        return self.at(values.__getitem__, lambda n, by: n // by, lambda n: max(n, 0))

    def __stretto_array__(self) -> Any:
        """Return the size as a value: a traced integer."""
        return _VALUE[0](self)

    # Arithmetic

    def __add__(self, other: Any) -> Any:
        if isinstance(other, (float, complex)):
            return _VALUE[0](self) + other
        if other.__class__ is not Size and not _is_integer(other):
            return NotImplemented
        return _sum([*self.terms, *_terms(other)])

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Size(tuple([(monomial, -c) for monomial, c in self.terms]))

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return greater(self, -self)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, (float, complex)):
            return _VALUE[0](self) - other
        if other.__class__ is not Size and not _is_integer(other):
            return NotImplemented
        return _sum([*self.terms, *[(m, -c) for m, c in _terms(other)]])

    def __rsub__(self, other: Any) -> Any:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, (float, complex)):
            return _VALUE[0](self) * other
        if other.__class__ is not Size and not _is_integer(other):
            return NotImplemented
        pairs = [(a, b) for a in self.terms for b in _terms(other)]
        return _sum([(_product(m, n), c * d) for (m, c), (n, d) in pairs])

    __rmul__ = __mul__

    def __pow__(self, power: Any) -> Any:
        if isinstance(power, float):
            return _VALUE[0](self) ** power
        if not _is_integer(power):
            return NotImplemented
        return math.prod([self] * int(power))

    def __floordiv__(self, other: Any) -> Any:
        if other.__class__ is Size:
            quotient, rest = _divide(self, other)
            beyond = _quotient(rest, other) if is_size(rest) or rest else 0
            return refuse(f"{self} // {other}") if beyond is None else quotient + beyond
        if not _is_integer(other):
            return NotImplemented
        by = int(other)
        if by == 0:
            raise ZeroDivisionError(f"{self} // 0")
        if by < 0:
            return (-self) // -by
        if all([c < 0 for m, c in self.terms if m]):  # rounded up, of what is not negative
            return -((by - 1 - self) // by)
        whole = _sum([(m, c // by) for m, c in self.terms])
        rest = _sum([(m, c % by) for m, c in self.terms])
        if rest.__class__ is not Size:
            return whole + rest // by
        if len(rest.terms) == 1 and len(rest.terms[0][0]) == 1:  # (n // 2) // 3 is n // 6
            ((((factor, power),), coefficient),) = rest.terms
            if isinstance(factor, Floor) and power == coefficient == 1:
                return whole + factor.size // (factor.by * by)
        return whole + size_of(Floor(rest, by))

    def __rfloordiv__(self, other: Any) -> Any:
        if not _is_integer(other):
            return NotImplemented
        quotient = _quotient(other, self)
        return refuse(f"{other} // {self}") if quotient is None else quotient

    def __mod__(self, other: Any) -> Any:
        quotient = self.__floordiv__(other)
        return NotImplemented if quotient is NotImplemented else self - quotient * other

    def __rmod__(self, other: Any) -> Any:
        quotient = self.__rfloordiv__(other)
        return NotImplemented if quotient is NotImplemented else other - quotient * self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        if other.__class__ is not Size and not isinstance(other, (int, float)):
            return NotImplemented
        return _VALUE[0](self) / other

    def __rtruediv__(self, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return other / _VALUE[0](self)

    # What Python would need to know

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            if self.terms == other.terms:
                return True
        elif not _is_integer(other):
            return NotImplemented
        least, most = _bounds_of_difference(self, other)
        if not least <= 0 <= most:
            return False
        if _in_package():
            return False
        refuse(f"{self} == {other}")

    def __lt__(self, other: Any) -> bool:
        return self._below(other, 0, "<")

    def __le__(self, other: Any) -> bool:
        return self._below(other, 1, "<=")

    def __gt__(self, other: Any) -> bool:
        return not self._below(other, 1, ">")

    def __ge__(self, other: Any) -> bool:
        return not self._below(other, 0, ">=")

    def _below(self, other: Any, by: int, sign: str) -> bool:
        """Say whether it is less than the other one and ``by``."""
        if other.__class__ is not Size and not isinstance(other, (int, float)):
            raise TypeError(f"the size {self} cannot be compared with {type(other).__name__}")
        if isinstance(other, float):
            if math.isinf(other):
                return other > 0
            # An integer is less than 9.5 if it is less than 10, and at most 9.5 if it is at most 9.
            other = math.floor(other) if by else math.ceil(other)
        least, most = _bounds_of_difference(self, other)
        if most < by:
            return True
        if least >= by:
            return False
        if _GUARDS and _in_package(3):
            holds = _GUARDS[0](self - other, by, f"{self} {sign} {other}")
            if holds is not None:
                return holds
        refuse(f"{self} {sign} {other}")

    def __bool__(self) -> bool:
        least, most = self.bounds()
        if least > 0 or most < 0 or _in_package():
            return True
        refuse(f"{self} != 0")

    def __index__(self) -> int:
        raise SizeError(
            f"the size {self} is known only while the program runs, and Python needs an integer "
            f"here: a loop over it is stretto.lax.scan or fori_loop, a value that depends on it "
            f"snp.asarray({self}), and len(x) is x.shape[0]"
        )

    __int__ = __float__ = __complex__ = __index__

    def __round__(self, digits: Any = None) -> Any:
        return self

    def __floor__(self) -> Any:
        return self

    def __ceil__(self) -> Any:
        return self


_VALUE: list[Callable[[Size], Any]] = []
"""The function that makes a value of a size; ``ops/iota`` puts it here."""

_GUARDS: list[Callable[[Any, int, str], bool | None]] = []
"""The function that decides a comparison where bounds do not; ``core/size_guards`` puts it here."""


def _in_package(up: int = 2) -> bool:
    """Say whether our own code asked for a truth value.

    Our rules ask whether shapes are equal, and whether there are elements. Sizes that are written
    otherwise are taken to differ there: what is refused then would be right for some sizes alone.
    """
    return sys._getframe(up).f_code.co_filename.startswith(PACKAGE)


def refuse(condition: str) -> NoReturn:
    """Raise ``SizeError`` for a condition that depends on sizes known only later."""
    raise SizeError(
        f"whether {condition} depends on sizes that are known only while the program runs: use "
        f"stretto.numpy.where or stretto.lax.cond, with snp.asarray(size), or a size with a bound "
        f"that decides it, such as {{0: stretto.dynamic_size('n', least=2)}} or ragged.at_most(100)"
    )


def _is_integer(n: Any) -> bool:
    return n.__class__ is int or (hasattr(n, "__index__") and not hasattr(n, "shape"))


def _terms(n: Any) -> tuple[tuple[Monomial, int], ...]:
    if n.__class__ is Size:
        return n.terms
    return (((), int(n)),) if n else ()


Interval: TypeAlias = tuple[float, float]


def _bounds_of_terms(
    terms: Sequence[tuple[Monomial, int]], most: Callable[[SizeVariable], float]
) -> Interval:
    """Return the bounds of a sum, as close as comparing its terms with each other gives them."""
    for i, (monomial, coefficient) in enumerate(terms):
        if len(monomial) == 1 and isinstance(monomial[0][0], Positive) and monomial[0][1] == 1:
            # It is one of two, and not less than the other one.
            others = [*terms[:i], *terms[i + 1 :]]
            inner = [(m, c * coefficient) for m, c in monomial[0][0].size.terms]
            one, two = (
                (n, n) if not isinstance(n, Size) else _bounds_of_terms(n.terms, most)
                for n in (_sum(others), _sum([*others, *inner]))
            )
            if coefficient > 0:
                return max(one[0], two[0]), max(one[1], two[1])
            return min(one[0], two[0]), min(one[1], two[1])
    least, greatest = _bounds_of_sum(terms, most)
    if any([isinstance(f, Floor) for monomial, _ in terms for f, _ in monomial]):
        # n - n//2 is at least n - n/2: quotients that are not rounded can be added up.
        below, _ = _bounds_of_sum(_unrounded(terms, -1), most)
        _, above = _bounds_of_sum(_unrounded(terms, 1), most)
        least = max(least, below if math.isinf(below) else math.ceil(below))
        greatest = min(greatest, above if math.isinf(above) else math.floor(above))
    return least, greatest


def _bounds_of_sum(
    terms: Iterable[tuple[Monomial, float]], most: Callable[[SizeVariable], float]
) -> Interval:
    """Return the sum of the bounds of the terms."""
    least: Any = 0
    greatest: Any = 0
    for monomial, coefficient in terms:
        low: Any = 1
        high: Any = 1
        for factor, power in monomial:
            for _ in range(power):
                low, high = _times((low, high), _bounds_of(factor, most))
        low, high = _times((low, high), (coefficient, coefficient))
        least, greatest = least + low, greatest + high
    return least, greatest


def _unrounded(terms: Iterable[tuple[Monomial, float]], sign: int) -> list[tuple[Monomial, float]]:
    """Return terms without quotients that stand alone, of less sum, or greater for a sign of 1."""
    result: dict[Monomial, Any] = {}
    for monomial, coefficient in terms:
        (factor, power), *others = monomial or ((None, 0),)
        if others or power != 1 or not isinstance(factor, Floor):
            result[monomial] = result.get(monomial, 0) + coefficient
            continue
        for inner, c in factor.size.terms:
            result[inner] = result.get(inner, 0) + c * coefficient / fractions.Fraction(factor.by)
        if coefficient * sign < 0:  # the quotient may be less by this
            rest = coefficient * (factor.by - 1) / fractions.Fraction(factor.by)
            result[()] = result.get((), 0) - rest
    return [(m, c) for m, c in result.items() if c]


def _bounds_of(factor: Factor, most: Callable[[SizeVariable], float]) -> Interval:
    if isinstance(factor, Floor):
        least, greatest = factor.size.bounds(most)
        least, greatest = (n if math.isinf(n) else n // factor.by for n in (least, greatest))
        return least, greatest
    if isinstance(factor, Positive):
        least, greatest = factor.size.bounds(most)
        return max(least, 0), max(greatest, 0)
    return factor.least, most(factor)


def _times(one: Interval, other: Interval) -> Interval:
    """Return the bounds of a product."""
    ends = [a * b if a and b else 0 for a in one for b in other]  # 0 times infinity is 0 here
    return min(ends), max(ends)


def _bounds_of_difference(one: Size, other: Any) -> tuple[float, float]:
    difference = one - other
    return difference.bounds() if difference.__class__ is Size else (difference, difference)


def _product(one: Monomial, other: Monomial) -> Monomial:
    powers: dict[Factor, int] = {}
    for factor, power in (*one, *other):
        powers[factor] = powers.get(factor, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _sum(terms: list[tuple[Monomial, int]]) -> Any:
    """Return the sum in normal form: an integer if it is one."""
    coefficients: dict[Monomial, int] = {}
    for monomial, coefficient in terms:
        coefficients[monomial] = coefficients.get(monomial, 0) + coefficient
    left = [(m, c) for m, c in coefficients.items() if c]
    if not left:
        return 0
    if len(left) == 1 and not left[0][0]:
        return left[0][1]
    # Constants last, products of more factors first.
    left.sort(key=lambda item: (-sum([k for _, k in item[0]]), str(item[0])))
    return Size(tuple(left))


def _divide(one: Size, other: Size) -> tuple[Any, Any]:
    """Return quotient and rest of two polynomials, as far as the second's first term divides."""
    quotient: Any = 0
    rest: Any = one
    lead, by = other.terms[0]
    while rest.__class__ is Size:
        monomial, coefficient = rest.terms[0]
        powers = dict(monomial)
        for factor, power in lead:
            powers[factor] = powers.get(factor, 0) - power
        if coefficient % by or any([k < 0 for k in powers.values()]):
            break
        left = tuple([(f, k) for f, k in powers.items() if k])
        term = (tuple(sorted(left, key=lambda item: str(item[0]))), coefficient // by)
        quotient = quotient + _sum([term])
        rest = rest - other * _sum([term])
    return quotient, rest


def _quotient(one: Any, other: Size) -> int | None:
    """Return two sizes' quotient rounded down, if it is 0 or -1 whatever they are; else None."""
    least, most = _bounds_of_difference(one, 0)
    below, _ = _bounds_of_difference(other, one)
    if least >= 0 and below > 0:
        return 0
    below, _ = _bounds_of_difference(other, -one)
    return -1 if most < 0 and below >= 0 else None


def greater(one: Dimension, other: Dimension) -> Any:
    """Return the greater of two sizes, though it may not be known which."""
    difference: Any = one - other
    if not isinstance(difference, Size):
        return one if difference > 0 else other
    least, most = difference.bounds()
    if least >= 0:
        return one
    if most <= 0:
        return other
    # max(-s, 0) + s is max(s, 0): one of the two is written, so that equal sizes are equal.
    if difference.terms[0][1] < 0:
        return one + size_of(Positive(-difference))
    return other + size_of(Positive(difference))


def lesser(one: Dimension, other: Dimension) -> Any:
    """Return the lesser of two sizes, though it may not be known which."""
    return one + other - greater(one, other)


def slice_bounds(part: slice, n: Any) -> tuple[Any, Any, int]:
    """Return start, number and step of the elements of a slice along an axis of this size."""
    bounds = part.start, part.stop
    if not isinstance(n, Size) and not any(map(is_size, bounds)):
        start, stop, step = part.indices(n)
        return start, len(range(start, stop, step)), step
    step = 1 if part.step is None else part.step.__index__()
    first, last = (0, n) if step > 0 else (-1, n - 1)  # where a slice may start and stop

    def within(at: Any, default: Any) -> Any:
        if at is None:
            return default
        at = at if isinstance(at, Size) else at.__index__()
        at = at + n if at < 0 else at
        if isinstance(n, Size) or not isinstance(at, Size):
            return lesser(greater(at, first), last)
        # Of an axis of fixed size one takes what is there: no size of a result is a lesser of two.
        return first if at < first else at if at <= last else last

    start = within(part.start, first if step > 0 else last)
    stop = within(part.stop, last if step > 0 else first)
    count = (stop - start + step - (1 if step > 0 else -1)) // step
    return start, greater(count, 0), step
