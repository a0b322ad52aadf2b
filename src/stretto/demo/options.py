"""The options of ``stretto demo`` and its errors; light, as every ``stretto --help`` imports it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

__all__ = ["DEFAULT_DATA", "DESCRIPTION", "DemoError", "add_arguments", "require"]


class DemoError(Exception):
    """An option, a data file or a missing package stops the demo; the message is one line."""


def require(module: str, package: str, purpose: str) -> ModuleType:
    """Return the module, or raise an error that says what it is for and how to install it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise DemoError(
            f"{purpose} needs the package {package}: pip install 'stretto[demo]'"
        ) from error


DEFAULT_DATA = Path("/usr/share/datasets/fashion-mnist")
"""The folder of the files of Debian's package dataset-fashion-mnist."""

DESCRIPTION = f"""
Trains an ensemble of classifiers with two hidden layers of 128 units at once, by one compiled step;
each member starts from its own key and learns from its own bootstrap of the data at its own rate.
Then it compares the members, the ensemble and the soup of their weights, measures the speed against
the same step looped over the members, and draws a picture. Data: Fashion-MNIST, if it is installed
in {DEFAULT_DATA} (Debian: dataset-fashion-mnist); otherwise the digits of scikit-learn.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the demo's options to its parser."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--data", type=Path, metavar="DIR", help="the four IDX files of MNIST's form, gzip'd or not"
    )
    source.add_argument("--digits", action="store_true", help="use the digits of scikit-learn")
    parser.add_argument(
        "--members", type=_whole(1, 1000), default=10, metavar="N", help="default: %(default)s"
    )
    parser.add_argument(
        "--epochs", type=_whole(1), metavar="N", help="default: 10 (60 for the digits)"
    )
    parser.add_argument(
        "--batch", type=_whole(1), metavar="N", help="default: 64 (32 for the digits)"
    )
    parser.add_argument(
        "--draws",
        type=_whole(1),
        metavar="N",
        help="the size of each member's bootstrap; "
        "default: 20000, or as many as there are training images if those are fewer",
    )
    parser.add_argument(
        "--rates",
        type=_rate,
        nargs=2,
        metavar=("LOW", "HIGH"),
        help="learning rates, spread over the members by equal factors; "
        "default: 0.0005 0.003 (0.001 0.01 for the digits)",
    )
    parser.add_argument(
        "--seed", type=_whole(0, 2**32 - 1), default=0, metavar="N", help="default: %(default)s"
    )
    parser.add_argument(
        "--picture",
        type=Path,
        default=Path("stretto-demo.png"),
        metavar="FILE",
        help="where to draw; the suffix says the format; default: %(default)s",
    )


def _whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers in this range."""
    expected = f"expected a whole number of at least {least}"
    if most is not None:
        expected = f"expected a whole number from {least} to {most}"

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{expected}, got {text!r}")
        return number

    return parse


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not 0 < rate < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r}")
    return rate
