"""Factorizations of matrices, and systems solved with them. Begin with ``family``."""
