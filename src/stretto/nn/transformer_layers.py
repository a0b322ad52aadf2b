"""Layers of transformers: one of an encoder, one of a decoder.

Arguments, parameters, shapes and initial distributions are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import functional as F
from stretto.nn.attention import MultiheadAttention
from stretto.nn.dropout import Dropout
from stretto.nn.functional.checks import key_or_next
from stretto.nn.inputs import key_parts
from stretto.nn.linear import Linear
from stretto.nn.module import Module
from stretto.nn.normalization import LayerNorm
from stretto.random.keys import split

__all__ = [
    "TransformerDecoderLayer",
    "TransformerEncoderLayer",
]

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": F.relu, "gelu": F.gelu}


def _activation(
    caller: str, activation: str | Callable[[Array], Array]
) -> Callable[[Array], Array]:
    if isinstance(activation, str):
        if activation not in _ACTIVATIONS:
            raise ValueError(
                f"{caller}: activation must be 'relu', 'gelu' or a function, got {activation!r}"
            )
        return _ACTIVATIONS[activation]
    if not callable(activation):
        raise TypeError(
            f"{caller}: activation must be 'relu', 'gelu' or a function, got {activation!r}"
        )
    return activation


class TransformerEncoderLayer(Module):
    """Attend from a sequence to itself, then run a network of two layers on each element.

    Both parts are added to their inputs: ``x = norm1(x + attention(x))``, ``x = norm2(x +
    linear2(activation(linear1(x))))``; with ``norm_first`` the norms are of the parts' inputs.
    Parameters are named as in PyTorch.

    Args:
        d_model: the features of inputs and outputs.
        nhead: the number of heads, a divisor of ``d_model``.
        dim_feedforward: the features between the two layers of the network.
        dropout: the probability of dropout in train mode.
        activation: ``"relu"``, ``"gelu"``, a function or a module.
        layer_norm_eps: what the normalizations add to variances.
        batch_first: whether inputs are (batch, length, d_model) rather than (length, batch,
            d_model).
        norm_first: whether normalization comes before each part rather than after its sum.
        bias: whether layers and normalizations have biases.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        TypeError: ``activation`` is neither a string nor callable.
        ValueError: sizes do not fit, ``activation`` is unknown, or ``dropout`` is not from 0
            to 1.

    As PyTorch's ``nn.TransformerEncoderLayer``. Source: Vaswani et al., Attention Is All You Need,
    2017; Xiong et al., On Layer Normalization in the Transformer Architecture, 2020.

    >>> import stretto as st
    >>> layer = st.nn.TransformerEncoderLayer(8, 2, 16, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((5, 4, 8)), key=st.random.PRNGKey(1)).shape
    (5, 4, 8)
    """

    self_attn: MultiheadAttention
    linear1: Linear
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Array], Array] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        caller = type(self).__name__
        keys = split(key_or_next(key, caller), 3)
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, key=keys[0], dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, key=keys[1], dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, key=keys[2], dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.activation = _activation(caller, activation)

    def forward(
        self,
        src: ArrayLike,
        src_mask: ArrayLike | None = None,
        src_key_padding_mask: ArrayLike | None = None,
        is_causal: bool = False,
        *,
        key: Key | None = None,
    ) -> Array:
        """Transform a sequence.

        Args:
            src: (length, batch, d_model), with ``batch_first`` (batch, length, d_model), or without
                the batch.
            src_mask: which elements to hide from which, as ``attn_mask`` of ``MultiheadAttention``.
            src_key_padding_mask: (batch, length), which elements to hide from all.
            is_causal: whether later elements are hidden.
            key: the key of dropout; by default the ambient stream's next one.

        Returns:
            The transformed sequence, in the shape of the first.

        Raises:
            RuntimeError: dropout has no key to draw from.
            ValueError: shapes do not fit.
        """
        keys = key_parts(key, 4)

        def attention(x: ArrayLike) -> Array:
            out, _ = self.self_attn(
                x, x, x, src_key_padding_mask, False, src_mask, True, is_causal, dropout_key=keys[0]
            )
            return self.dropout1(out, key=keys[1])

        def feed(x: Array) -> Array:
            inner = self.dropout(self.activation(self.linear1(x)), key=keys[2])
            return self.dropout2(self.linear2(inner), key=keys[3])

        if self.norm_first:
            x = attention(self.norm1(src)) + src
            return x + feed(self.norm2(x))
        x = self.norm1(attention(src) + src)
        return self.norm2(x + feed(x))


class TransformerDecoderLayer(Module):
    """Attend from a sequence to itself, then to another, then run a network of two layers.

    As ``TransformerEncoderLayer``, with ``multihead_attn`` and ``norm2`` for the attention to
    ``memory``, the output of an encoder.

    Args:
        d_model: the features of inputs and outputs.
        nhead: the number of heads, a divisor of ``d_model``.
        dim_feedforward: the features between the two layers of the network.
        dropout: the probability of dropout in train mode.
        activation: ``"relu"``, ``"gelu"``, a function or a module.
        layer_norm_eps: what the normalizations add to variances.
        batch_first: whether inputs are (batch, length, d_model) rather than (length, batch,
            d_model).
        norm_first: whether normalization comes before each part rather than after its sum.
        bias: whether layers and normalizations have biases.
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        TypeError: ``activation`` is neither a string nor callable.
        ValueError: sizes do not fit, ``activation`` is unknown, or ``dropout`` is not from 0
            to 1.

    As PyTorch's ``nn.TransformerDecoderLayer``.

    >>> import stretto as st
    >>> layer = st.nn.TransformerDecoderLayer(8, 2, 16, key=st.random.PRNGKey(0)).eval()
    >>> layer(st.numpy.ones((5, 4, 8)), st.numpy.ones((6, 4, 8))).shape
    (5, 4, 8)
    """

    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention
    linear1: Linear
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Array], Array] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        caller = type(self).__name__
        keys = split(key_or_next(key, caller), 4)
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, key=keys[0], dtype=dtype
        )
        self.multihead_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, key=keys[1], dtype=dtype
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias, key=keys[2], dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, key=keys[3], dtype=dtype)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.norm3 = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self.activation = _activation(caller, activation)

    def forward(
        self,
        tgt: ArrayLike,
        memory: ArrayLike,
        tgt_mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        tgt_key_padding_mask: ArrayLike | None = None,
        memory_key_padding_mask: ArrayLike | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        key: Key | None = None,
    ) -> Array:
        """Transform a sequence, given another.

        Args:
            tgt: (length, batch, d_model), with ``batch_first`` (batch, length, d_model), or without
                the batch.
            memory: the output of an encoder, likewise.
            tgt_mask: which elements of ``tgt`` to hide, as ``attn_mask`` of ``MultiheadAttention``.
            memory_mask: which elements of ``memory`` to hide, likewise.
            tgt_key_padding_mask: (batch, length), which elements of ``tgt`` to hide from all.
            memory_key_padding_mask: (batch, length), which elements of ``memory`` to hide from all.
            tgt_is_causal: whether later elements of ``tgt`` are hidden.
            memory_is_causal: whether later elements of ``memory`` are hidden.
            key: the key of dropout; by default the ambient stream's next one.

        Returns:
            The transformed sequence, in the shape of the first.

        Raises:
            RuntimeError: dropout has no key to draw from.
            ValueError: shapes do not fit.
        """
        keys = key_parts(key, 6)

        def own(x: ArrayLike) -> Array:
            out, _ = self.self_attn(
                x,
                x,
                x,
                tgt_key_padding_mask,
                False,
                tgt_mask,
                is_causal=tgt_is_causal,
                dropout_key=keys[0],
            )
            return self.dropout1(out, key=keys[1])

        def other(x: Array) -> Array:
            out, _ = self.multihead_attn(
                x,
                memory,
                memory,
                memory_key_padding_mask,
                False,
                memory_mask,
                is_causal=memory_is_causal,
                dropout_key=keys[2],
            )
            return self.dropout2(out, key=keys[3])

        def feed(x: Array) -> Array:
            inner = self.dropout(self.activation(self.linear1(x)), key=keys[4])
            return self.dropout3(self.linear2(inner), key=keys[5])

        if self.norm_first:
            x = own(self.norm1(tgt)) + tgt
            x = x + other(self.norm2(x))
            return x + feed(self.norm3(x))
        x = self.norm1(own(tgt) + tgt)
        x = self.norm2(x + other(x))
        return self.norm3(x + feed(x))
