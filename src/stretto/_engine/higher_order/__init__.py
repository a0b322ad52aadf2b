"""Operations that hold programs: calls, branches, loops, users' own derivative rules.

Read ``family`` (what they share), ``call`` (the simplest), ``cond``, ``while_loop``, ``scan`` and
``loops``, then ``custom_jvp`` and ``custom_vjp``.
"""
