"""Programs whose sizes vary, written for buckets, and the operation that calls them.

What belongs to sizes that vary is in four layers, each part as low as it can be used:

- ``core/sizes``: the algebra: sizes as values, their normal form, bounds and comparisons;
  ``core/size_guards``: what is asked of the sizes of a call, while a function is traced for them.
- ``ops/bucket`` and ``ops/rows``: what the ``padded`` rules of operations compute with;
  ``ops/iota``: a size as an operation.
- here: ``padding`` writes a program for a bucket by these rules, ``packing`` for examples that lie
  one behind the other, and ``sized_call`` has the operation that stands for either while programs
  are transformed, and the pass that writes it in place when a program is lowered.
- ``api/varying_sizes``: ``jit(dynamic_axes=…)``, buckets, and ragged arrays.
"""
