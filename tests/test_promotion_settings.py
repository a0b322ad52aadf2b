"""Models under strict promotion of dtypes, and where ranks may not differ: nothing of ours mixes.

The functions of arrays are in `functions/`, whose table has the same check.
"""

import numpy as np
import pytest

import stretto as st
from benchmarks.parity import ours
from benchmarks.parity.families import FAMILIES, cases_of
from stretto import optim
from tests.optim.figures import OPTIMISERS, name_of
from tests.optim.running import run

STRICT = {"numpy_dtype_promotion": "strict", "numpy_rank_promotion": "raise"}


@pytest.mark.parametrize("name", FAMILIES)
def test_layers_and_functions(name):
    for case in cases_of(name, 3, seed=5):
        if ours.refusal(case) is None:
            with st.config(**STRICT):
                assert ours.steps(case, "float32", compiled=False)


@pytest.mark.parametrize("case", OPTIMISERS, ids=name_of)
def test_optimisers(case):
    name, arguments, _ = case
    with st.config(**STRICT):
        params, _ = run(getattr(optim, name)(**arguments), steps=2)
    assert all(np.isfinite(np.asarray(x)).all() for x in st.tree.leaves(params))
