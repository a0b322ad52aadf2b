"""Signatures, the keys of traces; static arguments, whose values belong to them; and differences.

``static_argnums`` and the like become an ``ArgumentSet`` once, when the function is jitted; each
call separates its arguments by it.

``jit`` calls ``warn_recompiled`` when a function has more signatures than
``config.recompilation_warning``; the warning says in what they differ.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

from stretto._engine.api.jit.entry import Entry
from stretto._engine.core import tree
from stretto._engine.core.caches import room
from stretto._engine.core.config import shaping
from stretto._engine.core.errors import RecompilationWarning
from stretto._engine.core.functions import name_of, signature_of
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.position import user_stack_level


class Signature(NamedTuple):
    """The key under which ``jit`` keeps a trace."""

    structure: Any
    """The structure of the arguments that are not static; of positional ones, if all are."""
    types: tuple[Any, ...]
    """The types of the leaves."""
    static: tuple[tuple[int | str, Static], ...]
    """The static arguments, each with its position or name."""
    settings: Any
    shardings: tuple[Any, ...] = ()
    """The shardings of the leaves, if any of them has one."""
    alike: tuple[tuple[int, int], ...] = ()
    """The leaves that are equal lengths of ragged arrays, in pairs; see ``equal_lengths``."""
    guards: tuple[Any, ...] = ()
    """The comparisons of varying sizes that were taken to hold."""
    refs: tuple[tuple[int, Any], ...] = ()
    """The leaves that are references, each with its kind, by ``kinds_of``."""

    def static_values(self) -> dict[int | str, Any]:
        """Return the values of static arguments by position or name."""
        return {which: static.value for which, static in self.static}

    def in_words(self, names: Sequence[str]) -> str:
        """Print the arguments, whose leaves have these names, with their types or values."""
        arguments = [f"{n}: {t}" for n, t in zip(names, self.types, strict=True)]
        arguments += [f"{which}={value}" for which, value in self.static]
        return ", ".join(arguments)


class Static:
    """A static argument: compared by type and value, so that 1, 1.0 and True differ."""

    __slots__ = ("_hash", "value")

    def __init__(self, value: Any, caller: str, which: int | str) -> None:
        try:
            self._hash = hash((type(value), value))
        except TypeError:
            got = type(value).__name__
            if isinstance(value, Tracer):
                got = f"{value}, which is traced: close over its value, as lambda x: f(x, 3) does"
            raise ValueError(
                f"{caller}: the static argument {which!r} must be hashable, since compiled "
                f"forms are kept by its value; got {got}"
            ) from None
        self.value = value

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Static)
            and type(self.value) is type(other.value)
            and bool(self.value == other.value)
        )

    def __repr__(self) -> str:
        return repr(self.value)


class ArgumentSet(NamedTuple):
    """Some arguments of a function, by their positions and by their names."""

    numbers: tuple[int, ...]
    names: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def present(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int | str]:
        """Return those that a call has: non-negative positions, and names."""
        count = len(args)
        found: list[int | str] = []
        for number in self.numbers:
            i = number if number >= 0 else count + number
            if 0 <= i < count:
                found.append(i)
        for name in self.names:
            if name in kwargs:
                found.append(name)
        return found

    def separate(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], caller: str
    ) -> tuple[tuple[tuple[int | str, Static], ...], tuple[Any, Any]]:
        """Return these arguments, hashable, each with its position or name; and the others."""
        found = self.present(args, kwargs)
        static = [
            (p, Static(args[p] if isinstance(p, int) else kwargs[p], caller, p)) for p in found
        ]
        return tuple(static), others(found, args, kwargs)

    def leaves(
        self, args: Sequence[Any], kwargs: dict[str, Any], left_out: Iterable[int | str]
    ) -> tuple[bool, ...]:
        """Say of each leaf of the arguments that are not left out whether it is of these."""
        ours = self.present(args, kwargs)
        every = [*range(len(args)), *sorted(kwargs)]
        return tuple(
            p in ours
            for p in every
            if p not in left_out
            for _ in tree.leaves(args[p] if isinstance(p, int) else kwargs[p])
        )


def others(
    left_out: Collection[int | str], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments other than these."""
    positional = tuple([a for i, a in enumerate(args) if i not in left_out])
    named = {k: v for k, v in kwargs.items() if k not in left_out} if kwargs else kwargs
    return positional, named


