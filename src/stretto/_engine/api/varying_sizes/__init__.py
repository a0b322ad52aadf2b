"""Arrays of any size: buckets that they are padded to, and ragged batches of examples.

Read ``dynamic_axes`` with ``buckets``, then ``ragged`` with ``over_ragged``. The algebra of sizes,
and programs of them, lie lower: ``higher_order/varying_sizes`` says where.
"""
