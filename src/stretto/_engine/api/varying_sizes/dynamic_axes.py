"""``jit`` of functions whose arguments have axes of any size: traced once, compiled by bucket.

The function is traced with sizes that vary. A call pads its arguments to the bucket of their sizes,
runs the program for that bucket, and takes what is valid of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from stretto._engine.api.argument_leaves import as_values
from stretto._engine.api.jit.dispatch import record_by
from stretto._engine.api.jit.entry import Entry
from stretto._engine.api.jit.jit import Jitted
from stretto._engine.api.jit.signature import NO_ARGUMENTS, ArgumentSet, Signature
from stretto._engine.api.varying_sizes.sizes import Buckets, dynamic_size, equal_lengths
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.caches import room
from stretto._engine.core.config import config, settings
from stretto._engine.core.errors import RefError
from stretto._engine.core.interpreter import Tracer, constant, state
from stretto._engine.core.size_guards import Guard, known_sizes, varying_sizes
from stretto._engine.core.sizes import Size, SizeVariable, size_of
from stretto._engine.core.types import ArrayType
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.higher_order.sized_call import SizedCall
from stretto._engine.ops.comparison import full
from stretto._engine.ops.shape import pad, slice_
from stretto._engine.xla.array import Array

_RECORDS = 4096
"""The most fingerprints that one function keeps: there is one for each length."""

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


class _Axes:
    """The axes of an array whose size varies; a leaf of ``dynamic_axes``."""

    def __init__(self, sizes: Sequence[tuple[int, Size]]) -> None:
        self.sizes = tuple(sizes)


class _Bucketed(NamedTuple):
    """The parts that calls with sizes of one bucket share."""

    call: SizedCall
    """The operation, inside of other transformations."""
    run: Jitted[..., Any]
    """Its program, jitted, outside of them."""
    carriers: list[ArrayType]
    """The types that arguments and captured arrays are padded to."""
    results: Sequence[ArrayType]
    """The types of what the program returns."""


class _Part(NamedTuple):
    """The first elements of an array along each axis, which fill a smaller one."""

    whole: ArrayType
    first: ArrayType
    slices: tuple[slice, ...]


class _Plan(NamedTuple):
    """The plan of a call whose arguments have certain types; None stands for arrays that stay."""

    entry: Entry
    bucketed: _Bucketed
    sizes: list[Any]
    carriers: list[_Part | None]
    results: list[_Part | None]
    known: list[bool]
    """One element once a call has taken this plan."""

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Return the results for all leaves and captured arrays, of a call at rest."""
        return self._of(self.bucketed.run, values)

    def within(self, values: Sequence[Any]) -> list[Any]:
        """Return the results inside of a transformation."""
        return self._of(self.bucketed.call, values)

    def _of(self, function: Callable[..., Any], values: Sequence[Any]) -> list[Any]:
        carriers = [
            x if part is None else _carrier(x, part)
            for x, part in zip(values, self.carriers, strict=True)
        ]
        outs = function(*self.sizes, *carriers)
        return [
            x if part is None else _valid(x, part)
            for x, part in zip(outs, self.results, strict=True)
        ]


