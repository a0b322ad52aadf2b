"""Special functions as operations, by formulas in 64 bits. Begin with ``gamma``."""
