"""``stretto.stages``: what ``jit`` makes, stage by stage, under the names of ``jax.stages``.

For annotations and ``isinstance``: ``Wrapped`` is a jitted function, ``Traced``, ``Lowered`` and
``Compiled`` what its ``trace``, ``lower`` and ``compile`` give.

>>> import stretto as st
>>> isinstance(st.jit(abs), st.stages.Wrapped)
True
"""

from stretto._engine.api.jit.jitted import Jitted as Wrapped
from stretto._engine.api.jit.stages import ArgInfo, Compiled, Lowered
from stretto._engine.api.jit.stages import TracedCall as Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
