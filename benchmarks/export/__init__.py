"""Exported models beside PyTorch's own export of the same networks: nodes, bytes, time.

Run by ``make bench-export``. Read ``__main__`` first.
"""
