"""``Module``: a model as an object with PyTorch's habits, and a tree of arrays.

Parameters and buffers are attributes that hold arrays; submodules are attributes that hold modules;
every other attribute is static. As a tree its leaves are parameters and buffers, so a module passes
through every transformation, and a list of modules can be stacked.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import numpy as np

from stretto._engine import core
from stretto._engine.core import migration, tree
from stretto._engine.core.boundary import bounded
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import shown
from stretto._engine.core.types import as_dtype, is_inexact, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Tree
from stretto._engine.ops.convert import convert
from stretto.nn import updating
from stretto.nn.module_tree import BORROWED, ModuleTree, clone, flatten, unflatten
from stretto.nn.updating import updates_of

if TYPE_CHECKING:
    from stretto._engine.core.cards import Card, Item

    _Marked = Array  # an attribute to which a parameter is assigned holds the array
else:
    _Marked = object


class Parameter(_Marked):
    """Mark an array, assigned to an attribute of a module, as one that is trained.

    The attribute then holds the array itself.

    Args:
        value: the array, of a floating or complex dtype; a Python number becomes an array.

    Raises:
        TypeError: ``value`` is not an array, or holds integers or booleans, which have no gradient.

    As PyTorch's ``nn.Parameter``.

    >>> import stretto as st
    >>> from stretto import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(st.numpy.ones(3))
    ...
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> list(Scale().state_dict())
    ['factor']
    """

    __slots__ = ("value",)

    if TYPE_CHECKING:

        def __new__(cls, value: ArrayLike | Parameter) -> Array:
            """Return the array."""
            ...

    def __init__(self, value: ArrayLike | Parameter) -> None:
        self.value = value.value if isinstance(value, Parameter) else as_fixed(value, "Parameter")
        if not is_inexact(self.value.dtype):
            raise TypeError(
                f"Parameter: {self.value.type} has no gradient; convert it to a float, or keep it "
                f"with register_buffer"
            )


def as_fixed(value: ArrayLike, caller: str, name: str = "value") -> Array:
    """Return the value as an array of a strong dtype, even if it was a Python number."""
    array = as_value(value, caller, name)
    return convert(array, array.dtype)


_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)
_M = TypeVar("_M", bound="Module")


class _Forward(Protocol[_P, _R_co]):
    """A module whose ``forward`` takes and gives these: its calls take and give the same."""

    def forward(self, *args: _P.args, **kwargs: _P.kwargs) -> _R_co:
        """Return what the module computes."""
        ...


@shown("stretto.nn.module", "card_of", "brief_text")
class Module(ModuleTree):
    """The base class of models and layers.

    A subclass calls ``super().__init__()``, then assigns ``Parameter(array)``, modules, and static
    settings (numbers, strings, functions, tuples: anything hashable) to attributes, and defines
    ``forward``. Arrays that are not trained are added by ``register_buffer``. Arrays never change;
    to change an attribute, assign another.

    What a module holds in two places (a module, or an array: tied weights) counts once for names,
    copies, ``to`` and ``func.functional_call``. A tree has no such notion: a module that went
    through a transformation, or ``tree.map``, holds two.

    Raises:
        AttributeError: an attribute is used before ``super().__init__()``, or has the name of a
            method.
        TypeError: an attribute is a bare array, or not hashable, or a list or dictionary of arrays
            or modules (which PyTorch would silently leave out of the parameters).

    As PyTorch's ``nn.Module``.

    >>> import stretto as st
    >>> from stretto import nn
    >>> class Model(nn.Module):
    ...     def __init__(self, *, key=None):
    ...         super().__init__()
    ...         self.fc = nn.Linear(3, 2, key=key)
    ...
    ...     def forward(self, x):
    ...         return nn.relu(self.fc(x))
    >>> model = Model(key=st.random.PRNGKey(0))
    >>> model(st.numpy.ones((4, 3))).shape
    (4, 2)
    >>> [name for name, _ in model.named_parameters()]
    ['fc.weight', 'fc.bias']
    """

    training: bool

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tree.register_attributes(cls, flatten, unflatten)

    if not TYPE_CHECKING:

        def __new__(cls, *args: Any, **kwargs: Any) -> Module:
            """Refuse PyTorch's argument ``device``, and JAX's spelling of others, in words."""
            if "device" in kwargs:
                _refuse_device(cls)
            if not migration.JAX_KEYWORDS.keys().isdisjoint(kwargs):
                _refuse_spelling(cls, kwargs)
            return super().__new__(cls)

    def __init__(self) -> None:
        self.__dict__["_roles"] = {}
        self.__dict__["_unsaved"] = frozenset()
        self.__dict__["_layout"] = None
        self.training = True

    def forward(self, *args: Any, **kwargs: Any) -> Tree:
        """Compute the module's output; each subclass defines its own.

        Args:
            *args: whatever the subclass takes.
            **kwargs: the same, by name.

        Returns:
            Whatever the subclass gives.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no forward: define forward(self, x) in the class"
        )

    def __call__(self: _Forward[_P, _R_co], *args: _P.args, **kwargs: _P.kwargs) -> _R_co:
        """Call ``forward`` with these arguments.

        Args:
            *args: those of ``forward``.
            **kwargs: those of ``forward``, by name.

        Returns:
            What ``forward`` returns.
        """
        try:
            return self.forward(*args, **kwargs)
        except TypeError as error:
            migration.explain_call(error)
            raise

    def _named_by(self) -> Callable[..., Tree]:
        """Return what names the arguments of a call."""
        return self.forward

    # Attributes

    def __setattr__(self, name: str, value: object) -> None:
        roles = self.__dict__.get("_roles")
        if roles is None:
            raise self._too_early(name)
        if BORROWED in self.__dict__:
            updating.refuse_borrowed(self, name)
        role = roles.get(name)
        if isinstance(value, Parameter):
            self._assign(name, value.value, "parameter")
        elif isinstance(value, Module):
            self._assign(name, value, "module")
        elif role == "buffer":
            buffer: Any = value
            self.update_buffer(name, buffer)
        elif isinstance(value, (Value, np.ndarray)):
            if role != "parameter":
                raise TypeError(
                    f"{type(self).__name__}.{name}: a bare array does not say whether it is "
                    f"trained. Write self.{name} = nn.Parameter(array) if it is, "
                    f'self.register_buffer("{name}", array) if it is not'
                )
            self.__dict__[name] = as_fixed(value, type(self).__name__, name)
        elif role in ("parameter", "module"):
            if value is not None:
                raise TypeError(
                    f"{type(self).__name__}.{name} is a {role}: expected one, or None; got "
                    f"{type(value).__name__}. To make it something else, delete it first"
                )
            self.__dict__[name] = None
        else:
            self._check_static(name, value)
            self._assign(name, value, "static")

    def _assign(self, name: str, value: object, role: str) -> None:
        if self._roles.get(name) != role:
            here = getattr(type(self), name, None)
            if name in _OWN or callable(here) or isinstance(here, property):
                raise AttributeError(
                    f"{type(self).__name__} has a method or property called {name}; give the "
                    f"attribute another name"
                )
            self._roles[name] = role
            self.__dict__["_layout"] = None
        elif role == "static":
            self.__dict__["_layout"] = None
        self.__dict__[name] = value

    def _check_static(self, name: str, value: object) -> None:
        where = f"{type(self).__name__}.{name}"
        if migration.is_pytorch(value) and hasattr(value, "state_dict"):
            raise TypeError(
                f"{where}: expected a module of stretto.nn, got {migration.class_of(value)}"
            )
        if isinstance(value, (list, tuple, dict, set)):
            leaves = tree.leaves(value)
            if any(isinstance(x, (Value, np.ndarray, Parameter)) for x in leaves) or any(
                isinstance(x, Module) for x in _members(value)
            ):
                raise TypeError(
                    f"{where}: a {type(value).__name__} of arrays or modules would not be trained; "
                    f"use nn.ModuleList, nn.ModuleDict or nn.ParameterList"
                )
        try:
            hash(value)
        except TypeError:
            way = "make it a tuple" if isinstance(value, list) else "make it hashable"
            raise TypeError(
                f"{where}: an attribute that is neither parameter, buffer nor module is static, "
                f"and must be hashable, because compiled code depends on it; {way}, got {value!r}"
            ) from None

    def __delattr__(self, name: str) -> None:
        if name not in self._roles:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        if BORROWED in self.__dict__:
            updating.refuse_borrowed(self, name)
        del self._roles[name], self.__dict__[name]
        self.__dict__["_unsaved"] = self._unsaved - {name}
        self.__dict__["_layout"] = None

    def __getattr__(self, name: str) -> Tree:
        # Called only for attributes that are not found.
        if name.startswith("__"):
            raise AttributeError(name)
        roles = self.__dict__.get("_roles")
        if roles is None:
            raise self._too_early(name)
        ours = migration.MODULES.get(name, f"it has: {', '.join(roles)}")
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; {ours}")

    def _too_early(self, name: str) -> AttributeError:
        name = type(self).__name__ if name in _OWN else f"{type(self).__name__}.{name}"
        return AttributeError(
            f"{name} was used before super().__init__(): call that first in __init__"
        )

    def __getstate__(self) -> dict[str, Any]:
        # The layout keeps a hash, and hashes differ between processes.
        held = {**self.__dict__, "_layout": None}
        held.pop(BORROWED, None)
        return held

    def register_parameter(self, name: str, value: ArrayLike | Parameter | None) -> None:
        """Add a parameter, or ``None`` in its place.

        Args:
            name: the attribute, without dots.
            value: the array, floating or complex; None for a parameter that this module does
                not have.

        Raises:
            KeyError: there is such an attribute already.
            TypeError: ``value`` is not an array, or has no gradient.
            ValueError: ``name`` is empty or has a dot.
        """
        self._free(name)
        marked: Any = None if value is None else Parameter(value)
        self._assign(name, None if marked is None else marked.value, "parameter")

    def register_buffer(
        self, name: str, value: ArrayLike | Parameter | None, persistent: bool = True
    ) -> None:
        """Add an array that is not trained, or ``None`` in its place.

        Args:
            name: the attribute, without dots.
            value: the array, of any dtype; None for a buffer that this module does not have.
            persistent: whether ``state_dict`` includes it.

        Raises:
            KeyError: there is such an attribute already.
            TypeError: ``value`` is not an array.
            ValueError: ``name`` is empty or has a dot.
        """
        self._free(name)
        value = None if value is None else as_fixed(value, type(self).__name__, name)
        self._assign(name, value, "buffer")
        if not persistent:
            self.__dict__["_unsaved"] = self._unsaved | {name}

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, or ``None`` in its place.

        Args:
            name: the attribute, without dots.
            module: the module; None for one that this module does not have.

        Raises:
            KeyError: there is such an attribute already.
            TypeError: ``module`` is neither a module nor None.
            ValueError: ``name`` is empty or has a dot.
        """
        self._free(name)
        if not (module is None or isinstance(module, Module)):
            raise TypeError(
                f"{type(self).__name__}: {name} must be a module, got {migration.class_of(module)}"
            )
        self._assign(name, module, "module")

    add_module = register_module

    def _free(self, name: str) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise ValueError(
                f"{type(self).__name__}: a name must be a string without dots, and not empty; got "
                f"{name!r}"
            )
        if name in self._roles:
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")

    def update_buffer(self, name: str, value: ArrayLike | Parameter | None) -> None:
        """Give a buffer its next value, as batch normalization does in train mode.

        Outside transformations it is assigned. Inside one the assignment would be lost, unless
        ``nn.stateful_call`` calls the module.

        Args:
            name: the buffer.
            value: its next value; None empties it.

        Raises:
            KeyError: there is no such buffer.
            RuntimeError: the update would be lost.
        """
        if self._roles.get(name) != "buffer":
            raise KeyError(f"{type(self).__name__} has no buffer {name!r}")
        value = None if value is None else as_fixed(value, type(self).__name__, name)
        updating.check(self, name)
        self.__dict__[name] = value

    # Modes and types

    def apply(self: _M, f: Callable[[Module], Any]) -> _M:
        """Call a function on every module inside, then on this one.

        Args:
            f: the function of a module; what it returns is not used.

        Returns:
            This module.
        """
        for child in self.children():
            child.apply(f)
        f(self)
        return self

    def train(self: _M, mode: bool = True) -> _M:
        """Put this module, and all inside it, in train mode.

        Args:
            mode: False for evaluation mode.

        Returns:
            This module.
        """
        for module in self.modules():
            module.training = bool(mode)
        return self

    def eval(self: _M) -> _M:
        """Put this module, and all inside it, in evaluation mode.

        Returns:
            This module.
        """
        return self.train(False)

    @bounded
    def to(self: _M, dtype: DTypeLike) -> _M:
        """Convert parameters and buffers of floating dtypes; complex ones stay as they are.

        Args:
            dtype: the floating dtype to convert to.

        Returns:
            This module.

        Raises:
            TypeError: ``dtype`` is not floating.
        """
        try:
            dtype = as_dtype(dtype)
        except TypeError as error:
            raise TypeError(
                f"{type(self).__name__}.to: {error}; for a device use "
                f"`model = st.device_put(model, device)`"
            ) from None
        if kind_of(dtype) != "float":
            raise TypeError(f"{type(self).__name__}.to: expected a floating dtype, got {dtype}")
        converted: dict[int, Any] = {}  # an array held in two places stays one
        for module in self.modules():
            for name, value in module._arrays():
                if kind_of(value.dtype) == "float":
                    if id(value) not in converted:
                        converted[id(value)] = value, convert(value, dtype)
                    module.__dict__[name] = converted[id(value)][1]
        return self

    def clone(self: _M) -> _M:
        """Copy the module deeply: assignments to one are not seen by the other.

        Returns:
            The copy.
        """
        return clone(self, {})

    # State

    def state_dict(self, prefix: str = "") -> dict[str, Array]:
        """Collect parameters and persistent buffers by dotted name.

        Args:
            prefix: what names begin with.

        Returns:
            The arrays by name; one held twice is under both names.
        """
        return {
            name: value
            for name, (module, attribute, value) in updating.named_arrays(self, prefix).items()
            if attribute not in module._unsaved
        }

    def load_state_dict(
        self, state_dict: Mapping[str, ArrayLike], strict: bool = True
    ) -> updating.LoadedKeys:
        """Assign arrays by name: all of them, or none.

        Args:
            state_dict: arrays by dotted name, ours, NumPy's, or anything NumPy takes; they are
                converted to the dtypes of the present ones.
            strict: whether the names must be the same; otherwise those in common are loaded.

        Returns:
            The names ``(missing_keys, unexpected_keys)``.

        Raises:
            TypeError: ``state_dict`` is not a dictionary.
            ValueError: shapes differ, or names do while ``strict``; the message lists them all.

        >>> from stretto import nn
        >>> one, other = nn.Linear(2, 1), nn.Linear(2, 1)
        >>> one.load_state_dict(other.state_dict())
        LoadedKeys(missing_keys=[], unexpected_keys=[])
        """
        return updating.load(self, state_dict, strict)

    # Printing

    def extra_repr(self) -> str:
        """Describe the settings, as they appear in the printed form.

        Returns:
            The text between the parentheses.
        """
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __str__(self) -> str:
        return text_of(self)

    def __copy__(self: _M) -> _M:
        return clone(self, {}, deep=False)

    def __deepcopy__(self: _M, memo: dict[int, Any]) -> _M:
        return clone(self, memo)


_OWN = ("_roles", "_unsaved", "_layout")


def _refuse_spelling(cls: type, keywords: Iterable[str]) -> None:
    """Raise ``TypeError`` for a keyword that the class has under another name."""
    parameters = inspect.signature(cls).parameters
    for keyword in keywords:
        if keyword not in parameters and (ours := migration.own_spelling(keyword, cls)):
            raise TypeError(f"{cls.__name__} has no argument {keyword!r}; it is {ours} here")


def _refuse_device(cls: type[Module]) -> None:
    """Raise for PyTorch's argument, unless the class has one of that name."""
    parameters = inspect.signature(cls.__init__).parameters
    if "device" not in parameters and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        raise TypeError(
            f"{cls.__name__}: there is no argument device; arrays are made on the default device, "
            f"and `model = st.device_put(model, device)` moves a module to another"
        )


