"""``stretto.nn.functional``: the functions of layers, under PyTorch's names.

Names, arguments, defaults and meanings are those of ``torch.nn.functional``. Arrays never change,
so what PyTorch would write in place is returned. Read ``checks``, ``convolution``, ``pooling``,
``normalization``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.nn.functional.activations import (
        celu as celu, elu as elu, gelu as gelu, glu as glu, gumbel_softmax as gumbel_softmax,
        hardshrink as hardshrink, hardsigmoid as hardsigmoid, hardswish as hardswish,
        hardtanh as hardtanh, leaky_relu as leaky_relu, log_softmax as log_softmax,
        logsigmoid as logsigmoid, logsumexp as logsumexp, mish as mish, one_hot as one_hot,
        prelu as prelu, relu as relu, relu6 as relu6, rrelu as rrelu, selu as selu,
        sigmoid as sigmoid, silu as silu, softmax as softmax, softmin as softmin,
        softplus as softplus, softshrink as softshrink, softsign as softsign, tanh as tanh,
        tanhshrink as tanhshrink, threshold as threshold,
    )  # fmt: skip
    from stretto.nn.functional.affine import *
    from stretto.nn.functional.attention import (
        multi_head_attention_forward as multi_head_attention_forward,
        scaled_dot_product_attention as scaled_dot_product_attention,
    )
    from stretto.nn.functional.classification_losses import *
    from stretto.nn.functional.convolution import *
    from stretto.nn.functional.dropouts import *
    from stretto.nn.functional.losses import *
    from stretto.nn.functional.normalization import *
    from stretto.nn.functional.pooling import (
        adaptive_avg_pool1d as adaptive_avg_pool1d, adaptive_avg_pool2d as adaptive_avg_pool2d,
        adaptive_avg_pool3d as adaptive_avg_pool3d, adaptive_max_pool1d as adaptive_max_pool1d,
        adaptive_max_pool2d as adaptive_max_pool2d, adaptive_max_pool3d as adaptive_max_pool3d,
        avg_pool1d as avg_pool1d, avg_pool2d as avg_pool2d, avg_pool3d as avg_pool3d,
        lp_pool1d as lp_pool1d, lp_pool2d as lp_pool2d, lp_pool3d as lp_pool3d,
        max_pool1d as max_pool1d, max_pool2d as max_pool2d, max_pool3d as max_pool3d,
    )  # fmt: skip
    from stretto.nn.functional.recurrence import (
        gru as gru, gru_cell as gru_cell, lstm as lstm, lstm_cell as lstm_cell,
        rnn_relu as rnn_relu, rnn_relu_cell as rnn_relu_cell, rnn_tanh as rnn_tanh,
        rnn_tanh_cell as rnn_tanh_cell,
    )  # fmt: skip
    from stretto.nn.functional.reshaping import *

exports(
    __name__,
    """
    .activations: celu elu gelu glu gumbel_softmax hardshrink hardsigmoid hardswish hardtanh
        leaky_relu log_softmax logsigmoid logsumexp mish one_hot prelu relu relu6 rrelu selu sigmoid
        silu softmax softmin softplus softshrink softsign tanh tanhshrink threshold
    .affine: bilinear embedding embedding_bag linear
    .attention: multi_head_attention_forward scaled_dot_product_attention
    .classification_losses: binary_cross_entropy binary_cross_entropy_with_logits cross_entropy
        ctc_loss kl_div nll_loss
    .convolution: conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
    .dropouts: alpha_dropout dropout dropout1d dropout2d dropout3d feature_alpha_dropout
    .losses: cosine_embedding_loss cosine_similarity gaussian_nll_loss hinge_embedding_loss
        huber_loss l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss
        multilabel_soft_margin_loss pairwise_distance poisson_nll_loss smooth_l1_loss
        soft_margin_loss triplet_margin_loss
    .normalization: batch_norm batch_statistics group_norm instance_norm layer_norm
        local_response_norm normalize rms_norm
    .pooling: adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
        adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d
        lp_pool3d max_pool1d max_pool2d max_pool3d
    .recurrence: gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell
    .reshaping: channel_shuffle flatten fold interpolate pad pixel_shuffle pixel_unshuffle unflatten
        unfold upsample
    """,
)
