"""Layers that look rows up in a table: ``Embedding``, ``EmbeddingBag``.

Arguments, attributes and initial distributions are PyTorch's, without the options that change the
table in a call (``max_norm``) or its gradient's form (``sparse``).
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.ops.broadcast import expand_dims
from stretto._engine.ops.comparison import eq, where, zeros_like
from stretto.nn import init
from stretto.nn.functional.lookup import embedding, embedding_bag
from stretto.nn.inputs import positive
from stretto.nn.module import Module, Parameter
from stretto.numpy.ranges import arange
from stretto.random.streams import next_key

__all__ = ["Embedding", "EmbeddingBag"]


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
        who = type(self).__name__
        positive(who, num_embeddings=rows, embedding_dim=features)
        if padding_idx is not None and not -rows <= padding_idx < rows:
            raise ValueError(f"{who}: padding_idx must be within {rows} rows, got {padding_idx}")
        self.num_embeddings = rows
        self.embedding_dim = features
        self.padding_idx = None if padding_idx is None else padding_idx % rows
        drawn = init.normal(next_key(who) if key is None else key, (rows, features), dtype=dtype)
        if padding_idx is not None:
            padding = expand_dims(eq(arange(rows), padding_idx % rows), (1,))
            drawn = where(padding, zeros_like(drawn), drawn)
        self.weight = Parameter(drawn)

    def extra_repr(self) -> str:
        """The sizes, and the padding where there is one."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class Embedding(_Table):
    """A row of ``weight`` (num_embeddings, embedding_dim) for each integer of the input.

    The table begins normal, with zeros in the row ``padding_idx``, which gets no gradient. Drawn
    from ``key``, or the ambient stream. An integer beyond the table gives NaN; a negative one
    counts from the end. Raises ``TypeError`` for an input that is not of integers.

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
        """The rows at the input."""
        return embedding(input, self.weight, self.padding_idx)


class EmbeddingBag(_Table):
    """The mean, sum or greatest of the rows at each line of an input (bags, length) of integers.

    ``mode`` is ``"mean"``, ``"sum"`` or ``"max"``. Entries equal to ``padding_idx`` are left out.
    The table begins normal. See ``functional.embedding_bag``.

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
        """The rows of each bag together; ``per_sample_weights`` multiply them in mode "sum"."""
        return embedding_bag(
            input,
            self.weight,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            padding_idx=self.padding_idx,
        )

    def extra_repr(self) -> str:
        """The sizes and the mode."""
        return f"{super().extra_repr()}, mode={self.mode!r}"
