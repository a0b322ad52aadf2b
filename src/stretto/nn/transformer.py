"""Transformers: attention of many heads, layers of encoders and decoders, stacks, ``Transformer``.

Arguments, parameters, shapes and initial distributions are PyTorch's, except for its switches of
implementation (``enable_nested_tensor``, ``mask_check``). As ``key`` is taken in calls of
``MultiheadAttention``, the key of its dropout is ``dropout_key=``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.functions import described, described_like
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import functional as F
from stretto.nn import init
from stretto.nn.activations import Dropout
from stretto.nn.containers import ModuleList
from stretto.nn.functional.attention import project_and_attend
from stretto.nn.functional.checks import key_or_next, key_parts, positive, probability
from stretto.nn.linear import Linear
from stretto.nn.module import Module, Parameter
from stretto.nn.normalization import LayerNorm
from stretto.random.keys import split


class MultiheadAttention(Module):
    """Attend with several heads, each with its own part of the features.

    Each head computes ``softmax(q @ k.T / √(embed_dim / num_heads)) @ v`` of projections of its
    inputs; a last projection, ``out_proj``, joins the outputs of the heads. Parameters are
    ``in_proj_weight`` (3 embed_dim, embed_dim) or, where kdim or vdim differ, ``q_proj_weight``,
    ``k_proj_weight`` and ``v_proj_weight`` (embed_dim, features); ``in_proj_bias``; ``bias_k`` and
    ``bias_v`` (1, 1, embed_dim).

    Args:
        embed_dim: the features of queries and outputs.
        num_heads: the number of heads, a divisor of ``embed_dim``.
        dropout: the probability with which a weight is dropped in train mode.
        bias: whether the projections have biases (zeros).
        add_bias_kv: whether there are ``bias_k`` and ``bias_v``, an additional key and value.
        add_zero_attn: whether there is an additional key and value of zeros.
        kdim: the features of keys, ``embed_dim`` by default.
        vdim: the features of values, ``embed_dim`` by default.
        batch_first: whether inputs are (batch, length, features) rather than (length, batch,
            features).
        key: the key to draw the parameters from; by default the ambient stream's next one.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        TypeError: ``dropout`` is not a number, or a mask neither boolean nor floating.
        ValueError: sizes do not fit, or ``dropout`` is not from 0 to 1.

    As PyTorch's ``nn.MultiheadAttention``. Source: Vaswani et al., Attention Is All You Need, 2017.

    >>> import stretto as st
    >>> layer = st.nn.MultiheadAttention(8, 2, batch_first=True, key=st.random.PRNGKey(0))
    >>> x = st.numpy.ones((4, 5, 8))
    >>> out, weights = layer(x, x, x)
    >>> out.shape, weights.shape
    ((4, 5, 8), (4, 5, 5))
    """

    in_proj_weight: Array | None
    q_proj_weight: Array | None
    k_proj_weight: Array | None
    v_proj_weight: Array | None
    in_proj_bias: Array | None
    bias_k: Array | None
    bias_v: Array | None
    out_proj: Linear

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        caller = "MultiheadAttention"
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        positive(caller, embed_dim=embed_dim, num_heads=num_heads, kdim=self.kdim, vdim=self.vdim)
        if embed_dim % num_heads:
            raise ValueError(
                f"{caller}: embed_dim must be a multiple of num_heads, got {embed_dim} and "
                f"{num_heads}"
            )
        self.dropout = probability(dropout, caller, "dropout")
        self.add_zero_attn = add_zero_attn
        self.batch_first = batch_first
        keys = split(key_or_next(key, caller), 6)
        separate = (self.kdim, self.vdim) != (embed_dim, embed_dim)
        sizes = (embed_dim, self.kdim, self.vdim)
        for name, size, k in zip("qkv", sizes, keys[:3], strict=True):
            weight = init.xavier_uniform(k, (embed_dim, size), dtype=dtype)
            self.register_parameter(f"{name}_proj_weight", weight if separate else None)
        packed = (3 * embed_dim, embed_dim)
        self.register_parameter(
            "in_proj_weight",
            None if separate else init.xavier_uniform(keys[0], packed, dtype=dtype),
        )
        zeros = init.zeros((3 * embed_dim,), dtype=dtype) if bias else None
        self.register_parameter("in_proj_bias", zeros)
        self.out_proj = Linear(embed_dim, embed_dim, bias, key=keys[3], dtype=dtype)
        if bias:
            self.out_proj.bias = init.zeros((embed_dim,), dtype=dtype)
        for name, k in zip(("bias_k", "bias_v"), keys[4:], strict=True):
            one = init.xavier_normal(k, (1, 1, embed_dim), dtype=dtype) if add_bias_kv else None
            self.register_parameter(name, one)

    def forward(
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        key_padding_mask: ArrayLike | None = None,
        need_weights: bool = True,
        attn_mask: ArrayLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        *,
        dropout_key: Key | None = None,
    ) -> tuple[Array, Array | None]:
        """Attend from queries to keys, and average their values.

        Args:
            query: (queries, batch, embed_dim), with ``batch_first`` (batch, queries, embed_dim), or
                without the batch.
            key: (keys, batch, kdim), likewise.
            value: (keys, batch, vdim), likewise.
            key_padding_mask: (batch, keys), True for keys to leave out, or floats that are added to
                scores.
            need_weights: whether the weights are returned.
            attn_mask: (queries, keys) or (batch * num_heads, queries, keys), of the same meaning.
            average_attn_weights: whether the weights returned are the mean over heads.
            is_causal: leaves out keys after the query; beside an ``attn_mask`` it only says that
                this does so.
            dropout_key: the key of dropout in train mode; by default the ambient stream's next one.

        Returns:
            The outputs, in the shape of ``query``; and the weights (batch, queries, keys), or
            (batch, num_heads, queries, keys) if not averaged, or None if not needed.
        """
        return project_and_attend(
            "MultiheadAttention",
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            self.in_proj_weight is None,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            batch_first=self.batch_first,
            dropout_key=dropout_key,
        )

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"


_transformer = described(
    {
        "d_model": "the features of inputs and outputs.",
        "nhead": "the number of heads, a divisor of ``d_model``.",
        "dim_feedforward": "the features between the two layers of the network.",
        "dropout": "the probability of dropout in train mode.",
        "activation": '``"relu"``, ``"gelu"``, a function or a module.',
        "layer_norm_eps": "what the normalizations add to variances.",
        "batch_first": "whether inputs are (batch, length, d_model) rather than (length, batch,\n"
        "        d_model).",
        "norm_first": "whether normalization comes before each part rather than after its sum.",
        "bias": "whether layers and normalizations have biases.",
        "key": "the key to draw the parameters from; by default the ambient stream's next one.",
        "dtype": "the dtype of the parameters, by default the default float.",
    },
    raises="TypeError: ``activation`` is neither a string nor callable.\n"
    "    ValueError: sizes do not fit, ``activation`` is unknown, or ``dropout`` is not from 0\n"
    "        to 1.",
)
"""Complete the docstring of a part of transformers."""

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


class _TransformerLayer(Module):
    """Hold attentions and a network of two layers, and a norm and dropout for each of them."""

    _attentions: ClassVar[tuple[str, ...]] = ("self_attn",)
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
        attentions = len(self._attentions)
        keys = split(key_or_next(key, caller), attentions + 2)
        for i, name in enumerate(self._attentions):
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, key=keys[i], dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, key=keys[attentions], dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, key=keys[attentions + 1], dtype=dtype)
        self.norm_first = norm_first
        for i in range(1, attentions + 2):
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)
            setattr(self, f"norm{i}", norm)
        for i in range(1, attentions + 2):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(caller, activation)


@_transformer
class TransformerEncoderLayer(_TransformerLayer):
    """Attend from a sequence to itself, then run a network of two layers on each element.

    Both parts are added to their inputs: ``x = norm1(x + attention(x))``, ``x = norm2(x +
    linear2(activation(linear1(x))))``; with ``norm_first`` the norms are of the parts' inputs.
    Parameters are named as in PyTorch.

    As PyTorch's ``nn.TransformerEncoderLayer``. Source: Vaswani et al., Attention Is All You Need,
    2017; Xiong et al., On Layer Normalization in the Transformer Architecture, 2020.

    >>> import stretto as st
    >>> layer = st.nn.TransformerEncoderLayer(8, 2, 16, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((5, 4, 8)), key=st.random.PRNGKey(1)).shape
    (5, 4, 8)
    """

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


@_transformer
class TransformerDecoderLayer(_TransformerLayer):
    """Attend from a sequence to itself, then to another, then run a network of two layers.

    As ``TransformerEncoderLayer``, with ``multihead_attn`` and ``norm2`` for the attention to
    ``memory``, the output of an encoder.

    As PyTorch's ``nn.TransformerDecoderLayer``.

    >>> import stretto as st
    >>> layer = st.nn.TransformerDecoderLayer(8, 2, 16, key=st.random.PRNGKey(0)).eval()
    >>> layer(st.numpy.ones((5, 4, 8)), st.numpy.ones((6, 4, 8))).shape
    (5, 4, 8)
    """

    _attentions = ("self_attn", "multihead_attn")
    multihead_attn: MultiheadAttention
    norm3: LayerNorm

    @described_like(TransformerEncoderLayer.forward)
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


class _Copies(Module):
    """Hold copies of a layer, each with arrays of its own, so that none are tied; and ``norm``."""

    layers: Any
    norm: Any

    def __init__(self, layer: Module, num_layers: int, norm: Module | None) -> None:
        super().__init__()
        positive(type(self).__name__, num_layers=num_layers)
        self.layers = ModuleList([tree.map(snp.copy, layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm


class TransformerEncoder(_Copies):
    """Run copies of an encoder's layer one after another, then ``norm`` if there is one.

    As in PyTorch the copies begin with the same parameters: draw new ones where that matters, or
    make the layers one by one in a ``ModuleList``.

    Args:
        encoder_layer: the layer.
        num_layers: the number of copies.
        norm: a module to run on the output.

    Raises:
        ValueError: ``num_layers`` is not a positive integer.

    As PyTorch's ``nn.TransformerEncoder``.

    >>> import stretto as st
    >>> layer = st.nn.TransformerEncoderLayer(8, 2, 16, key=st.random.PRNGKey(0))
    >>> encoder = st.nn.TransformerEncoder(layer, 2).eval()
    >>> encoder(st.numpy.ones((5, 4, 8)), is_causal=True).shape
    (5, 4, 8)
    """

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    @described_like(TransformerEncoderLayer.forward)
    def forward(
        self,
        src: ArrayLike,
        mask: ArrayLike | None = None,
        src_key_padding_mask: ArrayLike | None = None,
        is_causal: bool = False,
        *,
        key: Key | None = None,
    ) -> Array:
        """Transform a sequence by each layer.

        Args:
            mask: which elements to hide from which, as ``attn_mask`` of ``MultiheadAttention``.

        """
        x: Any = src
        for layer, k in zip(self.layers, key_parts(key, self.num_layers), strict=True):
            x = layer(x, mask, src_key_padding_mask, is_causal, key=k)
        return x if self.norm is None else self.norm(x)


@described_like(TransformerEncoder)
class TransformerDecoder(_Copies):
    """Run copies of a decoder's layer one after another, then ``norm`` if there is one.

    The copies begin with the same parameters, as those of ``TransformerEncoder``.

    Args:
        decoder_layer: the layer.

    As PyTorch's ``nn.TransformerDecoder``.

    >>> import stretto as st
    >>> layer = st.nn.TransformerDecoderLayer(8, 2, 16, key=st.random.PRNGKey(0))
    >>> decoder = st.nn.TransformerDecoder(layer, 2).eval()
    >>> decoder(st.numpy.ones((5, 4, 8)), st.numpy.ones((6, 4, 8))).shape
    (5, 4, 8)
    """

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    @described_like(TransformerDecoderLayer.forward)
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
        """Transform a sequence, given another."""
        x: Any = tgt
        for layer, k in zip(self.layers, key_parts(key, self.num_layers), strict=True):
            x = layer(
                x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                tgt_is_causal,
                memory_is_causal,
                key=k,
            )
        return x if self.norm is None else self.norm(x)


@_transformer
class Transformer(Module):
    """Encode one sequence, and decode it into another.

    Weights begin by ``init.xavier_uniform``, each layer with its own.

    Args:
        num_encoder_layers: the number of the encoder's layers.
        num_decoder_layers: the number of the decoder's layers.
        custom_encoder: a module in place of the encoder.
        custom_decoder: a module in place of the decoder.

    As PyTorch's ``nn.Transformer``. Source: Vaswani et al., Attention Is All You Need, 2017.

    >>> import stretto as st
    >>> model = st.nn.Transformer(8, 2, 1, 1, 16, key=st.random.PRNGKey(0)).eval()
    >>> model(st.numpy.ones((6, 4, 8)), st.numpy.ones((5, 4, 8))).shape
    (5, 4, 8)
    """

    encoder: Any
    decoder: Any

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Array], Array] = F.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        keys = split(key_or_next(key, "Transformer"), 3)
        common = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps)
        flags = (batch_first, norm_first, bias)

        def norm() -> LayerNorm:
            return LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype)

        if custom_encoder is None:
            layer = TransformerEncoderLayer(*common, *flags, key=keys[0], dtype=dtype)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, norm())
        if custom_decoder is None:
            other = TransformerDecoderLayer(*common, *flags, key=keys[1], dtype=dtype)
            custom_decoder = TransformerDecoder(other, num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first
        self._draw_weights(keys[2])

    def _draw_weights(self, key: Key) -> None:
        """Give each weight of two axes or more its own numbers."""
        matrices = [
            (module, name, value)
            for module in self.modules()
            for name, value in module.named_parameters(recurse=False)
            if value.ndim > 1
        ]
        keys = split(key, len(matrices)) if matrices else ()
        for (module, name, value), k in zip(matrices, keys, strict=True):
            setattr(module, name, Parameter(init.xavier_uniform(k, value.shape, dtype=value.dtype)))

    @described_like(TransformerDecoderLayer.forward)
    def forward(
        self,
        src: ArrayLike,
        tgt: ArrayLike,
        src_mask: ArrayLike | None = None,
        tgt_mask: ArrayLike | None = None,
        memory_mask: ArrayLike | None = None,
        src_key_padding_mask: ArrayLike | None = None,
        tgt_key_padding_mask: ArrayLike | None = None,
        memory_key_padding_mask: ArrayLike | None = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        *,
        key: Key | None = None,
    ) -> Array:
        """Transform the second sequence, given the first.

        Args:
            src: (length, batch, d_model), with ``batch_first`` (batch, length, d_model), or without
                the batch.
            src_mask: which elements to hide from which, as ``attn_mask`` of ``MultiheadAttention``.
            src_key_padding_mask: (batch, length), which elements to hide from all.
            src_is_causal: whether later elements of ``src`` are hidden.

        Returns:
            The transformed ``tgt``, in its shape.

        """
        keys = key_parts(key, 2)
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal, key=keys[0])
        return self.decoder(
            tgt,
            memory,
            tgt_mask,
            memory_mask,
            tgt_key_padding_mask,
            memory_key_padding_mask,
            tgt_is_causal,
            memory_is_causal,
            key=keys[1],
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, dtype: DTypeLike | None = None) -> Array:
        """Make the mask that hides later elements: -inf for those, 0 elsewhere.

        Args:
            sz: the length of the sequence.
            dtype: the dtype, by default the default float.

        Returns:
            The mask (sz, sz).

        >>> import stretto as st
        >>> st.nn.Transformer.generate_square_subsequent_mask(2)
        Array([[  0., -inf],
               [  0.,   0.]], dtype=float32)
        """
        return snp.triu(snp.full((sz, sz), -math.inf, dtype or float), 1)
