"""How the package is released: ``build_wheels``, ``check_wheels``, which use ``pythons``."""
