"""Passes from program to program before it is lowered: less work, loops, and planned ensembles.

``prepare`` has them in their order. ``vmap`` inside a trace leaves a ``Mapped`` call of the program
of one member: ``formulations`` finds the fastest form of each product and convolution in it when it
is lowered. ``rolling`` makes loops of code that repeats.
"""
