"""Stand in for what PyTorch cannot trace of a module, while it is traced."""
