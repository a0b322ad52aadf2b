"""Programs over virtual devices of one process, beside JAX's."""
