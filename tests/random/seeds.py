"""The key that JAX's numbers were drawn with: of a seed of 33 bits, of which JAX keeps 32."""

from stretto import random as R
from stretto._engine.core.config import config

JAX = config(integer_overflow="wrap")


def jaxs_key():
    """The raw key of JAX's numbers; of all bits of the seed where 64-bit types are on."""
    with JAX:
        return R.PRNGKey(0x123456789)
