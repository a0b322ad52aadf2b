"""Programs as jaxprs, and primitives from outside, under JAX's names.

A jaxpr is a read-only view of a ``Program``, made when it is first asked for. ``jaxpr`` has the
parts of jaxprs and their text, and goes from programs to jaxprs and back; ``primitive`` has the
objects that equations name; ``operations`` says how each operation and its parameters are called;
``making`` records, checks and evaluates partially; ``own`` has operations of a library's, with
their rules.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.compat.jax.jaxprs import own

exports(__name__)
