"""``GradientTransformation``: a pair of functions, and the simplest transformations.

A transformation turns gradients, called updates, into updates: ``init(params)`` makes its state,
``update(updates, state, params, **extra)`` gives the new updates and the new state. States are
trees of arrays, of one structure and one set of types at all steps, so they pass through ``jit``,
``vmap`` and ``scan``. The buffers of modules are no parameters: no transformation sees them.

Whose name errors carry: an optimizer's, in the transformations that it is made of.

``adam`` is decorated by ``optimizer``. Each of the parts that it makes asks
``caller_of("scale_by_adam")`` once, when it is made, for the name that it begins its messages with,
then and in its updates.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.descriptions import F, described
from stretto._engine.core.guarded import guard
from stretto._engine.core.migration import OPTIMIZERS
from stretto._engine.core.threads import holding
from stretto._engine.core.tree import left_out
from stretto._engine.core.types import is_float0
from stretto._engine.core.typing import Array, Tree
from stretto.numpy.immutable import absent

__all__ = [
    "EmptyState",
    "GradientTransformation",
    "GradientTransformationExtraArgs",
    "Mask",
    "MaskedNode",
    "ScalarOrSchedule",
    "Schedule",
    "identity",
    "set_to_zero",
    "stateless",
    "with_extra_args_support",
]

Schedule: TypeAlias = Callable[[Any], Any]
"""From the number of updates done so far, an integer array of rank 0, to a number."""
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
        """The pair, for the leaves that are trained."""

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
        """The call that made it, such as ``adam(0.001)``."""
        name, arguments = self._made_by
        return f"{name}({', '.join(map(_brief, arguments))})"


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_BETWEEN = (holding.__code__.co_filename, bounded.__code__.co_filename)


def _maker() -> tuple[str, tuple[Any, ...]]:
    """The outermost function of this package that is running, and its positional arguments."""
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
    """An argument in a few words."""
    if callable(argument) and not isinstance(argument, GradientTransformation):
        return getattr(argument, "__name__", type(argument).__name__).strip("<>")
    text = repr(argument)
    return text if len(text) <= _LONG else type(argument).__name__


_LONG = 60


class MaskedNode(NamedTuple):
    """A node without leaves, in place of a leaf that is left out."""


def _trained(x: Tree) -> tuple[Tree, frozenset[int]]:
    """The tree without the leaves that their node keeps out of training, and their numbers."""
    spec = tree.structure(x)
    still = left_out(x, spec)
    if still:
        kept = [MaskedNode() if i in still else leaf for i, leaf in enumerate(tree.leaves(x))]
        x = tree.unflatten(spec, kept)
    return x, still


def _still(x: Array) -> Array:
    """An update that changes nothing: float0, the gradient of an integer, says so already."""
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
    """The argument as a transformation whose ``update`` takes any keyword argument."""
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
    """The name of the optimizer that this thread is making parts for, or None."""

    optimizer: str | None = None


_now = _Making()


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
    """The name for a part's messages: that of the optimizer being made, or else its own."""
    return _now.optimizer or part
