"""The tables of operations: ``arrays`` first, then ``control``."""
