"""``checkify``: checks inside traced functions, whose failures the function returns as a value.

A check is a call of Python (``higher_order/callback``) that raises. ``checkify`` traces a function,
and runs its program again with an error among the values: what the checks find first is kept in it,
through loops and branches, and Python is not called.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto
from stretto import lax
from stretto import numpy as snp
from stretto._engine.api.graph import record_call
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, constant
from stretto._engine.core.position import Position
from stretto._engine.core.program import Equation, Literal, Program
from stretto._engine.core.types import is_inexact
from stretto._engine.higher_order.callback import DebugCallback, debug_callback
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.shard_map import ShardMap
from stretto._engine.higher_order.while_loop import While
from stretto._engine.ops.arithmetic import DIV, REM
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.index.primitives import Gather, ScatterFamily
from stretto.compat.jax import tree_util

__all__ = ["Error", "ErrorCategory", "JaxException", "JaxRuntimeError", "all_checks",
           "automatic_checks", "check", "check_error", "checkify", "debug_check",
           "div_checks", "float_checks", "index_checks", "init_error", "nan_checks",
           "user_checks"]  # fmt: skip


class JaxRuntimeError(ValueError):
    """A check failed."""


class JaxException(JaxRuntimeError):
    """The error of a check that failed."""


class ErrorCategory(enum.Enum):
    """A kind of checks."""

    USER = "user"
    NAN = "nan"
    DIV = "div"
    OOB = "oob"


user_checks = frozenset({ErrorCategory.USER})
nan_checks = frozenset({ErrorCategory.NAN})
div_checks = frozenset({ErrorCategory.DIV})
index_checks = frozenset({ErrorCategory.OOB})
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks


class _Check:
    """A check at one place: what to say where it fails, and with which values."""

    __name__ = "check"

    def __init__(self, message: str, structure: Any = None) -> None:
        self.message, self.structure = message, structure

    def __call__(self, holds: Any, *values: Any) -> None:
        """Raise if it does not hold: where nobody has made it a value."""
        if not np.all(np.asarray(holds)):
            raise JaxRuntimeError(self.text(values))

    def text(self, values: Sequence[Any]) -> str:
        """Return the message, with these values in it."""
        if self.structure is None:
            return self.message
        args, kwargs = self.structure.unflatten(list(values))
        return f"{self.message.format(*args, **kwargs)} (`check` failed)"


class Error:
    """Holds what checks found: nothing, or the first that failed. A tree of arrays."""

    def __init__(
        self, code: Any, payload: tuple[tuple[Any, ...], ...], checks: tuple[_Check, ...]
    ) -> None:
        self._code, self._payload, self._checks = code, payload, checks

    def get(self) -> str | None:
        """Return what failed, in words; None where nothing did."""
        codes = np.asarray(self._code)
        if not codes.any():
            return None
        if not codes.ndim:
            return self._text(int(codes), ())
        lines = [
            f"at mapped index {', '.join(map(str, index))}: {self._text(int(codes[index]), index)}"
            for index in zip(*np.nonzero(codes))
        ]
        return "\n".join(lines)

    def _text(self, code: int, index: tuple[Any, ...]) -> str:
        values = [snp.asarray(x)[index] for x in self._payload[code - 1]]
        return self._checks[code - 1].text(values)

    def get_exception(self) -> JaxException | None:
        """Return what failed, as an exception; None where nothing did."""
        text = self.get()
        return None if text is None else JaxException(text)

    def throw(self) -> None:
        """Raise what failed."""
        check_error(self)

    def __str__(self) -> str:
        return f"Error({self.get()})"

    __repr__ = __str__


tree.register_pytree_node(
    Error,
    lambda e: ((e._code, e._payload), e._checks),
    lambda checks, children: Error(children[0], children[1], checks),
)

Out = Any
init_error = Error(constant(np.zeros((), np.int32)), (), ())


def check(pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Check that something holds: ``checkify`` makes its failure a value, else it raises.

    Args:
        pred: whether it holds; all elements must.
        msg: what to say otherwise; ``{}`` and ``{name}`` stand for the values that follow.
        *fmt_args: arrays.
        debug: whether ``checkify`` may leave it out.
        **fmt_kwargs: arrays.

    Raises:
        TypeError: ``pred`` is not boolean, or a value is not an array.
    """
    del debug
    if np.dtype(snp.asarray(pred).dtype) != np.dtype(bool):
        raise TypeError(f"check: pred must be boolean, got {snp.asarray(pred).dtype}")
    flat, structure = tree_util.flatten((fmt_args, fmt_kwargs))
    for value in flat:
        if not hasattr(value, "dtype") and not isinstance(value, (bool, int, float, complex)):
            raise TypeError(
                f"Formatting arguments to checkify.check need to be PyTrees of arrays, but got "
                f"{value!r} of type {type(value)}."
            )
    debug_callback("check", _Check(msg, structure), (snp.all(pred), *flat), {}, True)


