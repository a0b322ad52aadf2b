"""An argument that is refused is refused in the name of the function that was called.

Each array of the first call of each entry is replaced by what is no array, by a complex number, and
by an array of another shape. Those functions that take it are left alone; the others must not name
another function.
"""

import importlib
import pkgutil
import re

import numpy as np
import pytest

from stretto.errors import TypePromotionError
from tests.functions import checks, entries, table

for _, module, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{module}")

NAMES = [
    n for n in sorted(table.ENTRIES) if n.startswith(("lax.", "random.", "scipy.", "special."))
]
BAD = {"text": ["a"], "complex": 1j, "shape": np.ones((7, 11), np.float32)}
OTHERS = {
    "lax.neg": "negative",
    "lax.scatter_apply": "gather",
    "scipy.integrate.trapezoid": "trapezoid|mul",
    "scipy.special.logsumexp": "where",
    "special.logsumexp": "where",
}
"""Functions that are another's under a second name, or of modules that name an inner one."""


def refusals(name):
    """What the function says of each argument that it refuses."""
    entry = table.ENTRIES[name]
    first = entry.calls[0]
    draws, place = checks.split(first)
    kinds = entry.dtypes[0].split("+")
    rng = np.random.default_rng(0)
    arrays = [d.make(rng, kinds[i % len(kinds)]) for i, d in enumerate(draws)]
    args, kwargs = place(arrays)
    for i, argument in enumerate(first.args):
        for bad in BAD.values() if checks.is_draw(argument) else ():
            try:
                entry.function(*args[:i], bad, *args[i + 1 :], **kwargs)
            except TypePromotionError:
                continue
            except (TypeError, ValueError) as error:
                yield str(error)


@pytest.mark.parametrize("name", NAMES)
def test_refusals_name_the_function(name):
    *_, owner, own = name.split(".")
    accepted = rf"(\w+\.)*({own}|{owner}|{OTHERS.get(name, own)})"
    for message in refusals(name):
        named = re.match(r"([\w.]+): ", message)
        assert named is None or re.fullmatch(accepted, named[1]), message
