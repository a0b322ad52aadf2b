"""``stretto.ensemble.layers``: layers that are ensembles, with few parameters of each member's own.

``members_in_batch`` says how members lie in an array; ``MultiHead`` and BatchEnsemble there,
``packed_layers``, ``mimo`` and Masksembles (``dropout_members``) are five ways of sharing
parameters. ``mc_dropout`` samples one model. What they give at the end has the members along axis
0, so that all of ``stretto.ensemble`` applies. ``sngp`` has no members: one network that knows its
distance from the data.
"""

from stretto._engine.core.lazy import exports
from stretto.ensemble.layers.dropout_members import *
from stretto.ensemble.layers.members_in_batch import *
from stretto.ensemble.layers.mimo import *
from stretto.ensemble.layers.packed_layers import *
from stretto.ensemble.layers.sngp import *

exports(__name__)
