"""``stretto.func``: modules as functions of their arrays, in torch.func's vocabulary.

``calls`` makes functions of modules, ``vectorize`` has ``vmap`` with its randomness,
``derivatives`` the rest.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto.func.calls import *
    from stretto.func.derivatives import *
    from stretto.func.vectorize import *
