"""``jax.debug``."""

from __future__ import annotations

import sys
from typing import Any

from stretto.compat.jax.callbacks import debug_callback as callback
from stretto.compat.jax.callbacks import debug_print as print
from stretto.compat.jax.naming import names_of

__all__ = ["breakpoint", "callback", "print"]

__getattr__, __dir__ = names_of("stretto.debug")


def breakpoint(**options: Any) -> None:
    """Stop in Python's debugger: while a function is traced, where it is traced."""
    del options
    sys.breakpointhook()
