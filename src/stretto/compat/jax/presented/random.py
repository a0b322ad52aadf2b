"""``jax.random``."""

from typing import Any

import numpy as np

from stretto import numpy as snp
from stretto import random
from stretto._engine.core.config import config as ours
from stretto.compat.jax.draws import drawing_names_of, with_jax_draws
from stretto.compat.jax.moved_keys import drawing_keys
from stretto.compat.jax.settings import config

__all__ = ["PRNGKey", "choice", "key", "permutation"]

choice = drawing_keys(with_jax_draws(random.choice))
permutation = drawing_keys(random.permutation)


def key(seed: Any, *, impl: Any = None, dtype: Any = None) -> Any:
    """``stretto.random.key``, to whose seed ``jax_random_seed_offset`` is added."""
    return random.key(_moved(seed), impl=impl, dtype=dtype)


def PRNGKey(seed: Any, *, impl: Any = None) -> Any:
    """``stretto.random.PRNGKey``, likewise; a typed key under ``jax_enable_custom_prng``."""
    made = random.key if config.jax_enable_custom_prng else random.PRNGKey
    return made(_moved(seed), impl=impl)


def _moved(seed: Any) -> Any:
    """The seed and the offset, in integers of as many bits as JAX has then."""
    offset = config.jax_random_seed_offset
    if not offset:
        return seed
    if isinstance(seed, (int, np.integer)) and -(1 << 63) <= int(seed) < 1 << 64:
        bits = 64 if ours.enable_x64 else 32
        wrapped = (int(seed) + offset) % (1 << bits)
        return wrapped - (1 << bits) if wrapped >> bits - 1 else wrapped
    return snp.asarray(seed) + offset


__getattr__, __dir__ = drawing_names_of("stretto.random")
