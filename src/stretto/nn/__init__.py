"""``stretto.nn``: modules with PyTorch's names, and functions of neural networks.

Read ``module`` first, then ``containers``. The functions are some of ``functional``, which has them
all; under ``as_jax``, ``jax.nn`` has those of JAX's meaning.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports
from stretto.nn.module import Module as Module, Parameter as Parameter

if TYPE_CHECKING:
    from stretto.nn import functional as functional, init as init
    from stretto.nn.activations import (
        AlphaDropout as AlphaDropout, CELU as CELU, Dropout as Dropout, Dropout1d as Dropout1d,
        Dropout2d as Dropout2d, Dropout3d as Dropout3d, ELU as ELU,
        FeatureAlphaDropout as FeatureAlphaDropout, GELU as GELU, GLU as GLU,
        Hardshrink as Hardshrink, Hardsigmoid as Hardsigmoid, Hardswish as Hardswish,
        Hardtanh as Hardtanh, LeakyReLU as LeakyReLU, LogSigmoid as LogSigmoid,
        LogSoftmax as LogSoftmax, Mish as Mish, PReLU as PReLU, RReLU as RReLU, ReLU as ReLU,
        ReLU6 as ReLU6, SELU as SELU, SiLU as SiLU, Sigmoid as Sigmoid, Softmax as Softmax,
        Softmax2d as Softmax2d, Softmin as Softmin, Softplus as Softplus, Softshrink as Softshrink,
        Softsign as Softsign, Tanh as Tanh, Tanhshrink as Tanhshrink, Threshold as Threshold,
    )  # fmt: skip
    from stretto.nn.containers import (
        ModuleDict as ModuleDict, ModuleList as ModuleList, ParameterDict as ParameterDict,
        ParameterList as ParameterList, Sequential as Sequential,
    )  # fmt: skip
    from stretto.nn.convolution import (
        Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d,
        ConvTranspose2d as ConvTranspose2d, ConvTranspose3d as ConvTranspose3d,
    )  # fmt: skip
    from stretto.nn.functional.activations import (
        celu as celu, elu as elu, gelu as gelu, glu as glu, leaky_relu as leaky_relu,
        log_softmax as log_softmax, logsumexp as logsumexp, mish as mish, one_hot as one_hot,
        relu as relu, relu6 as relu6, selu as selu, sigmoid as sigmoid, silu as silu,
        softmax as softmax, softplus as softplus, softsign as softsign, tanh as tanh,
    )  # fmt: skip
    from stretto.nn.linear import (
        Bilinear as Bilinear, Embedding as Embedding, EmbeddingBag as EmbeddingBag,
        Identity as Identity, Linear as Linear,
    )  # fmt: skip
    from stretto.nn.losses import (
        BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CTCLoss as CTCLoss,
        CosineEmbeddingLoss as CosineEmbeddingLoss, CosineSimilarity as CosineSimilarity,
        CrossEntropyLoss as CrossEntropyLoss, GaussianNLLLoss as GaussianNLLLoss,
        HingeEmbeddingLoss as HingeEmbeddingLoss, HuberLoss as HuberLoss, KLDivLoss as KLDivLoss,
        L1Loss as L1Loss, MSELoss as MSELoss, MarginRankingLoss as MarginRankingLoss,
        MultiLabelMarginLoss as MultiLabelMarginLoss,
        MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss, MultiMarginLoss as MultiMarginLoss,
        NLLLoss as NLLLoss, PairwiseDistance as PairwiseDistance, PoissonNLLLoss as PoissonNLLLoss,
        SmoothL1Loss as SmoothL1Loss, SoftMarginLoss as SoftMarginLoss,
        TripletMarginLoss as TripletMarginLoss,
    )  # fmt: skip
    from stretto.nn.module import stateful_call as stateful_call
    from stretto.nn.normalization import (
        BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d,
        GroupNorm as GroupNorm, InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d,
        InstanceNorm3d as InstanceNorm3d, LayerNorm as LayerNorm,
        LocalResponseNorm as LocalResponseNorm, RMSNorm as RMSNorm,
    )  # fmt: skip
    from stretto.nn.pooling import (
        AdaptiveAvgPool1d as AdaptiveAvgPool1d, AdaptiveAvgPool2d as AdaptiveAvgPool2d,
        AdaptiveAvgPool3d as AdaptiveAvgPool3d, AdaptiveMaxPool1d as AdaptiveMaxPool1d,
        AdaptiveMaxPool2d as AdaptiveMaxPool2d, AdaptiveMaxPool3d as AdaptiveMaxPool3d,
        AvgPool1d as AvgPool1d, AvgPool2d as AvgPool2d, AvgPool3d as AvgPool3d,
        LPPool1d as LPPool1d, LPPool2d as LPPool2d, LPPool3d as LPPool3d, MaxPool1d as MaxPool1d,
        MaxPool2d as MaxPool2d, MaxPool3d as MaxPool3d,
    )  # fmt: skip
    from stretto.nn.recurrent import (
        GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell, RNN as RNN,
        RNNCell as RNNCell,
    )  # fmt: skip
    from stretto.nn.reshaping import (
        ChannelShuffle as ChannelShuffle, CircularPad1d as CircularPad1d,
        CircularPad2d as CircularPad2d, CircularPad3d as CircularPad3d,
        ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d,
        ConstantPad3d as ConstantPad3d, Flatten as Flatten, Fold as Fold,
        PixelShuffle as PixelShuffle, PixelUnshuffle as PixelUnshuffle,
        ReflectionPad1d as ReflectionPad1d, ReflectionPad2d as ReflectionPad2d,
        ReflectionPad3d as ReflectionPad3d, ReplicationPad1d as ReplicationPad1d,
        ReplicationPad2d as ReplicationPad2d, ReplicationPad3d as ReplicationPad3d,
        Unflatten as Unflatten, Unfold as Unfold, Upsample as Upsample,
        UpsamplingBilinear2d as UpsamplingBilinear2d, UpsamplingNearest2d as UpsamplingNearest2d,
        ZeroPad1d as ZeroPad1d, ZeroPad2d as ZeroPad2d, ZeroPad3d as ZeroPad3d,
    )  # fmt: skip
    from stretto.nn.transformer import (
        MultiheadAttention as MultiheadAttention, Transformer as Transformer,
        TransformerDecoder as TransformerDecoder,
        TransformerDecoderLayer as TransformerDecoderLayer,
        TransformerEncoder as TransformerEncoder,
        TransformerEncoderLayer as TransformerEncoderLayer,
    )  # fmt: skip
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
