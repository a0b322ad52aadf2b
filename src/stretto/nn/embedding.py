"""Layers that look up rows of a table: ``Embedding``, ``EmbeddingBag``.

Arguments, attributes and initial distributions are PyTorch's, without the options that change the
table during a call (``max_norm``) or the form of its gradient (``sparse``).
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.ops.comparison import eq, where, zeros_like
from stretto._engine.ops.layout import expand_dims
from stretto.nn import init
from stretto.nn.functional.affine import embedding, embedding_bag
from stretto.nn.inputs import positive
from stretto.nn.module import Module, Parameter
from stretto.numpy.ranges import arange
from stretto.random.streams import next_key


class _Table(Module):
    """A table of rows, one of which may stand for padding."""

    weight: Array

    def __init__(
        self,
        rows: int,
        features: int,
        padding_idx: int | None,
        key: Key | None,
        dtype: DTypeLike | None,
    ) -> None:
        super().__init__()
        caller = type(self).__name__
        positive(caller, num_embeddings=rows, embedding_dim=features)
        if padding_idx is not None and not -rows <= padding_idx < rows:
            raise ValueError(f"{caller}: padding_idx must be within {rows} rows, got {padding_idx}")
        self.num_embeddings = rows
        self.embedding_dim = features
        self.padding_idx = None if padding_idx is None else padding_idx % rows
        table = init.normal(next_key(caller) if key is None else key, (rows, features), dtype=dtype)
        if padding_idx is not None:
            padding = expand_dims(eq(arange(rows), padding_idx % rows), (1,))
            table = where(padding, zeros_like(table), table)
        self.weight = Parameter(table)

    def extra_repr(self) -> str:
        """Return the sizes, and the padding where there is one."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Embedding(_Table):
    """Look up rows of a table: ``weight[input]``.

    ``weight`` is (num_embeddings, embedding_dim); it begins normal, with zeros in the row
    ``padding_idx``.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the size of a row.
        padding_idx: a row that gets no gradient.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        TypeError: an input is not of integers.
        ValueError: a size is not a positive integer, or ``padding_idx`` is not a row.

    As PyTorch's ``nn.Embedding``.

    >>> import stretto as st
    >>> layer = st.nn.Embedding(10, 3, padding_idx=0, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.array([[1, 2], [4, 0]])).shape
    (2, 2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, key, dtype)

    def forward(self, input: ArrayLike) -> Array:
        """Look up the rows.

        Args:
            input: integers, of any shape; one beyond the table gives NaN, a negative one counts
                from the end.

        Returns:
            The rows, of the shape of ``input`` and (embedding_dim,).
        """
        return embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(_Table):
    """Look up rows of a table, and take the mean, sum or maximum of those of each bag.

    ``weight`` is (num_embeddings, embedding_dim); it begins normal.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the size of a row.
        mode: ``"mean"``, ``"sum"`` or ``"max"``.
        padding_idx: a row to leave out, which begins as zeros.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        TypeError: an input is not of integers.
        ValueError: a size is not a positive integer, ``padding_idx`` is not a row, or, on the call,
            ``mode`` is unknown or shapes do not fit.

    As PyTorch's ``nn.EmbeddingBag``; see ``functional.embedding_bag``.

    >>> import stretto as st
    >>> layer = st.nn.EmbeddingBag(10, 3, mode="sum", key=st.random.PRNGKey(0))
    >>> layer(st.numpy.array([[1, 2, 4], [4, 3, 2]])).shape
    (2, 3)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        mode: str = "mean",
        padding_idx: int | None = None,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, key, dtype)
        self.mode = mode

    def forward(self, input: ArrayLike, per_sample_weights: ArrayLike | None = None) -> Array:
        """Look up the rows, and reduce each bag.

        Args:
            input: integers (bags, length).
            per_sample_weights: factors of the rows, of the shape of ``input``, in mode ``"sum"``.

        Returns:
            (bags, embedding_dim).
        """
        return embedding_bag(
            input,
            self.weight,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the sizes and the mode."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
