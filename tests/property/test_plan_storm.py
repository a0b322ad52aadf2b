"""Random networks as ensembles, a few of those of ``make plan-storm``."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from tests.property.networks import draw_network
from tests.property.plan_storm import VARIANTS, disagreement, draw_case, reference, together


@pytest.mark.parametrize("seed", range(8))
def test_ensembles_are_their_members(seed):
    case = draw_case(seed, layers=4, most=20_000)
    variants = [name for name in VARIANTS if name != "default"]
    want = reference(case)
    for variant in ("default", variants[(3 * seed) % len(variants)]):
        wrong = disagreement(case, together(case, variant), want)
        assert not wrong, f"{variant}: {wrong}\n{case.words}"


@pytest.mark.parametrize("seed", [0, 3, 5, 6])
def test_what_is_computed_again_is_what_it_was(seed):
    case = draw_case(seed, layers=4, most=20_000)
    wrong = disagreement(case, together(case, "computed again"), reference(case))
    assert not wrong, f"{wrong}\n{case.words}"


def test_a_wrong_number_is_found():
    case = draw_case(2, layers=4, most=20_000)
    want = reference(case)
    assert disagreement(case, want, want) == ""
    for k, what in ((0, "values"), (1, "gradient 0")):
        wrong = [*want]
        wrong[k] = want[k] * np.where(np.arange(want[k].shape[-1]) == 0, -1, 1)
        assert disagreement(case, wrong, want).startswith(what)


def test_networks_have_layers_of_all_kinds():
    names = {
        layer.name.partition("(")[0] for seed in range(300) for layer in draw_network(seed).layers
    }
    wanted = (
        "conv,conv transpose,resize,batch norm,pool,max pool,sort,attention,scan,gather,softmax"
    )
    assert names >= {*wanted.split(",")}


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_resizing_by_members(mode):
    x = st.random.normal(st.random.key(0), (4, 8, 25, 25))
    scales = snp.array([[1.0], [2.0], [3.0]])

    def resized(scale, x):
        return st.nn.functional.interpolate(x * scale, scale_factor=2, mode=mode)

    together = st.jit(st.vmap(resized, in_axes=(0, None)))(scales, x)
    alone = snp.stack([resized(scale, x) for scale in scales])
    assert np.abs(together - alone).max() <= 1e-5 * np.abs(alone).max()
