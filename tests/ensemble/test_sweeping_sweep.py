"""A sweep: one program for many configurations, which come out as if they were alone.

Which configurations there are, and who takes their values.
"""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto import nn, optim
from stretto._engine.xla import cache
from stretto.ensemble import sweep
from stretto.ensemble.sweeping import configurations, takers
from tests.compilations import texts_compiled

KEY = st.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 3)).astype(np.float32)
Y = np.tanh(X @ np.array([[1.0], [-2.0], [0.5]], np.float32))
NEW = X[:32], Y[:32]
DATA = X[32:], Y[32:]


def make(key, width=8):
    first, second = st.random.split(key)
    return nn.Sequential(nn.Linear(3, width, key=first), nn.Tanh(), nn.Linear(width, 1, key=second))


def loss(member, x, y, *, smooth=0.0):
    return ((member(x) - y) ** 2).mean() + smooth * (member(x) ** 2).mean()


def swept(space, optimizer=optim.adam, **options):
    options = {"validation": NEW, "epochs": 9, "batch_size": 16, "key": KEY, **options}
    return sweep(make, loss, DATA, optimizer, space, progress=False, **options)


def test_a_member_is_what_it_is_alone():
    rates = [0.001, 0.01, 0.1]
    found = swept({"learning_rate": rates})
    assert [c["learning_rate"] for c in found.configurations] == rates
    keys = st.random.split(st.random.fold_in(st.random.fold_in(KEY, 0), 0), 3)
    for place, rate in enumerate(rates):
        alone = st.Ensemble([make(keys[place])])
        fitted = alone.fit(
            loss, DATA, optim.adam(rate), epochs=9, batch_size=16, order="same",
            key=st.random.fold_in(KEY, 1), validation=NEW, progress=False,
            early_stopping=st.ensemble.EarlyStopping(100),
        )  # fmt: skip
        # float32, over 36 steps of another program.
        np.testing.assert_allclose(
            found.fitted.history["validation_loss"][:, place],
            fitted.history["validation_loss"][:, 0],
            rtol=1e-3,
        )


def test_200_configurations_are_few_programs(monkeypatch):
    def count(n):
        with st.config(disk_cache=False):
            texts = texts_compiled(monkeypatch, cache)
            space = {
                "learning_rate": stats.loguniform(1e-4, 1e-1),
                "b1": stats.uniform(0.5, 0.45),
                "smooth": [0.0, 0.01],
            }
            found = swept(space, n=n, epochs=3)
        assert len(found.table()) == len(found.ensemble) == n
        return len(texts)

    many, few = count(200), count(20)
    assert many <= few <= 12


def test_halving_drops_most_and_keeps_the_best():
    space = {"learning_rate": np.logspace(-5, -1, 27).tolist()}
    whole, halved = swept(space), swept(space, halving=3)
    epochs = sorted(row["epochs"] for row in halved.table())
    assert epochs == [1] * 18 + [3] * 6 + [9] * 3
    assert [row["status"] for row in halved.table()[:3]] == ["finished"] * 3
    assert sum(row["status"] == "stopped" for row in halved.table()) == 24
    # What is ahead early is not always so in the end, but nearly.
    good = [row["learning_rate"] for row in whole.table()[:3]]
    assert halved.best["learning_rate"] in good
    # Until it is dropped, a member is trained as it is in the whole sweep.
    losses = "validation_loss"
    np.testing.assert_allclose(
        halved.fitted.history[losses][0], whole.fitted.history[losses][0], rtol=1e-4
    )
    # What is left is packed anew, into smaller programs.
    assert [p.group.size for p in halved.fitted.state.packs] == [3]


def test_architectures_are_groups_and_seeds_are_members():
    space = {"width": [2, 16], "learning_rate": [0.03, 1e-5]}
    found = swept(space, seeds=3, chunk_size=2)
    assert found.scores.shape == (4, 3) and len(found.ensemble) == 12
    assert [len(g) for g in found.ensemble.groups] == [6, 6]
    assert found.best["learning_rate"] == 0.03
    best = found.best_ensemble
    assert len(best) == 3 and best[0][0].out_features == found.best["width"]
    losses = [float(loss(m, *NEW)) for m in best]
    np.testing.assert_allclose(np.mean(losses), found.table()[0]["score"], rtol=1e-4)
    assert len({round(x, 6) for x in losses}) == 3
    halved = swept(space, seeds=3, halving=2, epochs=4)
    assert sum(row["epochs"] == 4 for row in halved.table()) == 1


def test_another_metric_the_larger_the_better():
    near = lambda member, x, y: (abs(member(x) - y) < 0.3).mean()
    found = swept(
        {"learning_rate": [1e-5, 0.03]}, metrics={"near": near}, monitor="near", mode="max"
    )
    assert found.best == {"learning_rate": 0.03}
    rows = found.table()
    assert rows[0]["score"] > rows[1]["score"]
    assert rows[0]["score"] == pytest.approx(
        np.nanmax(found.fitted.history["validation_near"][:, 1])
    )


def test_early_stopping_and_divergence_are_in_the_table():
    found = swept({"learning_rate": [0.02, 1e30]}, optim.sgd, epochs=30)
    rows = found.table()
    assert [row["status"] for row in rows] == ["finished", "diverged"]
    assert np.isnan(rows[1]["score"]) and found.best == {"learning_rate": 0.02}
    stopped = swept({"learning_rate": [0.1, 0.3]}, epochs=60, early_stopping=1)
    assert "stopped" in {row["status"] for row in stopped.table()}


def test_the_same_key_gives_the_same():
    space = {"learning_rate": stats.loguniform(1e-3, 1e-1)}
    one, two = (swept(space, n=3, epochs=2) for _ in range(2))
    assert one.table() == two.table()
    other = swept(space, n=3, epochs=2, key=st.random.key(1))
    assert other.configurations != one.configurations


def test_bad_arguments_are_named():
    def refused(match, space, optimizer=optim.adam, **options):
        with pytest.raises((ValueError, TypeError), match=match):
            swept(space, optimizer, **options)

    refused("sweep: 'learning_rate' goes to the optimizer.*got 'big'", {"learning_rate": ["big"]})
    refused("sweep: 'nesterov' goes to the optimizer", {"nesterov": [True]}, optim.sgd)
    refused("sweep: nothing takes 'depth'", {"depth": [1]})
    refused("sweep: halving must be", {"width": [1]}, optim.adam(0.1), halving=1)
    refused("sweep: epochs must be", {"width": [1]}, optim.adam(0.1), epochs=0)
    refused("monitor='auc' is not among", {"width": [1]}, optim.adam(0.1), monitor="auc")


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
