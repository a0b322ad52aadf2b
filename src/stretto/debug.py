"""Looking at values inside transformed functions, and at what arrays there are, and where.

``st.debug.print`` and ``st.debug.callback`` work eagerly, and inside every transformation, loop and
branch; ``higher_order/callback`` has the operation. ``st.debug.visualize_array_sharding`` and its
like show where arrays are.
"""

from __future__ import annotations

import builtins
import dataclasses
import re
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from stretto._engine.api.autodiff.checkpoint import print_saved_residuals
from stretto._engine.api.sharding.placement import live_arrays
from stretto._engine.api.sharding.shardings import (
    inspect_array_sharding,
    visualize_array_sharding,
    visualize_sharding,
)
from stretto._engine.core.interpreter import Value
from stretto._engine.core.lazy import exports
from stretto._engine.higher_order.callback import debug_callback
from stretto._engine.xla.callbacks import effects_barrier
from stretto._engine.xla.environment import print_environment_info

__all__ = ["callback", "effects_barrier", "inspect_array_sharding", "live_arrays",
           "print", "print_environment_info", "print_saved_residuals",
           "visualize_array_sharding", "visualize_sharding"]  # fmt: skip


def callback(
    callback: Callable[..., Any],
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> None:
    """Call a Python function with values of a program, whenever they are computed.

    Derivatives call it once, with primals; ``vmap`` calls it for each example if any argument is
    mapped, and otherwise once; loops and branches call it as often as they reach it. A compiled
    program calls it even if its results are not used, and returns when all callbacks have.

    Args:
        callback: the function; what it returns is ignored.
        *args: its arguments: arrays, numbers and traced values arrive as arrays, anything else
            (strings, objects) as it was given.
        ordered: make the calls in the order of the program.
        partitioned: for arrays spread over several devices; with one device it changes nothing.
        **kwargs: its keyword arguments, likewise.

    Raises:
        TypeError: ``callback`` is not a function.
        Exception: what ``callback`` raises.

    >>> import stretto as st
    >>> seen = []
    >>> @st.jit
    ... def f(x):
    ...     st.debug.callback(lambda x, name: seen.append((name, float(x))), x, name="x")
    ...     return x**2
    >>> float(st.grad(f)(3.0)), seen
    (6.0, [('x', 3.0)])
    """
    debug_callback("debug.callback", callback, args, kwargs, ordered)


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values of a program to standard output, whenever they are computed.

    Trees of arrays, and whatever is not an array, are formatted as Python formats them. NumPy's
    print options are those in force where this is called. For the rest see ``debug.callback``.

    Args:
        fmt: a string for ``str.format``.
        *args: what it formats.
        ordered: print in the order of the program.
        **kwargs: what it formats by name.

    Raises:
        TypeError: ``fmt`` is not a string.
        ValueError: ``fmt`` does not match the arguments: one is missing, or left over, or has a
            format that its type does not take.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def f(x):
    ...     st.debug.print("x = {x}, at {:.1f}", x.sum(), x=x)
    ...     return x + 1
    >>> y = f(snp.array([1.0, 2.0]))
    x = [1. 2.], at 3.0
    """
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print: fmt must be a string to format, got {type(fmt).__name__}; print one "
            f"value with debug.print('{{}}', x)"
        )
    _Check(fmt).vformat(fmt, args, kwargs)
    options = {k: v for k, v in np.get_printoptions().items() if k != "override_repr"}
    debug_callback("debug.print", _Printer(fmt, options), args, kwargs, ordered)


@dataclasses.dataclass(frozen=True, eq=False)
class _Printer:
    """Prints its arguments in a format, with NumPy's options."""

    fmt: str
    options: Mapping[str, Any]

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        with np.printoptions(**self.options):
            builtins.print(self.fmt.format(*args, **kwargs))

    @property
    def __name__(self) -> str:
        return repr(self.fmt)


class _Check(string.Formatter):
    """Goes through a format as ``str.format`` does, without looking at values."""

    def __init__(self, fmt: str) -> None:
        self._fmt = fmt

    def _refuse(self, problem: str) -> NoReturn:
        raise ValueError(f"debug.print: the format {self._fmt!r} {problem}")

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[object, int | str]:
        """Return a stand-in for the argument of this name or number, and that name or number."""
        first = re.split(r"[.\[]", field_name, maxsplit=1)[0]
        key = int(first) if first.isdecimal() else first
        if isinstance(key, int) and key >= len(args):
            self._refuse(f"uses argument {key}, and {len(args)} were given by position")
        if isinstance(key, str) and key not in kwargs:
            names = ", ".join(kwargs) or "none"
            self._refuse(f"uses {key!r}, which was not given; the arguments given by name: {names}")
        whole = args[key] if isinstance(key, int) else kwargs[key]
        return (_Anything() if first != field_name else _stand_in(whole)), key

    def convert_field(self, value: object, conversion: str | None) -> object:
        """Return a string where there is a conversion, since that is what is then formatted."""
        return value if conversion is None or isinstance(value, _Anything) else ""

    def format_field(self, value: object, format_spec: str) -> str:
        """Do nothing: the point is that it could be formatted."""
        try:
            format(value, format_spec)
        except (TypeError, ValueError) as error:
            self._refuse(f"has {format_spec!r} for an argument that does not take it: {error}")
        return ""

    def check_unused_args(
        self, used_args: set[int | str], args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> None:
        """Require that all arguments are used."""
        left = [str(i) for i in range(len(args)) if i not in used_args]
        left += [name for name in kwargs if name not in used_args]
        if left:
            self._refuse(f"does not use the arguments {', '.join(left)}")


class _Anything:
    """Stands for a part of an argument; what it is, and which formats it takes, is not known."""

    def __format__(self, spec: str) -> str:
        return ""


def _stand_in(argument: object) -> object:
    """Return a value that takes the same formats as the argument."""
    if isinstance(argument, (Value, np.ndarray, np.generic)):
        return np.zeros((), argument.dtype)[()] if not argument.shape else ""
    return argument


exports(__name__)
