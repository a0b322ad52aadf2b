"""Linear members drawn from a posterior: their moments, and what ensembles do with them."""

import pytest

import stretto as st
from stretto import nn
from stretto.ensemble import fit_laplace
from tests.ensemble.posteriors import (
    close,
    data,
    fitted,
    needs_reference,
    perceptron,
    table,
    values,
)

KEY = st.random.key(0)
ALL = ["full", "kron", "diagonal", "low_rank"]


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


@needs_reference
@pytest.mark.parametrize("structure", ALL)
def test_members_have_the_predictions_moments(structure):
    laplace = fitted("reg", values(), structure=structure)
    xt = data("reg", values())[2]
    out = laplace.predict(xt)
    members = laplace.members(KEY, 4000)
    f = members(xt)
    assert f.shape == (4000, 17, 1) == (len(members), *out.mean.shape)
    # Deviations of a standard deviation of 4,000 draws: 1/√8000, five of them.
    close(f.std(0), out.std, rtol=5 / 8000**0.5)
    close(f.mean(0), out.mean, atol=5 * float(out.std.max()) / 4000**0.5)


def test_members_go_through_the_functions_of_ensembles():
    x, y = table(seed=2)
    many = fit_laplace(st.Ensemble([perceptron(0), perceptron(1)]), (x, y))
    probs = nn.functional.softmax(many.members(KEY, 20)(x), -1)
    assert st.ensemble.mutual_information(probs).shape == (30,)
    assert st.ensemble.nll(st.ensemble.mean(probs), y).shape == ()
    sets = st.ensemble.fit_conformal(st.ensemble.mean(probs), y)
    assert sets(st.ensemble.mean(probs)).shape == (30, 3)
