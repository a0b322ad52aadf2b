"""torchvision, whether its compiled operators can be loaded or not.

From a registry it comes compiled for a CUDA build of PyTorch, and is not imported where there is
none. No model here calls its operators, so they are declared, and that is enough. The
package imports this module before anything else.
"""

from __future__ import annotations

import torch

__all__ = ["LIBRARY"]

_NAMES = (
    "nms",
    "qnms",
    "roi_align",
    "_roi_align_backward",
    "roi_pool",
    "_roi_pool_backward",
    "ps_roi_align",
    "_ps_roi_align_backward",
    "ps_roi_pool",
    "_ps_roi_pool_backward",
    "deform_conv2d",
    "_deform_conv2d_backward",
)


def _declared() -> torch.library.Library | None:
    try:
        import torchvision  # noqa: F401 (is it whole?)
    except ModuleNotFoundError:  # the models that are written by hand do without
        return None
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in _NAMES:
            library.define(f"{name}(Tensor x) -> Tensor")
        return library
    return None


LIBRARY = _declared()
"""What keeps the declarations; None where torchvision has its own."""
