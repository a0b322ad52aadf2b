"""Loops found in straight-line code. Begin with ``rolling``."""
