"""``stretto.func``: modules as functions of their arrays, in torch.func's vocabulary.

``calls`` makes functions of modules, ``vectorize`` has ``vmap`` with its randomness,
``derivatives`` the rest.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.func.calls import *
    from stretto.func.derivatives import *
    from stretto.func.vectorize import *

exports(
    __name__,
    """
    .calls: functional_call stack_module_state
    .derivatives: grad grad_and_value hessian jacfwd jacrev jvp linearize vjp
    .vectorize: vmap
    """,
)