def _members(value: Collection[object]) -> Iterable[object]:
    """Return the elements of a container, one level down."""
    return value.values() if isinstance(value, dict) else value


tree.register_attributes(Module, flatten, unflatten)


def stateful_call(module: _M, /, *args: Any, **kwargs: Any) -> tuple[Any, _M]:
    """Call a module, and return its output and the module with updated buffers.

    The module returned has what the call assigns to buffers (running statistics); the one passed in
    does not change. So this works inside every transformation.

    Args:
        module: the module to call.
        *args: what the module takes.
        **kwargs: the same, by name.

    Returns:
        The module's output, and the module with its new buffers.

    Raises:
        TypeError: ``module`` is not a module.

    >>> import stretto as st
    >>> from stretto import nn
    >>> norm = nn.BatchNorm1d(2)
    >>> step = st.jit(lambda norm, x: nn.stateful_call(norm, x)[1])
    >>> after = step(norm, st.numpy.array([[1.0, 0.0], [3.0, 0.0]]))
    >>> norm.running_mean, after.running_mean
    (Array([0., 0.], dtype=float32), Array([0.2, 0. ], dtype=float32))
    """
    if not isinstance(module, Module):
        raise TypeError(f"stateful_call: expected a module, got {type(module).__name__}")
    updated = module.clone()
    with updates_of(updated.modules()):
        out = updated(*args, **kwargs)
    return out, updated


