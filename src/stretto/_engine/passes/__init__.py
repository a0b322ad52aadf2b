"""What runs how: how mapped operations are formulated, and what is compiled at all.

Layer 5 (plan). ``vmap`` inside a trace leaves a ``Mapped`` call of the program of one member
(``mapped``). When that is lowered, ``members`` walks the program and takes the fastest formulation
of each product (``products``) and convolution (``convolutions``), by the estimates of
``core/cost``, or as ``measured``. ``prepare`` is what is done to every program before it is
lowered, and ``interpreting`` decides which ones are not compiled.
"""
