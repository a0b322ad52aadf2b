"""Have PyTorch export a module, as a graph and a signature."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.torch.export import before_export, capture

exports(__name__, extra="torch")
