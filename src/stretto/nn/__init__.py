"""``stretto.nn``: modules with PyTorch's names, and functions of neural networks.

Read ``module`` first, then ``containers``. The functions are some of ``functional``, which has them
all; under ``as_jax``, ``jax.nn`` has those of JAX's meaning.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports
from stretto.nn.module import Module as Module, Parameter as Parameter

if TYPE_CHECKING:
    from stretto.nn import functional as functional, init as init
    from stretto.nn.activations import *
    from stretto.nn.containers import *
    from stretto.nn.convolution import *
    from stretto.nn.functional.activations import (
        celu as celu, elu as elu, gelu as gelu, glu as glu, leaky_relu as leaky_relu,
        log_softmax as log_softmax, logsumexp as logsumexp, mish as mish, one_hot as one_hot,
        relu as relu, relu6 as relu6, selu as selu, sigmoid as sigmoid, silu as silu,
        softmax as softmax, softplus as softplus, softsign as softsign, tanh as tanh,
    )  # fmt: skip
    from stretto.nn.linear import *
    from stretto.nn.losses import *
    from stretto.nn.module import stateful_call as stateful_call
    from stretto.nn.normalization import *
    from stretto.nn.pooling import *
    from stretto.nn.recurrent import (
        GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell, RNN as RNN,
        RNNCell as RNNCell,
    )  # fmt: skip
    from stretto.nn.reshaping import *
    from stretto.nn.transformer import *
    from stretto.random.streams import keys as keys

exports(
    __name__,
    """
    .: functional init
    .activations: AlphaDropout CELU Dropout Dropout1d Dropout2d Dropout3d ELU FeatureAlphaDropout
        GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish
        PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus Softshrink
        Softsign Tanh Tanhshrink Threshold
    .containers: ModuleDict ModuleList ParameterDict ParameterList Sequential
    .convolution: Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
    .functional.activations: celu elu gelu glu leaky_relu log_softmax logsumexp mish one_hot relu
        relu6 selu sigmoid silu softmax softplus softsign tanh
    .linear: Bilinear Embedding EmbeddingBag Identity Linear
    .losses: BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss
        GaussianNLLLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MarginRankingLoss
        MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PairwiseDistance
        PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss
    .module: stateful_call
    .normalization: BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d
        InstanceNorm3d LayerNorm LocalResponseNorm RMSNorm
    .pooling: AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d
        AdaptiveMaxPool2d AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d LPPool1d LPPool2d LPPool3d
        MaxPool1d MaxPool2d MaxPool3d
    .recurrent: GRU GRUCell LSTM LSTMCell RNN RNNCell
    .reshaping: ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d
        ConstantPad3d Flatten Fold PixelShuffle PixelUnshuffle ReflectionPad1d ReflectionPad2d
        ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d Unflatten Unfold Upsample
        UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d
    .transformer: MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer
        TransformerEncoder TransformerEncoderLayer
    stretto.random.streams: keys
    """,
)
