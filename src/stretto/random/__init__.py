"""Random numbers from explicit keys.

Layer 7. Make a key with ``PRNGKey(seed)``, ``split`` it for every further use, and hand each part
to one draw. Read ``keys``, ``distributions``, ``discrete``.

>>> from stretto import random
>>> key, subkey = random.split(random.PRNGKey(0))
>>> random.normal(subkey, (2, 3)).shape
(2, 3)
"""

from stretto.random.discrete import *  # noqa: F403
from stretto.random.discrete import __all__ as _discrete
from stretto.random.distributions import *  # noqa: F403
from stretto.random.distributions import __all__ as _distributions
from stretto.random.keys import *  # noqa: F403
from stretto.random.keys import __all__ as _keys

__all__ = [*_keys, *_distributions, *_discrete]
