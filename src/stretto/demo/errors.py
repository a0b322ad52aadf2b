"""Errors of the demo that are no fault of the program: said to the user in one line."""

__all__ = ["DemoError"]


class DemoError(Exception):
    """An option, a data file or a missing package stops the demo; the message is one line."""
