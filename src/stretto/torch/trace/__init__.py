"""Stand in for what PyTorch cannot trace of a module, and keep derivatives that it would drop."""
