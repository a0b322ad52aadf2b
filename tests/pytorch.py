"""Which files need PyTorch, which need not be there."""

import functools
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

IMPORTS_PYTORCH = re.compile(
    r'^(?:(?:import|from) torch\b|(?:\w+ = )?pytest\.importorskip\("torch"'
    r"|from (stretto\.torch\.[\w.]+) import)",
    re.MULTILINE,
)


@functools.cache
def needs_pytorch(path):
    """Say whether a module imports PyTorch, itself or by another module of ``stretto.torch``."""
    for found in IMPORTS_PYTORCH.finditer(path.read_text("utf-8")):
        if found[1] is None:
            return True
        other = (ROOT / "src" / found[1].replace(".", "/")).with_suffix(".py")
        if other.is_file() and needs_pytorch(other):
            return True
    return False
