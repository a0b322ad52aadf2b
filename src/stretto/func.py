"""``stretto.func``: modules as functions of their arrays, in torch.func's vocabulary.

``functional_call`` and ``stack_module_state`` make a module a function of its arrays, by name. The
derivatives are those of ``api/autodiff``, but for the order of results, and for complex numbers: a
gradient here is the conjugate of JAX's, as in PyTorch. ``vmap`` is that of ``api/vectorize``, with
a stream of keys opened for each example (``random/streams``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

import numpy as np

from stretto._engine.api import vectorize
from stretto._engine.api.argument_leaves import Flat, as_argnums, is_active, leaf_names, wraps
from stretto._engine.api.autodiff import derivatives as api
from stretto._engine.api.autodiff import jacobians
from stretto._engine.api.autodiff.derivatives import linearize
from stretto._engine.autodiff.linearize import linearize_flat
from stretto._engine.core import tree
from stretto._engine.core.functions import name_of
from stretto._engine.core.interpreter import Tracer, as_value, state
from stretto._engine.core.lazy import exports
from stretto._engine.core.migration import class_of
from stretto._engine.core.types import is_complex, is_float0
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.higher_order.loops import inner_axes, positive
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.iota import iota
from stretto.nn.module import Module
from stretto.nn.updating import named_arrays, updates_of
from stretto.random import streams
from stretto.random.keys import fold_in
from stretto.random.streams import refusing
from stretto.tree import Partial, stack

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
           "linearize", "stack_module_state", "vjp", "vmap"]  # fmt: skip

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")
X = TypeVar("X", bound=Any)


@overload
def functional_call(
    module: Callable[..., R],
    parameter_and_buffer_dicts: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
    args: Tree = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
    return_buffers: Literal[False] = False,
) -> R: ...
@overload
def functional_call(
    module: Callable[..., R],
    parameter_and_buffer_dicts: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
    args: Tree = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
    return_buffers: Literal[True],
) -> tuple[R, dict[str, Array]]: ...
def functional_call(
    module: Callable[..., Any],
    parameter_and_buffer_dicts: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
    args: Tree = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
    return_buffers: bool = False,
) -> Tree:
    """Call a module with other arrays in place of its own; the module stays as it is.

    Args:
        module: the module.
        parameter_and_buffer_dicts: a dictionary of arrays by dotted name, or several that share no
            name. What they do not name is the module's own; shapes are the module's, dtypes may
            differ.
        args: a tuple of arguments, or the only one.
        kwargs: keyword arguments.
        tie_weights: let an array that the module holds in two places follow in both when one of
            them is named.
        strict: require every name.
        return_buffers: return the buffers too; without it a module that would update one is
            refused.

    Returns:
        The output; with ``return_buffers``, the output and the buffers, by name, as the call leaves
            them.

    Raises:
        TypeError: ``module`` is not a module.
        ValueError: a name is unknown, missing or given twice, or a shape differs.
        RuntimeError: updates of buffers would be lost.

    As ``torch.func.functional_call``, which ignores unknown names.

    >>> import stretto as st
    >>> from stretto import nn
    >>> from stretto.func import functional_call
    >>> layer = nn.Linear(2, 1)
    >>> arrays = {"weight": st.numpy.array([[1.0, 2.0]]), "bias": st.numpy.zeros(1)}
    >>> functional_call(layer, arrays, st.numpy.array([3.0, 4.0]))
    Array([11.], dtype=float32)
    """
    if not isinstance(module, Module):
        raise TypeError(f"functional_call: expected a module, got {class_of(module)}")
    by_name = _merge(parameter_and_buffer_dicts)
    copy = module.clone()
    here = named_arrays(copy)
    _check_names(type(module).__name__, here, by_name)
    shared: dict[Any, list[str]] = {}
    for name, (owner, attribute, array) in here.items():
        key = id(array) if tie_weights else (id(owner), attribute)
        shared.setdefault(key, []).append(name)
    missing = [
        names[0] for names in shared.values() if strict and not any(n in by_name for n in names)
    ]
    if missing:
        raise ValueError(
            f"functional_call: strict=True, and these names of {type(module).__name__} are not "
            f"given: {', '.join(missing)}"
        )
    for names in shared.values():
        named = [n for n in names if n in by_name]
        if any(by_name[n] is not by_name[named[0]] for n in named):
            raise ValueError(
                f"functional_call: {' and '.join(named)} are one array of the module, but were "
                f"given two; give one of them"
                + (", or pass tie_weights=False" if tie_weights else "")
            )
        for n in names if named else ():
            owner, attribute, old = here[n]
            owner.__dict__[attribute] = _check_shape(by_name[named[0]], old, named[0])
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with updates_of(copy.modules(), kept=return_buffers):
        out = copy(*positional, **(kwargs or {}))
    if not return_buffers:
        return out
    buffers = [here[name][:2] + (name,) for name, _ in module.named_buffers()]
    return out, {name: owner.__dict__[attribute] for owner, attribute, name in buffers}


def _merge(
    dictionaries: Mapping[str, ArrayLike] | Sequence[Mapping[str, ArrayLike]],
) -> dict[str, Any]:
    """Return one dictionary from one or several."""
    parts = (dictionaries,) if isinstance(dictionaries, Mapping) else dictionaries
    if not isinstance(parts, (tuple, list)) or not all(isinstance(x, Mapping) for x in parts):
        raise TypeError(
            f"functional_call: expected a dictionary of arrays by name, or a tuple of such; got "
            f"{type(dictionaries).__name__}"
        )
    merged: dict[str, Any] = {}
    for one in parts:
        twice = [name for name in one if name in merged]
        if twice:
            raise ValueError(
                f"functional_call: {', '.join(twice)} is in two dictionaries; give it in one"
            )
        merged.update(one)
    return merged


def _check_names(kind: str, here: Iterable[str], names: Iterable[str]) -> None:
    unknown = [str(name) for name in names if name not in here]
    if unknown:
        raise ValueError(
            f"functional_call: {kind} has no parameter or buffer {', '.join(unknown)}; it has "
            f"{', '.join(here) or 'none'}"
        )


def _check_shape(array: ArrayLike, old: Array, name: str) -> Array:
    """Return the array, checked to have the shape of the module's own."""
    value = as_value(array, "functional_call", name)
    if value.shape != old.shape:
        stacked = value.shape[1:] == old.shape
        raise ValueError(
            f"functional_call: {name} must have shape {old.shape}, got {value.type}"
            + ("; to run many modules at once, map this call by func.vmap" if stacked else "")
        )
    return value


