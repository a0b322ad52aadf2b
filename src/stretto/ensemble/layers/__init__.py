"""``stretto.ensemble.layers``: layers that are ensembles, with few parameters of each member's own.

``members`` says how members lie in an array; ``batch``, ``packed``, ``masked`` and ``heads`` are
four ways of sharing parameters, ``dropout`` samples one model, ``converting`` makes an ensemble of
a model that is there. What they give at the end has the members along axis 0, so that all of
``stretto.ensemble`` applies.
"""

from stretto._engine.core.lazy import exports
from stretto.ensemble.layers.batch import *
from stretto.ensemble.layers.converting import *
from stretto.ensemble.layers.dropout import *
from stretto.ensemble.layers.heads import *
from stretto.ensemble.layers.masked import *
from stretto.ensemble.layers.members import *
from stretto.ensemble.layers.packed import *

exports(__name__)
