"""``Ensemble``: many models as one object that can be called, trained, measured and saved.

An ensemble keeps its members stacked, one group for each architecture, and runs each group as one
``vmap``. It is a tree whose leaves are the stacked arrays.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypedDict, TypeVar, Unpack, overload

import stretto.ensemble
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import config
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import state
from stretto._engine.core.lazy import LazyMethod, shown
from stretto._engine.core.migration import ENSEMBLES
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.higher_order.loops import positive
from stretto.ensemble.groups import (
    M_co,
    Member,
    Ties,
    call_module,
    groups_of,
    in_mode,
    join_groups,
    retied,
    shaped_as,
    ties_of,
    untied,
)
from stretto.ensemble.run_members import join_results, over_members
from stretto.ensemble.sequence import Layout, MemberSequence
from stretto.nn.module import Module
from stretto.random.keys import split

if TYPE_CHECKING:
    from stretto.ensemble.explaining import Explanation
    from stretto.ensemble.over_mesh import shard as _shard
    from stretto.ensemble.pytorch import from_torch as _from_torch
    from stretto.ensemble.training.fit import fit as _fit

    class _Options(TypedDict, total=False):
        shared: str | Sequence[str] | Callable[[str], bool] | None
        frozen: str | Sequence[str] | Callable[[str], bool] | None
        chunk_size: int | str | None
        memory_budget: int | None
        plan: str | None

    class _AllOptions(_Options, total=False):
        stacked: bool | None


__all__ = ["Ensemble"]

N = TypeVar("N")
ModuleT = TypeVar("ModuleT", bound=Module)
R = TypeVar("R")


@shown("stretto.ensemble.cards", "card_of", "text_of")
class Ensemble(MemberSequence[M_co]):
    """Members run, trained and measured as one program.

    ``Ensemble(models)`` takes modules; ``Ensemble(apply, members)`` a function ``apply(params,
    ...)`` and a tree of parameters for each member. Members of several structures make several
    groups, each run as one; the order of members is kept. What a module holds in two places (tied
    weights, or one module used twice) is kept, trained and named once.

    Args:
        apply_or_members: modules, as a list or as one tree stacked along axis 0; or ``apply``, one
            function for all members or a list with one for each.
        members: trees of arrays, the parameters of ``apply``: a list, or one stacked tree.
        shared: parts that are kept once for all members: a pattern of dotted names such as
            ``"trunk"`` or ``"*.bias"``, a list of them, or a function of the name.
        frozen: parts that training leaves alone, named as in ``shared``.
        chunk_size: members run at a time, which bounds memory; ``"auto"`` runs as many as fit in
            ``memory_budget``. All by default.
        memory_budget: in bytes.
        plan: the formulation to use, as in ``config.plan``; ``explain`` shows which was chosen.
        stacked: whether the members are one stacked tree, where a list leaves that open.

    Raises:
        ValueError: members of one structure differ in shape or ties, the axes of a stacked tree
            disagree, or a shared part differs; the message names the member and the part.
        TypeError: something is not a member.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 2.0}, {"w": 3.0}])
    >>> ensemble(snp.ones(2))
    Array([[2., 2.],
           [3., 3.]], dtype=float32)
    >>> ensemble.each(snp.array([10.0, 100.0]))
    Array([ 20., 300.], dtype=float32)
    >>> len(ensemble), ensemble[1].params
    (2, {'w': Array(3., dtype=float32)})
    """

    @overload
    def __init__(
        self: Ensemble[ModuleT],
        apply_or_members: ModuleT,
        members: None = None,
        **options: Unpack[_AllOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Ensemble[ModuleT],
        apply_or_members: Sequence[ModuleT] | Iterator[ModuleT],
        members: None = None,
        **options: Unpack[_AllOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Ensemble[Member],
        apply_or_members: Callable[..., Any] | Sequence[Callable[..., Any]],
        members: Tree,
        **options: Unpack[_AllOptions],
    ) -> None: ...
    def __init__(
        self,
        apply_or_members: Tree,
        members: Tree = None,
        *,
        shared: str | Sequence[str] | Callable[[str], bool] | None = None,
        frozen: str | Sequence[str] | Callable[[str], bool] | None = None,
        chunk_size: int | str | None = None,
        memory_budget: int | None = None,
        plan: str | None = None,
        stacked: bool | None = None,
    ) -> None:
        groups, columns = groups_of(apply_or_members, members, shared, frozen, stacked)
        options = (("plan", plan), ("memory_budget", memory_budget))
        settings = tuple([(name, value) for name, value in options if value is not None])
        with config(**dict(settings)):  # refuses what is not such a setting
            pass
        if chunk_size is not None and chunk_size != "auto":
            chunk_size = positive(chunk_size, "Ensemble: chunk_size")
        self._layout, self._arrays = Layout(groups, chunk_size, settings), columns

    @overload
    @classmethod
    def init(
        cls,
        init: Callable[[Key], ModuleT],
        key: Key,
        size: int,
        *,
        apply: None = None,
        **options: Unpack[_Options],
    ) -> Ensemble[ModuleT]: ...
    @overload
    @classmethod
    def init(
        cls,
        init: Callable[[Key], Any],
        key: Key,
        size: int,
        *,
        apply: Callable[..., Any],
        **options: Unpack[_Options],
    ) -> Ensemble[Member]: ...
    @classmethod
    def init(
        cls,
        init: Callable[[Key], Any],
        key: Key,
        size: int,
        *,
        apply: Callable[..., Any] | None = None,
        **options: Unpack[_Options],
    ) -> Tree:
        """Make an ensemble of ``size`` members, each ``init`` of its own key, with one program.

        Args:
            init: a function from a key to a module, or to the parameters of ``apply``.
            key: member ``i`` is ``init(split(key, size)[i])``.
            size: the number of members.
            apply: the function of the parameters; left out for modules.
            **options: as for ``Ensemble``.

        Returns:
            The ensemble.

        Raises:
            TypeError: ``init`` does not return a module, and ``apply`` is not given.

        >>> import stretto as st
        >>> from stretto import nn
        >>> make = lambda key: nn.Linear(3, 2, key=key)
        >>> ensemble = st.Ensemble.init(make, st.random.PRNGKey(0), 10)
        >>> ensemble(st.numpy.ones((4, 3))).shape
        (10, 4, 2)
        """
        ties: Ties = ()

        def member_of(key: Key) -> Tree:
            nonlocal ties
            member = init(key)
            ties = ties_of(member)
            return untied(member, ties)

        stacked = retied(jit(vmap(member_of))(split(key, size)), ties)
        if apply is None and not isinstance(stacked, Module):
            raise TypeError(
                f"Ensemble.init: init gave {type(stacked).__name__}; expected a module, or "
                f"apply=, the function that takes these parameters"
            )
        make: Any = cls
        parts = (stacked,) if apply is None else (apply, stacked)
        return make(*parts, stacked=True, **options)

    def __add__(self, other: Ensemble[N]) -> Ensemble[M_co | N]:
        """Return the members of one ensemble, then those of the other."""
        if not isinstance(other, Ensemble):
            return NotImplemented
        for ensemble in (self, other):
            ensemble._refuse_other_rows()
        groups, arrays = join_groups(
            self._layout.groups, self._arrays, other._layout.groups, other._arrays
        )
        return self._of(self._layout.of(groups), arrays)

    # Running

    def __call__(
        self: Ensemble[Callable[..., R]], *args: Any, key: Key | None = None, **kwargs: Any
    ) -> R:
        """Return the results of all members on the same arguments, stacked along a new axis 0.

        Numbers and arrays are traced; other arguments are static. ``key`` gives each member a key
        of its own for the layers that draw random numbers.
        """
        if state.interpreter.recorder is not None:
            self._note_capture()
        return self._layout.runner(self._arrays, args, kwargs, key, None, False)

    def _named_by(self) -> Callable[..., Any]:
        """Return what names the arguments of a call."""
        member: Any = self[0]
        return member

    def each(
        self: Ensemble[Callable[..., R]], *args: Any, key: Key | None = None, **kwargs: Any
    ) -> R:
        """Run each member on its own arguments.

        Args:
            *args: trees of arrays of shape (members, ...): entry ``i`` goes to member ``i``; ragged
                ones have an array for each.
            key: a key, split between the members, for layers that draw random numbers.
            **kwargs: the same for all members.

        Returns:
            The results, stacked along a new axis 0: (members, ...). What is of the size of a ragged
                argument is ragged.

        Raises:
            NotImplementedError: an argument is ragged, and the ensemble over a mesh or run in
                chunks.
            ValueError: an argument does not have an entry for each member.
        """
        if state.interpreter.recorder is not None:
            self._note_capture()
        return self._layout.runner(self._arrays, args, kwargs, key, 0, False)

    def explain(
        self, *args: Any, each: bool = False, key: Key | None = None, **kwargs: Any
    ) -> Explanation:
        """Say which formulation a call with these arguments uses, and its cost.

        Args:
            *args: those of the call.
            each: whether it is a call of ``each``.
            key: as in a call.
            **kwargs: those of the call.

        Returns:
            A report, which prints as a table: for each product and convolution its ``decisions``
                say what was chosen and what the alternatives were, with costs predicted and
                measured; its ``program`` is what ``st.explain`` says.

        >>> import stretto as st, stretto.numpy as snp
        >>> weights = snp.ones((10, 100, 50))
        >>> ensemble = st.Ensemble(lambda w, x: x @ w, weights)
        >>> [d.chosen for d in ensemble.explain(snp.ones((1, 100))).decisions]
        ['one batched product']
        """
        layout = self._layout
        run, arguments = layout.runner.compiled(
            self._arrays, args, kwargs, key, 0 if each else None, False
        )
        with config(**dict(layout.options)):
            return stretto.ensemble.explaining.explain_run(run, arguments, layout.chunk_size)

    def vmap(
        self, f: Callable[..., R], in_axes: int | Sequence[int | None] | None = None
    ) -> Callable[..., R]:
        """Make a function that runs ``f(member, *args)`` for every member, and stacks the results.

        Args:
            f: a function of a member and of ``args``.
            in_axes: for each argument, 0 where it has an entry for each member along axis 0, and
                ``None`` where all share it; one value stands for all. ``None`` by default.

        Returns:
            A function of ``args``, and of ``key=`` as in a call.

        Raises:
            ValueError: when called, if ``in_axes`` is not 0 or ``None`` for each argument.

        >>> import stretto as st, stretto.numpy as snp
        >>> ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
        >>> square = ensemble.vmap(lambda member, x: member(x) ** 2)
        >>> square(1.0)
        Array([4., 9.], dtype=float32)
        """
        layout = self._layout

        def mapped(*args: Any, key: Key | None = None) -> Tree:
            axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
            if len(axes) != len(args) or any(a not in (0, None) for a in axes):
                raise ValueError(
                    f"Ensemble.vmap: in_axes must be 0 or None for each of the {len(args)} "
                    f"arguments, got {in_axes!r}"
                )
            if state.interpreter.recorder is not None:
                self._note_capture()
            with config(**dict(layout.options)):
                outs = over_members(
                    layout.groups,
                    lambda group, member, *args: f(member, *args),
                    self._arrays,
                    args,
                    axes,
                    key,
                    layout.chunk_size,
                    layout.over,
                )
                return join_results(layout.groups, outs)

        return mapped

    def stateful_call(self, *args: Any, key: Key | None = None, **kwargs: Any) -> tuple[Any, Self]:
        """Run all members on the same arguments, and give the buffers that they updated.

        For modules in train mode that keep running statistics. The ensemble itself does not change.

        Args:
            *args: the same for all members.
            key: as in a call.
            **kwargs: the same for all members.

        Returns:
            The results, stacked along axis 0, and the ensemble with the new buffers.

        Raises:
            TypeError: the members are functions, which return their state themselves.
        """
        return self._stateful("stateful_call", args, kwargs, key)

    @described_like(stateful_call)
    def stateful_each(self, *args: Any, key: Key | None = None, **kwargs: Any) -> tuple[Any, Self]:
        """Run each member on its own arguments, and give the buffers that they updated.

        Args:
            *args: trees of arrays of shape (members, ...): entry ``i`` goes to member ``i``.
            **kwargs: the same for all members.

        """
        return self._stateful("stateful_each", args, kwargs, key)

    def _stateful(self, method: str, args: Tree, kwargs: Tree, key: Key | None) -> Tree:
        layout, axis = self._layout, 0 if method == "stateful_each" else None
        for group in layout.groups:
            if group.function is not call_module:
                raise TypeError(
                    f"Ensemble.{method}: expected members that are modules; a function returns its "
                    f"state itself"
                )
        out, after = layout.runner(self._arrays, args, kwargs, key, axis, True)
        # A buffer may grow.
        groups = [shaped_as(g, x) for g, x in zip(layout.groups, after, strict=True)]
        if any(g is not old for g, old in zip(groups, layout.groups, strict=True)):
            layout = layout.of(groups)
        return out, self._of(layout, after)

    # PyTorch, devices and training

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Say what to write for a name that there is elsewhere, but not here."""
            words = f"{type(self).__name__!r} object has no attribute {name!r}"
            words += f": {ENSEMBLES[name]}" if name in ENSEMBLES else ""
            raise AttributeError(words, name=name, obj=self)

    if TYPE_CHECKING:
        from_torch = staticmethod(_from_torch)
        shard = _shard
        fit = _fit
    else:
        from_torch = LazyMethod("stretto.ensemble.pytorch", "from_torch")
        shard = LazyMethod("stretto.ensemble.over_mesh", "shard")
        fit = LazyMethod("stretto.ensemble.training.fit", "fit")

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Put all members in train mode, or take them out of it.

        Members that differed in their mode alone form one group from then on.

        Args:
            mode: whether to train.

        Returns:
            The ensemble itself, which has changed.
        """
        groups, arrays = in_mode(mode, self._layout.groups, self._arrays)
        self._layout, self._arrays = self._layout.of(groups), arrays
        return self

    def eval(self) -> Self:
        """Put all members in evaluation mode.

        Returns:
            The ensemble itself, which has changed.
        """
        return self.train(False)

    # Arrays

    def state_dict(self) -> list[dict[str, Array]]:
        """Return all arrays of each group, by dotted name.

        Returns:
            A dictionary for each group: arrays of shape (members, ...), or (...) where shared.
        """
        return [
            dict(zip(g.names, arrays, strict=True))
            for g, arrays in zip(self._layout.groups, self._arrays, strict=True)
        ]

    def trainable(self) -> list[dict[str, Array]]:
        """Return the arrays of each group that an optimizer may change, by dotted name.

        Parameters of inexact dtype; not buffers, nor what is frozen.

        Returns:
            A dictionary for each group, as in ``state_dict``.
        """
        return [
            {n: x for n, x, t in zip(g.names, arrays, g.trained, strict=True) if t}
            for g, arrays in zip(self._layout.groups, self._arrays, strict=True)
        ]

    def replace(self, arrays: Sequence[Mapping[str, Array]]) -> Self:
        """Return an ensemble with other arrays in place of those named.

        Args:
            arrays: a dictionary for each group, as ``trainable`` gives them.

        Returns:
            The new ensemble.

        Raises:
            ValueError: there is no part of a name, a shape differs, or there is not a dictionary
                for each group.
        """
        return self._of(self._layout, self._layout.replaced(self._arrays, arrays))

    # Files

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """Write all members to one safetensors file, whole or not at all.

        Arrays are named as in ``state_dict``, after ``group0.`` and so on where there are several
        architectures; the metadata has the places of the members, what they share and what they
        tie. Functions, modes and settings are not saved.

        Args:
            path: the file, replaced if it exists.
            metadata: further entries, strings by name.

        Raises:
            ValueError: a function of trees made something else of the arrays than members; or as
                for ``stretto.save``.
            OSError: as for ``stretto.save``.
        """
        self._refuse_other_rows()
        stretto.ensemble.ensemble_files.write(path, self._layout, self._arrays, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], like: Ensemble[N]) -> Ensemble[N]:
        """Read the ensemble that ``save`` wrote.

        Args:
            path: the file.
            like: an ensemble of the same architectures in the same order, of any number of members;
                functions, modes, settings and what is frozen come from it.

        Returns:
            An ensemble whose arrays, number of members, places and shared parts are the file's.

        Raises:
            ValueError: the file is damaged, or does not match ``like``; the message names the path.
            TypeError: ``like`` is not an ensemble.

        >>> import os, tempfile, stretto as st
        >>> from stretto import nn
        >>> path = os.path.join(tempfile.mkdtemp(), "ensemble.safetensors")
        >>> st.Ensemble([nn.Linear(3, 2) for _ in range(10)]).save(path)
        >>> len(st.Ensemble.load(path, like=st.Ensemble([nn.Linear(3, 2)])))
        10
        """
        if not isinstance(like, Ensemble):
            raise TypeError(
                f"Ensemble.load: like must be an Ensemble, with one member of each architecture or "
                f"more; got {type(like).__name__}"
            )
        layout, arrays = stretto.ensemble.ensemble_files.read(path, like._layout, like._arrays)
        loaded: Any = cls._of(layout, arrays)
        return loaded
