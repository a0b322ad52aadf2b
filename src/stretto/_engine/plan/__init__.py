"""What runs how: the formulations of operations that were mapped over members.

Layer 5 (plan). ``vmap`` inside a trace leaves a ``Mapped`` call of the program of one member
(``mapped``). When that is lowered, ``members`` walks the program and asks ``choices`` for the
fastest formulation of each product and convolution, by the estimates of ``cost``.
"""
