"""``jax.experimental.layout``."""

from typing import NoReturn

__all__ = ["Format", "Layout"]


class Format:
    """How an array lies in memory, and where: refused when one is made."""

    def __init__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(
            f"jax.experimental.layout.{type(self).__name__} is not in Stretto: the layout of "
            f"arrays in memory is the compiler's; give a sharding alone"
        )


class Layout(Format):
    """How an array lies in memory: refused when one is made."""
