"""Transformations: their type, rules applied leaf by leaf, and what changes parameters by updates.

A transformation turns gradients, called updates, into updates: ``init(params)`` makes its state,
``update(updates, state, params, **extra)`` gives the new updates and the new state. States are
trees of arrays, of one structure and one set of types at all steps, so they pass through ``jit``,
``vmap`` and ``scan``. The buffers of modules are no parameters: no transformation sees them.

Errors carry the name of the optimizer that a transformation is a part of. ``adam`` is decorated by
``optimizer``. Each of the parts that it makes asks ``caller_of("scale_by_adam")`` once, when it is
made, for the name that it begins its messages with, then and in its updates.

A rule is a function of one leaf of the updates and what belongs to it. It computes in at least
float32; its results are converted here to the dtypes that they must have, so that a state has the
same types at all steps.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.argument_leaves import as_values
from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.functions import F, described
from stretto._engine.core.guarded import guard
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.migration import OPTIMIZERS
from stretto._engine.core.threads import holding
from stretto._engine.core.tree import left_out
from stretto._engine.core.types import (
    canonical_dtype,
    is_float0,
    is_inexact,
    kind_of,
    named_dtype,
    promote,
    real_dtype,
)
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, Tree
from stretto._engine.ops.convert import convert
from stretto.numpy.arguments import weakly_inexact
from stretto.numpy.updating import absent
from stretto.random import streams
from stretto.random.keys import PRNGKey, as_key, bits, fold_in, key_data

__all__ = ["EmptyState", "GradientTransformation", "GradientTransformationExtraArgs", "Mask",
           "MaskedNode", "ScalarOrSchedule", "Schedule", "apply_updates", "identity",
           "incremental_update", "periodic_update", "safe_increment", "set_to_zero", "stateless",
           "with_extra_args_support"]  # fmt: skip

T = TypeVar("T")

Schedule: TypeAlias = Callable[[Any], Any]
"""A function of the number of updates so far, an integer array of rank 0, to a number."""
Scalar: TypeAlias = float | np.ndarray | np.number | Array
"""A number, or an array of rank 0."""
ScalarOrSchedule: TypeAlias = Scalar | Schedule
"""A number, an array of rank 0, or a ``Schedule``."""
Mask: TypeAlias = Tree
"""A tree of booleans, which may be a prefix of the parameters', or a function that makes it."""

transformation = described(
    {
        "learning_rate": "a number, an array of rank 0 or a schedule.",
        "b1": "the weight of the past in m.",
        "b2": "the weight of the past in v.",
        "eps": "added to the root.",
        "eps_root": "added within it, for derivatives through the update.",
        "mu_dtype": "the dtype of m; None is that of the parameters.",
        "nesterov": "take m̂ of the step to come.",
        "weight_decay": "a number, an array of rank 0 or a schedule.",
        "mask": "which leaves decay; see ``masked``.",
        "weight_decay_mask": "which leaves decay; see ``masked``.",
        "decay": "the weight of the past.",
        "initial_scale": "v before the first update.",
        "eps_in_sqrt": "``False`` adds ``eps`` to the root.",
        "bias_correction": "divide the means by 1 − decayᵗ.",
        "initial_accumulator_value": "s before the first update.",
        "accumulator_dtype": "the dtype of the sum; None is that of the parameters.",
        "bias_correction_mu": "divide m by 1 − b1ᵗ.",
        "bias_correction_nu": "divide v by 1 − b2ᵗ before the largest is taken.",
        "rho": "the weight of the past.",
        "inner": "the transformation.",
    },
    "The transformation.",
)
"""Complete the docstring of a function that makes a transformation."""

schedule = described(
    {
        "init_value": "the first value.",
        "transition_begin": "the count at which it begins.",
        "warmup_steps": "how many updates the line takes.",
        "pct_start": "the share of updates until the peak.",
        "div_factor": "the peak over the first value.",
        "final_div_factor": "the first value over the last.",
    },
    "The schedule.",
)
"""Complete the docstring of a function that makes a schedule."""


