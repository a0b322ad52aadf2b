"""Evaluate operations on concrete values while tracing: ``ensure_compile_time_eval``.

A small interpreter, put in front of the current one: arrays go to the eager interpreter, tracers to
the one behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.core.primitive import NamedAxis
from stretto._engine.eager.interpreter import EAGER


class _AtOnce(Interpreter):
    """Evaluates operations on arrays, and hands those on tracers to the interpreter around it."""

    __slots__ = ("parent",)

    ended = False

    def __init__(self, parent: Interpreter) -> None:
        self.parent = parent

    @property
    def recorder(self) -> Any:  # type: ignore[override]
        """The recorder of the interpreter around it."""
        return self.parent.recorder

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Evaluate the operation; hand it on if it has a tracer or names an axis of a ``vmap``."""
        is_traced = any([isinstance(a, Tracer) for a in args]) or any(
            [type(effect) is NamedAxis for effect in primitive.effects]
        )
        return (self.parent if is_traced else EAGER).process(primitive, args)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute at once what depends on no argument, in a block or a decorated function.

    While a function is traced, operations on concrete arrays are recorded like all others, and
    their results are traced. In this block they are evaluated, so that Python can use the results:
    as a shape, a condition, a number. Operations on traced values are recorded as usual.

    Returns:
        A context manager, which is a decorator as well.

    >>> import stretto as st, stretto.numpy as snp
    >>> table = snp.array([3, 1, 2])
    >>> @st.jit
    ... def f(x):
    ...     with st.ensure_compile_time_eval():
    ...         size = int(snp.max(table))
    ...     return x * snp.ones(size)
    >>> f(2.0)
    Array([2., 2., 2.], dtype=float32)
    """
    around = state.interpreter
    if around.at_rest:
        yield
        return
    state.interpreter = _AtOnce(around)
    try:
        yield
    finally:
        state.interpreter = around
