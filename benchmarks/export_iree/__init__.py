"""Programs as StableHLO, compiled and run by IREE, in an environment of its own.

Run by ``make export-iree``. Read ``__main__`` first.
"""
