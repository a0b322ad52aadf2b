"""``Workers``: an executor, of whichever library, and how parts of an ensemble are handed to it.

An executor of the standard library's interface passes as it is: process pools, Dask's
``client.get_executor()``, ``MPIPoolExecutor`` of mpi4py. Ray has none, submitit's gives jobs of
classes of its own, and joblib runs lists of calls: each gets a small adapter, chosen by the library
that its class comes from. Nothing is imported that the user has not handed over.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import queue
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from stretto._engine.core import integers

__all__ = ["Workers"]


class Job(Protocol):
    """A call that was handed over."""

    def done(self) -> bool:
        """Say whether it has ended, or was lost."""
        ...

    def result(self) -> Any:  # noqa: ANN401 (what the call gives)
        """Return what it gave; raises what it raised, or how it was lost."""
        ...

    def cancel(self) -> object:
        """Ask for it not to run, or to end."""
        ...


@dataclasses.dataclass(frozen=True)
class Workers:
    """Workers that train parts of an ensemble, for ``executor=`` of ``fit`` and ``sweep``.

    An executor may be given there as it is; this says more about how it is used.

    Args:
        executor: a ``concurrent.futures.Executor`` or what has its ``submit``: a pool of processes
            that are spawned, ``client.get_executor()`` of Dask, ``MPIPoolExecutor`` of mpi4py; the
            module ``ray``; an ``AutoExecutor`` of submitit; a ``joblib.Parallel``. Or a function
            without arguments that makes one: it is called again where a pool has broken, since
            those of the standard library end with the first worker that dies.
        count: how many workers there are; by default what the executor says.
        members: the most members of a part; by default as many as give each worker one part. Small
            parts are lost, and found again, more cheaply; large ones are computed faster.
        threads: how many threads each worker computes with; by default what its engine gave it
            (``SLURM_CPUS_PER_TASK``, ``OMP_NUM_THREADS``, or the time of processors that its
            control group may have), else as many as there are processors.
        retries: how often a part that is lost is handed out again without having got further.

    Raises:
        TypeError: ``executor`` is none of these.
        ValueError: a number is out of range.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     Workers(pool, threads=1).count
    2
    """

    executor: Any
    count: int | None = None
    members: int | None = None
    threads: int | None = None
    retries: int = 3

    def __post_init__(self) -> None:
        for name in ("count", "members", "threads"):
            value = getattr(self, name)
            if value is not None:
                integers.count(value, "Workers", name, 1)
        integers.count(self.retries, "Workers", "retries", 0)
        if _family(self.executor) is None and not callable(self.executor):
            raise TypeError(
                f"Workers: executor must have submit(function, *args), as those of "
                f"concurrent.futures, Dask's client.get_executor(), mpi4py's and submitit's have; "
                f"or be the module ray, a joblib.Parallel, or a function that makes one of these; "
                f"got {type(self.executor).__name__}"
            )
        if self.count is None and _family(self.executor) is not None:
            object.__setattr__(self, "count", _count_of(self.executor))


def workers_of(executor: object) -> Workers:
    """Return what was given as ``executor=``, as ``Workers``."""
    return executor if isinstance(executor, Workers) else Workers(executor)


class Engine:
    """What parts are handed to, for the time of one training.

    Args:
        workers: as the user said.
    """

    def __init__(self, workers: Workers) -> None:
        self._made = _family(workers.executor) is None
        self._make = workers.executor
        self._executor: Any = None if self._made else workers.executor
        self.count = workers.count
        self._start()

    def _start(self) -> None:
        if self._made:
            self._executor = self._make()
            if _family(self._executor) is None:
                raise TypeError(
                    f"Workers: the function given as executor must make one; it gave "
                    f"{type(self._executor).__name__}"
                )
            self.count = self.count or _count_of(self._executor)
        _refuse_fork(self._executor)
        adapter = _ADAPTERS.get(_family(self._executor) or "")
        self._submit = self._executor.submit if adapter is None else adapter(self._executor).submit

    def submit(self, function: Callable[..., Any], *args: Any) -> Job:
        """Hand over a call of a function that can be imported there."""
        return self._submit(function, *args)

    def renew(self) -> bool:
        """Make a new executor in place of one that has broken; False where it was not made here."""
        if self._made:
            self.close()
            self._start()
        return self._made

    def close(self) -> None:
        """End an executor that was made here."""
        end = getattr(self._executor, "shutdown", None)
        if self._made and end is not None:
            end(wait=False)


def _family(executor: Any) -> str | None:  # noqa: ANN401 (anything)
    """Return the library that an executor is of; ``None`` where it is none."""
    if isinstance(executor, ModuleType):
        return "ray" if executor.__name__ == "ray" else None
    library = type(executor).__module__.partition(".")[0]
    if library == "joblib" and callable(executor):
        return "joblib"
    if isinstance(executor, type) or not hasattr(executor, "submit"):
        return None
    return library


def _count_of(executor: Any) -> int | None:  # noqa: ANN401
    """Return how many workers an executor says it has."""
    family = _family(executor)
    if family == "ray":
        return int(executor.cluster_resources().get("CPU", 0)) or None
    if family == "joblib":
        jobs = executor.n_jobs
        return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)
    client = getattr(executor, "_client", None)
    if family == "distributed" and client is not None:
        return sum(client.ncores().values()) or None
    for name in ("num_workers", "_max_workers"):
        found = getattr(executor, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return None


def _refuse_fork(executor: Any) -> None:  # noqa: ANN401
    """Refuse a pool whose processes would be forked from this one, which has threads of XLA."""
    context = getattr(executor, "_mp_context", None)
    if context is not None and context.get_start_method() == "fork":
        raise ValueError(
            "executor: this pool forks this process, whose threads a child would wait for and not "
            "have; give ProcessPoolExecutor(n, mp_context=multiprocessing.get_context('spawn'))"
        )


class _RayJob:
    """A task of Ray."""

    def __init__(self, ray: Any, ref: Any) -> None:  # noqa: ANN401
        self._ray, self._ref = ray, ref

    def done(self) -> bool:
        return bool(self._ray.wait([self._ref], timeout=0)[0])

    def result(self) -> Any:  # noqa: ANN401
        return self._ray.get(self._ref)

    def cancel(self) -> None:
        self._ray.cancel(self._ref, force=True)


class _Ray:
    """Tasks of Ray, which has no executor; it is told not to try again by itself."""

    def __init__(self, ray: Any) -> None:  # noqa: ANN401
        self._ray = ray

    def submit(self, function: Callable[..., Any], *args: Any) -> _RayJob:
        remote = self._ray.remote(max_retries=0)(function)
        return _RayJob(self._ray, remote.remote(*args))


class _Joblib:
    """Calls of ``joblib.Parallel``, which runs lists: what has come meanwhile is the next list."""

    def __init__(self, parallel: Any) -> None:  # noqa: ANN401
        self._parallel = parallel
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runs = False

    def submit(self, function: Callable[..., Any], *args: Any) -> Job:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._waiting.put((future, function, args))
        with self._lock:
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, daemon=True).start()
        return future

    def _run(self) -> None:
        time.sleep(0.05)  # so that what is handed over together is one list
        while True:
            calls = []
            with self._lock:
                while not self._waiting.empty():
                    future, function, args = self._waiting.get()
                    if future.set_running_or_notify_cancel():
                        calls.append((future, function, args))
                if not calls:
                    self._runs = False
                    return
            try:
                results = self._parallel([(f, args, {}) for _, f, args in calls])
                for (future, _, _), result in zip(calls, results, strict=True):
                    future.set_result(result)
            except BaseException as error:  # whatever ended the list ended all of it
                for future, _, _ in calls:
                    if not future.done():
                        future.set_exception(error)


_ADAPTERS: dict[str, Callable[[Any], Any]] = {"ray": _Ray, "joblib": _Joblib}
