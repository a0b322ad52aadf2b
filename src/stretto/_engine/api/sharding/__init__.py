"""Arrays over devices: where they are put, and functions that run on each device's part.

Read ``placement`` and ``shardings``, then ``shard_map``.
"""