class JittedByBucket(Jitted[P, R_co]):
    """A compiled function for arguments of any size: made by ``jit(dynamic_axes=…)``."""

    def __init__(
        self,
        fun: Callable[P, R_co],
        static: ArgumentSet,
        donated: ArgumentSet,
        keep_unused: bool,
        inline: bool,
        options: Any,
        dynamic_axes: Any,
        buckets: Buckets,
    ) -> None:
        super().__init__(fun, static, donated, keep_unused, inline, options)
        self._plain = False  # structures are those of arguments by position and by name
        self._axes = as_axes(dynamic_axes, "jit")
        self._given = dynamic_axes
        self._buckets = buckets
        self._programs: dict[Any, _Bucketed] = {}
        self._plans: dict[Signature, _Plan] = {}
        self._guards: dict[Signature, list[tuple[Guard, ...]]] = {}
        self._recorded = 0

    def _call(self, args: Any, kwargs: Any) -> Any:
        """Call with any arguments, under any interpreter."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        static: Any = ()
        dynamic: Any = (args, kwargs)
        if self._static:
            static, dynamic = self._static.separate(args, kwargs, self._name)
        leaves, structure = tree.flatten(dynamic)
        if not all([x.__class__ is Array for x in leaves]):
            names = lambda: self._leaf_names(args, kwargs, static)
            leaves = as_values(leaves, self._name, names)
        types = tuple([x.type for x in leaves])
        key = Signature(
            structure, types, static, settings.key, alike=equal_lengths(structure, leaves)
        )
        plan = self._plans.get(key)
        if plan is None:
            if any([x.type.varies for x in leaves]):
                return self._fun(*args, **kwargs)  # inside another one, whose sizes vary already
            plan = self._new_plan(key, args, kwargs)
            if not plan.entry.has_tracers:
                room(self._plans)[key] = plan
        entry = plan.entry
        values = [*leaves, *entry.captured] if entry.captured else leaves
        if state.interpreter is EAGER and not any([isinstance(x, Tracer) for x in values]):
            self._remember_plan(plan, key, leaves)
            results = plan.run(values)
        else:
            results = plan.within(values)
        return results[0] if entry.single else tree.unflatten(entry.out_structure, results)

    def _remember_plan(self, plan: _Plan, key: Signature, leaves: Any) -> None:
        """Let the next call like this one, from the third on, take the fast path, if it can."""
        if not plan.known:
            plan.known.append(True)
        elif not self._static and not plan.entry.has_tracers:
            args, kwargs = tree.unflatten(key.structure, leaves)
            if self._fingerprint(args, kwargs) is None:
                return
            record = record_by(plan.run, plan.entry, args, kwargs)
            if self._recorded < _RECORDS and self._file(record, args, kwargs, key.settings):
                self._recorded += 1

    def _new_plan(self, key: Signature, args: Any, kwargs: Any) -> _Plan:
        """Return what is done for arguments of this signature."""
        fixed = dict(key.static)
        positional = tuple([a for i, a in enumerate(args) if i not in fixed])
        axes = tree.prefix_leaves(self._axes, positional, self._name, "dynamic_axes")
        axes += [None] * (len(key.types) - len(axes))
        names = lambda: self._leaf_names(args, kwargs, key.static)
        types, sizes = sized_types(key.types, axes, self._name, names)
        entry, guards = self._traced_for(key._replace(types=types), sizes, args, kwargs)
        donated = self._donated_positions(axes, len(sizes), args, kwargs, fixed)
        bucketed = self._program_for_bucket(entry, types, sizes, guards, donated)
        have = [*key.types, *[c.type for c in entry.captured]]
        known = [_known_type(type, sizes) for type in entry.program.out_types]
        return _Plan(
            entry,
            bucketed,
            [constant(np.asarray(n, np.int32)) for n in sizes.values()],
            [_part(whole, own) for own, whole in zip(have, bucketed.carriers, strict=True)],
            [_part(whole, own) for own, whole in zip(known, bucketed.results, strict=True)],
            [],
        )

    def _program_for_bucket(
        self,
        entry: Entry,
        types: Sequence[ArrayType],
        sizes: Mapping[SizeVariable, int],
        guards: Sequence[Guard],
        donated: tuple[int, ...],
    ) -> _Bucketed:
        """Return what is done for the bucket of these sizes."""
        most = tuple(
            [
                int(min([self._buckets.size(n), *[guard.most(v) for guard in guards]]))
                for v, n in sizes.items()
            ]
        )
        key = entry.program, most, donated
        made = self._programs.get(key)
        if made is None:
            call = SizedCall(entry.program, tuple(sizes), most)

            def program(*args: Any) -> Any:
                return evaluate(call.fixed(), args)

            program.__name__ = program.__qualname__ = self._name
            given = ArgumentSet(donated, ())
            run = Jitted(program, NO_ARGUMENTS, given, self._keep_unused, False, self._options)
            every = [*types, *[c.type for c in entry.captured]]
            carriers = [call.bucket.carrier(type) for type in every]
            made = _Bucketed(call, run, carriers, call.infer())
            made = self._programs.setdefault(key, made)
        return made

    def _donated_positions(
        self, axes: Sequence[Any], sizes: int, args: Any, kwargs: Any, fixed: Any
    ) -> tuple[int, ...]:
        """Return the places of donated arguments behind the sizes."""
        if not self._donated:
            return ()
        donated = self._donated.leaves(args, kwargs, fixed)
        positions = [k for k, given in enumerate(donated) if given]
        for k in positions:
            if axes[k] is not None:
                name = self._leaf_names(args, kwargs, tuple(fixed.items()))[k]
                raise ValueError(
                    f"{self._name}: {name} has a size that varies, and cannot be donated: it is "
                    f"copied into a larger array; donate what has fixed sizes, such as parameters"
                )
        return tuple([sizes + k for k in positions])

    def _traced_for(
        self, key: Signature, sizes: Any, args: Any, kwargs: Any
    ) -> tuple[Entry, tuple[Guard, ...]]:
        """Return the trace whose guards hold for these sizes, a new one if need be, and these."""
        known = self._guards.setdefault(key, [])
        for guards in known:
            if all([guard.of(sizes) for guard in guards]):
                return self._entries[key._replace(guards=guards)], guards
        with varying_sizes(), known_sizes([sizes]) as found:
            entry = self._new_entry(key, args, kwargs)
        if entry.uses is not None:
            raise RefError(
                f"{self._name}: with dynamic_axes it cannot use references from outside: pass "
                f"their values as arguments, and return the new ones"
            )
        guards = tuple(dict.fromkeys(found))
        if not entry.has_tracers:
            self._entries[key._replace(guards=guards)] = entry
            known.append(guards)
        return entry, guards

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        super().clear_cache()
        self._programs, self._plans, self._guards = {}, {}, {}
        self._recorded = 0

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name, as functions are, if it leads back; else by what it was made from."""
        by_name = super().__reduce__()
        if isinstance(by_name, str):
            return by_name
        how = (self._static, self._donated, self._keep_unused, self._inline, self._options)
        return JittedByBucket, (self._fun, *how, self._given, self._buckets)