class GradientTransformation(NamedTuple):
    """A transformation of gradients, in the form of optax.

    Args:
        init: ``init(params)`` gives the state, a tree of arrays.
        update: ``update(updates, state, params=None)`` gives the new updates and the new state.

    >>> import stretto as st, stretto.numpy as snp
    >>> def init(params):
    ...     return ()
    >>> def update(updates, state, params=None):
    ...     return st.tree.map(snp.sign, updates), state
    >>> signs = GradientTransformation(init, update)
    >>> signs.update({"w": snp.array([-3.0, 2.0])}, signs.init(None))
    ({'w': Array([-1.,  1.], dtype=float32)}, ())
    """

    init: Callable[[Tree], Tree]
    update: Callable[..., tuple[Tree, Tree]]


class GradientTransformationExtraArgs(GradientTransformation):
    """A transformation whose ``update`` takes keyword arguments, and ignores unknown ones.

    All transformations of this package are of this kind; ``init`` is as in
    ``GradientTransformation``. Where parameters are modules or ensembles, the functions are given
    trees with ``MaskedNode()`` in place of buffers and of what is frozen, and the updates of those
    are zero.
    """

    _made_by: tuple[str, tuple[Any, ...]]

    def __new__(
        cls, init: Callable[[Tree], Tree], update: Callable[..., tuple[Tree, Tree]]
    ) -> GradientTransformationExtraArgs:
        """Make the pair, for the leaves that are trained."""

        def init_trained(params: Tree) -> Tree:
            return init(_trained(params)[0])

        def update_trained(
            updates: Tree, state: Tree, params: Tree = None, **extra: Any
        ) -> tuple[Tree, Tree]:
            trained, still = _trained(updates)
            if not still:
                return update(updates, state, params, **extra)
            new, state = update(trained, state, _trained(params)[0], **extra)
            moved = iter(tree.leaves(new))
            leaves, spec = tree.flatten(updates)
            news = [_still(x) if i in still else next(moved) for i, x in enumerate(leaves)]
            return tree.unflatten(spec, news), state

        made = super().__new__(cls, guard(init_trained), guard(update_trained))
        made._made_by = _maker()
        return made

    def __repr__(self) -> str:
        """Return the call that made it, such as ``adam(0.001)``."""
        name, arguments = self._made_by
        return f"{name}({', '.join(map(_brief, arguments))})"


class VariationalTransformation(GradientTransformationExtraArgs):
    """A transformation whose parameters are the means of a distribution of weights.

    Args:
        init: as in ``GradientTransformation``.
        update: the same; it takes ``at=``, the weights that the gradients were taken at.
        sample: ``sample(state, params, key)`` draws weights, a tree like ``params``.
    """

    sample: Callable[[Tree, Tree, Key], Tree]

    def __new__(
        cls,
        init: Callable[[Tree], Tree],
        update: Callable[..., tuple[Tree, Tree]],
        sample: Callable[[Tree, Tree, Key], Tree],
    ) -> VariationalTransformation:
        """Make the triple, for the leaves that are trained."""

        def update_trained(
            updates: Tree, state: Tree, params: Tree = None, *, at: Tree = None, **extra: Any
        ) -> tuple[Tree, Tree]:
            return update(updates, state, params, at=_trained(at)[0], **extra)

        def sample_trained(state: Tree, params: Tree, key: Key) -> Tree:
            trained, still = _trained(params)
            drawn = iter(tree.leaves(sample(state, trained, key)))
            leaves, spec = tree.flatten(params)
            news = [x if i in still else next(drawn) for i, x in enumerate(leaves)]
            return tree.unflatten(spec, news)

        made: Any = super().__new__(cls, init, update_trained)
        made.sample = sample_trained
        return made


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BETWEEN = (holding.__code__.co_filename, bounded.__code__.co_filename)


