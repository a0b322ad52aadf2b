"""``python -m stretto.as_jax script.py args`` and ``python -m stretto.as_jax -m module args``.

The script or module runs with ``jax`` presented by Stretto.
"""

from __future__ import annotations

import os
import runpy
import sys

from stretto.as_jax import install

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run a script or a module as Python would, after ``install()``.

    Args:
        arguments: ``script.py`` or ``-m module``, then what it is given.

    Returns:
        The exit status: 2 where there is nothing to run.
    """
    if not arguments or arguments == ["-m"] or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    if sys.path and sys.path[0] == os.getcwd():  # as -m put it there, for this package
        del sys.path[0]
    sys.exit(main(sys.argv[1:]))