debug_check = functools.partial(check, debug=True)


def check_error(error: Error) -> None:
    """Raise what failed; inside a traced function, check that nothing did."""
    if not isinstance(error, Error):
        raise ValueError(f"check_error: expected an Error, got {type(error).__name__}")
    if not isinstance(error._code, Tracer):
        text = error.get()
        if text is not None:
            raise JaxRuntimeError(text)
        return
    for i, (made, values) in enumerate(zip(error._checks, error._payload)):
        holds = snp.all(error._code != i + 1)
        debug_callback("check", made, (holds, *values), {}, True)


class _Site(NamedTuple):
    check: _Check
    types: tuple[Any, ...]


class _Run:
    """One run of a program with its checks as values."""

    def __init__(self, errors: frozenset[ErrorCategory]) -> None:
        self.errors = errors
        self.sites: list[_Site] = []
        self.numbers: dict[Any, int] = {}

    def collect(self, program: Program) -> None:
        """Number the checks of a program, and of the programs in it."""
        for key, made, types in self._in(program):
            if key not in self.numbers:
                self.numbers[key] = len(self.sites)
                self.sites.append(_Site(made, types))

    def _in(self, program: Program) -> Iterator[tuple[Any, _Check, tuple[Any, ...]]]:
        for equation in program.equations:
            own = _own(equation)
            if own is not None:
                yield id(own), own, tuple([a.type for a in equation.inputs[1:]])
            elif equation.primitive.holds_programs:
                for inner in equation.primitive.programs():  # type: ignore[attr-defined]
                    yield from self._in(inner)
            else:
                for kind, text in self._automatic(equation):
                    yield (kind, id(equation)), _Check(text), ()

    def _automatic(self, equation: Equation) -> Iterator[tuple[ErrorCategory, str]]:
        primitive, position = equation.primitive, equation.place
        where = f" at {Position(*position)}" if position else ""
        out = equation.outputs[0].type if equation.outputs else None
        if out is None:
            return
        if ErrorCategory.DIV in self.errors and primitive in (DIV, REM):
            yield ErrorCategory.DIV, f"division by zero{where}"
        if ErrorCategory.OOB in self.errors and isinstance(primitive, _INDEXING):
            yield ErrorCategory.OOB, f"out-of-bounds indexing{where}"
        if ErrorCategory.NAN in self.errors and is_inexact(out.dtype):
            yield ErrorCategory.NAN, f"nan generated by primitive: {primitive.name}.{where}"

    def has_checks(self, program: Program) -> bool:
        """Say whether there are checks in it, or in a program inside."""
        return any(True for _ in self._in(program))

    def start(self) -> Any:
        """Return the error where nothing has failed."""
        zeros = [tuple([snp.zeros(t.shape, t.dtype) for t in s.types]) for s in self.sites]
        return snp.zeros((), np.int32), tuple(zeros)

    def note(self, error: Any, key: Any, holds: Any, values: Sequence[Any]) -> Any:
        """Return the error with this check among those that may have failed."""
        code, payload = error
        number = self.numbers[key]
        new = snp.logical_and(code == 0, ~holds)
        kept = tuple(
            [snp.where(new, x, old) for x, old in zip(values, payload[number], strict=True)]
        )
        payload = (*payload[:number], kept, *payload[number + 1 :])
        return snp.where(new, np.int32(number + 1), code), payload

    def run(self, program: Program, args: Sequence[Any], error: Any) -> tuple[list[Any], Any]:
        """Return the outputs, and the error."""
        known: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))

        def value(atom: Any) -> Any:
            if type(atom) is Literal:
                return constant(atom.array(), atom.type.weak_type)
            return known[atom]

        for equation in program.equations:
            values = [value(a) for a in equation.inputs]
            outs, error = self.step(equation, values, error)
            known.update(zip(equation.outputs, outs, strict=True))
        return [value(a) for a in program.outputs], error

    def step(self, equation: Equation, values: list[Any], error: Any) -> tuple[Any, Any]:
        """Return the outputs of one operation, and the error."""
        primitive = equation.primitive
        own = _own(equation)
        if own is not None:
            if ErrorCategory.USER not in self.errors:
                return (), error
            return (), self.note(error, id(own), values[0], values[1:])
        inner = primitive.programs() if primitive.holds_programs else []  # type: ignore[attr-defined]
        if any(self.has_checks(p) for p in inner):
            return self.control(primitive, values, error)
        result = primitive(*values)
        outs = result if primitive.multiple else (result,)
        for kind, _ in [] if inner else self._automatic(equation):
            if kind is ErrorCategory.DIV:
                holds = snp.all(values[1] != 0)
            elif kind is ErrorCategory.OOB:
                holds = _in_bounds(primitive, values)
            else:
                holds = ~snp.any(snp.stack([snp.any(snp.isnan(x)) for x in outs]))
            error = self.note(error, (kind, id(equation)), holds, ())
        return outs, error

    def control(self, primitive: Any, values: list[Any], error: Any) -> tuple[Any, Any]:
        """Return the outputs of an operation with checks in its programs, and the error."""
        if isinstance(primitive, Scan):
            return self.scan(primitive, values, error)
        if isinstance(primitive, While):
            return self.while_loop(primitive, values, error)
        if isinstance(primitive, Cond):
            return self.cond(primitive, values, error)
        if isinstance(primitive, ShardMap):
            return self.over_devices(primitive, values, error)
        program = getattr(primitive, "program", None)
        if program is None:
            raise NotImplementedError(f"checkify: checks inside of {primitive.name}")
        return self.run(program, values, error)

    def over_devices(self, parts: ShardMap, values: list[Any], error: Any) -> tuple[Any, Any]:
        """Give each device an error of its own; that of the first which failed is kept."""

        def part(*args: Any) -> Any:
            outs, own = self.run(parts.program, args, self.start())
            return outs, tree.map(lambda x: x[None], own)

        every = stretto.P(parts.axes)
        outs, (codes, payloads) = stretto.shard_map(
            part,
            mesh=parts.mesh,
            in_specs=parts.ins,
            out_specs=([*parts.outs], tree.map(lambda _: every, self.start())),
            axis_names=frozenset(parts.axes),
            check_vma=False,
        )(*values)
        first = snp.argmax(codes != 0)
        new = (error[0] == 0) & (codes[first] != 0)
        one = (codes[first], tree.map(lambda x: x[first], payloads))
        return outs, tree.map(lambda x, y: snp.where(new, x, y), one, error)

    def cond(self, choice: Cond, values: list[Any], error: Any) -> tuple[Any, Any]:
        """Return branches with the error; where each example has its own, one after the other."""
        branches = [functools.partial(self.run, program) for program in choice.branches]
        if choice.size is None:
            return lax.switch(values[0], branches, values[1:], error)
        over = (True, *choice.mapped)
        moving = [x for x, mapped in zip(values, over, strict=True) if mapped]

        def body(error: Any, examples: Any) -> Any:
            own = iter(examples)
            index, *args = [next(own) if m else x for x, m in zip(values, over, strict=True)]
            outs, error = lax.switch(index, branches, args, error)
            return error, outs

        error, outs = lax.scan(body, error, moving)
        return outs, error

    def scan(self, loop: Scan, values: list[Any], error: Any) -> tuple[Any, Any]:
        """Return a loop that carries the error."""
        consts, carry, xs = loop._parts(values)

        def body(state: Any, x: Any) -> Any:
            outs, new = self.run(loop.body, [*consts, *state[0], *x], state[1])
            return (outs[: loop.carry], new), outs[loop.carry :]

        (carry, error), ys = lax.scan(
            body, (carry, error), xs, loop.length, loop.reverse, unroll=loop.unroll
        )
        return [*carry, *ys], error

    def while_loop(self, loop: While, values: list[Any], error: Any) -> tuple[Any, Any]:
        """Return a loop that carries the error."""
        cond_consts, body_consts, carry = loop._parts(values)

        def cond(state: Any) -> tuple[Any, Any]:
            outs, new = self.run(loop.cond, [*cond_consts, *state[0]], state[1])
            return outs[0], new

        def body(state: Any) -> Any:
            carry, error, _ = state
            carry, error = self.run(loop.body, [*body_consts, *carry], error)
            going, error = cond((carry, error))
            return carry, error, going

        going, error = cond((carry, error))
        carry, error, _ = lax.while_loop(lambda state: state[2], body, (carry, error, going))
        return carry, error


