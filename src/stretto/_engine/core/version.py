"""The version of the package, as ``stretto.__version__`` gives it."""

from __future__ import annotations

VERSION = "0.1.0"