def as_axes(spec: Any, caller: str) -> Any:
    """Return a tree of axes, with a leaf in place of each dictionary from axes to sizes."""
    if spec is None or isinstance(spec, _Axes):
        return spec
    if isinstance(spec, Mapping):
        if spec and all([isinstance(axis, int) for axis in spec]):
            sizes = []
            for axis, size in spec.items():
                if not isinstance(size, (str, Size)):
                    raise TypeError(
                        f"{caller}: dynamic_axes must give each axis a name or a size that varies, "
                        f"as {{0: 'n'}}; got {size!r} for axis {axis}"
                    )
                sizes.append((axis, dynamic_size(size) if isinstance(size, str) else size))
            return _Axes(sizes)
        return {key: as_axes(value, caller) for key, value in spec.items()}
    if isinstance(spec, (tuple, list)):
        return type(spec)([as_axes(part, caller) for part in spec])
    raise TypeError(
        f"{caller}: dynamic_axes must be a tree of None and dictionaries from axes to names, such "
        f"as ({{0: 'n'}}, None); got {spec!r}"
    )


def sized_types(
    types: Sequence[ArrayType], axes: Sequence[Any], caller: str, names: Callable[[], list[str]]
) -> tuple[tuple[ArrayType, ...], dict[SizeVariable, int]]:
    """Return the types with sizes that vary, and the size of each variable."""
    sizes: dict[SizeVariable, int] = {}
    where: dict[SizeVariable, tuple[int, int]] = {}
    made, later = [], []

    def words(axis_at: tuple[int, int]) -> str:
        return f"axis {axis_at[1]} of {names()[axis_at[0]]}"

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
            axis_at = k, a
            variable = next(size.variables())
            if size.terms == size_of(variable).terms:
                known = sizes.setdefault(variable, n)
                if known != n:
                    raise ValueError(
                        f"{caller}: {variable} is one size, and was {known} at "
                        f"{words(where[variable])} and {n} at {words(axis_at)}"
                    )
                where.setdefault(variable, axis_at)
                if not variable.least <= n <= variable.most:
                    raise ValueError(
                        f"{caller}: {words(axis_at)} has size {n}, and {variable} must be at least "
                        f"{variable.least} and at most {variable.most}: an array without elements "
                        f"is computed by a function of its own"
                    )
            else:
                later.append((size, n, axis_at))
        made.append(type.with_shape(tuple(shape)))
    for size, n, axis_at in later:
        unknown = [v for v in size.variables() if v not in sizes]
        if unknown or size.known(sizes) != n:
            raise ValueError(
                f"{caller}: {words(axis_at)} has size {n}, and {size} "
                + (
                    f"needs {unknown[0]}, which no axis is"
                    if unknown
                    else f"is {size.known(sizes)}"
                )
            )
    return tuple(made), sizes


def _known_type(type: ArrayType, sizes: Mapping[SizeVariable, int]) -> ArrayType:
    """Return the type with its true sizes."""
    shape = [n.known(sizes) if isinstance(n, Size) else n for n in type.shape]
    return type.with_shape(tuple(shape))


def _part(whole: ArrayType, first: ArrayType) -> _Part | None:
    """Return the part of the first type's elements, or None if that is all."""
    if whole.shape == first.shape:
        return None
    return _Part(whole, first, tuple([slice(n) for n in first.shape]))


def _carrier(x: Any, part: _Part) -> Any:
    """Return the array in front of a larger one."""
    whole = part.whole
    if x.__class__ is not Array:  # traced, or on devices of choice
        config_ = [(0, n - m, 0) for n, m in zip(whole.shape, x.shape, strict=True)]
        return pad(x, full((), 0, x.dtype), config_)
    host = np.zeros(whole.shape, whole.dtype)
    host[part.slices] = x.to_host()
    return Array(host, whole)


def _valid(x: Any, part: _Part) -> Any:
    """Return the first elements of an array along each axis."""
    if x.__class__ is not Array:
        return slice_(x, (0,) * len(part.slices), part.first.shape)
    return Array(np.ascontiguousarray(x.to_host()[part.slices]), part.first)
