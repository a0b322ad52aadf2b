"""Mutable references: ``Ref``, ``new_ref``, ``freeze``.

A reference holds an array, or typed keys, and can be given others of the same type. It may be used
in transformed functions, made there or outside.

Loops whose bodies write to references from outside are traced once to learn which these are; if
there are any, they are traced again with the values of the references in their carry.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.caches import room
from stretto._engine.core.cells import Cell, carrying, values_of_cells, write_all
from stretto._engine.core.errors import RefError
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.threads import RLock
from stretto._engine.core.types import promote
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.convert import convert

if TYPE_CHECKING:
    from stretto._engine.core.typing import Index

T = TypeVar("T")


class _Thread(threading.local):
    """Holds an object that stands for this thread, since numbers of threads are used again."""

    def __init__(self) -> None:
        self.me = object()


_thread = _Thread()

_THREADS = 256
"""The most threads whose reading one reference remembers."""


def at_once(refs: Sequence[Ref], do: Callable[[], T]) -> T:
    """Return ``do()``, while no other thread updates any of these references."""
    if len(refs) > 1:  # in one order, lest two threads wait for each other
        refs = sorted({id(r): r for r in refs}.values(), key=id)
    return _holding(refs, do)


def _holding(refs: Sequence[Ref], do: Callable[[], T]) -> T:
    if not refs:
        return do()
    with refs[0]._lock:  # which, unlike other context managers, is let go whatever comes
        return _holding(refs[1:], do)


class Ref(Cell):
    """A mutable reference to an array: ``ref[...]`` reads it, ``ref[...] = x`` writes it.

    Made by ``new_ref``. Shape and dtype stay as they are. Functions may use it that are transformed
    by ``jit``, ``vmap``, ``grad`` and their like, or are bodies of loops and branches: as an
    argument of ``jit``, ``checkpoint`` and of branches, as what ``vmap``, ``scan`` and
    ``shard_map`` map over, or taken from outside.

    Args:
        value: what it holds at first; the words of keys. Use ``new_ref``, which takes anything.
        structure: that of the keys as a tree; None for an array.

    >>> import stretto as st, stretto.numpy as snp
    >>> total = st.new_ref(snp.zeros(2))
    >>> @st.jit
    ... def add(x):
    ...     total[...] += x
    >>> add(1.0)
    >>> add(2.0)
    >>> total
    Ref([3., 3.], dtype=float32)
    """

    __slots__ = ("_frozen", "_lock", "_seen", "_writes", "structure")

    structure: Any
    """The structure of the keys that it refers to, as a tree; None for an array."""

    def __init__(self, value: Any, structure: Any = None) -> None:
        super().__init__(value)
        self.structure = structure
        self._frozen = False
        self._lock = RLock()
        self._writes = 0
        """The number of times that it was written at rest."""
        self._seen: dict[object, int] = {}
        """The same as of when each thread last read it, by what stands for the thread."""

    def read(self) -> Any:
        """Return the words of keys, or the array, as the current interpreter sees it."""
        self._check()
        if state.interpreter.at_rest:
            room(self._seen, _THREADS)[_thread.me] = self._writes
        return super().read()

    def write(self, value: Any) -> None:
        """Replace them."""
        self._check()
        super().write(value)
        if state.interpreter.at_rest:
            self._writes += 1
            self._seen.pop(_thread.me, None)

    def _refuse_lost(self) -> None:
        """Raise ``RefError`` if another thread has written since this one read; the next may."""
        seen = self._seen.get(_thread.me) if state.interpreter.at_rest else None
        if seen is not None and seen != self._writes:
            del self._seen[_thread.me]
            raise RefError(
                f"Ref.set: another thread has written this reference of type {self.type} since "
                f"this one read it, and that would be lost; nothing was written. To add, use "
                f"ref.addupdate(x), which is one operation, as a call of a jitted function is, in "
                f"place of ref[...] += x; to write all the same, write again"
            )

    def _check(self) -> None:
        if self._frozen:
            raise RefError(
                f"a reference of type {self.type} is used after stretto.freeze(ref), which gave "
                f"its last value: use that, or make another with stretto.new_ref"
            )

    def _held(self) -> Any:
        value = self.read()
        return value if self.structure is None else tree.unflatten(self.structure, [value])

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self.type.shape if self.structure is None else self._held().shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self.type.dtype if self.structure is None else self._held().dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.type.size if self.structure is None else self._held().size

    weak_type = False

    def __getitem__(self, index: Index) -> Array:
        held = self._held()
        return held if index is Ellipsis else held[index]

    def __setitem__(self, index: Index, value: Any) -> None:
        with self._lock:
            self._refuse_lost()
            self._set(index, value)

    def _set(self, index: Index, value: Any) -> None:
        if self.structure is not None:
            self._set_keys(value, index)
            return
        new = self._fitting(value)
        if index is not Ellipsis:
            new = self.read().at[index].set(new)
        elif new.shape != self.type.shape:
            new = broadcast_to(new, self.type.shape, "Ref.set")
        self.write(new)

    def get(self, index: Index = ...) -> Array:
        """Read it, or elements of it.

        Args:
            index: which elements; by default all.

        Returns:
            Their value now.
        """
        return self[index]

    def set(self, value: ArrayLike, index: Index = ...) -> None:
        """Write it, or elements of it.

        Args:
            value: what to write, broadcast to the elements; of the dtype of the reference, or a
                number.
            index: which elements; by default all.

        Raises:
            TypeError: the value has another dtype.
            ValueError: its shape does not fit.
        """
        self[index] = value

    def swap(self, value: ArrayLike, index: Index = ...) -> Any:
        """Write it, or elements of it, and return what they were before.

        Args:
            value: what to write, broadcast to the elements; of the dtype of the reference, or a
                number.
            index: which elements; by default all.

        Returns:
            What was there before.

        Raises:
            TypeError: the value has another dtype.
            ValueError: its shape does not fit.

        >>> import stretto as st
        >>> ref = st.new_ref(1.0)
        >>> ref.swap(2.0)
        Array(1., dtype=float32)
        """
        with self._lock:
            before = self[index]
            self[index] = value
        return before

    def addupdate(self, value: ArrayLike, index: Index = ...) -> None:
        """Add to it, or to elements of it; to repeated indices once for each.

        Args:
            value: what to add, as for ``set``.
            index: which elements; by default all.

        Raises:
            TypeError: the value has another dtype.
            ValueError: its shape does not fit.
        """
        new = self._fitting(value)
        with self._lock:
            held = self._held()
            self.write(self._fitting(held + new if index is Ellipsis else held.at[index].add(new)))

    @property
    def at(self) -> Any:
        """Parts of it as references: ``ref.at[1][...] = x``."""
        return _At(self)

    def _fitting(self, value: Any) -> Any:
        """Return the value in the dtype of the reference; ``TypeError`` for one of another."""
        if isinstance(value, (list, tuple)):
            value = np.asarray(value, self.type.dtype)
        x = as_value(value, "Ref.set", "the value")
        type = self.type
        if x.dtype != type.dtype:
            fits = (
                x.weak_type
                and promote([(type.dtype, False), (x.dtype, True)], "Ref.set")[0] == type.dtype
            )
            if not fits:
                raise RefError(
                    f"Ref.set: the value must have the dtype of the reference, {type.dtype.name}; "
                    f"got {x.type}: convert it, with .astype({type.dtype.name!r})"
                )
        return convert(x, type.dtype, False)

    def _set_keys(self, value: Any, index: Any) -> None:
        leaves, structure = tree.flatten(value)
        if structure != self.structure:
            raise RefError(
                f"Ref.set: the reference holds {self.dtype.name}, so the value must be such keys; "
                f"got {type(value).__name__}"
            )
        words = leaves[0]
        if index is not Ellipsis:
            entries = index if isinstance(index, tuple) else (index,)
            if Ellipsis not in entries:
                entries = (*entries, Ellipsis)
            words = self.read().at[(*entries, slice(None))].set(words)
        self.write(broadcast_to(words, self.type.shape, "Ref.set"))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a reference of rank 0")
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError("a reference is not iterated over: iterate over its value, ref[...]")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise RefError(f"an array is needed; got {self._no_array}")

    @property
    def _no_array(self) -> str:
        """Raise what ``as_value`` says of it."""
        return f"a reference of type {self.type}: give its value, ref[...]"

    def __repr__(self) -> str:
        if self._frozen or not self._reachable():
            return f"<Ref of {self.type}>"
        text = repr(self._held())
        return f"Ref{text[text.index('(') :]}" if text.startswith("Array(") else f"Ref({text})"

    def _reachable(self) -> bool:
        try:
            self.read()
        except (RefError, TypeError):
            return False
        return True

    def __copy__(self) -> Ref:
        return Ref(self.read(), self.structure)

    def __deepcopy__(self, memo: Any) -> Ref:
        return Ref(self.read(), self.structure)

    def __reduce__(self) -> Any:
        return new_ref, (self._held(),)

    def _freeze(self) -> Any:
        held = self._held()
        here = state.interpreter
        mine = here is self._home or (self._home is None and here.at_rest)
        if mine:
            self._frozen = True
        return held


class _At:
    """Makes views of a reference: ``ref.at[index]``."""

    __slots__ = ("_ref",)

    def __init__(self, ref: Any) -> None:
        self._ref = ref

    def __getitem__(self, index: Any) -> View:
        return View(self._ref, index)


class View:
    """A part of a reference, which is read and written as one: made by ``ref.at[index]``.

    Args:
        ref: the reference, or a view of one.
        index: which part.

    >>> import stretto as st, stretto.numpy as snp
    >>> ref = st.new_ref(snp.zeros((2, 2)))
    >>> ref.at[1][0] = 5.0
    >>> ref
    Ref([[0., 0.],
         [5., 0.]], dtype=float32)
    """

    __slots__ = ("_index", "_ref")

    def __init__(self, ref: Any, index: Any) -> None:
        self._ref, self._index = ref, index

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes of the part."""
        return self[...].shape

    @property
    def dtype(self) -> Any:
        """The element type."""
        return self._ref.dtype

    @property
    def ndim(self) -> int:
        """The number of axes of the part."""
        return len(self.shape)

    @property
    def at(self) -> Any:
        """Parts of it as references."""
        return _At(self)

    def __getitem__(self, index: Any) -> Any:
        part = self._ref[self._index]
        return part if index is Ellipsis else part[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is not Ellipsis:
            value = self._ref[self._index].at[index].set(value)
        self._ref[self._index] = value


def new_ref(init: Any) -> Ref:
    """Make a mutable reference to a copy of an array, or of typed keys.

    Args:
        init: the array, a number, or typed keys; what it holds at first. The dtype of a number is
            that of its kind.

    Returns:
        The reference.

    Raises:
        TypeError: ``init`` is neither, or a reference itself.

    As ``jax.new_ref``.

    >>> import stretto as st, stretto.numpy as snp
    >>> ref = st.new_ref(snp.arange(3))
    >>> ref[1] += 5
    >>> ref[...]
    Array([0, 6, 2], dtype=int32)
    """
    if isinstance(init, Ref):
        raise RefError("new_ref: init must be an array, got a reference: pass its value, ref[...]")
    leaves, structure = tree.flatten(init)
    if len(leaves) == 1 and hasattr(init, "dtype") and leaves[0] is not init:  # keys
        return Ref(leaves[0], structure)
    value = as_value(init, "new_ref", "init")
    return Ref(convert(value, value.dtype, False))


def freeze(ref: Ref) -> Any:
    """Give the last value of a reference, which cannot be used afterwards.

    Args:
        ref: the reference, made by the same function, or outside of all where it is frozen there.

    Returns:
        The array, or the keys.

    Raises:
        TypeError: ``ref`` is not a reference.
        ValueError: it is frozen already.

    As ``jax.freeze``.

    >>> import stretto as st
    >>> ref = st.new_ref(1.0)
    >>> ref[...] *= 2
    >>> st.freeze(ref)
    Array(2., dtype=float32)
    """
    if not isinstance(ref, Ref):
        raise TypeError(f"freeze: expected a reference, got {type(ref).__name__}")
    return ref._freeze()


def refs_among(
    leaves: Sequence[Any], caller: str, names: Callable[[], Sequence[str]]
) -> dict[int, Ref]:
    """Return the references among the leaves of arguments, by position.

    Raises ``RefError`` if one is there twice.
    """
    found = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
    if len(found) < 2:
        return found
    first: dict[int, int] = {}
    for i, ref in found.items():
        j = first.setdefault(id(ref), i)
        if j != i:
            paths = names()
            raise RefError(
                f"{caller}: one reference is passed as {paths[j]} and as {paths[i]}, so that the "
                f"two would not be told apart: pass it once"
            )
    return found


def read_refs(
    leaves: Sequence[Any], name: str, names: Callable[[], Sequence[str]]
) -> tuple[list[Any], dict[int, Ref]]:
    """Return the leaves with values in place of references, and these by their places."""
    refs = refs_among(leaves, name, names)
    if not refs:
        return list(leaves), refs
    return [x.read() if isinstance(x, Ref) else x for x in leaves], refs


class Apart:
    """The leaves of arguments without the references among them, which are put back for calls.

    For bodies that take references as they are, as if from outside.

    Args:
        leaves: all leaves.
    """

    def __init__(self, leaves: Sequence[Any]) -> None:
        self._refs = {i: x for i, x in enumerate(leaves) if isinstance(x, Ref)}
        self.leaves = self.of(leaves)

    def of(self, one_for_each: Sequence[Any]) -> list[Any]:
        """Return those items of a list with one for each leaf that belong to the other leaves."""
        return [x for i, x in enumerate(one_for_each) if i not in self._refs]

    def together(self, values: Sequence[Any]) -> list[Any]:
        """Return all leaves, with values for the others."""
        rest = iter(values)
        count = len(self._refs) + len(values)
        return [self._refs[i] if i in self._refs else next(rest) for i in range(count)]


class _Passed:
    """A node without leaves that becomes the reference that it holds when it is built."""

    __slots__ = ("ref",)

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


tree.register_pytree_node(_Passed, lambda x: ((), x.ref), lambda ref, _: ref)


def hide_refs(args: Any) -> Any:
    """Hide the references in a tree: no leaves then, but there again when it is unflattened."""
    if not any([isinstance(x, Ref) for x in tree.leaves(args)]):
        return args
    return tree.map(lambda x: _Passed(x) if isinstance(x, Ref) else x, args)


class Parts:
    """A function of leaves, with references made here to those at some places.

    It returns its result, and what those of them hold afterwards that it has written to; which
    these are is in ``changed``.

    Args:
        fun: the function of all leaves.
        kinds: the ``structure`` of the reference for each place.
    """

    def __init__(self, fun: Callable[..., Any], kinds: Mapping[int, Any]) -> None:
        self._fun, self._kinds = fun, kinds
        self.changed: list[int] = []
        """The places of the references that it has written to."""

    def __call__(self, *leaves: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the result, and the new values."""
        if not self._kinds:
            return self._fun(*leaves), ()
        own = list(leaves)
        inner = {i: Ref(own[i], structure) for i, structure in self._kinds.items()}
        before = {i: ref.read() for i, ref in inner.items()}
        for i, ref in inner.items():
            own[i] = ref
        result = self._fun(*own)
        after = {i: ref.read() for i, ref in inner.items()}
        written = [i for i, value in after.items() if value is not before[i]]
        self.changed += [i for i in written if i not in self.changed]
        return result, tuple([after[i] for i in self.changed])


Loop = Callable[..., tuple[Any, Any]]


def holds_refs(xs: Any) -> bool:
    """Say if any leaf is a reference."""
    return any([isinstance(x, Ref) for x in tree.leaves(xs)])


def scan_writing(
    loop: Loop, step: Callable[..., Any], init: Any, names: Sequence[str], written: Sequence[Any]
) -> tuple[Any, Any]:
    """Return the results of a scan that writes to references.

    ``loop`` is a function of the step, the first carry, and what messages call its leaves.
    """
    inner = carrying(step, written)

    def body(carry: Any, x: Any) -> Any:
        (new, y), values = inner(carry[1], carry[0], x)
        return (new, values), y

    names = [*names, *["the reference"] * len(written)]
    (last, values), ys = loop(body, (init, values_of_cells(written)), names)
    write_all(written, values)
    return last, ys


def scan_over_refs(loop: Loop, caller: str, step: Callable[..., Any], xs: Any) -> tuple[Any, Any]:
    """Return the results of a scan that reads and writes its part of references at each step.

    ``loop`` is a function of the step and of what it goes over.
    """
    leaves, structure = tree.flatten(xs)
    values, refs = read_refs(leaves, caller, lambda: tree.paths(xs, "xs"))
    parts = Parts(
        lambda carry, *x: step(carry, tree.unflatten(structure, x)),
        {1 + i: ref.structure for i, ref in refs.items()},
    )

    def body(carry: Any, x: Sequence[Any]) -> Any:
        (new, y), given = parts(carry, *x)
        return new, (y, given)

    last, (ys, stacks) = loop(body, values)
    write_all([refs[i - 1] for i in parts.changed], stacks)
    return last, ys


def while_writing(
    loop: Callable[..., Any],
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init: Any,
    names: Sequence[str],
    written: Sequence[Any],
) -> Any:
    """Return the last carry of a while loop that writes to references.

    ``loop`` is a function of the condition, the body, the first carry, and what messages call its
    leaves.
    """
    condition, step = carrying(cond_fun, written), carrying(body_fun, written)
    result, values = loop(
        lambda state: condition(state[1], state[0])[0],
        lambda state: step(state[1], state[0]),
        (init, values_of_cells(written)),
        [*names, *["the reference"] * len(written)],
    )
    write_all(written, values)
    return result
