"""``stretto.nn``: modules with PyTorch's names, and functions of neural networks.

Read ``module`` first, then ``containers`` and ``state``. ``functions`` and ``piecewise_functions``
have JAX's functions of arrays, ``functional`` has PyTorch's.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand
from stretto.nn.module import *
from stretto.nn.parameter import *

if TYPE_CHECKING:
    from stretto.nn import functional as functional
    from stretto.nn import init as init
    from stretto.nn import initializers as initializers
    from stretto.nn.adaptive_pooling import *
    from stretto.nn.attention import *
    from stretto.nn.batch_normalisation import *
    from stretto.nn.classification_losses import *
    from stretto.nn.containers import *
    from stretto.nn.convolution import *
    from stretto.nn.dot_product import *
    from stretto.nn.dropout import *
    from stretto.nn.embedding import *
    from stretto.nn.functions import *
    from stretto.nn.linear import *
    from stretto.nn.margin_losses import *
    from stretto.nn.normalisation import *
    from stretto.nn.padding import *
    from stretto.nn.piecewise_activations import *
    from stretto.nn.piecewise_functions import *
    from stretto.nn.pooling import *
    from stretto.nn.recurrent import *
    from stretto.nn.recurrent_cells import *
    from stretto.nn.regression_losses import *
    from stretto.nn.reshaping import *
    from stretto.nn.smooth_activations import *
    from stretto.nn.state import *
    from stretto.nn.transformer import *
    from stretto.nn.transformer_layers import *
    from stretto.random.streams import keys as keys
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.nn": "functional init initializers",
            "stretto.nn.adaptive_pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d "
            "AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d",
            "stretto.nn.attention": "MultiheadAttention",
            "stretto.nn.batch_normalisation": "BatchNorm1d BatchNorm2d BatchNorm3d "
            "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
            "stretto.nn.classification_losses": "BCELoss BCEWithLogitsLoss CTCLoss "
            "CrossEntropyLoss KLDivLoss NLLLoss",
            "stretto.nn.containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
            "stretto.nn.convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
            "ConvTranspose3d",
            "stretto.nn.dot_product": "dot_product_attention",
            "stretto.nn.dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d "
            "FeatureAlphaDropout",
            "stretto.nn.embedding": "Embedding EmbeddingBag",
            "stretto.nn.functions": "gelu glu identity log1mexp log_sigmoid log_softmax "
            "logmeanexp logsumexp mish one_hot sigmoid silu soft_sign softmax softplus softsign "
            "squareplus standardize swish tanh",
            "stretto.nn.linear": "Bilinear Identity Linear",
            "stretto.nn.margin_losses": "CosineEmbeddingLoss CosineSimilarity HingeEmbeddingLoss "
            "MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss "
            "PairwiseDistance SoftMarginLoss TripletMarginLoss",
            "stretto.nn.normalisation": "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
            "stretto.nn.padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d "
            "ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d "
            "ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
            "stretto.nn.piecewise_activations": "CELU ELU Hardshrink Hardsigmoid Hardswish "
            "Hardtanh LeakyReLU PReLU RReLU ReLU ReLU6 SELU Softshrink Threshold",
            "stretto.nn.piecewise_functions": "celu elu hard_sigmoid hard_silu hard_swish "
            "hard_tanh leaky_relu relu relu6 selu sparse_plus sparse_sigmoid",
            "stretto.nn.pooling": "AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d "
            "MaxPool1d MaxPool2d MaxPool3d",
            "stretto.nn.recurrent": "GRU LSTM RNN",
            "stretto.nn.recurrent_cells": "GRUCell LSTMCell RNNCell",
            "stretto.nn.regression_losses": "GaussianNLLLoss HuberLoss L1Loss MSELoss "
            "PoissonNLLLoss SmoothL1Loss",
            "stretto.nn.reshaping": "ChannelShuffle Flatten Fold PixelShuffle PixelUnshuffle "
            "Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d",
            "stretto.nn.smooth_activations": "GELU GLU LogSigmoid LogSoftmax Mish SiLU Sigmoid "
            "Softmax Softmax2d Softmin Softplus Softsign Tanh Tanhshrink",
            "stretto.nn.state": "stateful_call",
            "stretto.nn.transformer": "Transformer TransformerDecoder TransformerEncoder",
            "stretto.nn.transformer_layers": "TransformerDecoderLayer TransformerEncoderLayer",
            "stretto.random.streams": "keys",
        },
    )
    __all__ = [name for name in __dir__() if not name.startswith("_")]
