"""The version of the package, as ``stretto.__version__`` gives it. Layer 1 (core)."""

from __future__ import annotations

__all__ = ["VERSION"]

VERSION = "0.1.0"
