"""Operations on concrete values inside a trace, computed at once: ``ensure_compile_time_eval``.

Layer 7 (api).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from stretto._engine.core.effects import NamedAxis
from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.runtime.eager import EAGER

__all__ = ["ensure_compile_time_eval"]


class _AtOnce(Interpreter):
    """Evaluates operations on arrays, and hands those with a tracer to the one around it."""

    __slots__ = ("parent",)

    ended = False

    def __init__(self, parent: Interpreter) -> None:
        self.parent = parent

    @property
    def recorder(self) -> Any:  # type: ignore[override]
        """That of the one around it."""
        return self.parent.recorder

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Evaluate, or hand on: also what is across the examples that one around it maps."""
        theirs = any([isinstance(a, Tracer) for a in args]) or any(
            [type(effect) is NamedAxis for effect in primitive.effects]
        )
        return (self.parent if theirs else EAGER).process(primitive, args)


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Compute at once what depends on no argument, in a block or a decorated function.

    While a function is traced, operations on concrete arrays are recorded like all others, and
    their results are traced. In the block they are evaluated, so that Python can use the results:
    as a shape, a condition, a number. Operations on traced values are recorded as ever.

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
    if around is EAGER:
        yield
        return
    state.interpreter = _AtOnce(around)
    try:
        yield
    finally:
        state.interpreter = around