# How modules are shown: the whole text is PyTorch's, and the ``repr`` stays short


def text_of(module: Module) -> str:
    """Return the module and all modules inside it, a line for each, or a few."""
    return "\n".join(_inside(module, sys.maxsize, False))


def brief_text(module: Module) -> str:
    """Return the same in few lines: of equal neighbours one, and what is deepest left out.

    >>> from stretto import nn
    >>> nn.Sequential(*[nn.Sequential(nn.ReLU(), nn.Tanh()) for _ in range(100)])
    Sequential(
      (0-99): 100 × Sequential(
        (0): ReLU()
        (1): Tanh()
      )
    )
    """
    whole = _lines(module, sys.maxsize, False)
    if len(whole) <= core.cards.MOST_LINES:
        return "\n".join(whole)
    deepest, lines = _depth(module), whole
    for depth in range(deepest, 0, -1):
        lines = _lines(module, depth, True)
        if len(lines) < core.cards.MOST_LINES:
            note = [] if depth == deepest else [_NOTE]
            return "\n".join([*lines, *note])
    first, left_out, last = core.cards.ends(lines, core.cards.MOST_LINES - 2)
    return "\n".join([*first, f"  ... {left_out:,} more lines", *last, _NOTE])


_NOTE = "# print(module) shows all of it"


