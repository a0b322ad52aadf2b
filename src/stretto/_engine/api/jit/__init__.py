"""``jit``: a function that is traced once for each signature of its arguments, compiled, and run.

Read ``jit`` and ``jitted``, then ``signature`` (the key of a trace), ``entry`` (what it was
traced to), ``runners`` (what runs its calls) and ``dispatch`` (the short way of a call).
"""
