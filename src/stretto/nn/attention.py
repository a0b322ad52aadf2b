"""``MultiheadAttention``.

Arguments, parameters, shapes and initial distributions are PyTorch's. As ``key`` is taken in calls,
the key of dropout is ``dropout_key=``.
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import init
from stretto.nn.functional.attention import project_and_attend
from stretto.nn.functional.checks import key_or_next, probability
from stretto.nn.inputs import positive
from stretto.nn.linear import Linear
from stretto.nn.module import Module
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
