"""Reports: read ``explain`` first, then ``formulations``, ``memory``, ``kept``."""
