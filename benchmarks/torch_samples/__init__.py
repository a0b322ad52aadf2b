"""PyTorch's own samples of each operation, through the table of ``stretto.torch``."""
