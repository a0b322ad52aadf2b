"""Layers without spatial axes: ``Linear``, ``Bilinear``, ``Identity``, and tables of rows.

Arguments, attributes, shapes and initial distributions are PyTorch's; ``Embedding`` and
``EmbeddingBag`` are without the options that change the table during a call (``max_norm``) or the
form of its gradient (``sparse``).
"""

from __future__ import annotations

import math
from typing import Any, TypeVar

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.ops.comparison import eq, where, zeros_like
from stretto._engine.ops.layout import expand_dims
from stretto.nn import init
from stretto.nn.functional.affine import bilinear, embedding, embedding_bag, linear
from stretto.nn.functional.checks import check_features, positive, two_keys
from stretto.nn.module import Module, Parameter
from stretto.numpy.creation import arange
from stretto.random.streams import next_key

_T = TypeVar("_T")


class Linear(Module):
    """Map the last axis by a matrix, and add a bias.

    The output is ``input @ weight.T + bias``. ``weight`` is (out_features, in_features), ``bias``
    (out_features,) or None; both begin uniform within ±1/√in_features.

    Args:
        in_features: the size of the input's last axis.
        out_features: the size of the output's last axis.
        bias: whether there is a bias.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        RuntimeError: ``key`` is None inside a transformation that began after the ambient stream.
        ValueError: a size is not a positive integer, or an input has another last axis.

    As PyTorch's ``nn.Linear``.

    >>> import stretto as st
    >>> layer = st.nn.Linear(3, 2, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((5, 3))).shape
    (5, 2)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        positive("Linear", in_features=in_features, out_features=out_features)
        self.in_features = in_features
        self.out_features = out_features
        weight_key, bias_key = two_keys(key, "Linear")
        bound = 1 / math.sqrt(in_features)
        shape = (out_features, in_features)
        self.weight = Parameter(init.uniform(weight_key, shape, -bound, bound, dtype))
        values = init.uniform(bias_key, (out_features,), -bound, bound, dtype) if bias else None
        self.register_parameter("bias", values)

    def forward(self, input: ArrayLike) -> Array:
        """Map the features.

        Args:
            input: (..., in_features).

        Returns:
            (..., out_features).

        Raises:
            ValueError: the last axis of ``input`` has another size.
        """
        return linear(check_features(self, input, self.in_features), self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """Map two inputs together: a product of both with a tensor, and a bias.

    Output k is the sum of ``input1[i] * weight[k, i, j] * input2[j]``, plus ``bias[k]``. ``weight``
    is (out_features, in1_features, in2_features), ``bias`` (out_features,) or None; both begin
    uniform within ±1/√in1_features.

    Args:
        in1_features: the size of the first input's last axis.
        in2_features: the size of the second input's last axis.
        out_features: the size of the output's last axis.
        bias: whether there is a bias.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: a size is not a positive integer, or the inputs do not fit.

    As PyTorch's ``nn.Bilinear``.

    >>> import stretto as st
    >>> layer = st.nn.Bilinear(3, 4, 2, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((5, 3)), st.numpy.ones((5, 4))).shape
    (5, 2)
    """

    weight: Array
    bias: Array | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        sizes = {"in1_features": in1_features, "in2_features": in2_features}
        positive("Bilinear", **sizes, out_features=out_features)
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        weight_key, bias_key = two_keys(key, "Bilinear")
        bound = 1 / math.sqrt(in1_features)
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(init.uniform(weight_key, shape, -bound, bound, dtype))
        values = init.uniform(bias_key, (out_features,), -bound, bound, dtype) if bias else None
        self.register_parameter("bias", values)

    def forward(self, input1: ArrayLike, input2: ArrayLike) -> Array:
        """Map both inputs.

        Args:
            input1: (..., in1_features).
            input2: (..., in2_features), with the same leading axes.

        Returns:
            (..., out_features).

        Raises:
            ValueError: the last axis of an input has another size.
        """
        x = check_features(self, input1, self.in1_features, "input1")
        y = check_features(self, input2, self.in2_features, "input2")
        return bilinear(x, y, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Identity(Module):
    """Return the input itself, whatever arguments the layer was made with.

    Args:
        *args: ignored.
        **kwargs: ignored.

    As PyTorch's ``nn.Identity``.

    >>> import stretto as st
    >>> st.nn.Identity(54, unused=True)(st.numpy.ones(2))
    Array([1., 1.], dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: _T) -> _T:
        """Return the input.

        Args:
            input: anything.

        Returns:
            The same.
        """
        return input


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
