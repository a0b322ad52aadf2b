"""The command ``stretto info``: what ``st.debug.print_environment_info()`` prints."""

from __future__ import annotations

import argparse

from stretto._engine.xla.environment import print_environment_info

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Print it."""
    print_environment_info()
    return 0
