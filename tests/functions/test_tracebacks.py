"""Errors of functions at rest show the line that called them, and no line of the package.

Each argument of the first call of each entry is replaced by what most functions refuse. Whoever
takes it is left alone.
"""

import functools
import importlib
import pkgutil
import sys
import traceback

import numpy as np
import pytest

import stretto as st
from stretto._engine.core.position import PACKAGE
from tests.functions import checks, entries, table

for _, module, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{module}")

BAD = {
    "text": "a",
    "complex": 1j,
    "shape": np.ones((7, 11), np.float32),
    "a list": [[1.0, 2.0], [3.0]],
    "number": -77,
    "object": object(),
    "none": None,
}
LONGEST = 1500
"""Of the frames that are shown, without the message: that is two, of this file."""


def faults(name):
    """The errors of a function for arguments of which one is wrong."""
    entry = table.ENTRIES[name]
    function = functools.reduce(getattr, name.split("."), st)  # as users reach it
    first = entry.calls[0]
    draws, place = checks.split(first)
    kinds = entry.dtypes[0].split("+")
    handled = sys.exception()
    rng = np.random.default_rng(0)
    with st.config(enable_x64=any(kind in table.WIDE for kind in kinds)):
        arrays = [d.make(rng, kinds[i % len(kinds)]) for i, d in enumerate(draws)]
        args, kwargs = place(arrays)
        for bad in BAD.values():
            changed = [([*args[:i], bad, *args[i + 1 :]], kwargs) for i in range(len(args))]
            changed += [(args, {**kwargs, key: bad}) for key in kwargs]
            for its_args, its_kwargs in changed:
                try:
                    function(*its_args, **its_kwargs)
                except Exception as error:
                    # Tests of interrupts leave one behind that Python takes for being handled.
                    error.__context__ = None if error.__context__ is handled else error.__context__
                    yield error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(table.ENTRIES))
def test_only_the_callers_line_is_shown(name):
    for error in faults(name):
        printed = "".join(traceback.format_exception(error))
        assert PACKAGE not in printed, printed
        message = "".join(traceback.format_exception_only(error))
        assert len(printed) - len(message) < LONGEST, printed
