"""Small modules below ``jax.experimental``: sparse matrices, layouts, the cache, metadata.

Stretto keeps compiled programs by itself, in the folder that ``STRETTO_CACHE_DIR`` names;
``jax_enable_compilation_cache`` turns that off. Of sparse matrices there is BCOO, as far as
libraries use it.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

import numpy as np

from stretto import numpy as snp
from stretto.compat.jax.modules import RefusedName
from stretto.compat.jax.root import enable_x64
from stretto.compat.jax.settings import config
from stretto.tree import register_pytree_node

_WHY = "of sparse matrices there is BCOO alone, with products: use those, or dense arrays"
linalg = RefusedName("jax.experimental.sparse.linalg", _WHY)
sparsify = RefusedName("jax.experimental.sparse.sparsify", _WHY)


class JAXSparse:
    """The base class of sparse matrices."""

    def __init__(self, *args: object, **options: object) -> None:
        raise NotImplementedError(
            f"jax.experimental.sparse.{type(self).__name__} is not in Stretto: {_WHY}"
        )


class BCSR(JAXSparse):
    """Matrices by compressed rows, of which there are none."""


class COO(JAXSparse):
    """Matrices by coordinates and without batches, of which there are none."""


class CSC(JAXSparse):
    """Matrices by compressed columns, of which there are none."""


class CSR(JAXSparse):
    """Matrices by compressed rows and without batches, of which there are none."""


class BCOO(JAXSparse):
    """A matrix by the coordinates of its elements.

    Args:
        args: the elements, of shape (n,), and their indices, of shape (n, 2).
        shape: the shape of the matrix.
    """

    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, args: tuple[Any, Any], *, shape: tuple[int, ...], **options: Any) -> None:
        del options
        self.data, self.indices = map(snp.asarray, args)
        self.shape = tuple(shape)

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nse(self) -> int:
        """The number of elements that are given."""
        return self.data.shape[0]

    @classmethod
    def fromdense(cls, mat: Any, **options: Any) -> BCOO:
        """Make the matrix of an array, without its zeros."""
        del options
        host = np.asarray(mat)
        places = np.nonzero(host)
        return cls((host[places], np.stack(places, -1).astype(np.int32)), shape=host.shape)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, **options: Any) -> BCOO:
        """Make the matrix of one of SciPy's."""
        del options
        coo = mat.tocoo()
        indices = np.stack([coo.row, coo.col], -1).astype(np.int32)
        return cls((coo.data, indices), shape=coo.shape)

    def todense(self) -> Any:
        """Return an array; elements of one place are added."""
        places = tuple([self.indices[:, i] for i in range(self.ndim)])
        return snp.zeros(self.shape, self.dtype).at[places].add(self.data)

    @property
    def T(self) -> BCOO:
        """The transposed matrix."""
        return BCOO((self.data, self.indices[:, ::-1]), shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        """Return the product with a vector, a matrix, or each of a stack of matrices."""
        other = snp.asarray(other)
        if other.ndim == 1:
            return self._times(other)
        return snp.moveaxis(self._times(snp.moveaxis(other, -2, 0)), 0, -2)

    def __rmatmul__(self, other: Any) -> Any:
        return snp.moveaxis(self.T._times(snp.moveaxis(snp.asarray(other), -1, 0)), 0, -1)

    def _times(self, other: Any) -> Any:
        """Return the sums over the columns of the matrix, and the first axis of an array."""
        rows, columns = self.indices[:, 0], self.indices[:, 1]
        data = self.data.reshape(-1, *(1,) * (other.ndim - 1))
        parts = data * other[columns]
        out = snp.zeros((self.shape[0], *other.shape[1:]), parts.dtype)
        return out.at[rows].add(parts)

    def __mul__(self, factor: Any) -> BCOO:
        return BCOO((self.data * factor, self.indices), shape=self.shape)

    __rmul__ = __mul__


def _unflatten(shape: Any, children: Any) -> BCOO:
    made = object.__new__(BCOO)
    made.shape = shape
    made.data, made.indices = children
    return made


register_pytree_node(BCOO, lambda x: ((x.data, x.indices), x.shape), _unflatten)


class Format:
    """The layout of an array in memory, and its place: refused when one is made."""

    def __init__(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(
            f"jax.experimental.layout.{type(self).__name__} is not in Stretto: the layout of "
            f"arrays in memory is the compiler's; give a sharding alone"
        )


class Layout(Format):
    """The layout of an array in memory: refused when one is made."""


def disable_x64() -> object:
    """Set ``jax_enable_x64`` to false inside a ``with`` block."""
    return enable_x64(False)


def set_cache_dir(path: object) -> None:
    """Set ``jax_compilation_cache_dir``, which is kept; the folder stays Stretto's own."""
    config.update("jax_compilation_cache_dir", str(path))


def reset_cache() -> None:
    """Do nothing: nothing of the folder is kept open."""


def set_xla_metadata(x: Any = None, **metadata: Any) -> Any:
    """Return the value or function itself; without one a context manager. Notes are dropped."""
    del metadata
    return nullcontext() if x is None else x