def stack_module_state(models: Iterable[Module]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Stack the parameters, and the buffers, of modules of one kind.

    An array that a module holds in two places is given once, by its first name.

    Args:
        models: modules of one class, mode and settings.

    Returns:
        The parameters and the buffers: by dotted name, arrays of shape (members, ...).

    Raises:
        TypeError: something is not a module.
        ValueError: there are none; or one differs from the first in class, mode, settings, names or
            shapes, with its number.

    As ``torch.func.stack_module_state``.

    >>> from stretto import nn
    >>> from stretto.func import stack_module_state
    >>> params, buffers = stack_module_state([nn.Linear(3, 2) for _ in range(5)])
    >>> params["weight"].shape, buffers
    ((5, 2, 3), {})
    """
    members = list(models)
    if not members:
        raise ValueError("stack_module_state: expected at least one module, got none")
    for i, member in enumerate(members):
        if not isinstance(member, Module):
            raise TypeError(
                f"stack_module_state: member {i} must be a module, got {class_of(member)}"
            )
    stacked = named_arrays(stack(members))
    names = [[n for n, _ in m.named_parameters()] for m in members]
    buffers = [[n for n, _ in m.named_buffers()] for m in members]
    for i in range(1, len(members)):
        if names[i] != names[0] or buffers[i] != buffers[0]:
            raise ValueError(
                f"stack_module_state: member {i} holds one array at two places where member 0 has "
                f"two, or the other way round"
            )
    return {n: stacked[n][2] for n in names[0]}, {n: stacked[n][2] for n in buffers[0]}


def _conjugate(x: Tree) -> Tree:
    """Return the tree with its complex leaves conjugated."""

    def one(leaf: Tree) -> Tree:
        return leaf if is_float0(leaf) or not _is_complex(leaf) else conj(leaf)

    return tree.map(one, x)


def _is_complex(leaf: Tree) -> bool:
    return is_complex(as_value(leaf).dtype)


@overload
def grad_and_value(
    func: Callable[Concatenate[X, P], R], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[X, P], tuple[X, R]]: ...
@overload
def grad_and_value(
    func: Callable[Concatenate[X, P], tuple[R, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[X, P], tuple[X, tuple[R, A]]]: ...
@overload
def grad_and_value(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, tuple[Any, Any]]: ...
def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that gives the gradient and the value of another.

    The gradient by a complex argument x + iy is du/dx + i du/dy, along which the value grows.

    Args:
        func: a function that returns a real scalar; with ``has_aux`` a pair of that and anything.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair.

    Returns:
        A function that returns (gradient, value), or (gradient, (value, aux)).

    Raises:
        TypeError: when called, as for ``st.grad``.

    As ``torch.func.grad_and_value``.

    >>> import stretto as st
    >>> slope, value = st.func.grad_and_value(lambda x: x**2)(3.0)
    >>> float(slope), float(value)
    (6.0, 9.0)
    """
    both = api.value_and_grad(func, argnums, has_aux)

    @wraps(func, "grad_and_value")
    def grad_and_value_func(*args: Any, **kwargs: Any) -> Tree:
        value, gradient = both(*args, **kwargs)
        return _conjugate(gradient), value

    return grad_and_value_func


@overload
def grad(
    func: Callable[Concatenate[X, P], Any], argnums: Literal[0] = 0, has_aux: Literal[False] = False
) -> Callable[Concatenate[X, P], X]: ...
@overload
def grad(
    func: Callable[Concatenate[X, P], tuple[Any, A]],
    argnums: Literal[0] = 0,
    *,
    has_aux: Literal[True],
) -> Callable[Concatenate[X, P], tuple[X, A]]: ...
@overload
def grad(
    func: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[P, Any]: ...
def grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Make a function that gives the gradient of another; see ``grad_and_value``.

    Args:
        func: a function that returns a real scalar; with ``has_aux`` a pair of that and anything.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair.

    Returns:
        A function that returns the gradient, or (gradient, aux).

    Raises:
        TypeError: when called, as for ``st.grad``.

    As ``torch.func.grad``.

    >>> import stretto as st
    >>> float(st.func.grad(lambda x: x**2)(3.0))
    6.0
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func, "grad")
    def grad_func(*args: Any, **kwargs: Any) -> Tree:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_func


@overload
def vjp(
    func: Callable[..., R], *primals: Any, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    func: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], A]: ...
