"""``jit``: a function that is traced once for each signature of its arguments, and compiled."""
