"""The laws that every operation obeys, and one call that checks them.

Above all other layers: for tests. For a function and the types (or values) of its arguments:

1. the inferred types are the real ones;
2. the compiled program gives what eager evaluation gives;
3. the jvp is the limit of differences (taken in 64 bits), and close to it in the dtype asked for;
4. the transpose is the adjoint: Re⟨ct, J v⟩ = Re⟨Jᵀ ct, v⟩;
5. ``vmap`` is the loop, for each mix of mapped arguments and axes, eagerly and compiled;
6. ``vmap`` of the derivative is the loop of derivatives; derivatives of derivatives exist.

Where a test run compiles with few optimizations, ``FULLY`` has the options that restore them: the
function's own program, in each dtype, and all programs of float32 are compiled as users' are.

``check_special`` checks the second of these where it most often fails: at zeros, infinities,
NaN and the ends of the range.

Read in this order: ``arguments``, ``comparing``, ``checking``, ``special``.
"""

from stretto._engine.core.lazy import exports
from stretto.laws.arguments import *
from stretto.laws.checking import *
from stretto.laws.comparing import FULLY as FULLY
from stretto.laws.special import *

exports(__name__)
