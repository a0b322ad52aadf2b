"""Training by workers: the same members as in one process, whatever is lost on the way."""

import concurrent.futures
import multiprocessing
import os
import signal
from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble import Workers
from stretto.ensemble.training.executors import driver

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 5)).astype(np.float32)
Y = (X @ RNG.normal(size=(5, 2))).astype(np.float32)
KEY = st.random.key(1)


def network(key, width=8):
    return nn.Sequential(
        nn.Linear(5, width, key=key), nn.Dropout(0.1), nn.Linear(width, 2, key=key)
    )


def members(count=7):
    return st.Ensemble.init(network, st.random.key(0), count)


def loss(member, x, y):
    return ((member(x) - y) ** 2).mean()


def train(ensemble, optimizer=None, **options):
    defaults = {"epochs": 3, "batch_size": 10, "key": KEY, "drop_last": False, "progress": False}
    tx = optim.adam(1e-2) if optimizer is None else optimizer
    return ensemble.fit(loss, options.pop("data", (X, Y)), tx, **{**defaults, **options})


def weights(ensemble):
    return [np.asarray(x) for member in ensemble for x in st.tree.leaves(member)]


def assert_alike(found, expected, exact=False):
    for x, y in zip(weights(found.ensemble), weights(expected.ensemble), strict=True):
        if exact:
            np.testing.assert_array_equal(x, y)
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)
    assert found.history.keys() == expected.history.keys()
    for name in found.history:
        np.testing.assert_allclose(found.history[name], expected.history[name], 1e-4, 1e-5)
    assert found.stopped == expected.stopped


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.mark.parametrize("shared", [True, False])
def test_members_are_those_of_one_process(threads, tmp_path, shared):
    options = {"validation": (X, Y), "metrics": {"mae": lambda m, x, y: abs(m(x) - y).mean()}}
    options["checkpoint"] = tmp_path / "job" if shared else None
    alone = {**options, "checkpoint": None}
    assert_alike(train(members(), executor=threads, **options), train(members(), **alone))


def test_parts_have_the_same_bits_however_many_workers_there_are():
    found = []
    for count in (1, 3):
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            found.append(train(members(), executor=Workers(pool, members=2)))
    assert_alike(*found, exact=True)


def test_members_of_several_architectures_and_with_data_of_their_own(threads):
    widths = [3, 8, 3, 3, 8]
    make = lambda: st.Ensemble([network(st.random.key(i), w) for i, w in enumerate(widths)])
    own = (
        st.ragged([X[: 20 + 3 * i] for i in range(5)]),
        st.ragged([Y[: 20 + 3 * i] for i in range(5)]),
    )
    options = {"data": own, "each": True, "validation": own}
    found = train(make(), executor=Workers(threads, members=2), **options)
    assert_alike(found, train(make(), **options))


def test_hyperparameters_early_stopping_and_snapshots(threads):
    options = {
        "hyperparams": {"learning_rate": [0.0, 1e-3, 1e-2, 1e-1, 1e-2]},
        "validation": (X, Y), "early_stopping": 2, "epochs": 6,
        "snapshots": st.ensemble.Snapshots(7, 3),
    }  # fmt: skip
    found, expected = [
        train(members(5), optim.sgd, **options, **more) for more in ({"executor": threads}, {})
    ]
    assert_alike(found, expected)
    assert 0 in found.stopped
    for x, y in zip(weights(found.snapshots), weights(expected.snapshots), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-5)


def test_a_sweep_whose_configurations_are_dropped_across_workers(threads):
    options: dict[str, Any] = {
        "validation": (X, Y), "epochs": 4, "halving": 2, "key": KEY, "progress": False,
        "batch_size": 16,
    }  # fmt: skip
    space = {"learning_rate": [1e-4, 1e-3, 1e-2, 1e-1], "width": [4, 8]}
    found, expected = [
        st.ensemble.sweep(network, loss, (X, Y), optim.sgd, space, **options, executor=executor)
        for executor in (Workers(threads, members=2), None)
    ]
    assert found.best == expected.best
    np.testing.assert_allclose(found.scores, expected.scores, 1e-4)
    assert [row["status"] for row in found.table()] == [row["status"] for row in expected.table()]


@pytest.mark.parametrize("reaction", ["raise", "freeze", "drop"])
def test_members_that_diverge(threads, reaction):
    rates = {"learning_rate": [1e-3, 1e30, 1e-3]}
    run = lambda: train(
        members(3), optim.sgd, hyperparams=rates, executor=threads, on_divergence=reaction
    )
    if reaction == "raise":
        with pytest.raises(st.ensemble.DivergenceError, match="member 1 diverged at step"):
            run()
        return
    with pytest.warns(st.ensemble.DivergenceWarning, match="member 1 diverged"):
        fitted = run()
    assert list(fitted.diverged) == [1] and len(fitted.ensemble) == (2 if reaction == "drop" else 3)


