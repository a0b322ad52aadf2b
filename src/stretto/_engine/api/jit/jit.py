"""``jit``: a function that is compiled for each signature of its arguments.

``Jitted`` is traced once for each signature, compiled, and run. A call flattens the arguments into
``Arguments``, looks up the entry of its signature, and has that run. Repeated calls take the fast
path in ``dispatch``, which skips all of this.

``ensure_compile_time_eval`` evaluates operations on concrete values while tracing: a small
interpreter, put in front of the current one, hands arrays to the eager interpreter and tracers to
the one behind.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    overload,
)

from stretto._engine import eager
from stretto._engine.api import varying_sizes
from stretto._engine.api.argument_leaves import (
    LeafNames,
    RefRecorder,
    as_values,
    holds_float0,
    kinds_of,
    leaf_names,
    without_float0,
)
from stretto._engine.api.graph import types_of
from stretto._engine.api.jit.dispatch import Dispatcher, record_of, recordable
from stretto._engine.api.jit.entry import Entry
from stretto._engine.api.jit.signature import (
    ArgumentSet,
    Signature,
    argument_set,
    no_overlap,
    note_traced,
    rejoin,
    warn_recompiled,
)
from stretto._engine.api.jit.stages import Lowered, TracedCall, as_options, on_device
from stretto._engine.api.sharding.shardings import FREE, Shardings, shardings_of
from stretto._engine.api.varying_sizes.sizes import RAGGED, Buckets, equal_lengths, share_lengths
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.boundary import boundary, hide_frames
from stretto._engine.core.caches import WeakTable
from stretto._engine.core.config import config, settings
from stretto._engine.core.errors import RefError
from stretto._engine.core.functions import likeness_of, name_of
from stretto._engine.core.interpreter import Interpreter, Tracer, state
from stretto._engine.core.lazy import shown
from stretto._engine.core.primitive import NamedAxis
from stretto._engine.core.recorder import record
from stretto._engine.core.threads import Turn, in_child, once
from stretto._engine.eager.interpreter import EAGER, OnDevice
from stretto._engine.higher_order.family import Call
from stretto._engine.higher_order.refs import Ref, at_once, read_refs
from stretto._engine.xla import cache
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.options import Options
from stretto._engine.xla.patience import watch

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)

_SIGNATURES = 4096
"""The most signatures that one function keeps."""

_STATIC = tree.structure(())
"""Stands in messages for an argument that is no part of the traced ones."""

_RECORDS = 8
"""The most fingerprints of one signature: they also differ by the order of dictionaries."""


class Arguments(NamedTuple):
    """The arguments of one call, flattened."""

    args: Any
    """The arguments by position, where float0 zeros are no leaves."""
    kwargs: Any
    """The arguments by name, likewise."""
    leaves: Sequence[Any]
    """The leaves of those that are not static, as values."""
    refs: Mapping[int, Ref]
    """The references among the leaves, whose values are there, by position."""
    traced: bool
    """True if any leaf is traced."""
    signature: Signature


class _Entries(dict[Signature, Entry]):
    """The entries of a function by signature. They may be kept without what compiles them."""

    __slots__ = ("__weakref__",)

    def __init__(self) -> None:
        super().__init__()
        _KEPT.keep(id(self), self)


_KEPT: WeakTable[_Entries] = WeakTable()


@shown("stretto._engine.api.cards", "card_of_jitted")
class Jitted(Dispatcher, Generic[P, R_co]):
    """A compiled function: made by ``jit``, called like the function it was made from."""

    if TYPE_CHECKING:

        def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def __init__(
        self,
        fun: Callable[P, R_co],
        static: ArgumentSet,
        donated: ArgumentSet,
        keep_unused: bool,
        inline: bool,
        options: Options,
        shardings: Shardings = FREE,
    ) -> None:
        if fun.__class__ is FunctionType:
            for name, value in vars(fun).items():  # set by the user, or by another decorator
                if not hasattr(Jitted, name):
                    setattr(self, name, value)
        functools.update_wrapper(self, fun, updated=())
        self._fun: Callable[..., Any] = fun
        self._name = name_of(fun)
        self._static, self._donated = static, donated
        self._keep_unused, self._inline, self._options = keep_unused, inline, options
        self._shardings = shardings
        self._plain = not static
        self._entries = _Entries()
        self._attach(static.numbers, static.names)
        self._tracing: dict[Any, Turn] = {}
        # The package's own functions are called for many shapes on purpose: no warning for these.
        self._ours = str(getattr(fun, "__module__", "")).startswith("stretto.")
        self._warned = False
        _ALL.keep(id(self), self)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._fun)

    def _general(self, args: Any, kwargs: Any) -> Any:
        """Take the general path of a call, for whatever ``dispatch`` has no record of."""
        try:
            return self._call(args, kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    def _call(self, args: Any, kwargs: Any) -> Any:
        """Call with any arguments, under any interpreter."""
        if config.disable_jit:
            return self._fun(*args, **kwargs)
        call = self._flatten(args, kwargs)
        entry = self._entries.get(call.signature)
        if entry is None:
            entry = self._trace(call.signature, call.args, call.kwargs)
        if entry.uses is not None:
            return self._with_refs(entry, call)
        if call.signature.settings.debugged and state.interpreter is EAGER:
            eager.checked.follow(False)  # another thread has changed the setting of all
        if call.traced or entry.has_tracers or state.interpreter is not EAGER:
            return self._within(entry, call.leaves, call.traced)
        if entry.decided:
            # A record costs some time, so it is made at the second call: then a third is likely.
            if entry.records < _RECORDS and recordable(entry):
                self._record(entry, call)
        else:
            self._decide(entry)
        return entry.run(call.leaves)

    def _flatten(self, args: Any, kwargs: Any) -> Arguments:
        """Flatten the arguments, make values of their leaves, and say the signature."""
        static: Any = ()
        if self._plain:
            dynamic = (args, kwargs) if kwargs else args
        else:
            static, dynamic = self._static.separate(args, kwargs, self._name)
        leaves, structure = tree.flatten(dynamic)
        traced, shardings = False, ()
        refs: Any = {}
        for x in leaves:
            if x.__class__ is not Array:
                if holds_float0(leaves):
                    return self._flatten(*without_float0((args, kwargs)))
                names = lambda: self._leaf_names(args, kwargs, static)
                leaves, refs = read_refs(leaves, self._name, names)
                leaves = as_values([on_device(x) for x in leaves], self._name, names)
                traced = any(isinstance(x, Tracer) for x in leaves)
                shardings = shardings_of(leaves) if SHARDED else ()
                break
        types = tuple([x.type for x in leaves])
        if self._shardings.ins is not None and not traced:
            shardings = self._asked_shardings(types, shardings, args, kwargs, static)
        pairs = equal_lengths(structure, leaves) if RAGGED else ()
        kinds = kinds_of(refs) if refs else ()
        key = Signature(structure, types, static, settings.key, shardings, pairs, (), kinds)
        return Arguments(args, kwargs, leaves, refs, traced, key)

    def _asked_shardings(self, types: Any, there: Any, args: Any, kwargs: Any, static: Any) -> Any:
        """Return the shardings that ``in_shardings`` asks for, of the leaves of the arguments."""
        fixed = dict(static)
        positional = [a for i, a in enumerate(args) if i not in fixed]
        return self._shardings.of_arguments(
            positional, types, there, self._name, lambda: self._leaf_names(args, kwargs, static)
        )

    def _within(self, entry: Entry, leaves: Any, traced: bool) -> Any:
        """Return the results inside another transformation, which compiles the whole if at all."""
        here = state.interpreter
        if not traced and here.__class__ is OnDevice:
            result = entry.run_on(here, leaves)
            return self._check_result(entry, leaves, result) if settings.key.debugged else result
        if not (traced or entry.has_tracers) and here.at_rest:
            self._decide(entry)
            result = entry.run(leaves)
            return self._check_result(entry, leaves, result) if settings.key.debugged else result
        if self._options:
            raise ValueError(
                f"{self._name} has compiler_options, and was called inside another transformation: "
                f"options hold for a whole program, so give them to the outermost jit"
            )
        values = [*leaves, *entry.captured]
        outs = evaluate(entry.program, values) if self._inline else Call(entry.program)(*values)
        return tree.unflatten(entry.out_structure, outs)

    def _with_refs(self, entry: Entry, call: Arguments) -> Any:
        """Return the results of a call that uses references, and write their new values.

        Other threads that use them wait meanwhile; but not where it calls Python, which may wait
        for such a thread.
        """
        own, refs = list(call.leaves), call.refs
        if state.interpreter is not EAGER or entry.seen_from_outside:
            return self._run_with_refs(entry, own, refs)
        if not (entry.decided or entry.has_tracers or SHARDED):
            self._decide(entry)  # which may take long, and may trace

        def updated() -> Any:
            for i, ref in refs.items():  # another thread may have written since they were read
                own[i] = on_device(ref.read())
            return self._run_with_refs(entry, own, refs)

        uses: Any = entry.uses
        return at_once([*refs.values(), *uses.outside] if refs else uses.outside, updated)

    def _run_with_refs(self, entry: Entry, own: Any, refs: Any) -> Any:
        """Return the results for these leaves, and write the new values of references."""
        uses: Any = entry.uses
        leaves = uses.leaves(own, refs, self._name)
        traced = any([isinstance(x, Tracer) for x in leaves])
        if traced or entry.has_tracers or state.interpreter is not EAGER:
            return uses.write(self._within(entry, leaves, traced), refs)
        if SHARDED:
            entry = entry.with_shardings(shardings_of(leaves))
        self._decide(entry)
        return uses.write(entry.run(leaves), refs)

    def _check_result(self, entry: Entry, leaves: Any, result: Any) -> Any:
        """Return the result, unless it has NaN or infinity that the settings do not allow."""
        results = [result] if entry.single else tree.leaves(result)
        names = [f"the argument {n}" for n in entry.names]
        names += ["a captured array"] * len(entry.captured)
        eager.checked.check_results(entry.program, [*leaves, *entry.captured], names, results)
        return result

    def _record(self, entry: Entry, call: Arguments) -> None:
        """Let the next call like this one take the fast path, if it can.

        The record is of the arguments as they were when the entry was looked up by the signature;
        other threads may have changed the user's containers, or settings, since.
        """
        if self._fingerprint(call.args, call.kwargs) is None:
            return
        signature = call.signature
        dynamic = tree.unflatten(signature.structure, call.leaves)
        positional, by_name = dynamic if call.kwargs or not self._plain else (dynamic, {})
        args, kwargs = rejoin(signature.static_values(), positional, by_name)
        if self._fingerprint(args, kwargs) is None:
            return
        record = record_of(entry, positional, by_name)
        try:
            if self._file(record, args, kwargs, signature.settings):
                entry.records += 1
        except TypeError:  # static data that cannot be hashed
            entry.records = _RECORDS

    def _file(self, record: Any, args: Any, kwargs: Any, settings_key: Any) -> bool:
        """File the record for calls like this one, unless the settings have changed meanwhile."""
        if settings.key != settings_key:
            return False
        # The fingerprint refers to keyword names by address, so it is taken now that the record
        # keeps these alive.
        self._remember(self._fingerprint(args, kwargs), record)
        return True

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Jitted[P, R_co]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[S, Q], R_co], instance: S, owner: type | None = None
    ) -> Callable[Q, R_co]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _trace(self, key: Signature, args: Any, kwargs: Any) -> Entry:
        """Trace this signature once, in whichever thread comes first."""
        if len(self._entries) >= _SIGNATURES:
            for old in list(self._entries)[: _SIGNATURES // 2]:
                self._entries.pop(old, None)
            self._forget()
        return once(
            self._entries,
            self._tracing,
            key,
            lambda: self._new_entry(key, args, kwargs),
            lambda entry: not entry.has_tracers,
        )

    def _new_entry(self, key: Signature, args: Any, kwargs: Any) -> Entry:
        """Trace the function for arguments of this signature."""
        names = self._names_later(key, len(args), bool(kwargs))
        if not self._entries:
            note_traced(self._fun)
        start = time.perf_counter()
        function = RefRecorder(self._of_leaves(key, bool(kwargs)), key.refs, self._name)
        program, out_structure, captured = record(function, key.types, names, self._name)
        uses, program, captured = function.uses(program, captured, len(names))
        donated, shardings = self._donated_leaves(key, args, kwargs), key.shardings
        shown: Sequence[str] = names
        results = out_structure
        if uses is not None:
            count = len(uses.outside)
            shown = [*names, *["a reference from outside"] * count]
            shardings = (*shardings, *[None] * count) if shardings else ()
            donated = (*donated, *[False] * count) if donated else ()
            if uses.given or uses.written:
                results = out_structure.children()[0]
        outs = self._shardings.of_results(
            results, program.out_types[: results.num_leaves], self._name
        )
        return Entry(
            program=program,
            out_structure=out_structure,
            captured=captured,
            names=shown,
            donated=donated,
            keep_unused=self._keep_unused,
            options=self._options,
            signature=functools.partial(key.in_words, names),
            seconds=time.perf_counter() - start,
            ins=shardings,
            outs=outs and (*outs, *[None] * (len(program.outputs) - len(outs))),
            uses=uses,
        )

    def _of_leaves(self, key: Signature, named: bool) -> Callable[..., Any]:
        """Return the function of the leaves that are not static."""
        values = key.static_values()

        def of_leaves(*leaves: Any) -> Any:
            dynamic = tree.unflatten(key.structure, share_lengths(leaves, key.alike))
            if self._plain and not named:
                return self._fun(*dynamic)
            args, kwargs = rejoin(values, *dynamic)
            return self._fun(*args, **kwargs)

        return of_leaves

    def _donated_leaves(self, key: Signature, args: Any, kwargs: Any) -> Sequence[bool]:
        """Say of each leaf whether it is donated; nothing of none."""
        # What is donated could not be looked at again.
        if not self._donated or settings.key.debugged:
            return ()
        donated = self._donated.leaves(args, kwargs, dict(key.static))
        if donated and key.refs:  # what a reference holds is not the caller's to give
            refs = dict(key.refs)
            return [given and i not in refs for i, given in enumerate(donated)]
        return donated

    def _decide(self, entry: Entry) -> None:
        """Compile, unless the program is small; warn if many signatures were compiled before."""
        entry.decide()
        limit = config.recompilation_warning
        if (
            limit
            and not entry.is_interpreted
            and len(self._entries) > limit
            and not (self._warned or self._ours)
        ):
            compiled = [(k, e) for k, e in list(self._entries.items()) if e.is_compiled]
            if len(compiled) > limit:
                self._warned = True
                warn_recompiled(self._name, compiled)

    def _names_later(self, key: Signature, count: int, named: bool) -> LeafNames:
        """Return the names of the leaves, which keep neither the arguments nor the function."""
        like = likeness_of(self._fun)
        parts = key.structure.children()
        if self._plain and not named:
            return LeafNames(like, parts, None, tree.paths_of)
        fixed, positional, by_name = dict(key.static), iter(parts[0].children()), parts[1]
        moving = [_STATIC if i in fixed else next(positional) for i in range(count)]
        options = dict(zip(by_name.entries(), by_name.children(), strict=True))
        return LeafNames(like, moving, options, tree.paths_of)

    def _leaf_names(self, args: Any, kwargs: Any, static: Any) -> list[str]:
        fixed = dict(static)
        moving = [() if i in fixed else a for i, a in enumerate(args)]
        return leaf_names(self._fun, moving, {k: v for k, v in kwargs.items() if k not in fixed})

    # Ahead of time

    def trace(self, /, *args: Any, **kwargs: Any) -> TracedCall[R_co]:
        """Trace the function for arguments of these types.

        Args:
            *args: arrays, or ``ShapeDtypeStruct``, and static arguments as they are.
            **kwargs: the same, by name.

        Returns:
            The first stage: the program, which ``lower`` takes on.

        Raises:
            TypeError: an argument is neither, or a traced value is used as a Python number.
            ValueError: a static argument is not hashable.
        """
        with boundary:
            args, kwargs = without_float0((args, kwargs))
            static, dynamic = self._static.separate(args, kwargs, self._name)
            leaves, in_tree = tree.flatten(dynamic)
            types = types_of(leaves, self._name, lambda: self._leaf_names(args, kwargs, static))
            # As in ``_flatten``: without static and keyword arguments, the key has the structure of
            # the positional ones alone.
            structure = tree.structure(args) if self._plain and not kwargs else in_tree
            there = shardings_of(leaves)
            if self._shardings.ins is not None:
                there = self._asked_shardings(types, there, args, kwargs, static)
            pairs = equal_lengths(structure, leaves)
            key = Signature(structure, types, static, settings.key, there, pairs)
            entry = self._entries.get(key) or self._trace(key, args, kwargs)
            if entry.uses is not None:
                raise RefError(
                    f"{self._name}: it uses references from outside, and so cannot be compiled "
                    f"beforehand: call it, or pass their values as arguments"
                )
            return TracedCall(entry, in_tree, types)

    def lower(self, /, *args: Any, **kwargs: Any) -> Lowered[R_co]:
        """Trace the function for arguments of these types, and write it as StableHLO.

        Args:
            *args: as those of ``trace``.
            **kwargs: as those of ``trace``.

        Returns:
            The second stage: the text, which ``compile`` takes on.

        Raises:
            TypeError: as for ``trace``.
            ValueError: as for ``trace``.
        """
        with boundary:
            return self.trace(*args, **kwargs).lower()

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the shapes and dtypes of the results without computing them.

        Args:
            *args: as those of ``trace``.
            **kwargs: as those of ``trace``.

        Returns:
            A tree of ``ShapeDtypeStruct`` like the result.

        Raises:
            TypeError: as for ``trace``.
            ValueError: as for ``trace``.
        """
        with boundary:
            return self.trace(*args, **kwargs).out_info

    def clear_cache(self) -> None:
        """Forget what was traced and compiled."""
        self._entries.clear()  # others may keep it
        self._entries = _Entries()
        self._forget()
        self._warned = False

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by name, as functions are, if it leads back; else by what it was made from."""
        target: Any = sys.modules.get(self.__module__)
        name = getattr(self, "__qualname__", "")
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is self:
            return name
        options = (self._static, self._donated, self._keep_unused, self._inline, self._options)
        return Jitted, (self._fun, *options, self._shardings)

    def __copy__(self) -> Jitted[P, R_co]:
        return self

    def __deepcopy__(self, memo: Any) -> Jitted[P, R_co]:
        return self

    def __repr__(self) -> str:
        return f"<jitted {self._name}>"


_ALL: WeakTable[Jitted[..., Any]] = WeakTable()


def _forget_records() -> None:
    """Forget the records: in a forked child they lead to executables that cannot run."""
    for jitted in _ALL.values():
        jitted._forget()


in_child(_forget_records)
watch.append(_forget_records)


def clear_caches() -> None:
    """Forget everything traced and compiled in this process.

    What is on disk stays; ``stretto cache clear`` removes that.

    >>> import stretto as st
    >>> st.clear_caches()
    """
    for jitted in _ALL.values():
        jitted.clear_cache()
    for entries in _KEPT.values():
        entries.clear()
    cache.clear()


@overload
def jit(
    fun: Callable[P, R_co],
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    dynamic_axes: Any = None,
    buckets: Buckets | None = None,
) -> Jitted[P, R_co]: ...
@overload
def jit(
    fun: None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    dynamic_axes: Any = None,
    buckets: Buckets | None = None,
) -> Callable[[Callable[P, R_co]], Jitted[P, R_co]]: ...
def jit(
    fun: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    donate_argnums: int | Iterable[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    keep_unused: bool = False,
    inline: bool = False,
    compiler_options: Mapping[str, Any] | None = None,
    in_shardings: Any = None,
    out_shardings: Any = None,
    dynamic_axes: Any = None,
    buckets: Buckets | None = None,
) -> Any:
    """Compile ``fun`` for each signature of its arguments.

    A signature is the tree structure, shapes, dtypes, weak types and static values. ``fun`` is run
    once for each, on traced values: what it prints or appends happens then, and arrays it captures
    become constants of that trace. Compiling for many signatures gives a ``RecompilationWarning``;
    donated arguments whose memory no result can use give a warning, too.

    Args:
        fun: a function of trees of arrays; without it, what is returned is a decorator.
        static_argnums: positions of arguments that are passed as they are, and must be hashable.
        static_argnames: the same, by name. Where only one of the two is given, the signature
            gives the other; where both are, each says all.
        donate_argnums: positions of arguments whose memory a result of their type may take. The
            array that was passed cannot be used after that; views of it that NumPy has keep their
            elements. Inside another transformation nothing is donated.
        donate_argnames: the same, by name.
        keep_unused: whether arguments that no result needs are passed nevertheless.
        inline: whether, inside another traced function, the operations are written there instead
            of called.
        compiler_options: flags of XLA by name, for a call outside other transformations.
        in_shardings: where the positional arguments are: a sharding, a ``PartitionSpec`` over the
            mesh in use, or None for wherever they are; or a tree of these that is a prefix of the
            tuple of arguments. Arrays that are nowhere in particular are put there.
        out_shardings: where the results are to be, likewise; None leaves it to the compiler.
        dynamic_axes: which axes of the positional arguments have any size: a dictionary from axes
            to names, equal names for equal sizes, or None; or a tree of these that is a prefix of
            the tuple of arguments. Inside, ``x.shape[0]`` of such an axis is a size that does
            arithmetic, makes shapes, and is a traced integer where a value is wanted. The function
            is traced once for all sizes, and compiled once for each bucket.
        buckets: the sizes that they are padded to; by default ``Buckets()``. What is past the true
            size has no influence on the results, which have their true sizes.

    Returns:
        A function of the same arguments, whose results are arrays. Its methods ``trace``,
        ``lower`` and ``eval_shape`` stop at earlier stages.

    Raises:
        TypeError: ``fun`` is not a function; or, in a call, a traced value is used as a Python
            number, a shape or a condition, which names the argument and the way out.
        ValueError: a position or name is not there, or is both static and donated; or, in a call,
            a static argument is not hashable, arrays are on different devices or elsewhere than
            ``in_shardings`` says, or an axis cannot be split so.
        DonatedArrayError: in a call, an array is used that was donated.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def affine(w, b, x):
    ...     return w @ x + b
    >>> affine(snp.eye(2), snp.ones(2), snp.array([1.0, 2.0]))
    Array([2., 3.], dtype=float32)
    >>> differences = st.jit(lambda x: x[1:] - x[:-1], dynamic_axes=({0: "n"},))
    >>> differences(snp.array([1.0, 4.0])), differences(snp.array([1.0, 4.0, 9.0]))
    (Array([3.], dtype=float32), Array([3., 5.], dtype=float32))
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            keep_unused=keep_unused,
            inline=inline,
            compiler_options=compiler_options,
            in_shardings=in_shardings,
            out_shardings=out_shardings,
            dynamic_axes=dynamic_axes,
            buckets=buckets,
        )
    if not callable(fun):
        raise TypeError(f"jit: expected a function, got {type(fun).__name__}")
    static = argument_set(fun, static_argnums, static_argnames, "static")
    donated = argument_set(fun, donate_argnums, donate_argnames, "donate")
    no_overlap(static, donated)
    options = as_options(compiler_options, "jit")
    shardings = Shardings(in_shardings, out_shardings)
    if dynamic_axes is not None:
        if in_shardings is not None or out_shardings is not None:
            raise ValueError("jit: dynamic_axes do not go together with shardings")
        how = (dynamic_axes, buckets or varying_sizes.dynamic_axes.Buckets())
        return varying_sizes.dynamic_axes.JittedByBucket(
            fun, static, donated, keep_unused, inline, options, *how
        )
    return Jitted(fun, static, donated, keep_unused, inline, options, shardings)


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
