"""Every call of the table of functions, written and read: its values are those of the function."""

import json

import numpy as np
import pytest

import stretto as st
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto.export.written_programs import Reader, Writer
from tests.functions import checks, table
from tests.functions import (
    test_functions as every_entry,  # noqa: F401 (fills the table)
)


@pytest.mark.parametrize("name", sorted(table.ENTRIES))
@pytest.mark.filterwarnings("ignore")
def test_calls_of(name):
    entry = table.ENTRIES[name]
    for dtype, each, ours, _, arrays, _ in checks.instances(entry):
        where = checks.words(entry, each, dtype)
        with checks.bits(dtype), np.errstate(all="ignore"):
            expected = tree.leaves(ours(*arrays))
            if not all(hasattr(x, "dtype") for x in expected):
                continue
            try:
                artifact = st.export.program(ours, *arrays)
            except st.errors.TracedValueError:
                continue  # of those that Python has to see
            got = results(artifact, arrays)
            for g, x in zip(got, expected, strict=True):
                assert (g.dtype, g.shape) == (x.dtype, x.shape), where
                checks.close(np.asarray(g), np.asarray(x), max(entry.tolerance, 1.0), where)


def results(artifact, arrays):
    """What the program gives, operation by operation, after it was written and read."""
    w = Writer("save")
    number = w.program(artifact._contents.program)
    record = json.loads(json.dumps({**w.tables(), "sizes": []}))
    values = [as_value(x, "save") for x in tree.leaves(tuple(arrays))]
    return evaluate(Reader(record, w.arrays).program(number), [*values, *artifact.weights.values()])
