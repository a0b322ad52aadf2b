"""Layer 4: operations that hold programs: calls, branches, loops, custom derivatives.

Read ``family``, ``call``, ``cond``, ``while_loop``, ``scan``, ``loops``, ``custom``.
"""
