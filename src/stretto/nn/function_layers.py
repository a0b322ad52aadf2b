"""Layers that only call a function of ``functional``, and take their words from it.

``applies(function)`` decorates such a layer: its settings are the parameters of its constructor,
and its docstring is made of the function's when somebody asks for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.nn.functional.checks import check_signal, hashable
from stretto.nn.module import Module

_C = TypeVar("_C", bound=type["FunctionLayer"])

_BUFFERS = ("weight", "pos_weight")
"""Settings that are arrays, which a layer keeps as buffers."""


class FunctionLayer(Module):
    """A function of the call's arguments and of settings, which are attributes."""

    function: ClassVar[Callable[..., Any]]
    settings: ClassVar[tuple[str, ...]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        for name, value in settings.items():
            if name in _BUFFERS:
                self.register_buffer(name, value)
            else:
                setattr(self, name, hashable(value))

    def forward(self, input: ArrayLike) -> Array:
        """Apply the function.

        Args:
            input: an array, of any shape unless the layer says otherwise.

        Returns:
            The values.
        """
        return self._call(input)

    def _call(self, *arguments: Any) -> Tree:
        settings = {name: getattr(self, name) for name in self.settings}
        return type(self).function(*arguments, **settings)

    def extra_repr(self) -> str:
        """Return the settings that are not arrays."""
        names = [name for name in self.settings if self._roles.get(name) == "static"]
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


class Plain(FunctionLayer):
    """A function without settings."""

    def __init__(self) -> None:
        super().__init__()


class InPlace(FunctionLayer):
    """A function without settings, which in PyTorch may write over its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()


class Loss(FunctionLayer):
    """A function of the model's output and a target, whose values are reduced to one."""

    reductions: ClassVar[tuple[str, ...]] = ("none", "mean", "sum")

    def __init__(self, reduction: str = "mean", **settings: Any) -> None:
        super().__init__(reduction=reduction, **settings)
        if reduction not in self.reductions:
            raise ValueError(
                f"{type(self).__name__}: reduction must be one of {', '.join(self.reductions)}; "
                f"got {reduction!r}"
            )

    def forward(self, input: ArrayLike, target: ArrayLike) -> Array:
        """Compute the loss.

        Args:
            input: what the model gives.
            target: what it should give.

        Returns:
            A scalar, or each loss where ``reduction`` is ``"none"``.
        """
        return self._call(input, target)


class PlainLoss(Loss):
    """A loss without other settings."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)


class Pool(FunctionLayer):
    """A function of signals, images or volumes; a setting that is a list becomes a tuple."""

    _axes: ClassVar[int]

    def forward(self, input: ArrayLike) -> Tree:
        """Pool the input.

        Args:
            input: (batch, channels, *space), or without the batch.

        Returns:
            The same axes with pooled sizes; with ``return_indices`` a pair of values and indices.
        """
        return self._call(check_signal(self, input, self._axes))


def applies(function: Callable[..., Any], note: str = "") -> Callable[[_C], _C]:
    """Decorate a layer with the function that it calls, its settings, and the function's docstring.

    The settings are the parameters of the layer's constructor, unless it says what they are.
    ``note`` follows the function's first paragraphs.

    >>> from stretto import nn
    >>> nn.Softplus.settings, nn.Softplus.__doc__.splitlines()[-2]
    (('beta', 'threshold'), '>>> st.nn.Softplus(beta=2)(st.numpy.array([0.0, 100.0])).round(3)')
    """

    def decorate(cls: _C) -> _C:
        cls.function = staticmethod(function)
        if "settings" not in vars(cls):
            cls.settings = tuple(name for name in _parameters(cls) if name != "inplace")
        cls.__doc__ = _Docstring(function, note)  # type: ignore[assignment]
        return cls

    return decorate


def _parameters(cls: type[Module]) -> list[str]:
    code = cls.__init__.__code__
    return [*code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]]


class _Docstring:
    """The docstring of a layer, made when it is read."""

    def __init__(self, function: Callable[..., Any], note: str) -> None:
        self.function, self.note, self.text = function, note, ""

    def __get__(self, layer: object, cls: type[Module]) -> str:
        self.text = self.text or _docstring(self.function, cls, self.note)
        return self.text


def _docstring(function: Callable[..., Any], cls: type[Module], note: str) -> str:
    """Return the layer's docstring: the function's, of the constructor's parameters alone."""
    if not function.__doc__:  # python -OO
        return ""
    doc = inspect.cleandoc(function.__doc__)
    parts = [doc.partition("\n\nArgs:")[0], *([note] if note else [])]
    described = dict(_entries(doc, "Args"))
    arguments = []
    for name in _parameters(cls):
        text = described[name]
        if name in _BUFFERS:
            text = f"{text.removesuffix('.')}; kept as a buffer."
        arguments.append((name, text))
    raised = [
        (error, text)
        for error, text in _entries(doc, "Raises")
        if text != "``input`` is not an array or a number."
    ]
    inputs = [
        f"``{name}``: {described[name].removesuffix('.')}"
        for name in [*inspect.signature(cls.forward).parameters][1:]
        if name != "key" and not described[name].startswith("an array of any shape")
    ]
    if inputs:
        parts.append(textwrap.fill(f"A call takes {'; '.join(inputs)}.", 96))
    for heading, entries in (("Args", arguments), ("Raises", raised)):
        if entries:
            lines = [_hang(f"{name}: {text}") for name, text in entries]
            parts.append("\n".join([f"{heading}:", *lines]))
    parts.append(f"As PyTorch's ``nn.{cls.__name__}``; see ``functional.{function.__name__}``.")
    parts.append(_example(doc, function.__name__, cls))
    return "\n\n".join(parts) + "\n"


def _hang(entry: str) -> str:
    return textwrap.fill(entry, 96, initial_indent=" " * 4, subsequent_indent=" " * 8)


def _entries(doc: str, heading: str) -> Iterator[tuple[str, str]]:
    """Yield the names of a section of a docstring, and what it says of them."""
    section = re.search(rf"^{heading}:\n((?:    .*\n?)+)", doc, re.MULTILINE)
    for entry in re.split(r"^    (?=\S)", section[1] if section else "", flags=re.MULTILINE)[1:]:
        name, _, text = entry.partition(": ")
        yield name, " ".join(text.split())


def _example(doc: str, name: str, cls: type[Module]) -> str:
    """Return the function's example, with a layer of these settings in place of each call."""
    example = doc[doc.index(">>> ") :]
    lines = example.replace(
        "from stretto.nn import functional as F", "from stretto import nn"
    ).splitlines()
    changed = _CallToLayer(name, cls)
    for i, line in enumerate(lines):
        if line.startswith(">>> ") and f".{name}(" in line:
            lines[i] = ">>> " + ast.unparse(changed.visit(ast.parse(line[4:]))).replace("'", '"')
    return "\n".join(lines)


class _CallToLayer(ast.NodeTransformer):
    """Replace ``st.nn.functional.f(x, setting)`` by ``st.nn.Layer(setting)(x)``."""

    def __init__(self, name: str, cls: type[Module]) -> None:
        self.name, self.cls = name, cls
        self.inputs = [*inspect.signature(cls.forward).parameters][1:]
        self.parameters = _parameters(cls)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Replace a call of the function."""
        self.generic_visit(node)
        home = node.func
        if not isinstance(home, ast.Attribute) or home.attr != self.name:
            return node
        count = len([name for name in self.inputs if name != "key"])
        package = home.value.value if isinstance(home.value, ast.Attribute) else ast.Name("nn")
        layer = ast.Attribute(package, self.cls.__name__)
        settings = [keyword for keyword in node.keywords if keyword.arg in self.parameters]
        others = [keyword for keyword in node.keywords if keyword.arg in self.inputs]
        return ast.Call(ast.Call(layer, node.args[count:], settings), node.args[:count], others)
