"""Updates of many arrays, as one operation."""

import numpy as np
import pytest

import stretto as st
from stretto._engine.api.graph import make_graph
from stretto._engine.ops.fused_updates import FusedUpdates
from stretto._engine.passes.fuse_updates import fuse_updates
from stretto._engine.passes.prepare import prepare
from stretto.laws import f32, f64, law

SHAPES = [(64, 8, 10), (80,), (3, 4, 5), (7,), (9, 9), (1, 2)]


def steps(xs):
    """What a step by a tenth of its square makes of each array."""
    return [x - 0.1 * x * x for x in xs]


def fused(dtype="float32"):
    """The operation of these steps."""
    with st.enable_x64(dtype == "float64"):
        graph = make_graph(steps)([np.zeros(shape, dtype) for shape in SHAPES])
        (equation,) = fuse_updates(prepare(graph)).equations
    return equation.primitive


def called(*xs):
    return fused(str(xs[0].dtype))(*xs)[0]


LAWS = [
    # A pass makes it after all transformations, of which it has no rules.
    law(FusedUpdates, called, *[kind(*shape) for shape in SHAPES], derivative=False, mapped=False)
    for kind in (f32, f64)
]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


def test_the_reference_runs_its_operations():
    rng = np.random.default_rng(0)
    xs = [rng.standard_normal(shape).astype(np.float32) for shape in SHAPES]
    for got, expected in zip(fused().reference(*xs), steps(xs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_what_may_share_memory():
    op = fused()
    assert {*op.shared} == {(k, k) for k in range(len(SHAPES))}
    assert not op.ending
