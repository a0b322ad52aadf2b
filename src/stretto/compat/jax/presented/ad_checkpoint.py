"""``jax.ad_checkpoint``."""

from stretto import checkpoint_policies
from stretto._engine.api.autodiff.checkpoint import checkpoint, print_saved_residuals
from stretto._engine.ops.identities import checkpoint_name

__all__ = [
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
    "remat",
]

remat = checkpoint