@overload
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool) -> tuple[Any, ...]: ...
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Tree:
    """Run a function, and give the one that takes its cotangents back to its arguments.

    For complex numbers the cotangent is multiplied by the conjugate of the derivative, as in
    PyTorch.

    Args:
        func: the function; with ``has_aux`` it returns a pair of its output and anything.
        *primals: its arguments, trees of arrays.
        has_aux: whether it returns a pair.

    Returns:
        The output; the function from its cotangents to a tuple of those of ``primals``; and aux if
            asked for.

    As ``torch.func.vjp``.

    >>> import stretto as st
    >>> out, vjp_fn = st.func.vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> [float(g) for g in vjp_fn(1.0)]
    [3.0, 2.0]
    """
    out, pull, *aux = api.vjp(func, *primals, has_aux=has_aux)

    return (out, Partial(_pull_back, pull), *aux)


def _pull_back(pull: Callable[..., Any], cotangents: Tree) -> Tree:
    """Return the cotangents of the primals, by PyTorch's convention."""
    return _conjugate(pull(_conjugate(cotangents)))


@overload
def jvp(
    func: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    func: Callable[..., tuple[R, A]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: Literal[True],
) -> tuple[R, R, A]: ...
@overload
def jvp(
    func: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: bool,
) -> tuple[Any, ...]: ...
def jvp(
    func: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Tree:
    """Run a function, and give the derivative of its output along a direction.

    Args:
        func: the function; with ``has_aux`` it returns a pair of its output and anything.
        primals: a tuple of its arguments.
        tangents: the direction, a tuple like it.
        strict: refuse an output that does not depend on the primals; otherwise its derivative is
            zero.
        has_aux: whether it returns a pair.

    Returns:
        The output, its derivative, and aux if asked for.

    Raises:
        ValueError: with ``strict``, an output does not depend on the primals.

    As ``torch.func.jvp``.

    >>> import stretto as st
    >>> [float(x) for x in st.func.jvp(lambda x: x**2, (3.0,), (1.0,))]
    [9.0, 6.0]
    """
    if strict:
        values, structure = tree.flatten(tuple(primals))
        values = [as_value(x, "func.jvp", "a primal") for x in values]
        flat = Flat(func, structure, has_aux, "func.jvp")
        linear = linearize_flat(flat, values, [is_active(v) for v in values])[1]
        if not all(linear.active_out[: flat.count]):
            raise ValueError(
                f"func.jvp: strict=True, and an output of {flat.name} does not depend on the "
                f"primals"
            )
    return api.jvp(func, primals, tangents, has_aux)


def jacrev(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[P, Any]:
    """Make a function that gives the Jacobian of another, by reverse mode.

    Args:
        func: a function of real arrays with real results.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair of its output and anything.
        chunk_size: rows at a time, to save memory; all by default.

    Returns:
        A function that returns the Jacobian, or (Jacobian, aux).

    Raises:
        TypeError: in a call, an argument is complex.

    As ``torch.func.jacrev``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.func.jacrev(lambda x: x * x, chunk_size=1)(snp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    return _real(
        func, argnums, "jacrev", jacobians.jacrev(func, argnums, has_aux, chunk_size=chunk_size)
    )


def jacfwd(
    func: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[P, Any]:
    """Make a function that gives the Jacobian of another, by forward mode.

    ``func`` is run once for all directions.

    Args:
        func: a function of real arrays with real results.
        argnums: the positional arguments to differentiate by.
        has_aux: whether ``func`` returns a pair of its output and anything.
        randomness: ``"same"`` lets ``func`` draw from the ambient stream, ``"error"`` refuses that.

    Returns:
        A function that returns the Jacobian, or (Jacobian, aux).

    Raises:
        TypeError: in a call, an argument is complex.
        ValueError: ``randomness`` is neither.

    As ``torch.func.jacfwd``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.func.jacfwd(lambda x: x * x)(snp.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """
    if randomness not in ("error", "same"):
        raise ValueError(
            f"func.jacfwd: randomness must be 'error' or 'same', got {randomness!r}: all columns "
            f"are derivatives of one function, with one set of draws"
        )

    @wraps(func, "fixed")
    def fixed(*args: Any, **kwargs: Any) -> Tree:
        with refusing("func.jacfwd does not allow it by default: pass randomness='same'"):
            return func(*args, **kwargs)

    of = fixed if randomness == "error" else func
    return _real(func, argnums, "jacfwd", jacobians.jacfwd(of, argnums, has_aux))


def _real(
    func: Callable[..., Any],
    argnums: int | Sequence[int],
    caller: str,
    jacobian: Callable[..., Any],
) -> Callable[..., Any]:
    """Make the same of a function, for real arguments alone."""

    @wraps(func, caller)
    def jacobian_func(*args: Any, **kwargs: Any) -> Tree:
        for i in as_argnums(argnums, len(args), caller):
            if any(map(_is_complex, tree.leaves(args[i]))):
                raise TypeError(
                    f"func.{caller}: argument {i} is complex; take derivatives by its real and "
                    f"imaginary parts, or use st.{caller} with holomorphic=True"
                )
        return jacobian(*args, **kwargs)

    return jacobian_func


def hessian(func: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """Make a function that gives the second derivatives of another: ``jacfwd`` of ``jacrev``.

    Args:
        func: a function of real arrays that returns a real scalar.
        argnums: the positional arguments to differentiate by.

    Returns:
        A function that returns the Hessian.

    As ``torch.func.hessian``.

    >>> import stretto as st
    >>> float(st.func.hessian(lambda x: x**3)(2.0))
    12.0
    """
    return jacfwd(jacrev(func, argnums), argnums)


_CHOICES = ("error", "different", "same")
_CHOOSE = (
    "func.vmap was not told whether examples share them: pass randomness='different' (numbers of "
    "its own for each example) or randomness='same' (the same for all)"
)


class _Shared:
    """A node without leaves: what is handed to every example as it is."""

    __slots__ = ("value",)

    def __init__(self, value: Tree) -> None:
        self.value = value


tree.register_pytree_node(_Shared, lambda x: ((), x.value), lambda value, _: value)


def vmap(
    func: Callable[P, R],
    in_dims: Tree = 0,
    out_dims: Tree = 0,
    randomness: str = "error",
    *,
    chunk_size: int | str | None = None,
) -> Callable[P, R]:
    """Map ``func`` over an axis of its positional arguments, all examples at once.

    Keyword arguments are handed on as they are.

    Args:
        func: a function of one example.
        in_dims: an axis for all arguments, or a tuple with an entry for each: an axis (negative
            counts from the end), ``None`` for what all examples get as it is, whatever it is, or a
            tree of these.
        out_dims: likewise, where the axis goes in the results.
        randomness: what draws from the ambient stream do inside: ``"error"`` refuses them; with
            ``"different"`` and ``"same"`` one key is drawn from the stream in force at the call,
            and each example has a stream of its own from it, or all have the same. Draws from keys
            that ``func`` is handed are not concerned.
        chunk_size: examples at a time, with the same results, to save memory; or ``"auto"``, as for
            ``st.vmap``.

    Returns:
        The mapped function.

    Raises:
        ValueError: sizes differ, an axis is not there, entries of ``in_dims`` are not as many as
            arguments, or ``randomness`` is none of these.
        TypeError: something is not an axis.
        RuntimeError: there are draws under ``"error"``.

    As ``torch.func.vmap``.

    >>> import stretto as st, stretto.numpy as snp
    >>> from stretto import nn
    >>> drop = nn.Dropout(0.5)
    >>> st.random.manual_seed(0)
    >>> same = st.func.vmap(drop, randomness="same")(snp.ones((2, 5)))
    >>> bool((same[0] == same[1]).all())
    True
    """
    if isinstance(in_dims, bool) or not isinstance(in_dims, (int, tuple)):
        raise TypeError(
            f"func.vmap: in_dims must be an int, or a tuple with an entry for each positional "
            f"argument; got {in_dims!r}"
        )
    if randomness not in _CHOICES:
        raise ValueError(f"func.vmap: randomness must be one of {_CHOICES}, got {randomness!r}")
    if chunk_size not in (None, "auto"):
        chunk_size = positive(chunk_size, "func.vmap: chunk_size")
    one_out = isinstance(out_dims, tuple) and len(out_dims) == 1

    @wraps(func, "vmap")
    def vmap_func(*args: Any, **kwargs: Any) -> Tree:
        dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(args)
        if len(dims) != len(args):
            raise ValueError(
                f"func.vmap: in_dims has {len(dims)} entries, but {name_of(func)} was called with "
                f"{len(args)} positional arguments"
            )
        examples, sizes = _examples(func, dims, args)
        why = streams.refusal() if randomness != "error" else _CHOOSE
        key = None if why else streams.next_key("func.vmap")
        # Where sizes differ, `vmap` says so of the user's own arguments.
        differs = randomness == "different" and len(sizes) == 1
        index = iota(np.uint32, sizes.pop()) if differs else None
        is_single = False

        def one(*examples: Any) -> Tree:
            nonlocal is_single
            with _stream(key, examples[-1], why):
                out = func(*examples[:-1], **kwargs)
            is_single = one_out and not isinstance(out, (tuple, list))
            out = (out,) if is_single else out
            _check_out_dims(out_dims, out)
            return out

        one.__name__ = name_of(func)
        one.__wrapped__ = func  # type: ignore[attr-defined]
        mapped = vectorize.vmap(one, (*dims, 0), out_dims, chunk_size=chunk_size)
        out = mapped(*examples, index)
        return out[0] if is_single else out

    return vmap_func


def _stream(key: Key | None, index: Array | None, why: str) -> AbstractContextManager[None]:
    """Return the stream that an example draws from."""
    if why or key is None:
        return streams.refusing(why)
    return streams.keys(key if index is None else fold_in(key, index))


def _examples(func: Callable[..., Any], dims: Tree, args: Sequence[Any]) -> tuple[Any, set[int]]:
    """Return the arguments, with what is not mapped set apart; and the sizes of mapped axes."""
    leaves, structure = tree.flatten(tuple(args))
    axes = tree.prefix_leaves(dims, tuple(args), "func.vmap", "in_dims")
    out: list[Any] = []
    sizes: set[int] = set()
    inner = inner_axes(structure, leaves)
    for i, (x, axis, n) in enumerate(zip(leaves, axes, inner, strict=True)):
        if axis is None:
            out.append(_Shared(as_value(x) if isinstance(x, np.ndarray) else x))
            continue
        path = leaf_names(func, args)[i] if _suspect(x, axis, n) else ""
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(
                f"func.vmap: an entry of in_dims must be an int or None, got {axis!r} for {path}"
            )
        value = as_value(x, "func.vmap", path)
        ndim = value.ndim - n
        if not -ndim <= axis < ndim:
            raise ValueError(
                f"func.vmap: in_dims maps axis {axis} of {path}, which has type {value.type}; for "
                f"what all examples share the entry is None"
            )
        out.append(value)
        sizes.add(value.shape[axis % ndim])
    if not sizes:
        raise ValueError("func.vmap: nothing is mapped: in_dims gives no array an axis")
    return tree.unflatten(structure, out), sizes


def _suspect(x: Tree, axis: int | None, inner: int) -> bool:
    """Say whether there may be something to say about this leaf, so that its name is needed."""
    ndim = getattr(x, "ndim", 0) - inner
    return type(axis) is not int or not -ndim <= axis < ndim


def _check_out_dims(out_dims: Tree, out: Tree) -> None:
    """Raise for what is not an axis of a result, seen as one example."""
    dims = tree.prefix_leaves(out_dims, out, "func.vmap", "out_dims")
    leaves, structure = tree.flatten(out)
    for x, axis, n in zip(leaves, dims, inner_axes(structure, leaves), strict=True):
        x = as_value(x, "func.vmap", "the result")
        ndim = x.ndim - n
        if axis is None:
            is_mapped_here = isinstance(x, Tracer) and x.interpreter is state.interpreter
            if is_mapped_here and x.concrete() is None:
                raise ValueError(
                    f"func.vmap: out_dims is None for a result that differs between examples (one "
                    f"is {x.type}); give it an axis"
                )
        elif isinstance(axis, bool) or not isinstance(axis, int):
            raise TypeError(f"func.vmap: an entry of out_dims must be an int or None, got {axis!r}")
        elif not -ndim - 1 <= axis <= ndim:
            raise ValueError(
                f"func.vmap: out_dims places axis {axis} in a result of {ndim + 1} axes"
            )


exports(__name__)
