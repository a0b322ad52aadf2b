"""How operations and their parameters are spelled: what ``tables`` are written with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from stretto._engine.core.program import Equation
from stretto.compat.jax.jaxprs.primitive import KnownPrimitive, known
from stretto.compat.jax.jaxprs.views import SPELLINGS, Spelling, generic, meant, shown

__all__ = ["NONE", "Entry", "Field", "Fixed", "spell", "spell_as_it_is", "spell_by_hand"]


def _same(x: Any) -> Any:
    return x


class Field(NamedTuple):
    """A parameter that is one of the operation's, in another form."""

    name: str
    to: Callable[[Any], Any] = _same
    back: Callable[[Any], Any] = _same


class Fixed(NamedTuple):
    """A parameter that always has this value, since the operation knows no other."""

    value: Any


Entry = Field | Fixed | str
"""How a parameter is had; a text names that of the operation that it is."""

NONE = Fixed(None)


def spell(
    cls: Any,
    name: str | None = None,
    entries: dict[str, Entry] | None = None,
    order: tuple[int, ...] | None = None,
    results: tuple[int, ...] | None = None,
) -> None:
    """Say how a class of operations is spelled: its name, and JAX's parameters.

    ``order`` says which of JAX's operands each of the operation's is, and ``results`` which of its
    results, where there are as many.
    """
    fields = {n: Field(e) if isinstance(e, str) else e for n, e in (entries or {}).items()}

    def params(operation: Any, equation: Equation) -> dict[str, Any]:
        return {
            n: f.value if isinstance(f, Fixed) else f.to(shown(getattr(operation, f.name)))
            for n, f in fields.items()
        }

    def build(params: dict[str, Any], types: Any) -> Any:
        moving = [(n, f) for n, f in fields.items() if isinstance(f, Field) and n in params]
        return cls(**{f.name: f.back(meant(params[n])) for n, f in moving})

    called = name or cls.name
    own = known(called, lambda: KnownPrimitive(called, build, cls.multiple, order, results))
    SPELLINGS[cls] = Spelling(own, params)


def spell_as_it_is(*classes: Any) -> None:
    """Show operations that JAX has by the same name with their own parameters."""
    SPELLINGS.update({cls: generic(cls) for cls in classes})


def spell_by_hand(
    cls: Any,
    name: str,
    params: Callable[[Any, Equation], dict[str, Any]],
    build: Callable[[dict[str, Any], Any], Any],
) -> None:
    """The same with functions to and from the parameters.

    Where several classes have one name, the ``build`` of the first serves all.
    """
    own = known(name, lambda: KnownPrimitive(name, build, cls.multiple))
    SPELLINGS[cls] = Spelling(own, params)
