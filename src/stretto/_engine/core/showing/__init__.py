"""Show objects in notebooks, terminals and messages: read ``cards`` first.

Loaded when something is first shown. ``words`` has sizes and short texts; ``html`` and ``terminal``
write cards, ``pictures`` draws values, ``programs`` and ``trees`` make the cards of programs and of
trees of arrays. Objects of other layers have a ``showing`` module there.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.core.showing import html, terminal

exports(__name__)
