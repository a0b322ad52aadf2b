"""``stretto.stages``: what ``jit`` gives, stage by stage, as ``jax.stages`` names the classes.

For annotations and ``isinstance``: ``Wrapped`` is a jitted function, ``Traced``, ``Lowered`` and
``Compiled`` what its ``trace``, ``lower`` and ``compile`` give. Next, read ``api/stages``.

>>> import stretto as st
>>> isinstance(st.jit(abs), st.stages.Wrapped)
True
"""

from stretto._engine.api.jit import Jitted as Wrapped
from stretto._engine.api.stages import ArgInfo, Compiled, Lowered
from stretto._engine.api.stages import TracedCall as Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