def rejoin(
    fixed: Mapping[int | str, Any], positional: Sequence[Any], named: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Undo ``separate``: return the arguments of a call, from static values and the others."""
    moving = iter(positional)
    by_name = {name: value for name, value in fixed.items() if isinstance(name, str)}
    count = len(fixed) - len(by_name) + len(positional)
    args = tuple([fixed[i] if i in fixed else next(moving) for i in range(count)])
    return args, {**named, **by_name}


NO_ARGUMENTS = ArgumentSet((), ())


def argument_set(
    fun: Callable[..., Any],
    numbers: int | Iterable[int] | None,
    names: str | Iterable[str] | None,
    option: str,
    caller: str = "jit",
) -> ArgumentSet:
    """Return the arguments that ``{option}_argnums`` and ``{option}_argnames`` name.

    Where one of the two is given, the signature adds names for positions or positions for names, as
    a call may pass an argument either way. Where both are, they are all: the signature may be that
    of a function inside, which ``functools.wraps`` named. Raises ``ValueError`` for an argument
    that the function does not have.
    """
    option = f"{caller}: {option}"
    by_number = _numbers(numbers, option)
    by_name = _names(names, option)
    signature = signature_of(fun)
    if signature is not None:
        parameters = list(signature.parameters.values())
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
        known = [p.name for p in parameters]
        for name in sorted(by_name):
            if name not in known and not takes_any:
                raise ValueError(
                    f"{option}_argnames names {name!r}, but {name_of(fun)} takes "
                    f"{', '.join(known) or 'nothing'}"
                )
        any_position = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        positional = [
            p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        count = len(positional)
        for i in sorted(by_number):
            if not -count <= i < count and not any_position:
                raise ValueError(
                    f"{option}_argnums names argument {i}, but {name_of(fun)} takes "
                    f"{count} positional arguments"
                )
        if not any_position:  # with *args, what a negative position means depends on the call
            by_number = {i % count for i in by_number}
        if numbers is None:
            by_number = {i for i, p in enumerate(positional) if p.name in by_name}
        elif names is None:
            by_name = {
                p.name
                for i, p in enumerate(positional)
                if i in by_number and p.kind is p.POSITIONAL_OR_KEYWORD
            }
    return ArgumentSet(tuple(sorted(by_number)), tuple(sorted(by_name)))


def _numbers(argnums: int | Iterable[int] | None, option: str) -> set[int]:
    numbers: Any
    numbers = () if argnums is None else (argnums,) if hasattr(argnums, "__index__") else argnums
    try:
        return {operator.index(i) for i in numbers}
    except TypeError:
        raise TypeError(
            f"{option}_argnums must be an int or a sequence of ints; got {argnums!r}"
        ) from None


def _names(argnames: str | Iterable[str] | None, option: str) -> set[str]:
    names: Any
    names = () if argnames is None else (argnames,) if isinstance(argnames, str) else argnames
    if not isinstance(names, Iterable) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"{option}_argnames must be a name or a sequence of names; got {argnames!r}"
        )
    return set(names)


def no_overlap(static: ArgumentSet, donated: ArgumentSet) -> None:
    """Raise ``ValueError`` for an argument that is both."""
    both = [*sorted({*static.names} & {*donated.names}), *({*static.numbers} & {*donated.numbers})]
    if both:
        raise ValueError(
            f"jit: the argument {both[0]!r} is both static and donated; a static argument is not "
            f"an array, so there is nothing to donate: name it in only one of the two"
        )


class Difference(NamedTuple):
    """One thing that differed: its values, in the order in which they occurred."""

    what: str
    values: Sequence[Any]
    remedy: str


_traced: dict[CodeType, int] = {}
"""The number of jitted functions of a piece of code of which a first signature was traced."""


def note_traced(fun: Any) -> None:
    """Count a jitted function that is traced for the first time."""
    code = getattr(fun, "__code__", None)
    if code is not None:
        room(_traced)[code] = _traced.get(code, 0) + 1


def jitted_at(fun: Any) -> int:
    """Return how many jitted functions of this one's code were traced."""
    return _traced.get(getattr(fun, "__code__", None), 0)  # type: ignore[arg-type]


def warn_recompiled(name: str, entries: Sequence[tuple[Signature, Entry]]) -> None:
    """Warn, at the user's line, that the function was compiled for all of these."""
    difference = max(differences(entries), key=lambda d: len(d.values))
    values = difference.values
    shown = ", ".join(map(_short, values[:3]))
    more = f", … {_short(values[-1])}" if len(values) > 3 else ""
    warnings.warn(
        f"{name} was compiled for {len(entries)} signatures, each at the cost of a trace and a "
        f"compilation. What differs most is {difference.what}: {len(values)} in all, "
        f"{shown}{more}. {difference.remedy} (stretto.config.recompilation_warning sets how many "
        f"are allowed without this warning; 0 means any number.)",
        RecompilationWarning,
        stacklevel=user_stack_level(),
    )


def differences(entries: Sequence[tuple[Signature, Entry]]) -> list[Difference]:
    """Return everything that may differ; of equal counts, the likelier explanation first."""
    signatures = [s for s, _ in entries]
    found = []
    for which in _distinct(p for s in signatures for p, _ in s.static):
        what = f"the value of the static argument {which!r}"
        values = _distinct(v for s in signatures for p, v in s.static if p == which)
        found.append(Difference(what, values, _remedy_of_static(values)))
    # Leaves can only be compared between equal structures: those with the most common one are.
    structures = _distinct(s.structure for s in signatures)
    common = max(structures, key=[s.structure for s in signatures].count)
    alike = [(s, e) for s, e in entries if s.structure == common]
    for k, path in enumerate(alike[0][1].names):
        types = [s.types[k] for s, _ in alike]
        found += [
            Difference(
                f"the shape of {path}",
                _distinct(t.shape for t in types),
                f"Pad or split {path} to one shape, or a few; or say which of its axes vary: "
                f"st.jit(..., dynamic_axes=...).",
            ),
            Difference(
                f"the dtype of {path}",
                _distinct(t.dtype.name for t in types),
                f"Convert {path} to one dtype before the call: snp.asarray({path}, dtype).",
            ),
            Difference(
                f"the weak type of {path}",
                _distinct(
                    "a Python number" if t.weak_type else "an array of a dtype" for t in types
                ),
                f"Pass {path} always as a number, or always as an array: snp.asarray({path}, "
                f"dtype).",
            ),
        ]
    return [
        *found,
        Difference(
            "the tree structure of the arguments",
            structures,
            "Give containers the same keys and lengths, and pass the same arguments by position "
            "and by name.",
        ),
        Difference(
            "where the arguments are",
            _distinct(s.shardings for s in signatures),
            "Put them there before the first call, stretto.device_put(x, sharding).",
        ),
        _settings(signatures),
    ]


def _remedy_of_static(values: Sequence[Any]) -> str:
    """Return what to do about the values of a static argument."""
    if len(values) > 1 and len({_without_address(v) for v in values}) == 1:
        return (
            "They look alike and are not equal: give their class __eq__ and __hash__, or make the "
            "object once and not at each call."
        )
    return (
        "Where it decides no shape and no branch, pass it as an array, not static; where it is a "
        "function or an object, make it once and not at each call."
    )


def _without_address(value: Any) -> str:
    return re.sub(r"0x[0-9a-f]+", "", str(value))


def _settings(signatures: Sequence[Signature]) -> Difference:
    """Return the settings and the named axes in force, those that differ."""
    keys = _distinct(s.settings for s in signatures)
    every = [_named(key) for key in keys]
    names = _distinct(name for values in every for name in values)
    vary = [n for n in names if len(_distinct(values.get(n) for values in every)) > 1]
    return Difference(
        "the settings (stretto.config) in force",
        [", ".join(f"{n}={values.get(n)!r}" for n in vary) for values in every],
        "Set them once, before the first call.",
    )


def _named(key: Any) -> dict[str, Any]:
    """Return the settings of a key by name, and the sizes of the axes that were mapped."""
    names = list(shaping())
    named = dict(zip(names, key.settings, strict=False))
    return {**named, **{f"axis {name}": n for name, n in key.settings[len(names) :]}}


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Return the values without repetitions, in the order in which they occurred."""
    return list(dict.fromkeys(values))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _WIDTH else f"{text[:_WIDTH]}…"


_WIDTH = 80
