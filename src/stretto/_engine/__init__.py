"""The engine: tracing, programs, transformations, planning, lowering, running. Private.

Its folders are layers, each of which imports only from those before it: ``native core ops autodiff
higher_order passes lowering xla eager api``. Nothing in here imports a public module. Begin with
``core/program``.
"""

VERSION = "0.1.0"
"""The version of the package, as ``stretto.__version__`` gives it."""
