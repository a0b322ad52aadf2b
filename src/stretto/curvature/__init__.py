"""``stretto.curvature``: how a loss curves in a model's weights, for posteriors and for pruning.

``ggn`` and ``fisher`` describe a matrix over weights, of which products, the whole, the diagonal,
Kronecker factors and eigenvectors can be asked for. ``likelihoods`` says what targets are given
outputs, ``parts`` makes a model a function of its weights, ``matrices`` computes.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto.curvature.curvature import *
    from stretto.curvature.kron import *
    from stretto.curvature.likelihoods import *
    from stretto.curvature.parts import *

exports(
    __name__,
    """
    .curvature: Curvature fisher ggn
    .kron: Factors Kron KronEigen
    .likelihoods: Likelihood LikelihoodLike likelihood_of
    .parts: Parts parts_of
    """,
)
