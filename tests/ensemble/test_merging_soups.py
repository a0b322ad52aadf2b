"""Uniform and greedy soups: which members they are of, and what they hold."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import greedy_soup, uniform_soup

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(6, 2)).astype(np.float32)
MEMBERS = [{"w": snp.array(p), "n": snp.array(i), "b": [None, p[0] * 0.5]} for i, p in
           enumerate(POINTS)]  # fmt: skip
TARGET = np.array([0.1, -0.2], np.float32)


def score(member):
    return -float(snp.sum((member["w"] - TARGET) ** 2))


def greedy(points, value):
    """Recipe 1 of the paper, from scratch."""
    order = sorted(range(len(points)), key=lambda i: -value(points[i]))
    taken = order[:1]
    for i in order[1:]:
        if value(points[taken + [i]].mean(0)) >= value(points[taken].mean(0)):
            taken.append(i)
    return tuple(taken)


def test_the_uniform_soup_is_the_mean():
    lazily = ({"w": m["w"], "n": m["n"], "b": m["b"]} for m in MEMBERS)
    for members, stacked in ((MEMBERS, None), (lazily, None), (st.stack(MEMBERS), None),
                             (st.stack(MEMBERS), True)):  # fmt: skip
        soup = uniform_soup(members, stacked=stacked)
        np.testing.assert_allclose(soup["w"], POINTS.mean(0), rtol=1e-5)
        np.testing.assert_allclose(soup["b"][1], 0.5 * POINTS[:, 0].mean(), rtol=1e-5)
        assert int(soup["n"]) == round((len(MEMBERS) - 1) / 2) and soup["b"][0] is None
        assert soup["n"].dtype == np.int32
    as_list = [snp.ones((3, 2)), snp.arange(3.0)]
    assert uniform_soup(as_list, stacked=True)[1].tolist() == 1
    compiled = st.jit(uniform_soup)(MEMBERS)
    np.testing.assert_allclose(compiled["w"], POINTS.mean(0), rtol=1e-5)


def test_low_precision_comes_back_so():
    members = [{"w": snp.full(2, x, snp.bfloat16)} for x in (1.0, 1.0078125, 1.0078125)]
    for soup in (uniform_soup(members), greedy_soup(members, lambda m: 0).params):
        assert soup["w"].dtype == ml_dtypes.bfloat16 and soup["w"].tolist() == [1.0078125] * 2


class Watched:
    alive = most = 0

    def __init__(self, x):
        self.x = x
        Watched.alive += 1
        Watched.most = max(Watched.most, Watched.alive)

    def __stretto_array__(self):
        return self.x

    def __del__(self):
        Watched.alive -= 1


def test_a_generator_is_held_one_by_one():
    Watched.alive = Watched.most = 0
    soup = uniform_soup({"w": Watched(p)} for p in POINTS)
    np.testing.assert_allclose(soup["w"], POINTS.mean(0), rtol=1e-5)
    assert Watched.most == 1


class Files:
    """Members that are made when asked for."""

    def __len__(self):
        return len(POINTS)

    def __getitem__(self, i):
        return {"w": Watched(POINTS[i])}


def watched_score(member):
    w = member["w"]
    return score({"w": snp.asarray(w.x if isinstance(w, Watched) else w)})


def test_members_made_when_asked_for_are_held_one_by_one():
    Watched.alive = Watched.most = 0
    soup = greedy_soup(Files(), watched_score)
    assert soup.members == greedy(POINTS, lambda p: score({"w": p}))
    assert Watched.most == 1


@pytest.mark.parametrize("seed", range(8))
def test_the_greedy_soup_is_recipe_1(seed):
    points = np.random.default_rng(seed).normal(size=(7, 2)).astype(np.float32)
    members = [{"w": snp.array(p)} for p in points]
    soup = greedy_soup(members, score)
    want = greedy(points, lambda p: score({"w": p}))
    assert soup.members == want
    np.testing.assert_allclose(soup.params["w"], points[list(want)].mean(0), rtol=1e-5)
    assert soup.score == pytest.approx(score(soup.params), rel=1e-5)
    assert soup.score >= max(soup.scores) and soup.scores == tuple(map(score, members))


def test_all_forms_of_members():
    want = greedy_soup(MEMBERS, score)
    for members in (tuple(MEMBERS), st.stack(MEMBERS)):
        soup = greedy_soup(members, score)
        assert soup.members == want.members
        np.testing.assert_allclose(soup.params["w"], want.params["w"], rtol=1e-6)
        assert int(soup.params["n"]) == round(np.mean(want.members))
    given = greedy_soup(MEMBERS, score, scores=want.scores)
    assert given.members == want.members and given.score == want.score
    assert (
        int(greedy_soup([snp.ones((3, 2)), snp.arange(3)], lambda m: 0, stacked=True).members[2])
        == 2
    )


def test_ensembles():
    models = [nn.Linear(2, 1, key=k) for k in st.random.split(st.random.PRNGKey(0), 4)]
    ensemble = st.Ensemble(models)
    soup = uniform_soup(ensemble)
    assert isinstance(soup, nn.Linear)
    np.testing.assert_allclose(soup.weight, np.mean([m.weight for m in models], 0), rtol=1e-5)
    near = lambda m: -float(snp.abs(m.weight - models[2].weight).sum())
    found = greedy_soup(ensemble, near)
    assert found.members == (2,) and isinstance(found.params, nn.Linear)
    functions = st.Ensemble(lambda p, x: p * x, [1.0, 3.0])
    assert float(uniform_soup(functions)(2.0)) == 4


def test_ties_and_nan():
    members = [{"w": snp.float32(i)} for i in range(4)]
    assert greedy_soup(members, lambda m: 1.0).members == (0, 1, 2, 3)
    values = iter([1.0, float("nan"), 2.0, 1.0, 0.0, 0.0, float("nan")])
    found = greedy_soup(members, lambda m: next(values))
    assert found.members == (2,) and found.score == 2.0
    assert np.isnan(found.scores[1])
    assert greedy_soup(members[:1], lambda m: -np.inf).members == (0,)


def test_a_soup_that_is_worse_than_each_of_its_members_says_so():
    """Two minima with a barrier between them, as of networks from different first weights."""
    valley = lambda m: -float(snp.sum((m["w"] ** 2 - 1) ** 2))
    apart = [{"w": snp.array([-1.0, 1.0])}, {"w": snp.array([1.0, -1.0])}]
    with pytest.warns(UserWarning, match=r"worse than each of its members: it scores -2.*barrier"):
        uniform_soup(apart, score=valley)
    with pytest.warns(UserWarning, match="greedy_soup: the soup is the best member alone"):
        assert greedy_soup(apart, valley).members == (0,)
    near = [{"w": snp.array([1.0, 1.1])}, {"w": snp.array([1.1, 1.0])}]  # warnings are errors
    assert uniform_soup(near, score=valley)["w"].shape == (2,)
    assert greedy_soup(near, valley).members == (0, 1)
    with pytest.raises(TypeError, match="uniform_soup: goes through the members twice"):
        uniform_soup(iter(near), score=valley)


def different():
    return [{"w": snp.ones(2)}, {"w": snp.ones(2)}, {"w": snp.ones(3)}]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: uniform_soup([]), ValueError, "at least one tree"),
        (lambda: uniform_soup(different()), ValueError, r"member 2 differs .* member\['w'\]"),
        (lambda: greedy_soup([], score), ValueError, "greedy_soup: expected at least one member"),
        (
            lambda: greedy_soup(different(), lambda m: 0),
            ValueError,
            r"greedy_soup: member 2 differs from member 0 at member\['w'\]",
        ),
        (lambda: greedy_soup(iter(MEMBERS), score), TypeError, "goes through the members twice"),
        (lambda: greedy_soup(MEMBERS, lambda m: np.nan), ValueError, "every member is NaN"),
        (lambda: greedy_soup(MEMBERS, score, scores=[1.0]), ValueError, "got 1 for 6 members"),
        (
            lambda: uniform_soup(st.Ensemble([nn.Linear(2, 1), nn.Linear(3, 1)])),
            ValueError,
            "member 1",
        ),
    ],
    ids=[
        "none",
        "shape",
        "no member",
        "greedy shape",
        "generator",
        "nan",
        "scores",
        "architectures",
    ],
)
def test_mistakes_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
