"""Stand-ins for the series and tables of pandas and polars: their protocols, and nothing else."""

import numpy as np


class Series:
    """A column: only NumPy can read it."""

    def __init__(self, elements, dtype=None):
        self._elements = np.array(elements, dtype)

    def __array__(self, dtype=None, copy=None):
        return self._elements.astype(dtype or self._elements.dtype)


class Frame:
    """A table: the names of its columns, and each by its name."""

    def __init__(self, columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return Series(self._columns[name])


class Unknown:
    """A missing value that does not say whether it equals itself, as that of pandas."""

    def __ne__(self, other):
        return self

    __hash__ = None

    def __bool__(self):
        raise TypeError("a missing value is neither true nor false")