_INDEXING = (Gather, ScatterFamily, DynamicSlice, DynamicUpdateSlice)


def _in_bounds(primitive: Any, values: Sequence[Any]) -> Any:
    """Say whether all that an operation reads or writes is inside of its operand."""
    shape = values[0].shape
    if isinstance(primitive, (Gather, ScatterFamily)):
        numbers: Any = primitive.dimension_numbers
        indices = values[1]
        if isinstance(primitive, Gather):
            axes, sizes = numbers.start_index_map, primitive.slice_sizes
        else:
            axes = numbers.scatter_dims_to_operand_dims
            inner = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
            windows = iter([values[2].shape[i] for i in sorted(numbers.update_window_dims)])
            sizes = [1 if i in inner else next(windows) for i in range(len(shape))]
        starts = {axis: indices[..., i] for i, axis in enumerate(axes)}
    else:
        update = isinstance(primitive, DynamicUpdateSlice)
        sizes = values[1].shape if update else primitive.sizes
        starts = dict(enumerate(values[1 + update :]))
    inside = [
        snp.all((start >= 0) & (start <= shape[axis] - sizes[axis]))
        for axis, start in starts.items()
    ]
    return snp.all(snp.stack(inside))


def _own(equation: Equation) -> _Check | None:
    """Return the check that an operation is, if it is one."""
    primitive = equation.primitive
    if isinstance(primitive, DebugCallback) and isinstance(primitive.host.function, _Check):
        return primitive.host.function
    return None


def checkify(
    f: Callable[..., Any], errors: frozenset[ErrorCategory] = user_checks
) -> Callable[..., tuple[Error, Any]]:
    """Return a function that returns what checks in another found, and what it returns.

    Args:
        f: the function, of trees of arrays.
        errors: what is checked.
    """

    @functools.wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        program, structure, captured = record_call(f, args, kwargs)
        if len(program.outputs) > structure.num_leaves:
            raise NotImplementedError(
                "checkify: the function writes to references from outside; return the new values "
                "instead, and write them outside"
            )
        run = _Run(frozenset(errors))
        run.collect(program)
        values = [snp.asarray(x) for x in tree.leaves((args, kwargs))]
        outs, (code, payload) = run.run(program, [*values, *captured], run.start())
        error = Error(code, payload, tuple([site.check for site in run.sites]))
        return error, tree.unflatten(structure, outs)

    return checked
