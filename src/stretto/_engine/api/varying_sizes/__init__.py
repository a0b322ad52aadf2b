"""Arrays of any size: buckets that they are padded to, and ragged batches of examples.

The algebra of sizes, and programs of them, lie lower: ``higher_order/fixed_sizes`` says where.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.api.varying_sizes import dynamic_axes, over_ragged, ragged

exports(__name__)
