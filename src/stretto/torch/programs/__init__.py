"""What an imported module computes, as plain data, and how it is run; no file imports PyTorch."""
