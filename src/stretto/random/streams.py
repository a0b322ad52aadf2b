"""Ambient randomness: streams of keys for layers that are not handed one.

A layer without ``key=`` draws from the innermost stream in force: that of a ``with keys(key):``
block, else the default stream of the process, which ``manual_seed`` restarts. The n-th draw of a
stream is its key with n folded in. A stream is drawn from only where it was opened: inside a trace
or a ``vmap`` that began later, the key would be a constant, or the same for all examples, and that
is refused.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stretto._engine.autodiff.vmap import Vectorizer
from stretto._engine.core.interpreter import Tracer, state
from stretto._engine.core.recorder import Recorder
from stretto._engine.core.threads import holding, lock
from stretto._engine.core.typing import ArrayLike, Key
from stretto._engine.higher_order.loops import Examples
from stretto.random.draw_arguments import draw
from stretto.random.keys import PRNGKey, as_key, fold_in


class _Stream:
    """A key, the numbers of those drawn from it, and the interpreter that it was opened under.

    In place of a key there may be a reason why nothing is drawn.
    """

    def __init__(self, key: Key | None, why: str = "") -> None:
        self._key: Any = key
        self._why, self._numbers = why, itertools.count()
        self._interpreter = state.interpreter

    def draw(self, caller: str) -> Key:
        """Return the next key; raises ``RuntimeError`` where it is refused."""
        why = self.refusal()
        if why:
            raise RuntimeError(f"{caller} draws random numbers, but {why}")
        return fold_in(self._key, next(self._numbers))

    def refusal(self) -> str:
        """Say why a draw is refused: a trace or a vmap has begun since; "" where it is not."""
        if self._why:
            return self._why
        interpreter: Any = state.interpreter
        while interpreter is not self._interpreter:
            if isinstance(interpreter, (Vectorizer, Examples)):
                return (
                    "the ambient stream was opened outside this vmap, so that all examples would "
                    "get the same numbers: pass key= with a key for each example, or use "
                    "stretto.func.vmap(..., randomness='different' or 'same')"
                )
            if isinstance(interpreter, Recorder):
                return (
                    "the ambient stream was opened outside this trace (jit, or the body of a loop "
                    "or branch), where the key would be a constant: the same numbers at every "
                    "call. Pass key= as an argument of the traced function, or open a stream of "
                    "such a key inside it: with nn.keys(key):"
                )
            interpreter = getattr(interpreter, "parent", None)
            if interpreter is None:
                break
        return ""


class _Ambient(threading.local):
    """The streams of this thread, innermost last."""

    streams: tuple[_Stream, ...] = ()


_ambient = _Ambient()


class _Default:
    """The stream of the process; made when first used, as ``manual_seed(0)`` would."""

    stream: _Stream | None = None
    lock = lock()


def manual_seed(seed: ArrayLike) -> None:
    """Restart the default stream from a seed, for all threads.

    A new process starts with seed 0.

    Args:
        seed: one integer.

    Raises:
        RuntimeError: a function is being traced.
        TypeError: the seed is not one integer.
        OverflowError: the seed has more than 64 bits.

    >>> import stretto as st
    >>> st.random.manual_seed(3)
    >>> first = st.random.next_key("an example")
    >>> st.random.manual_seed(3)
    >>> bool((st.random.next_key("an example") == first).all())
    True
    """
    if not state.interpreter.at_rest or isinstance(seed, Tracer):
        raise RuntimeError(
            "manual_seed: the default stream cannot be started inside a transformation; open a "
            "stream of its own there: with nn.keys(key):"
        )
    with _Default.lock:
        _Default.stream = _Stream(PRNGKey(seed))


@contextmanager
@draw
def keys(key: Key) -> Iterator[None]:
    """Let layers inside the block draw from this key, where they are not handed one.

    The same key gives the same numbers. Blocks nest, and the innermost counts; each thread has its
    own.

    Returns:
        A context manager.

    Raises:
        TypeError: ``key`` is not one key.

    >>> import stretto as st
    >>> drop = st.nn.Dropout(0.5)
    >>> with st.nn.keys(st.random.PRNGKey(0)):
    ...     drop(st.numpy.ones(4))
    Array([2., 2., 2., 0.], dtype=float32)
    """
    with _open(_Stream(as_key(key, "keys"))):
        yield


@contextmanager
def refusing(why: str) -> Iterator[None]:
    """Refuse draws inside the block, with this reason."""
    with _open(_Stream(None, why)):
        yield


@contextmanager
def _open(stream: _Stream) -> Iterator[None]:
    """Put a stream in force for the block."""
    outer = _ambient.streams
    try:
        _ambient.streams = (*outer, stream)
        yield
    finally:
        _ambient.streams = outer


def next_key(caller: str = "this function") -> Key:
    """Draw the next key of the innermost stream, for a layer that was not handed one.

    Args:
        caller: the caller, named in errors.

    Returns:
        A key.

    Raises:
        RuntimeError: inside a trace or a ``vmap`` that began after the stream was opened.

    >>> import stretto as st
    >>> with st.random.keys(st.random.PRNGKey(0)):
    ...     st.random.next_key().shape
    (2,)
    """
    return _in_force().draw(caller)


def refusal() -> str:
    """Say why a draw is refused here, after "draws random numbers, but"; "" where it is not."""
    return _in_force().refusal()


def _first() -> _Stream:
    return _Stream(PRNGKey(0))


def _in_force() -> _Stream:
    """Return the innermost stream."""
    if _ambient.streams:
        return _ambient.streams[-1]
    stream = _Default.stream
    if stream is None:
        with _Default.lock:
            stream = _Default.stream
            if stream is None:
                stream = _Default.stream = holding(state, "interpreter", state.eager, _first)
    return stream
