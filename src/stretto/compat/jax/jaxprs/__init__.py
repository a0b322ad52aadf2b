"""Programs as jaxprs, and primitives from outside, under JAX's names.

A jaxpr is a read-only view of a ``Program``, made when it is first asked for. Read in this order:
``form``, what jaxprs consist of; ``primitive``, the objects that equations name; ``spelling`` and
``tables``, how each operation and its parameters are called; ``views``, from programs to jaxprs and
back; ``making`` and ``evaluating``; ``own``, operations of a library's with rules in ``ad``,
``batching`` and ``mlir``; ``partial``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.compat.jax.jaxprs import own

exports(__name__)
