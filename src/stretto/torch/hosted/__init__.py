"""Make modules of PyTorch of what is computed here."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.torch.hosted import hosting

exports(__name__, extra="torch")
