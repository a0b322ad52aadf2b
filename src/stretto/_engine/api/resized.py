"""``jit`` of functions whose arguments have axes of any size: traced once, compiled by bucket.

Layer 7 (api). The function is traced with sizes that vary. A call pads its arguments to the bucket
of their sizes, runs the program for that bucket, and takes what is valid of the results. Next, read
``entry``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from stretto._engine.api import recompilation
from stretto._engine.api.arguments import as_values
from stretto._engine.api.buckets import Buckets, dynamic_size
from stretto._engine.api.entry import Entry
from stretto._engine.api.jit import Jitted
from stretto._engine.api.lengths import alike
from stretto._engine.api.static import Places
from stretto._engine.control.sized import SizedCall
from stretto._engine.core import tree
from stretto._engine.core.bounded import room
from stretto._engine.core.config import config, settings
from stretto._engine.core.interpreter import Tracer, constant, state
from stretto._engine.core.sizes import (
    Guard,
    Size,
    SizeVariable,
    known_sizes,
    size_of,
    varying_sizes,
)
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.comparison import full
from stretto._engine.ops.shape import pad, slice_
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.eager import EAGER
from stretto._engine.transforms.evaluate import evaluate

__all__ = ["Resized"]

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _Axes:
    """The axes of an array whose size varies; a leaf of ``dynamic_axes``."""

    def __init__(self, sizes: Sequence[tuple[int, Size]]) -> None:
        self.sizes = tuple(sizes)


class _Plan(NamedTuple):
    """What a call does whose arguments have certain types."""

    entry: Entry
    call: SizedCall
    """The operation; outside of other transformations its program is jitted."""
    sizes: list[Any]
    carriers: list[tuple[int, ...]]
    """The shapes that arguments and captured arrays are padded to."""
    results: list[tuple[int, ...]]
    """The true shapes of the results."""
    donated: tuple[int, ...]
    """Which of the sizes, arguments and captured arrays may be overwritten."""


class Resized(Jitted[P, R_co]):
    """A compiled function for arguments of any size: made by ``jit(dynamic_axes=…)``."""

    def __init__(
        self,
        fun: Callable[P, R_co],
        static: Places,
        donated: Places,
        keep_unused: bool,
        inline: bool,
        options: Any,
        dynamic_axes: Any,
        buckets: Buckets,
    ) -> None:
        super().__init__(fun, static, donated, keep_unused, inline, options)
        self._plain = False  # every call takes the general path
        self._axes = _as_axes(dynamic_axes)
        self._given = dynamic_axes
        self._buckets = buckets
        self._programs: dict[Any, Jitted[..., Any]] = {}
        self._plans: dict[Any, _Plan] = {}
        self._guards: dict[Any, list[tuple[Guard, ...]]] = {}

    def _called(self, args: Any, kwargs: Any) -> Any:
        """Call with any arguments, under any interpreter."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        static, dynamic = self._static.separate(args, kwargs, self._name)
        leaves, structure = tree.flatten(dynamic)
        leaves = as_values(leaves, self._name, lambda: self._leaf_names(args, kwargs, static))
        types = tuple([x.type for x in leaves])
        key: Any = (structure, types, static, settings.key, alike(structure, leaves))
        plan = self._plans.get(key)
        if plan is None:
            if any([x.type.varies for x in leaves]):
                return self._fun(*args, **kwargs)  # inside another one, whose sizes vary already
            plan = self._planned(key, args, kwargs)
            if not plan.entry.has_tracers:
                room(self._plans)[key] = plan
        entry = plan.entry
        values = [*leaves, *entry.captured] if entry.captured else leaves
        carriers = [_carrier(x, n) for x, n in zip(values, plan.carriers, strict=True)]
        if state.interpreter is EAGER and not any([isinstance(x, Tracer) for x in values]):
            outs = self._program(plan)(*plan.sizes, *carriers)
        else:
            outs = plan.call(*plan.sizes, *carriers)
        results = [_valid(out, shape) for out, shape in zip(outs, plan.results, strict=True)]
        return tree.unflatten(entry.out_structure, results)

    def _planned(self, key: Any, args: Any, kwargs: Any) -> _Plan:
        """What is done for arguments of these types."""
        structure, own_types, static, settings_key, pairs = key
        fixed = dict(static)
        positional = tuple([a for i, a in enumerate(args) if i not in fixed])
        axes = tree.prefix_leaves(self._axes, positional, self._name, "dynamic_axes")
        axes += [None] * (len(own_types) - len(axes))
        names = lambda: self._leaf_names(args, kwargs, static)
        types, sizes = _sized_types(own_types, axes, self._name, names)
        signature: Any = (structure, types, static, settings_key, (), pairs)
        entry, guards = self._traced_for(signature, sizes, args, kwargs)
        variables = tuple(sizes)
        most = tuple(
            [
                int(min([self._buckets.size(n), *[guard.most(v) for guard in guards]]))
                for v, n in sizes.items()
            ]
        )
        call = SizedCall(entry.program, variables, most)
        bucket = call.bucket
        every = [*types, *[c.type for c in entry.captured]]
        return _Plan(
            entry,
            call,
            [constant(np.asarray(n, np.int32)) for n in sizes.values()],
            [bucket.shape(t.shape) for t in every],
            [
                tuple([n.known(sizes) if isinstance(n, Size) else n for n in t.shape])
                for t in entry.program.out_types
            ],
            self._donated_places(axes, len(sizes), args, kwargs, fixed),
        )

    def _donated_places(
        self, axes: Sequence[Any], sizes: int, args: Any, kwargs: Any, fixed: Any
    ) -> tuple[int, ...]:
        """The places of donated arguments behind the sizes."""
        if not self._donated:
            return ()
        donated = self._donated.leaves(args, kwargs, fixed)
        places = [k for k, given in enumerate(donated) if given]
        for k in places:
            if axes[k] is not None:
                name = self._leaf_names(args, kwargs, tuple(fixed.items()))[k]
                raise ValueError(
                    f"{self._name}: {name} has a size that varies, and cannot be donated: it is "
                    f"copied into a larger array; donate what has fixed sizes, such as parameters"
                )
        return tuple([sizes + k for k in places])

    def _traced_for(
        self, signature: Any, sizes: Any, args: Any, kwargs: Any
    ) -> tuple[Entry, tuple[Guard, ...]]:
        """The trace whose guards hold for these sizes, and they; a new one if there is none."""
        known = self._guards.setdefault(signature, [])
        for guards in known:
            if all([guard.of(sizes) for guard in guards]):
                return self._entries[
                    recompilation.Signature(*signature)._replace(guards=guards)
                ], guards
        with varying_sizes(), known_sizes([sizes]) as found:
            entry = self._traced(recompilation.Signature(*signature), args, kwargs)
        guards = tuple(dict.fromkeys(found))
        if not entry.has_tracers:
            self._entries[recompilation.Signature(*signature)._replace(guards=guards)] = entry
            known.append(guards)
        return entry, guards

    def _program(self, plan: _Plan) -> Jitted[..., Any]:
        """The compiled program for a bucket."""
        call = plan.call
        key = call.program, call.most
        run = self._programs.get(key)
        if run is None:
            fixed = call.fixed()

            def program(*args: Any) -> Any:
                return evaluate(fixed, args)

            program.__name__ = program.__qualname__ = self._name
            none = Places((), ())
            donated = Places(plan.donated, ())
            run = Jitted(program, none, donated, self._keep_unused, False, self._options)
            run._ours = True  # that there are several buckets is what was asked for
            run = self._programs.setdefault(key, run)
        return run

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        super().clear_cache()
        self._programs, self._plans, self._guards = {}, {}, {}

    def __reduce__(self) -> str | tuple[Any, ...]:
        """By name, as functions are, if the name leads back here; else by what it was made from."""
        by_name = super().__reduce__()
        if isinstance(by_name, str):
            return by_name
        how = (self._static, self._donated, self._keep_unused, self._inline, self._options)
        return Resized, (self._fun, *how, self._given, self._buckets)


