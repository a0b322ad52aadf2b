"""``python -m stretto``: the command ``stretto``."""

from __future__ import annotations

import sys

from stretto.cli import main

if __name__ == "__main__":
    sys.exit(main())
