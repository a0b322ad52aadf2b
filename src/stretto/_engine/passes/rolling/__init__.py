"""Loops found in straight-line code."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.passes.rolling import profit, rewrite

exports(__name__)
