"""Have PyTorch export a module, as a graph and a signature."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto.torch.export import capture, example_arguments, likeness

exports(__name__, extra="torch")
