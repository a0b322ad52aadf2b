"""Functions of the engine that ``jax.lax`` calls by other names."""

from stretto._engine.api import loops
from stretto._engine.ops import arithmetic, complex_parts, extrema, powers
from stretto._engine.ops import sort as sorting

__all__ = ["abs", "complex", "div", "map", "max", "min", "neg", "pow", "rem", "sort", "sub"]

abs = arithmetic.absolute
complex = complex_parts.complex_
div = arithmetic.divide
map = loops.map_
max = extrema.maximum
min = extrema.minimum
neg = arithmetic.negative
pow = powers.power
rem = arithmetic.remainder
sort = sorting.sort_operands
sub = arithmetic.subtract