def _depth(module: Module) -> int:
    """Return how many modules are one inside the other, this one included."""
    return 1 + max([_depth(child) for child in module.children()], default=0)


def _lines(module: Module, depth: int, merged: bool) -> list[str]:
    """Return the lines, down to this depth; where ``merged``, equal neighbours are one."""
    extra, name = module.extra_repr(), module._get_name()
    children = list(module.named_children())
    if not children:
        return f"{name}({extra})".split("\n")
    if not depth:
        return [f"{name}(... {', '.join([*amounts(module), '...'])})"]
    parts = [(key, _inside(child, depth - 1, merged)) for key, child in children]
    lines = [f"{name}(", *([f"  {line}" for line in extra.split("\n")] if extra else [])]
    for key, (first, *rest) in _merge_neighbors(parts) if merged else parts:
        lines.append(f"  ({key}): {first}")
        lines += [f"  {line}" for line in rest]
    return [*lines, ")"]


def _inside(module: Module, depth: int, merged: bool) -> list[str]:
    """Return the lines of a module inside another: those of its own ``repr``, if it has one."""
    if type(module).__repr__ is Module.__repr__:
        return _lines(module, depth, merged)
    return repr(module).split("\n")


def _merge_neighbors(parts: list[tuple[str, list[str]]]) -> Iterator[tuple[str, list[str]]]:
    """Return numbered neighbours of equal text as one: ``(0-11): 12 × Block(``."""
    start = 0
    while start < len(parts):
        end = start + 1
        while end < len(parts) and parts[end][1] == parts[start][1] and parts[start][0].isdigit():
            end += 1
        key, lines = parts[start]
        if end - start > 1:
            key = f"{key}-{parts[end - 1][0]}"
            lines = [f"{end - start} × {lines[0]}", *lines[1:]]
        yield key, lines
        start = end


