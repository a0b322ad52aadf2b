"""The engine: tracing, programs, transformations, planning, lowering, running. Private.

Its folders are layers, each of which imports only from those before it: ``core ops transforms
control rolling plan lower runtime api``. Nothing in here imports a public module. Begin with
``core/program``.
"""
