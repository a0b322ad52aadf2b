"""The layers and functions of `stretto.nn` beside PyTorch's, on the same numbers.

`__main__` is the command; read `case`, `draw`, `families`, then `compare`.
"""
