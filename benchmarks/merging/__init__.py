"""``stretto merge`` beside mergekit, PyTorch and PEFT: processor time, memory, and the values.

Run by ``make bench-merging``. Read ``__main__`` first.
"""
