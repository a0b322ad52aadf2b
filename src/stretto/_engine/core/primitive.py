"""Primitives: one class each; static parameters are fields, rules are methods.

Layer 1 (core). A rule is given by the class, derived by a family's base class, or refused in
words (``Refused``); a class that leaves one out cannot be made. Next, read ``interpreter``.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from stretto._engine.core.bounded import room
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.forks import lock
from stretto._engine.core.interpreter import state
from stretto._engine.core.types import ArrayType

if TYPE_CHECKING:
    from stretto._engine.core.program import Atom, Equation

__all__ = [
    "NOT_LINEAR",
    "PRIMITIVES",
    "RULES",
    "ZERO_DERIVATIVE",
    "Kernel",
    "Primitive",
    "Refused",
]

RULES = ("infer", "reference", "lower", "jvp", "transpose", "vmap")
"""The rules that every primitive gives, derives or refuses."""

PRIMITIVES: list[type[Primitive]] = []
"""Every concrete primitive class, in the order of definition."""


class Kernel(enum.Enum):
    """What a compiler makes of one application of an operation."""

    VIEW = enum.auto()
    """No kernel: others read its operand in another order."""
    ONE = enum.auto()
    """A kernel, or a part of one, of few instructions an element; compiled once for all equal."""
    LONG = enum.auto()
    """The same of tens of instructions an element."""
    SUM = enum.auto()
    """A kernel of its own with all that goes before fused into it, so compiled each time."""
    WRITTEN = enum.auto()
    """A call of a library, or many operations."""


class Refused:
    """A rule that does not exist, and why: calling it raises ``MissingRuleError`` that says so."""

    def __init__(self, why: str) -> None:
        self.why = why
        self._rule = "this rule"

    def __set_name__(self, owner: type, name: str) -> None:
        self._rule = name

    def __get__(self, instance: Primitive | None, owner: type[Primitive]) -> Any:
        if instance is None:
            return self

        def refuse(*_: Any) -> Any:
            raise MissingRuleError(f"{instance.name} has no {self._rule} rule: {self.why}")

        return refuse

    def __call__(self, *_: Any) -> Any:
        """Refuse, without the primitive's name."""
        raise MissingRuleError(f"there is no {self._rule} rule: {self.why}")


NOT_LINEAR: Any = Refused("it is not linear in any argument, so only its jvp is ever transposed")


class _ZeroDerivative:
    """The jvp rule of a primitive whose derivative is zero wherever it exists."""

    def __get__(self, instance: Primitive | None, owner: type[Primitive]) -> Any:
        if instance is None:
            return self

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            out = instance(*primals)
            return out, (None,) * len(out) if instance.multiple else None

        return jvp


ZERO_DERIVATIVE: Any = _ZeroDerivative()


class _Interned(type):
    """Makes equal primitives one object, so that they compare and hash as fast as objects do.

    Where a class has more than some thousand sets of parameters it starts anew; then equal ones
    may be two objects, which costs a cache miss. Those that hold programs or arrays are left
    alone, so that nothing here keeps them alive. A class is made a dataclass when first called:
    that is costly, and a program needs few of them.
    """

    _instances: dict[tuple[Any, ...], Any]
    _unfinished: bool
    interned: bool

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.interned:
            if cls._unfinished:
                _finish(cls)
            return super().__call__(*args, **kwargs)
        found = None if kwargs else cls._instances.get(args)
        if found is None:
            if cls._unfinished:
                _finish(cls)
            made = super().__call__(*args, **kwargs)
            # The parameters left out have their defaults; all spellings give one object.
            key = tuple([value for _, value in made.parameters()])
            found = room(cls._instances).setdefault(key, made)
            if not kwargs:
                cls._instances[args] = found
        return found


_finishing = lock()
_FROZEN = {"__setattr__", "__delattr__"}
"""What makes a dataclass frozen."""


def _finish(cls: Any) -> None:
    """Make the class, and those that it derives from, the dataclasses that they say they are."""
    with _finishing:
        for one in reversed(cls.__mro__):
            if one.__dict__.get("_unfinished"):
                if _has_parameters(one):
                    # Of an earlier attempt that was interrupted: it would be refused.
                    for name in _FROZEN & vars(one).keys():
                        delattr(one, name)
                    dataclasses.dataclass(frozen=True, eq=False, repr=False)(one)
                    one._parameters = tuple([field.name for field in dataclasses.fields(one)])
                one._unfinished = False


def _has_parameters(cls: type) -> bool:
    """Whether it has parameters besides those of the classes that it derives from."""
    return any(["ClassVar" not in str(t) for t in inspect.get_annotations(cls).values()])


_NO_EFFECTS: frozenset[Any] = frozenset()


