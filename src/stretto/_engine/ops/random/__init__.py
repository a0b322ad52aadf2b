"""Random bits, and numbers made of them. Begin with ``bits``."""
