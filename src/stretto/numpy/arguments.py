"""Checks of arguments that several families share.

Layer 7 (numpy).
"""

from __future__ import annotations

from typing import Any

__all__ = ["refuse_out"]


def refuse_out(who: str, out: Any) -> None:
    """Raise unless ``out`` is ``None``: there is nothing to write into."""
    if out is not None:
        raise NotImplementedError(
            f"{who}: arrays are immutable, so there is no out=; use the value that is returned"
        )
