"""Executors of other libraries: adapters, how many workers they have, and renewal."""

import concurrent.futures
import sys
import types

import pytest

from stretto.ensemble.training.executors.engines import Engine, Workers, workers_of


def double(x):
    return 2 * x


class Ray(types.ModuleType):
    """What is used of the module ``ray``."""

    def __init__(self):
        super().__init__("ray")
        self.said, self.cancelled = [], []

    def cluster_resources(self):
        return {"CPU": 5.0}

    def remote(self, **options):
        self.said.append(options)
        return lambda function: types.SimpleNamespace(remote=lambda *args: (function, args))

    def wait(self, refs, timeout):
        assert timeout == 0
        return (refs, [])

    def get(self, ref):
        return ref[0](*ref[1])

    def cancel(self, ref, force):
        self.cancelled.append((ref, force))


def test_ray():
    ray = Ray()
    engine = Engine(Workers(ray))
    job = engine.submit(double, 4)
    assert engine.count == 5 and job.done() and job.result() == 8
    assert ray.said == [{"max_retries": 0}]  # parts are tried again by us, from their checkpoints
    job.cancel()
    assert ray.cancelled[0][1]


def joblib_with(run):
    made = type("Parallel", (), {"__module__": "joblib.parallel", "__call__": run})()
    made.n_jobs = 3
    return made


def test_joblib():
    lists = []

    def run(self, calls):
        lists.append(len(calls))
        return [f(*args, **kwargs) for f, args, kwargs in calls]

    engine = Engine(Workers(joblib_with(run)))
    jobs = [engine.submit(double, i) for i in range(4)]
    assert engine.count == 3 and [job.result() for job in jobs] == [0, 2, 4, 6]
    assert engine.submit(double, 9).result() == 18
    assert sum(lists) == 5 and lists[-1] == 1

    def dies(self, calls):
        raise OSError("a worker died")

    with pytest.raises(OSError, match="a worker died"):
        Engine(Workers(joblib_with(dies))).submit(double, 1).result()


def test_a_client_of_dask_says_how_many_workers_it_has():
    client = types.SimpleNamespace(ncores=lambda: {"a": 2, "b": 1})
    executor = type("ClientExecutor", (), {"__module__": "distributed.cfexecutor"})()
    executor._client, executor.submit = client, None
    assert Workers(executor).count == 3


def test_what_makes_executors_makes_another_where_one_broke():
    made = []

    def make():
        made.append(concurrent.futures.ThreadPoolExecutor(2))
        return made[-1]

    engine = Engine(Workers(make))
    assert engine.count == 2 and engine.submit(double, 1).result() == 2
    assert engine.renew() and engine.submit(double, 2).result() == 4
    assert len(made) == 2
    engine.close()
    with pytest.raises(RuntimeError):
        made[1].submit(double, 3)
    with pytest.raises(TypeError, match="must make one; it gave int"):
        Engine(Workers(lambda: 3))


def test_an_executor_of_the_users_is_neither_made_again_nor_closed():
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        engine = Engine(workers_of(pool))
        assert not engine.renew()
        engine.close()
        assert engine.submit(double, 5).result() == 10


def test_nothing_is_imported_that_is_not_handed_over():
    assert not {"ray", "joblib.parallel", "submitit", "mpi4py"} & sys.modules.keys() - {
        "joblib.parallel"  # which scikit-learn has
    }