def _maker() -> tuple[str, tuple[Any, ...]]:
    """Find the outermost function of this package that runs, and its positional arguments."""
    frame: Any = sys._getframe(2)
    name, arguments = "transformation", ()
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_HERE):
            if not code.co_name.startswith(("_", "<")):
                count = code.co_argcount
                places = code.co_varnames[:count]
                if code.co_flags & inspect.CO_VARARGS:
                    extra = frame.f_locals.get(code.co_varnames[count + code.co_kwonlyargcount], ())
                else:
                    extra = ()
                arguments = (*[frame.f_locals.get(n) for n in places[:1]], *extra)
                name = code.co_name
        elif code.co_filename not in _BETWEEN:
            break
        frame = frame.f_back
    return name, arguments


def _brief(argument: object) -> str:
    """Return an argument in a few words."""
    if callable(argument) and not isinstance(argument, GradientTransformation):
        return getattr(argument, "__name__", type(argument).__name__).strip("<>")
    text = repr(argument)
    return text if len(text) <= _LONG else type(argument).__name__


_LONG = 60


class MaskedNode(NamedTuple):
    """A node without leaves, in place of a leaf that is left out."""


def _trained(x: Tree) -> tuple[Tree, frozenset[int]]:
    """Return the tree without leaves that their node keeps out of training, and their numbers."""
    spec = tree.structure(x)
    still = left_out(x, spec)
    if still:
        kept = [MaskedNode() if i in still else leaf for i, leaf in enumerate(tree.leaves(x))]
        x = tree.unflatten(spec, kept)
    return x, still


def _still(x: Array) -> Array:
    """Make an update that changes nothing; float0, the gradient of an integer, says so already."""
    return x if is_float0(x) else snp.zeros_like(x)


for _name, _advice in OPTIMIZERS.items():
    setattr(GradientTransformation, _name, absent(_name, _advice))


class EmptyState(NamedTuple):
    """The state of a transformation that keeps nothing."""


@transformation
def with_extra_args_support(tx: GradientTransformation) -> GradientTransformationExtraArgs:
    """Give a transformation an ``update`` that takes any keyword argument.

    Args:
        tx: a transformation.

    Raises:
        TypeError: ``tx`` is not a transformation.

    >>> tx = GradientTransformation(lambda params: (), lambda updates, state, params=None: (0, ()))
    >>> with_extra_args_support(tx).update(1, (), value=3.0)
    (0, ())
    """
    return as_transformation(tx, "with_extra_args_support")


