"""Profiles: where the time of a function goes, and what ran when, in every thread.

``profile`` runs one function, and tells the time by the user's line. ``trace`` writes all that runs
in a block to a file that Perfetto and TensorBoard open. The runtime takes the times;
``st.named_scope`` gives operations their names.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import gzip
import itertools
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, ParamSpec, TypeVar

from stretto._engine.api.explain.profile import profile
from stretto._engine.core.files import checked_path, write_whole
from stretto._engine.core.lazy import exports
from stretto._engine.core.threads import lock
from stretto._engine.xla import pjrt
from stretto._engine.xla.instructions import op_names

__all__ = ["TraceAnnotation", "annotate_function", "profile", "start_trace", "stop_trace", "trace"]

P = ParamSpec("P")
R = TypeVar("R")


class _Running:
    """The profile being taken; a process has one at most."""

    def __init__(self) -> None:
        self.lock = lock()
        self.numbers = itertools.count()
        self.profile: Any = None
        self.folder = Path()
        self.name = ""
        self.perfetto = True


_running = _Running()


def start_trace(log_dir: str | os.PathLike[str], create_perfetto_trace: bool = True) -> None:
    """Begin a profile, which ``stop_trace`` writes below a folder.

    It has each operation of compiled programs, with its time and its thread, and the
    ``TraceAnnotation`` blocks. Python's own functions are not in it.

    Args:
        log_dir: the folder; made if it does not exist.
        create_perfetto_trace: whether to write the file for Perfetto too.

    Raises:
        RuntimeError: another profile is being taken.
        NotADirectoryError: ``log_dir`` is not a folder.
        TypeError, ValueError: ``log_dir`` is not a path.

    >>> import pathlib, tempfile
    >>> import stretto as st, stretto.numpy as snp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     st.profiler.start_trace(folder)
    ...     y = st.block_until_ready(st.jit(snp.sin)(1.0))
    ...     st.profiler.stop_trace()
    ...     [p.name for p in pathlib.Path(folder).rglob("perfetto*")]
    ['perfetto_trace.json.gz']
    """
    folder = checked_path(log_dir, "start_trace")
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise NotADirectoryError(
            errno.ENOTDIR,
            f"start_trace: {folder} is not a folder; name a folder, or a path for a new one",
        )
    with _running.lock:
        if _running.profile is not None:
            raise RuntimeError(
                f"start_trace: a profile is being taken, for {_running.folder}; end it with "
                f"stop_trace()"
            )
        _running.folder = Path(folder)
        _running.name = f"{time.strftime('%Y_%m_%d_%H_%M_%S')}_{next(_running.numbers)}"
        _running.perfetto = create_perfetto_trace
        _running.profile = pjrt.start_profile(_running.name)


def stop_trace() -> None:
    """End the profile, and write it to ``log_dir/plugins/profile/<time>``.

    There, ``*.xplane.pb`` and ``*.trace.json.gz`` are for TensorBoard, and, if it was asked for,
    ``perfetto_trace.json.gz`` for https://ui.perfetto.dev: events in the Chrome trace format, with
    times in microseconds. In that file operations have the ``op_name`` that ``st.named_scope`` gave
    them.

    Raises:
        RuntimeError: no profile was begun.

    >>> import stretto as st
    >>> st.profiler.stop_trace()
    Traceback (most recent call last):
    RuntimeError: stop_trace: no profile was begun; begin one with start_trace(...)
    """
    with _running.lock:
        profile, _running.profile = _running.profile, None
        if profile is None:
            raise RuntimeError("stop_trace: no profile was begun; begin one with start_trace(...)")
        profile.stop_and_export(str(_running.folder))
        if _running.perfetto:
            _write_perfetto(_running.folder / "plugins" / "profile" / _running.name)


def _write_perfetto(folder: Path) -> None:
    """Write only the events, which Perfetto reads, with the names of operations."""
    (source,) = folder.glob("*.trace.json.gz")
    with gzip.open(source, "rt", encoding="utf-8") as file:
        events = [e for e in json.load(file)["traceEvents"] if e]
    ran = [e["args"] for e in events if "hlo_op" in e.get("args", {})]
    names = op_names({args["hlo_module"] for args in ran})
    for args in ran:
        name = names.get((args["hlo_module"], args["hlo_op"]))
        if name is not None:
            args["op_name"] = name
    document = json.dumps({"displayTimeUnit": "ns", "traceEvents": events}).encode()

    def write(file: BinaryIO) -> None:
        with gzip.open(file, "wb") as compressed:
            compressed.write(document)

    write_whole(folder / "perfetto_trace.json.gz", write, "stop_trace", durable=False)


@contextlib.contextmanager
def trace(log_dir: str | os.PathLike[str], create_perfetto_trace: bool = True) -> Iterator[None]:
    """Take a profile of a ``with`` block; see ``start_trace`` and ``stop_trace``.

    Wait for results inside the block (``st.block_until_ready``); otherwise they are not in it.

    Args:
        log_dir: the folder; made if it does not exist.
        create_perfetto_trace: whether to write the file for Perfetto too.

    Returns:
        A context manager.

    Raises:
        RuntimeError: another profile is being taken.

    >>> import pathlib, tempfile
    >>> import stretto as st, stretto.numpy as snp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with st.profiler.trace(folder):
    ...         y = st.block_until_ready(st.jit(snp.sin)(1.0))
    ...     [p.name for p in pathlib.Path(folder).rglob("perfetto*")]
    ['perfetto_trace.json.gz']
    """
    start_trace(log_dir, create_perfetto_trace)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation(contextlib.ContextDecorator):
    """Name a ``with`` block, which then shows in profiles.

    Costs almost nothing while no profile is taken.

    Args:
        name: the name.
        **metadata: shown beside it.

    Raises:
        TypeError: ``name`` is not a string.

    >>> import stretto as st
    >>> with st.profiler.TraceAnnotation("load", batch=3):
    ...     pass
    """

    def __init__(self, name: str, **metadata: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"TraceAnnotation: name must be a string, got {type(name).__name__}")
        self._name, self._metadata = name, metadata

    def _recreate_cm(self) -> TraceAnnotation:
        """Return a new one for each call of a decorated function, which threads may share."""
        return TraceAnnotation(self._name, **self._metadata)

    def __enter__(self) -> TraceAnnotation:
        self._entry = pjrt.profiler().TraceMe(self._name, **self._metadata)
        self._entry.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._entry.__exit__(*error)


def annotate_function(
    func: Callable[P, R], name: str | None = None, **metadata: Any
) -> Callable[P, R]:
    """Make a function's calls show in profiles.

    Args:
        func: the function.
        name: the name; by default the function's.
        **metadata: shown beside it.

    Returns:
        The function, wrapped.

    >>> import stretto as st
    >>> @st.profiler.annotate_function
    ... def load(path):
    ...     return path.upper()
    >>> load("a")
    'A'
    """
    label = name or getattr(func, "__qualname__", type(func).__name__)
    return functools.wraps(func)(TraceAnnotation(label, **metadata)(func))


exports(__name__)
