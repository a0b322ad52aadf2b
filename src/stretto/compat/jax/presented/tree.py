"""``jax.tree``: the functions of ``jax.tree_util`` under shorter names."""

from stretto.compat.jax.presented.tree_util import (
    flatten_one_level,
)
from stretto.compat.jax.presented.tree_util import (
    tree_all as all,
)
from stretto.compat.jax.presented.tree_util import (
    tree_broadcast as broadcast,
)
from stretto.compat.jax.presented.tree_util import (
    tree_flatten as flatten,
)
from stretto.compat.jax.presented.tree_util import (
    tree_flatten_with_path as flatten_with_path,
)
from stretto.compat.jax.presented.tree_util import (
    tree_leaves as leaves,
)
from stretto.compat.jax.presented.tree_util import (
    tree_leaves_with_path as leaves_with_path,
)
from stretto.compat.jax.presented.tree_util import (
    tree_map as map,
)
from stretto.compat.jax.presented.tree_util import (
    tree_map_with_path as map_with_path,
)
from stretto.compat.jax.presented.tree_util import (
    tree_reduce as reduce,
)
from stretto.compat.jax.presented.tree_util import (
    tree_reduce_associative as reduce_associative,
)
from stretto.compat.jax.presented.tree_util import (
    tree_structure as structure,
)
from stretto.compat.jax.presented.tree_util import (
    tree_transpose as transpose,
)
from stretto.compat.jax.presented.tree_util import (
    tree_unflatten as unflatten,
)
from stretto.tree import static

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_one_level",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]