def _as_axes(spec: Any) -> Any:
    """A tree of axes, with a leaf in place of each dictionary from axes to sizes."""
    if spec is None or isinstance(spec, _Axes):
        return spec
    if isinstance(spec, Mapping):
        if spec and all([isinstance(axis, int) for axis in spec]):
            sizes = []
            for axis, size in spec.items():
                if not isinstance(size, (str, Size)):
                    raise TypeError(
                        f"jit: dynamic_axes must give each axis a name or a size that varies, as "
                        f"{{0: 'n'}}; got {size!r} for axis {axis}"
                    )
                sizes.append((axis, dynamic_size(size) if isinstance(size, str) else size))
            return _Axes(sizes)
        return {key: _as_axes(value) for key, value in spec.items()}
    if isinstance(spec, (tuple, list)):
        return type(spec)([_as_axes(part) for part in spec])
    raise TypeError(
        f"jit: dynamic_axes must be a tree of None and dictionaries from axes to names, such as "
        f"({{0: 'n'}}, None); got {spec!r}"
    )


def _sized_types(
    types: Sequence[ArrayType], axes: Sequence[Any], caller: str, names: Callable[[], list[str]]
) -> tuple[tuple[ArrayType, ...], dict[SizeVariable, int]]:
    """The types with sizes that vary, and the size of each variable."""
    sizes: dict[SizeVariable, int] = {}
    where: dict[SizeVariable, tuple[int, int]] = {}
    made, later = [], []

    def words(place: tuple[int, int]) -> str:
        return f"axis {place[1]} of {names()[place[0]]}"

    for k, (type, own) in enumerate(zip(types, axes, strict=True)):
        if own is None:
            made.append(type)
            continue
        shape: list[Any] = list(type.shape)
        for axis, size in own.sizes:
            if not -type.ndim <= axis < type.ndim:
                raise ValueError(
                    f"{caller}: dynamic_axes has axis {axis} of {names()[k]}, which is {type}"
                )
            a = axis % type.ndim
            n = type.shape[a]
            shape[a] = size
            place = k, a
            variable = next(size.variables())
            if size.terms == size_of(variable).terms:
                known = sizes.setdefault(variable, n)
                if known != n:
                    raise ValueError(
                        f"{caller}: {variable} is one size, and was {known} at "
                        f"{words(where[variable])} and {n} at {words(place)}"
                    )
                where.setdefault(variable, place)
                if not variable.least <= n <= variable.most:
                    raise ValueError(
                        f"{caller}: {words(place)} has size {n}, and {variable} must be at least "
                        f"{variable.least} and at most {variable.most}: an array without elements "
                        f"is computed by a function of its own"
                    )
            else:
                later.append((size, n, place))
        made.append(type.with_shape(tuple(shape)))
    for size, n, place in later:
        unknown = [v for v in size.variables() if v not in sizes]
        if unknown or size.known(sizes) != n:
            raise ValueError(
                f"{caller}: {words(place)} has size {n}, and {size} "
                + (
                    f"needs {unknown[0]}, which no axis is"
                    if unknown
                    else f"is {size.known(sizes)}"
                )
            )
    return tuple(made), sizes


def _carrier(x: Any, shape: tuple[int, ...]) -> Any:
    """The array in front of a larger one."""
    if x.shape == shape:
        return x
    if x.__class__ is not Array:  # traced, or on devices of choice
        config_ = [(0, n - m, 0) for n, m in zip(shape, x.shape, strict=True)]
        return pad(x, full((), 0, x.dtype), config_)
    host = np.zeros(shape, x.dtype)
    host[tuple([slice(n) for n in x.shape])] = x.to_host()
    return constant(host, x.type.weak_type)


def _valid(x: Any, shape: tuple[int, ...]) -> Any:
    """The first elements of an array along each axis."""
    if x.shape == shape:
        return x
    if x.__class__ is not Array:
        return slice_(x, (0,) * len(shape), shape)
    part = x.to_host()[tuple([slice(n) for n in shape])]
    return constant(np.ascontiguousarray(part), x.type.weak_type)
