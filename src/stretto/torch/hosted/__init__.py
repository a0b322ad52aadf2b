"""Make modules of PyTorch of what is computed here."""
