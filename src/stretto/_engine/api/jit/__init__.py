"""``jit``: a function that is traced once for each signature of its arguments, compiled, and run.

Read ``jit`` and ``jitted``, then ``entry`` (what a signature was traced to) and ``dispatch`` (the
short way of a call).
"""
