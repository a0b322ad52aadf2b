"""``stretto.nn.functional``: the functions of layers, under PyTorch's names.

Names, arguments, defaults and meanings are those of ``torch.nn.functional``; where JAX has a
function of the same purpose under other conventions, it is in ``stretto.nn`` itself. Arrays never
change, so what PyTorch would write in place is returned. Read ``arguments``, ``convolution``,
``windows``, ``pooling``, ``normalisation``.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand

if TYPE_CHECKING:
    from stretto.nn.functional.adaptive import *
    from stretto.nn.functional.affine import *
    from stretto.nn.functional.attention import *
    from stretto.nn.functional.classification_losses import *
    from stretto.nn.functional.convolution import *
    from stretto.nn.functional.ctc import *
    from stretto.nn.functional.distances import *
    from stretto.nn.functional.dropouts import *
    from stretto.nn.functional.lookup import *
    from stretto.nn.functional.margin_losses import *
    from stretto.nn.functional.multi_head import *
    from stretto.nn.functional.normalisation import *
    from stretto.nn.functional.padding import *
    from stretto.nn.functional.piecewise_activations import *
    from stretto.nn.functional.pooling import *
    from stretto.nn.functional.recurrence import *
    from stretto.nn.functional.regression_losses import *
    from stretto.nn.functional.reshaping import *
    from stretto.nn.functional.resizing import *
    from stretto.nn.functional.smooth_activations import *
    from stretto.nn.functional.softmaxes import *
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.nn.functional.adaptive": "adaptive_avg_pool1d adaptive_avg_pool2d "
            "adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d",
            "stretto.nn.functional.affine": "bilinear linear",
            "stretto.nn.functional.attention": "scaled_dot_product_attention",
            "stretto.nn.functional.classification_losses": "binary_cross_entropy "
            "binary_cross_entropy_with_logits cross_entropy kl_div nll_loss",
            "stretto.nn.functional.convolution": "conv1d conv2d conv3d conv_transpose1d "
            "conv_transpose2d conv_transpose3d",
            "stretto.nn.functional.ctc": "ctc_loss",
            "stretto.nn.functional.distances": "cosine_embedding_loss cosine_similarity "
            "pairwise_distance triplet_margin_loss",
            "stretto.nn.functional.dropouts": "alpha_dropout dropout dropout1d dropout2d "
            "dropout3d feature_alpha_dropout",
            "stretto.nn.functional.lookup": "embedding embedding_bag",
            "stretto.nn.functional.margin_losses": "hinge_embedding_loss margin_ranking_loss "
            "multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss "
            "soft_margin_loss",
            "stretto.nn.functional.multi_head": "multi_head_attention_forward",
            "stretto.nn.functional.normalisation": "batch_norm batch_statistics group_norm "
            "instance_norm layer_norm local_response_norm normalize rms_norm",
            "stretto.nn.functional.padding": "pad",
            "stretto.nn.functional.piecewise_activations": "celu elu hardshrink hardsigmoid "
            "hardswish hardtanh leaky_relu prelu relu relu6 rrelu selu softshrink threshold",
            "stretto.nn.functional.pooling": "avg_pool1d avg_pool2d avg_pool3d lp_pool1d "
            "lp_pool2d lp_pool3d max_pool1d max_pool2d max_pool3d",
            "stretto.nn.functional.recurrence": "gru gru_cell lstm lstm_cell rnn_relu "
            "rnn_relu_cell rnn_tanh rnn_tanh_cell",
            "stretto.nn.functional.regression_losses": "gaussian_nll_loss huber_loss l1_loss "
            "mse_loss poisson_nll_loss smooth_l1_loss",
            "stretto.nn.functional.reshaping": "channel_shuffle flatten fold pixel_shuffle "
            "pixel_unshuffle unflatten unfold",
            "stretto.nn.functional.resizing": "interpolate upsample",
            "stretto.nn.functional.smooth_activations": "gelu glu logsigmoid mish sigmoid silu "
            "softplus softsign tanh tanhshrink",
            "stretto.nn.functional.softmaxes": "gumbel_softmax log_softmax softmax softmin",
        },
    )
    __all__ = [name for name in __dir__() if not name.startswith("_")]