def card_of(module: Module) -> Card:
    """Return the module and those inside it, with the parameters of each part."""
    return _card(module, "")


def _card(module: Module, name: str) -> Card:
    extra = core.cards.one_line(module.extra_repr(), 120)
    title = f"{module._get_name()}({extra})"
    body: list[Item] = []
    for key, role in module._roles.items():
        value = module.__dict__[key]
        if role == "module" and value is not None:
            body.append(_card(value, key))
        elif role in ("parameter", "buffer") and value is not None:
            notes = " buffer" if role == "buffer" else ""
            body.append(((f"{key}: ", ""), (core.cards.type_words(value), "op"), (notes, "quiet")))
    mode = () if module.training or name else ("in evaluation mode",)
    prefix = f"({name}): " if name else ""
    return core.cards.Card(
        f"{prefix}{title}", (*amounts(module), *mode), tuple(body), open=not name
    )


def amounts(module: Module) -> tuple[str, ...]:
    """Return how many parameters and buffers a module has, and their bytes; nothing for neither."""
    parameters, buffers = list(module.parameters()), list(module.buffers())
    if not parameters and not buffers:
        return ()
    facts = [core.cards.counted(core.cards.numbers_in(parameters), "parameter")]
    if buffers:
        facts.append(f"{core.cards.numbers_in(buffers):,} in buffers")
    return (*facts, core.cards.size(core.cards.bytes_in([*parameters, *buffers])))
