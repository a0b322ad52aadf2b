"""Numbers by name."""

import math

__all__ = ["e", "euler_gamma", "inf", "nan", "newaxis", "pi"]

pi = math.pi
e = math.e
euler_gamma = 0.57721566490153286060651209008240243
inf = math.inf
nan = math.nan
newaxis = None
