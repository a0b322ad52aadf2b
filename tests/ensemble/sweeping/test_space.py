"""Which configurations there are, and who takes their values."""

import numpy as np
import pytest
from scipy import stats

from stretto import optim
from stretto.ensemble.sweeping.space import configurations, takers


def rng():
    return np.random.default_rng(0)


def test_lists_make_a_grid():
    got = configurations({"a": [1, 2], "b": ("x", "y", "z")}, None, rng())
    assert got == [{"a": a, "b": b} for a in (1, 2) for b in "xyz"]
    values = configurations({"a": np.linspace(0, 1, 3)}, None, rng())
    assert [type(c["a"]) for c in values] == [float] * 3


def test_some_of_a_grid_are_drawn_without_repetition():
    got = configurations({"a": range(10), "b": range(10)}, 60, rng())
    assert len({(c["a"], c["b"]) for c in got}) == 60
    assert got == configurations({"a": range(10), "b": range(10)}, 60, rng())


def test_distributions_and_functions_draw():
    space = {
        "rate": stats.loguniform(1e-4, 1e-1),
        "width": [8, 16],
        "decay": lambda rng: 10 ** rng.uniform(-3, -2),
    }
    got = configurations(space, 200, rng())
    rates = np.array([c["rate"] for c in got])
    assert len(set(rates)) == 200 and rates.min() >= 1e-4 and rates.max() <= 1e-1
    # The median of log10 is uniform's, −2.5, with a deviation of 3 / 2 / √200 = 0.11.
    assert abs(np.median(np.log10(rates)) + 2.5) < 0.4
    assert {c["width"] for c in got} == {8, 16}
    assert all(1e-3 <= c["decay"] <= 1e-2 for c in got)


@pytest.mark.parametrize(
    ("space", "n", "match"),
    [
        ({}, None, "space is empty"),
        ({"a": []}, None, r"space\['a'\] has no values"),
        ({"a": 3}, None, r"space\['a'\] must be a list of values, a distribution .*; got int"),
        ({"a": stats.uniform()}, None, "a is drawn from a distribution, so say how many"),
        ({"a": [1, 2]}, 3, "n=3 configurations are more than the 2 that space has"),
        ({"score": [1, 2]}, None, "'score', which is a column of the table"),
    ],
)
def test_bad_spaces_are_refused(space, n, match):
    with pytest.raises((ValueError, TypeError), match=f"sweep: .*{match}|sweep: {match}"):
        configurations(space, n, rng())


def test_each_name_goes_to_who_takes_it():
    make = lambda key, width, *, depth=2: None
    loss = lambda member, x, y, *, smoothing: None
    names = ["width", "depth", "learning_rate", "weight_decay", "smoothing"]
    assert takers(names, make, optim.adamw, loss) == {
        "width": "make",
        "depth": "make",
        "learning_rate": "optimizer",
        "weight_decay": "optimizer",
        "smoothing": "loss",
    }
    with pytest.raises(ValueError, match=r"nothing takes 'lr': .*mean 'learning_rate'\?"):
        takers(["lr"], make, optim.adamw, loss)
    with pytest.raises(ValueError, match="nothing takes 'y'"):  # the batch does
        takers(["y"], make, optim.adamw, loss)
    with pytest.raises(ValueError, match="'b1' is an argument of both make and optimizer"):
        takers(["b1"], lambda key, b1: None, optim.adamw, loss)
