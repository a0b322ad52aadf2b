"""Programs of imported modules: plain data, and how they are run; no file imports PyTorch."""
