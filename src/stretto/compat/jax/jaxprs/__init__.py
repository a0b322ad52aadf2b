"""Programs as jaxprs, and primitives from outside, under JAX's names.

A jaxpr is a read-only view of a ``Program``, made when it is first asked for. Read in this order:
``form`` has the parts of jaxprs and their text; ``primitive`` the objects that equations name;
``arrays``, ``control`` and ``named`` are tables of how each operation and its parameters are
called; ``views`` goes from programs to jaxprs and back, and says how tables are written; ``making``
records and checks; ``own`` has operations of a library's, with rules in ``ad``, ``batching`` and
``mlir``; ``partial`` evaluates partially, and ``traces`` hands operations to a library.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.compat.jax.jaxprs import own

exports(__name__)
