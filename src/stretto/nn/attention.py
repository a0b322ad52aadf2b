"""``MultiheadAttention``.

Arguments, parameters, shapes and initial distributions are PyTorch's. As a call takes ``key``, the
key to draw from is ``dropout_key=``. Next, read ``transformer``.
"""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import functional as F
from stretto.nn import init
from stretto.nn.functional.checks import key_or_next, probability
from stretto.nn.inputs import positive
from stretto.nn.linear import Linear
from stretto.nn.module import Module
from stretto.random.keys import split

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention by ``num_heads`` heads, each with ``embed_dim / num_heads`` features.

    Queries and outputs have ``embed_dim`` features, keys ``kdim`` and values ``vdim``, by default
    as many. Inputs are (length, batch, features), with ``batch_first`` (batch, length, features),
    or without the batch. Parameters are ``in_proj_weight`` (3 embed_dim, embed_dim), or where kdim
    or vdim differ ``q_proj_weight``, ``k_proj_weight``, ``v_proj_weight`` (embed_dim, features);
    ``in_proj_bias``; ``out_proj``; ``bias_k`` and ``bias_v``, one key and value more. They begin as
    in PyTorch, drawn from ``key`` or the ambient stream.

    Raises ``ValueError`` for sizes that do not fit. Source: Vaswani et al., Attention Is All You
    Need, 2017.

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
        who = "MultiheadAttention"
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        positive(who, embed_dim=embed_dim, num_heads=num_heads, kdim=self.kdim, vdim=self.vdim)
        if embed_dim % num_heads:
            raise ValueError(
                f"{who}: embed_dim must be a multiple of num_heads, got {embed_dim} and {num_heads}"
            )
        self.dropout = probability(dropout, who, "dropout")
        self.add_zero_attn = add_zero_attn
        self.batch_first = batch_first
        keys = split(key_or_next(key, who), 6)
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
        """What the heads find, in the shape of ``query``; and the weights, or None.

        The weights are (batch, queries, keys), or (batch, heads, queries, keys) without
        ``average_attn_weights``, and None without ``need_weights``. ``attn_mask`` is (queries,
        keys) or (batch * heads, queries, keys), ``key_padding_mask`` (batch, keys): True for keys
        to leave out, or floats that are added. ``is_causal`` leaves out keys after the query;
        beside an ``attn_mask`` it only says that this does so.
        """
        return F.multi_head_attention_forward(
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
        """The sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"