def as_transformation(tx: object, caller: str) -> GradientTransformationExtraArgs:
    """Return the argument as a transformation whose ``update`` takes any keyword argument."""
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx
    if not isinstance(tx, GradientTransformation):
        way_out = ""
        if hasattr(tx, "gradient_transformation"):
            way_out = "; call its gradient_transformation()"
        elif callable(tx):
            way_out = f"; call it, as in {getattr(tx, '__name__', 'adam')}(...)"
        raise TypeError(
            f"{caller}: expected a GradientTransformation, got {_described(tx)}{way_out}"
        )
    plain = tx.update

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Any) -> tuple[Tree, Tree]:
        return plain(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def _described(tx: object) -> str:
    if tx is None or isinstance(tx, (str, int, float)):
        return repr(tx)
    return tx.__name__ if callable(tx) and hasattr(tx, "__name__") else f"a {type(tx).__name__}"


@transformation
def stateless(f: Callable[[Tree, Tree], Tree]) -> GradientTransformationExtraArgs:
    """Make a transformation without a state.

    Args:
        f: ``f(updates, params)`` gives the new updates.

    >>> import stretto as st
    >>> halve = stateless(lambda updates, params: st.tree.map(lambda g: g / 2, updates))
    >>> halve.update({"w": 3.0}, halve.init({"w": 1.0}))[0]
    {'w': 1.5}
    """

    def init(params: Tree) -> EmptyState:
        return EmptyState()

    def update(updates: Tree, state: Tree, params: Tree = None, **extra: Any) -> tuple[Tree, Tree]:
        return f(updates, params), state

    return GradientTransformationExtraArgs(init, update)


@transformation
def identity() -> GradientTransformationExtraArgs:
    """Leave the updates as they are.

    >>> identity().update({"w": 1.0}, identity().init(None))
    ({'w': 1.0}, EmptyState())
    """
    return stateless(lambda updates, params: updates)


@transformation
def set_to_zero() -> GradientTransformationExtraArgs:
    """Replace the updates by zeros, so that the parameters stay as they are.

    >>> import stretto.numpy as snp
    >>> set_to_zero().update({"w": snp.ones(2)}, set_to_zero().init(None))[0]
    {'w': Array([0., 0.], dtype=float32)}
    """
    return stateless(
        lambda updates, params: tree.map(
            lambda g: g if is_float0(g) else snp.zeros_like(g), updates
        )
    )


class _Making(threading.local):
    """What this thread is making: parts of which optimizer, and the state of which member."""

    optimizer: str | None = None
    member: Any = None
    """The number of the member whose state is made; ``None`` outside ``per_member``."""
    members: Sequence[int] | None = None
    """The numbers of the members of ``per_member``; ``None`` counts from 0."""
    draw: Callable[[], Key] | None = None
    """Where states without a key get one; ``None`` is the ambient stream."""


_now = _Making()


def for_member(number: Array | None, make: Callable[..., T], *args: Any) -> T:
    """Return ``make(*args)``, the state of the member of this number, with noise of its own."""
    return holding(_now, "member", number, make, *args)


def numbers_of_members(size: int) -> np.ndarray:
    """Return the numbers that members fold into a key that all were given."""
    return np.asarray(range(size) if _now.members is None else _now.members, np.int32)


def for_members(places: Sequence[int], key: Key, make: Callable[..., T], *args: Any) -> T:
    """Return ``make(*args)``, states of members of these numbers, which draw from this key."""
    numbers = itertools.count()
    draw = lambda: fold_in(key, next(numbers))
    return holding(_now, "members", places, holding, _now, "draw", draw, make, *args)


def first_key(key: Key | int | None, caller: str) -> Array:
    """Return the words of the key of an optimizer's noise, which is each member's own.

    ``None`` draws one; a key that all members of ``per_member`` have gets a member's number.
    """
    if key is None:
        key = streams.next_key(caller) if _now.draw is None else _now.draw()
    made = PRNGKey(key) if isinstance(key, (int, np.integer)) else as_key(key, caller)
    words = key_data(made)
    if words.shape != (2,):  # of another generator, which makes a key for this one
        words = bits(made, (2,), np.uint32)
    return words if _now.member is None else fold_in(words, _now.member)


def making(
    optimizer: str, make: Callable[[], GradientTransformationExtraArgs]
) -> GradientTransformationExtraArgs:
    """Return what ``make`` gives; its parts have the name of the outermost optimizer."""
    return holding(_now, "optimizer", _now.optimizer or optimizer, make)


def optimizer(function: F) -> F:
    """Decorate a function that makes an optimizer: its parts are named after it."""
    name = function.__name__

    @functools.wraps(function)
    def _make(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        call = functools.partial(function, *args, **kwargs)
        return holding(_now, "optimizer", _now.optimizer or name, call)

    return transformation(_make)  # type: ignore[return-value]


def caller_of(part: str) -> str:
    """Return the name for a part's messages: that of the optimizer being made, or else its own."""
    return _now.optimizer or part


def columns(
    caller: str, trees: Mapping[str, Tree], *, shapes: bool = True
) -> tuple[list[list[Any]], Tree]:
    """List the leaves of each tree, and return the structure that all share; shapes must agree.

    With ``shapes=False`` shapes may differ. Raises ``ValueError`` with the path where they differ.
    """
    (name, first), *others = trees.items()
    leaves, spec = tree.flatten(first)
    flat = [leaves]
    for other_name, other in others:
        more, other_spec = tree.flatten(other)
        if other_spec != spec:
            raise ValueError(
                f"{caller}: {name} and {other_name} differ in structure; they part at "
                f"{tree.difference(first, other, name)}"
            )
        if shapes and [np.shape(x) for x in leaves] != [np.shape(x) for x in more]:
            path, a, b = next(
                (path, x, y)
                for path, x, y in zip(tree.paths(first), leaves, more, strict=True)
                if np.shape(x) != np.shape(y)
            )
            raise ValueError(
                f"{caller}: {name}{path} has shape {np.shape(a)}, but {other_name}{path} has shape "
                f"{np.shape(b)}"
            )
        flat.append(more)
    return flat, spec


def leafwise(
    caller: str,
    rule: Callable[..., Array | tuple[Array, ...]],
    updates: Tree,
    moments: Mapping[str, Tree] | None = None,
    params: Tree = None,
    **others: Tree,
) -> list[Tree]:
    """Apply ``rule`` to each leaf of the updates, the moments, ``params`` and ``others``.

    The rule gives the new update, or a tuple of it and the new moments. Moments come back in the
    dtypes that they had, updates in the common dtype of updates and moments.

    Raises ``ValueError`` where the trees differ, ``TypeError`` for updates that are not floating.
    """
    moments = moments or {}
    trees = {"updates": updates} | {f"state.{name}": m for name, m in moments.items()}
    trees |= ({} if params is None else {"params": params}) | others
    flat, spec = columns(caller, trees)
    _refuse_integers(caller, updates, flat[0])
    values = [
        as_values(column, caller, lambda root=root, x=x: tree.paths(x, root))
        for column, (root, x) in zip(flat, trees.items(), strict=True)
    ]
    results: list[list[Array]] = [[] for _ in range(1 + len(moments))]
    for group in zip(*values, strict=True):
        news = rule(*[wide(x) for x in group])
        before = group[: 1 + len(moments)]
        dtypes = [_common(before), *[x.dtype for x in before[1:]]]
        for result, new, dtype in zip(results, news if moments else (news,), dtypes, strict=True):
            result.append(convert(as_value(new, caller), dtype))
    return [tree.unflatten(spec, result) for result in results]


def _refuse_integers(caller: str, updates: Tree, leaves: list[Any]) -> None:
    for path, x in zip(tree.paths(updates, "updates"), leaves, strict=True):
        whole = isinstance(x, (bool, int)) or not is_inexact(getattr(x, "dtype", np.dtype(float)))
        if whole:
            dtype = getattr(x, "dtype", type(x).__name__)
            name = "float0, the gradient of an integer" if is_float0(x) else f"{dtype}"
            raise TypeError(
                f"{caller}: updates must be floating, but {path} is {name}; keep such leaves out "
                f"of the parameters, or leave them out with masked(..., mask)"
            )


def _common(values: tuple[Array, ...]) -> np.dtype:
    return promote([(x.dtype, False) for x in values])[0]


def wide(x: Array) -> Array:
    """Return the value in at least float32, and not weak."""
    narrow = kind_of(x.dtype) == "float" and x.dtype.itemsize < 4
    return convert(x, np.dtype(np.float32) if narrow else x.dtype)


def squared(x: Array) -> Array:
    """Return |x|², which is real."""
    if kind_of(x.dtype) == "complex":
        return snp.real(x) * snp.real(x) + snp.imag(x) * snp.imag(x)
    return x * x


def all_finite(x: Tree) -> Array:
    """Say whether all elements of all leaves are finite: one boolean array."""
    finite = snp.array(True)
    for leaf in tree.leaves(x):
        finite = snp.logical_and(finite, snp.all(snp.isfinite(leaf)))
    return finite


def choose_tree(condition: Array, one: Tree, other: Tree) -> Tree:
    """Return one tree or the other, of equal structure."""
    return tree.map(lambda x, y: snp.where(condition, x, y), one, other)


# Fresh states


def fill_like(
    params: Tree, value: Scalar = 0.0, dtype: DTypeLike | None = None, *, real_only: bool = False
) -> Tree:
    """Return a tree like ``params``, each element ``value``: a state before the first update.

    ``dtype`` is for real floating leaves; ``real_only`` gives complex ones the dtype of their
    parts.
    """

    def one(x: Tree) -> Array:
        own = canonical_dtype(np.dtype(x.dtype)) if hasattr(x, "dtype") else as_value(x).dtype
        if real_only:
            own = real_dtype(own)
        chosen = own if dtype is None or kind_of(own) != "float" else dtype
        return snp.full(np.shape(x), value, chosen)

    return tree.map(one, params)


def first_count() -> Array:
    """Return a count of zero updates."""
    return snp.zeros((), snp.int32)


def safe_increment(count: Array) -> Array:
    """Add 1 to a count, unless it is the largest value of its dtype.

    Args:
        count: an array of integers or floats.

    Returns:
        An array of the same shape and dtype.

    >>> import stretto.numpy as snp
    >>> safe_increment(snp.array(2)), safe_increment(snp.array(127, snp.int8))
    (Array(3, dtype=int32), Array(127, dtype=int8))
    """
    value = as_value(count, "safe_increment", "count")
    whole = kind_of(value.dtype) in ("int", "uint")
    largest = (np.iinfo if whole else np.finfo)(value.dtype).max
    largest = snp.full((), largest, value.dtype)
    return snp.where(value < largest, value + snp.full((), 1, value.dtype), largest)


def running_mean(decay: Scalar, before: Array, new: Array) -> Array:
    """Return decay · before + (1 − decay) · new."""
    return before * decay + new * (1 - decay)


def log_decay(decay: Scalar) -> Array | float:
    """Take the logarithm, in double precision for a number: decayᵗ is exp of t times it."""
    if isinstance(decay, Value):
        return snp.log(decay)
    return math.log(decay) if decay > 0 else -math.inf


def unbias(decay: Scalar, count: Array) -> Array:
    """Return 1 / (1 − decayᵗ): the factor that corrects a mean that began at zero.

    Source: Kingma and Ba, "Adam", 2015, section 3. The difference of numbers that are almost equal
    at first is computed without loss as −expm1(t log decay).
    """
    return -1 / snp.expm1(weakly_inexact(count) * log_decay(decay))


# Arguments


def need_params(params: Tree, caller: str) -> None:
    """Raise ``ValueError`` where ``update`` was called without parameters."""
    if params is None:
        raise ValueError(
            f"{caller}: its update needs the parameters; call update(updates, state, params)"
        )


def check(
    caller: str,
    *,
    least: float | None = None,
    below: float | None = None,
    above: float | None = None,
    schedules: bool = False,
    optional: bool = False,
    **arguments: object,
) -> None:
    """Refuse numbers out of range; arrays of rank 0 pass, and schedules and None where allowed.

    Raises ``ValueError`` for such numbers and for arrays with axes, ``TypeError`` for others.
    """
    expected = "a number, an array or a schedule" if schedules else "a number or an array"
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in (("at least", least), ("above", above), ("below", below))
        if bound is not None
    ]
    for name, x in arguments.items():
        if isinstance(x, (Value, np.ndarray)):
            if x.ndim:
                raise ValueError(
                    f"{caller}: {name} must be one number, got an array of shape {x.shape}; for "
                    f"one per member of a stacked ensemble use per_member(adam, {name}=...), with "
                    f"your optimizer in place of adam"
                )
            continue
        if (optional and x is None) or (schedules and callable(x)):
            continue
        if isinstance(x, bool) or not isinstance(x, (int, float, np.number)):
            raise TypeError(f"{caller}: {name} must be {expected}, got {x!r}")
        inside = (
            not math.isnan(x)
            and (least is None or x >= least)
            and (below is None or x < below)
            and (above is None or x > above)
        )
        if not inside:
            raise ValueError(f"{caller}: {name} must be {' and '.join(bounds)}, got {x!r}")


def check_dtype(caller: str, **dtypes: DTypeLike | None) -> None:
    """Raise ``TypeError`` for dtypes of moments that are not floating; None passes."""
    for name, dtype in dtypes.items():
        if dtype is None:
            continue
        try:
            is_floating = kind_of(named_dtype(dtype)) == "float"
        except TypeError:
            is_floating = False
        if not is_floating:
            raise TypeError(f"{caller}: {name} must be a floating dtype, got {dtype!r}")


def _in_place_of(
    caller: str, names: tuple[str, str], kept: Tree, other: Tree, f: Callable[[Array, Array], Array]
) -> Tree:
    """Return ``f`` of each leaf of ``kept`` and ``other``, with the types of ``kept``."""
    (leaves, others), spec = columns(caller, dict(zip(names, (kept, other), strict=True)))
    news = []
    for x, y in zip(leaves, others, strict=True):
        if is_float0(y):  # the gradient of an integer
            news.append(x)
            continue
        value = as_value(x, caller, "a leaf")
        news.append(convert(f(value, as_value(y, caller, "a leaf")), value.dtype, value.weak_type))
    return tree.unflatten(spec, news)


def apply_updates(params: T, updates: Tree) -> T:
    """Add updates to parameters, leaf by leaf, in the dtypes of the parameters.

    Sums are computed in at least float32. A leaf whose update is float0, as the gradient of an
    integer is, stays.

    Args:
        params: a tree of arrays.
        updates: a tree like it.

    Returns:
        The new parameters.

    Raises:
        ValueError: the trees or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> apply_updates({"w": snp.ones(2)}, {"w": snp.array([0.5, -0.5])})
    {'w': Array([1.5, 0.5], dtype=float32)}
    """
    added = lambda p, u: wide(p) + wide(u)
    return _in_place_of("apply_updates", ("params", "updates"), params, updates, added)


def incremental_update(new_tensors: T, old_tensors: T, step_size: Scalar) -> T:
    """Move a tree towards another: ``step_size · new + (1 − step_size) · old``.

    Args:
        new_tensors: a tree of arrays.
        old_tensors: a tree like it.
        step_size: the weight of the new tree.

    Returns:
        A tree in the dtypes of the old one: a moving mean.

    Raises:
        ValueError: the trees or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> incremental_update({"w": snp.ones(1)}, {"w": snp.zeros(1)}, 0.25)
    {'w': Array([0.25], dtype=float32)}
    """
    mixed = lambda old, new: running_mean(step_size, wide(new), wide(old))
    names = ("old_tensors", "new_tensors")
    return _in_place_of("incremental_update", names, old_tensors, new_tensors, mixed)


def periodic_update(
    new_tensors: T, old_tensors: T, steps: ArrayLike, update_period: ArrayLike
) -> T:
    """Take the new tree every ``update_period`` steps, and keep the old one in between.

    Args:
        new_tensors: a tree of arrays.
        old_tensors: a tree like it.
        steps: how many were done.
        update_period: steps from one update to the next.

    Returns:
        A tree in the dtypes of the old one.

    Raises:
        ValueError: the trees or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> [float(periodic_update(snp.ones(()), snp.zeros(()), t, 2)) for t in (1, 2)]
    [0.0, 1.0]
    """
    now = snp.mod(steps, update_period) == 0
    chosen = lambda old, new: snp.where(now, convert(new, old.dtype, old.weak_type), old)
    names = ("old_tensors", "new_tensors")
    return _in_place_of("periodic_update", names, old_tensors, new_tensors, chosen)
