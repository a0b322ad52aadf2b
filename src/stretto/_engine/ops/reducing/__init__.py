"""Many elements to one: over axes, along them, in windows. Begin with ``reduce``."""
