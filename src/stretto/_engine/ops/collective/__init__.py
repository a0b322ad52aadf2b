"""Operations across the examples of a named axis. Begin with ``named_axes``."""
