"""Arrays of any size: buckets that they are padded to, and ragged batches of examples.

Read ``resized`` with ``buckets``, then ``ragged`` with ``over_ragged``.
"""
