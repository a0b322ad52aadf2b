"""Programs written as ONNX graphs: the same ``lower`` rules, with a writer of nodes behind them.

Read ``graph`` first, then ``writer``; ``elementwise`` has what becomes of each operation of
StableHLO that treats elements alone, ``kernels`` the dtypes that onnxruntime has kernels for.
``spelling`` rewrites what was written with fewer and faster operators.
"""
