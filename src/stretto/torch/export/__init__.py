"""Have PyTorch export a module, as a graph and a signature."""
