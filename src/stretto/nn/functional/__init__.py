"""``stretto.nn.functional``: the functions of layers, under PyTorch's names.

Layer 7. Names, arguments, defaults and meanings are those of ``torch.nn.functional``; where JAX has
a function of the same purpose under other conventions, it is in ``stretto.nn`` itself. Arrays never
change, so what PyTorch would write in place is returned. Read ``arguments``, ``convolution``,
``windows``, ``pooling``, ``normalisation``.
"""

# ruff: noqa: F403 (each file's __all__ says what it gives)

from stretto.nn.functional.activations import *
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
from stretto.nn.functional.pooling import *
from stretto.nn.functional.recurrence import *
from stretto.nn.functional.regression_losses import *
from stretto.nn.functional.reshaping import *
from stretto.nn.functional.resizing import *
from stretto.nn.functional.softmaxes import *