class Lossy(concurrent.futures.Executor):
    """An executor whose workers are lost: the first calls, and every third after they ended."""

    def __init__(self, pool, lost):
        self._pool, self._lost, self.calls = pool, lost, 0

    def submit(self, function, *args):
        self.calls += 1
        number = self.calls

        def run():
            if number <= self._lost:
                raise ConnectionError("the worker is gone")
            result = function(*args)
            if number % 3 == 0:
                raise ConnectionError("the worker is gone, with what it had done")
            return result

        return self._pool.submit(run)


@pytest.mark.parametrize("shared", [True, False])
def test_what_is_lost_is_done_again_and_counts_once(threads, tmp_path, shared):
    options = {"checkpoint": tmp_path / "job"} if shared else {}
    lossy = Lossy(threads, 2)
    found = train(members(), executor=Workers(lossy, count=2, members=2), **options)
    assert lossy.calls > 4
    assert_alike(found, train(members(), executor=Workers(threads, members=2)), exact=True)


def test_what_is_lost_again_and_again_ends_the_training(threads, tmp_path):
    lossy = Workers(Lossy(threads, 10**6), count=2, retries=2)
    with pytest.raises(RuntimeError, match=r"lost 3 times, and nothing got further.*goes on from"):
        train(members(), executor=lossy, checkpoint=tmp_path)
    found = train(members(), executor=threads, checkpoint=tmp_path)
    assert_alike(found, train(members()))


def test_a_driver_that_is_lost_goes_on(threads, tmp_path, monkeypatch):
    hand_out = driver.LoopOnWorkers._hand_out

    def interrupted(self, engine, parts):
        hand_out(self, engine, parts[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr(driver.LoopOnWorkers, "_hand_out", interrupted)
    options = {"executor": Workers(threads, members=2), "checkpoint": tmp_path}
    ensemble = members()
    before = weights(ensemble)
    with pytest.raises(KeyboardInterrupt):
        train(ensemble, **options)
    after = weights(ensemble)
    moved = [bool((x != y).any()) for x, y in zip(before, after, strict=True)]
    assert moved[0] and not moved[-1]  # what was reached
    monkeypatch.undo()
    written = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*part-0/step*")}
    assert written
    found = train(members(), **options)
    assert {p: p.stat().st_mtime_ns for p in written} == written
    assert_alike(found, train(members(), executor=Workers(threads, members=2)), exact=True)
    with pytest.raises(ValueError, match=r"is of another configuration(.|\n)*program of a step"):
        train(members(), optim.sgd(0.1), **options)
    with pytest.raises(ValueError, match="resume=False"):
        train(members(), resume=False, **options)


def spawned():
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(2, mp_context=context)


def test_processes_one_of_which_is_killed(tmp_path):
    made = []

    def pool():
        made.append(spawned())
        if len(made) == 1:  # a worker that dies ends a pool of the standard library
            made[0].submit(os.getpid).result()
            os.kill(next(iter(made[0]._processes)), signal.SIGKILL)
        return made[-1]

    found = train(members(), executor=Workers(pool, members=4), checkpoint=tmp_path)
    assert len(made) == 2
    expected = train(members(), executor=Workers(spawned, members=4))
    assert_alike(found, expected, exact=True)


def test_what_cannot_be_trained_by_workers(threads):
    with pytest.raises(ValueError, match="executor= needs data as arrays"):
        train(
            members(), data=[(X[:8], Y[:8])] * 3, batch_size=None, drop_last=None, executor=threads
        )
    with pytest.raises(TypeError, match=r"Workers: executor must have submit.*got int"):
        train(members(), executor=3)
    with pytest.raises(ValueError, match="count must be at least 1"):
        Workers(threads, count=0)
    forking = concurrent.futures.ProcessPoolExecutor(
        1, mp_context=multiprocessing.get_context("fork")
    )
    with pytest.raises(ValueError, match=r"this pool forks.*get_context\('spawn'\)"):
        train(members(), executor=forking)

    class Unknown:
        def submit(self, function, *args):
            raise AssertionError

    with pytest.raises(ValueError, match=r"does not say how many workers.*count="):
        train(members(), executor=Unknown())

    shared = st.Ensemble([network(KEY) for _ in range(2)], shared="2.*")
    with pytest.raises(ValueError, match=r"trains members apart, and 2\.weight, 2\.bias"):
        train(shared, executor=threads)


def test_entries_reach_callbacks_in_order(threads):
    seen = []
    train(members(), executor=threads, callbacks=[lambda event: seen.append(event.epoch)])
    assert seen == [1, 2, 3]
    assert snp.all(snp.asarray(seen) > 0)
