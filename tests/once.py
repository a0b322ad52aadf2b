"""A plugin of pytest's, ``-p tests.once``: of the laws, one for each primitive.

It is for where a law takes seconds, as under emulation: what a primitive is lowered to is tried
then, not each kind of argument.
"""

from __future__ import annotations

import pytest

from stretto.laws import Law

__all__ = ["pytest_collection_modifyitems"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out each law whose primitive had one before."""
    seen, kept, left_out = set(), [], []
    for item in items:
        given = getattr(item, "callspec", None)
        laws = [x for x in given.params.values() if isinstance(x, Law)] if given else []
        primitives = {law.primitive for law in laws}
        (left_out if primitives and primitives <= seen else kept).append(item)
        seen |= primitives
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