@dataclass_transform(frozen_default=True, kw_only_default=False)
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Primitive(metaclass=_Interned):
    """An operation with its rules.

    Subclasses are frozen dataclasses made without the decorator. A subclass marked
    ``abstract=True`` is a family: it supplies rules and is not an operation itself.

    The rules, for arguments that are values (arrays or tracers):

    - ``infer(*types)``: the output's type (a tuple of them where ``multiple``), or an error.
    - ``reference(*arrays)``: NumPy arrays to NumPy arrays; eager evaluation, and the tests' oracle.
    - ``lower(b, *operands)``: StableHLO through the builder ``b``.
    - ``jvp(primals, tangents)``: output and its tangent; ``None`` stands for a zero tangent.
    - ``transpose(ct, *args)``: the cotangent of each argument, ``None`` for those not ``Linear``.
    - ``vmap(size, args, axes)``: output and its mapped axis (``None``: not mapped).
    - ``linearize(primals, tangents)``: as ``jvp``, with outputs that depend on primals computed
      apart from those linear in tangents; ``jvp`` serves, but for operations that hold programs.

    What else others go by are its traits, below: attributes that a family or a class sets. No
    decision depends on ``name``, which is for people: in printed programs, messages and profiles.
    """

    name: ClassVar[str]

    # What an application is made of.
    multiple: ClassVar[bool] = False
    """Whether the rules give a tuple of outputs, and not the one."""
    holds_programs: ClassVar[bool] = False
    """Whether it has programs among its parameters; see ``control/family``."""
    calls_python: ClassVar[bool] = False
    """Whether it calls a function of the user's; ``interpret`` is then what runs it eagerly."""
    interned: ClassVar[bool] = True
    """Whether those of equal parameters are one object: not if they hold programs, Python functions
    or arrays, which would be kept alive. The first two it knows by itself."""

    # How it is run at rest.
    light: ClassVar[bool] = False
    """Whether ``reference`` takes some microseconds at most on small arrays, as NumPy's functions
    do, so that a program of a few such operations need not be compiled."""
    widens: ClassVar[bool] = False
    """Whether ``reference`` gives for bfloat16 what it gives, far faster, for float32, rounded."""
    only_compiled: ClassVar[bool] = False
    """Whether it is compiled where ``compiled`` says so, whatever ``config.eager_compiled``."""

    # What a pass over programs may do with it.
    splat: ClassVar[bool] = False
    """Whether it takes splats (all elements equal) to a splat, so that literals fold."""
    mergeable: ClassVar[bool] = True
    """Whether one application may serve for two of the same operands."""
    commutative: ClassVar[bool] = False
    """Whether its two operands may change places, and the bits stay (but of complex numbers)."""
    rollable: ClassVar[bool] = True
    """Whether a loop may take the place of copies of it, and of what repeats in its programs."""
    reducible: ClassVar[bool] = False
    """Whether ``simpler`` may find anything, which is seen by its being there."""

    # What it costs to compile.
    kernel: ClassVar[Kernel | None] = None
    """``None``: ``Kernel.ONE`` where it is ``light``, else ``Kernel.WRITTEN``."""

    _unfinished: ClassVar[bool] = False
    _parameters: ClassVar[tuple[str, ...]] = ()

    inferred: ClassVar[dict[tuple[ArrayType, ...], tuple[ArrayType, ...]]]
    """Of each primitive: the output types for the input types that were asked about."""

    infer: ClassVar[Callable[..., Any]]
    reference: ClassVar[Callable[..., Any]]
    lower: ClassVar[Callable[..., Any]]
    jvp: ClassVar[Callable[..., Any]]
    transpose: ClassVar[Callable[..., Any]]
    vmap: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Only a class with parameters, of its own or inherited and not yet looked at, needs more.
        inherited = any([getattr(base, "_unfinished", False) for base in cls.__bases__])
        cls._unfinished = inherited or _has_parameters(cls)
        cls._instances = {}
        cls.interned = cls.interned and not (cls.holds_programs or cls.calls_python)
        cls.reducible = cls.simpler is not Primitive.simpler
        if abstract:
            return
        if "name" not in cls.__dict__:
            cls.name = _snake_case(cls.__name__)
        missing = [rule for rule in RULES if getattr(cls, rule, None) is None]
        if missing:
            raise TypeError(
                f"primitive {cls.name}: no rule for {', '.join(missing)}; write the method, take "
                f"it from a family's base class, or refuse it with Refused('why, and what to use')"
            )
        PRIMITIVES.append(cls)

    def __new__(cls, *_: Any, **__: Any) -> Primitive:
        """One that has inferred nothing yet."""
        made = object.__new__(cls)
        vars(made)["inferred"] = {}
        return made

    def __call__(self, *args: Any) -> Any:
        """Apply to values, under the current interpreter."""
        return state.interpreter.process(self, args)

    def __instancecheck__(self, other: object) -> bool:
        """Whether it is this one: so that the same test serves for classes and their instances."""
        return other is self

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """See the class: by default the jvp rule, whose linear part the caller separates."""
        return self.jvp(primals, tangents)

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """What gives the same bits more simply: an operation and its operands, or an atom.

        Only operations of one operand are asked: ``x`` is it, ``maker`` the equation that made it.
        ``None``: nothing is known.
        """
        return None

    @property
    def effects(self) -> frozenset[Any]:
        """What it does beside giving outputs; see ``core/effects``."""
        return _NO_EFFECTS

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Whether eager evaluation on the CPU should run a compiled program, not ``reference``.

        It follows from types alone, by what ``ops/thresholds`` says.
        """
        return False

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """An estimate of its time, to weigh one way of running against another.

        The unit is that of one product in a large matrix product, some 0.05 ns on one core. By
        default as long as it takes to go through the largest array.
        """
        return 4 * max([t.size for t in (*types, *outs)], default=0)

    def splat_reference(self, *elements: Any) -> Any:
        """Where ``splat``: the element of the output for the elements of the inputs."""
        return self.reference(*elements)

    def parameters(self) -> list[tuple[str, Any]]:
        """The static parameters, by name."""
        return [(name, getattr(self, name)) for name in self._parameters]

    def out_types(self, types: tuple[ArrayType, ...]) -> tuple[ArrayType, ...]:
        """The output types for these input types; remembered."""
        found = self.inferred.get(types)
        if found is None:
            out = self.infer(*types)
            found = tuple(out) if self.multiple else (out,)
            room(self.inferred)[types] = found
        return found

    def __repr__(self) -> str:
        plain = ", ".join(f"{key}={value!r}" for key, value in self.parameters())
        return f"{self.name}[{plain}]" if plain else self.name


def _snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))
