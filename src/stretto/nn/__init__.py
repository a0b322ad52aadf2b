"""``stretto.nn``: modules with PyTorch's names, and functions of neural networks.

Read ``module`` first, then ``containers`` and ``state``. ``functions`` has JAX's functions of
arrays, ``functional`` PyTorch's.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand
from stretto.nn.module import *

if TYPE_CHECKING:
    from stretto.nn import functional as functional
    from stretto.nn import init as init
    from stretto.nn import initializers as initializers
    from stretto.nn.activations import *
    from stretto.nn.attention import *
    from stretto.nn.containers import *
    from stretto.nn.convolution import *
    from stretto.nn.dot_product import *
    from stretto.nn.dropout import *
    from stretto.nn.embedding import *
    from stretto.nn.functions import *
    from stretto.nn.linear import *
    from stretto.nn.losses import *
    from stretto.nn.normalisation import *
    from stretto.nn.padding import *
    from stretto.nn.pooling import *
    from stretto.nn.recurrent import *
    from stretto.nn.reshaping import *
    from stretto.nn.state import *
    from stretto.nn.transformer import *
    from stretto.random.streams import keys as keys
else:
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            "stretto.nn": "functional init initializers",
            "stretto.nn.activations": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish "
            "Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU SiLU "
            "Sigmoid Softmax Softmax2d Softmin Softplus Softshrink Softsign Tanh Tanhshrink "
            "Threshold",
            "stretto.nn.attention": "MultiheadAttention",
            "stretto.nn.containers": "ModuleDict ModuleList ParameterDict ParameterList Sequential",
            "stretto.nn.convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d "
            "ConvTranspose3d",
            "stretto.nn.dot_product": "dot_product_attention",
            "stretto.nn.dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d "
            "FeatureAlphaDropout",
            "stretto.nn.embedding": "Embedding EmbeddingBag",
            "stretto.nn.functions": "celu elu gelu glu hard_sigmoid hard_silu hard_swish "
            "hard_tanh identity leaky_relu log1mexp log_sigmoid log_softmax logmeanexp logsumexp "
            "mish one_hot relu relu6 selu sigmoid silu soft_sign softmax softplus softsign "
            "sparse_plus sparse_sigmoid squareplus standardize swish tanh",
            "stretto.nn.linear": "Bilinear Identity Linear",
            "stretto.nn.losses": "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss "
            "CosineSimilarity CrossEntropyLoss GaussianNLLLoss HingeEmbeddingLoss HuberLoss "
            "KLDivLoss L1Loss MSELoss MarginRankingLoss MultiLabelMarginLoss "
            "MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PairwiseDistance PoissonNLLLoss "
            "SmoothL1Loss SoftMarginLoss TripletMarginLoss",
            "stretto.nn.normalisation": "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm "
            "InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm LocalResponseNorm RMSNorm",
            "stretto.nn.padding": "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d "
            "ConstantPad2d ConstantPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d "
            "ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d",
            "stretto.nn.pooling": "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d "
            "AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d "
            "LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d",
            "stretto.nn.recurrent": "GRU GRUCell LSTM LSTMCell RNN RNNCell",
            "stretto.nn.reshaping": "ChannelShuffle Flatten Fold PixelShuffle PixelUnshuffle "
            "Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d",
            "stretto.nn.state": "stateful_call",
            "stretto.nn.transformer": "Transformer TransformerDecoder TransformerDecoderLayer "
            "TransformerEncoder TransformerEncoderLayer",
            "stretto.random.streams": "keys",
        },
    )
    __all__ = [name for name in __dir__() if not name.startswith("_")]
