"""Convolutions, and the forms that they are computed in. Begin with ``general``."""
