"""Primitives: one class each; static parameters are fields, rules are methods.

A rule is either written in the class, inherited from the base class of a family, or refused with a
reason (``Refused``); a class that leaves one out cannot be defined. ``ops/elementwise`` is the
family to look at first.

Effects are what an operation does besides computing its outputs: ``Primitive.effects`` and
``Program.effects`` are sets of them. An operation with an observable effect is kept even though
nothing reads its outputs; a named axis is what a collective needs from a ``vmap`` around it.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, dataclass_transform

from stretto._engine.core.caches import room
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import state
from stretto._engine.core.threads import lock
from stretto._engine.core.types import ArrayType

if TYPE_CHECKING:
    from stretto._engine.core.program import Atom, Equation


class Effect:
    """Something that can be seen from outside the program; compared by identity.

    Args:
        name: what programs call it; by default its class.
    """

    def __init__(self, name: str = "") -> None:
        self.name = name or type(self).__name__

    def __repr__(self) -> str:
        return self.name


CALLBACK = Effect("callback")
"""A Python function is called, as often as the program says, in any order."""

ORDERED = Effect("ordered callback")
"""A Python function is called, in the order of the program."""


class NamedAxis(NamedTuple):
    """The operation works across the examples of the ``vmap`` whose axis has this name."""

    name: Any


class OnMesh(NamedTuple):
    """The operation says where on the devices of this mesh its results are."""

    mesh: Any


def meshes(effects: Iterable[Any]) -> list[Any]:
    """Return the meshes that the effects name."""
    return [e.mesh for e in effects if type(e) is OnMesh]


def observable(effects: Iterable[Any]) -> bool:
    """Say whether any of the effects would be missed if the operation were dropped."""
    return any(isinstance(e, Effect) for e in effects)


def names_axis(effects: Iterable[Any], name: Any) -> bool:
    """Say whether any of the effects works across the axis of this name."""
    return any(type(e) is NamedAxis and e.name == name for e in effects)


RULES = ("infer", "reference", "lower", "jvp", "transpose", "vmap", "padded")
"""The rules that every primitive has, inherits or refuses."""

PRIMITIVES: list[type[Primitive]] = []
"""Every concrete primitive class, in the order of definition."""


class Kernel(enum.Enum):
    """A kind of code that a compiler makes of one application of an operation."""

    VIEW = enum.auto()
    """No kernel: whatever reads the result reads the operand in another order."""
    ONE = enum.auto()
    """A kernel, or part of one, with few instructions an element; equal ones are compiled once."""
    LONG = enum.auto()
    """The same with tens of instructions an element."""
    SUM = enum.auto()
    """A kernel of its own, with what computes its operand fused into it, so compiled each time."""
    WRITTEN = enum.auto()
    """A call of a library, or many operations."""


class Refused:
    """A rule that does not exist, with the reason; calling it raises ``MissingRuleError``."""

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


NOT_EXPORTED: Any = Refused(
    "ONNX has no operator for it, and none is written out for it: compute it before, and pass the "
    "result"
)
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
    """Makes equal primitives one object, so that comparing and hashing them costs next to nothing.

    The table of a class is emptied when it holds some thousand sets of parameters; equal primitives
    may then be two objects, which only costs a cache miss. Primitives that hold programs or arrays
    are not interned, since the table would keep those alive. A class becomes a dataclass when it
    is first called, since that is slow, and a process needs only a few of the classes.
    """

    _instances: dict[tuple[Any, ...], Any]
    _unfinished: bool
    interned: bool

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.interned:
            if cls._unfinished:
                _finish(cls)
            return super().__call__(*args, **kwargs)
        instance = None if kwargs else cls._instances.get(args)
        if instance is None:
            if cls._unfinished:
                _finish(cls)
            new = super().__call__(*args, **kwargs)
            # Filed under all parameters, defaults included, and under the arguments as they came,
            # so that each way of writing them gives the same object.
            key = tuple([value for _, value in new.parameters()])
            instance = room(cls._instances).setdefault(key, new)
            if not kwargs:
                cls._instances[args] = instance
        return instance


_finishing = lock()
_FROZEN = {"__setattr__", "__delattr__"}
"""The methods by which a dataclass is frozen."""


def _finish(cls: Any) -> None:
    """Turn the class, and those that it derives from, into dataclasses."""
    with _finishing:
        for base in reversed(cls.__mro__):
            if base.__dict__.get("_unfinished"):
                if _has_parameters(base):
                    # An earlier attempt may have been interrupted; with what it left behind,
                    # dataclasses would refuse the class.
                    for name in _FROZEN & vars(base).keys():
                        delattr(base, name)
                    dataclasses.dataclass(frozen=True, eq=False, repr=False)(base)
                    base._parameters = tuple([field.name for field in dataclasses.fields(base)])
                base._unfinished = False


def _has_parameters(cls: type) -> bool:
    """Say whether the class itself adds parameters to those that it inherits."""
    return any(["ClassVar" not in str(t) for t in inspect.get_annotations(cls).values()])


class _Carried:
    """The rule for sizes that vary of a primitive whose result has padding where operands have."""

    def __get__(self, instance: Primitive | None, owner: type[Primitive]) -> Any:
        if instance is None:
            return self
        return lambda at, *args: at.static(instance)(*args)


CARRIED: Any = _Carried()

_NO_EFFECTS: frozenset[Any] = frozenset()


def _onnx_by_lowering(self: Primitive, b: Any, *operands: Any) -> Any:
    """Write the nodes that ``lower`` asks for: the builder takes its calls."""
    return self.lower(b, *operands)


@dataclass_transform(frozen_default=True, kw_only_default=False)
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Primitive(metaclass=_Interned):
    """An operation with its rules.

    Subclasses are frozen dataclasses made without the decorator. A subclass marked
    ``abstract=True`` is a family: it supplies rules and is not an operation itself.

    The rules, for arguments that are values (arrays or tracers):

    - ``infer(*types)``: the output's type (a tuple of them if ``multiple``), or an error.
    - ``reference(*arrays)``: NumPy arrays to NumPy arrays; eager evaluation, and the tests' oracle.
    - ``lower(b, *operands)``: StableHLO, written through the builder ``b``.
    - ``onnx(b, *operands)``: ONNX nodes, written through the builder ``b``; by default those that
      ``lower`` asks for, whose calls that builder takes.
    - ``jvp(primals, tangents)``: output and its tangent; ``None`` stands for a zero tangent.
    - ``transpose(ct, *args)``: the cotangent of each argument, ``None`` for those not ``Linear``.
    - ``vmap(size, args, axes)``: output and its mapped axis (``None``: not mapped).
    - ``padded(at, *args)``: the output where sizes vary and the arguments are carriers, larger
      arrays whose padding holds anything; ``at`` is the bucket. ``CARRIED`` is the rule of those
      that have padding where their operands have.
    - ``linearize(primals, tangents)``: as ``jvp``, but what depends on primals alone is computed
      separately from what is linear in tangents. By default it is ``jvp``; only operations that
      hold programs need their own.

    Everything else that other layers need to know is a trait, below: an attribute that a family or
    a class sets. No decision depends on ``name``, which is for people: it appears in printed
    programs, messages and profiles.
    """

    name: ClassVar[str]

    # What an application consists of.
    multiple: ClassVar[bool] = False
    """Says whether the rules give a tuple of outputs instead of a single one."""
    has_factors: ClassVar[bool] = False
    """Says whether it factors a matrix, and has the rule ``factored``."""
    backward_at_zero: ClassVar[bool] = False
    """Says whether ``transpose`` is to be called where all cotangents are zero, too."""
    holds_programs: ClassVar[bool] = False
    """Says whether it has programs among its parameters; see ``higher_order/family``."""
    calls_python: ClassVar[bool] = False
    """Says whether it calls a function of the user's; eager evaluation then calls ``interpret``."""
    endless: ClassVar[Any] = False
    """Says whether it has a loop that no program shows, so that nobody knows how long it takes."""
    interned: ClassVar[bool] = True
    """Says whether equal ones are one object: not if they hold programs, Python functions or
    arrays, which would be kept alive. For the first two this is set automatically."""

    # How it is run eagerly.
    light: ClassVar[bool] = False
    """Says whether ``reference`` takes a few microseconds at most on small arrays, as NumPy's
    functions do, so that a program of a few such operations need not be compiled."""
    widens: ClassVar[bool] = False
    """Says whether a bfloat16 result is the float32 result rounded, so that eager evaluation may
    compute in float32, which is far faster."""
    only_compiled: ClassVar[bool] = False
    """Says whether it is compiled wherever ``compiled`` says so, whatever the settings."""

    by_platform: ClassVar[bool] = False
    """Says whether its outputs depend on the platform, so that they are not known before that."""

    # What becomes of the zeros of a cotangent when it is run backwards; see ``autodiff/masked``.
    picks: ClassVar[tuple[bool | None, ...]] = ()
    """Says for each operand whether the output is this operand where the first one holds (True), or
    where it does not (False); empty unless the operation chooses among operands."""
    counts: ClassVar[tuple[Callable[..., Any], ...]] = ()
    """Has for each operand a function of the operands that says where the output depends on it: a
    boolean array. Empty if that is everywhere, or where ``picks`` says."""
    chooses: ClassVar[bool] = False
    """Says whether there are ``picks`` or ``counts``; set automatically."""
    keeps_zeros: ClassVar[bool] = False
    """Says whether ``transpose`` only moves elements, adds them up and changes signs: zeros stay
    zeros, whatever the other operands hold. Several outputs have one operand each, in order."""
    hands_on: ClassVar[bool] = False
    """Says whether ``transpose`` hands on the cotangent as it is, whatever it is."""
    rearranges: ClassVar[bool] = False
    """Says whether ``transpose`` only moves elements, also those of booleans."""

    takes_masked: ClassVar[bool] = False
    """Says whether ``transpose`` takes cotangents with the conditions under which they count, as
    ``Masked`` ones, and gives such to arguments that are ``masked``."""
    pushes_masked: ClassVar[bool] = False
    """Says whether ``jvp`` takes such tangents."""

    # What a pass over programs may do with it.
    splat: ClassVar[bool] = False
    """Says whether it maps splats (one element, repeated) to a splat, so that literals fold."""
    same: ClassVar[bool] = False
    """Says whether its output is its operand, but for derivatives."""
    mergeable: ClassVar[bool] = True
    """Says whether two applications to the same operands may be replaced by one."""
    commutative: ClassVar[bool] = False
    """Says whether exchanging its two operands changes no bit (complex numbers excepted)."""
    rollable: ClassVar[bool] = True
    """Says whether a loop may replace copies of it, and what repeats in its programs."""
    formed: ClassVar[Callable[..., Any] | None] = None
    """Finds what an application may be instead, or is noted as: ``formed(primitive, *args)`` is a
    value, the stable form of the same, or a ``Form``, or None. ``numpy/stable_forms`` has the
    rules, which need functions of all families."""
    reducible: ClassVar[bool] = False
    """Says whether ``simpler`` may find anything; set automatically where a class defines it."""

    # What it costs to compile.
    kernel: ClassVar[Kernel | None] = None
    """``None`` means ``Kernel.ONE`` if it is ``light``, otherwise ``Kernel.WRITTEN``."""

    _unfinished: ClassVar[bool] = False
    _parameters: ClassVar[tuple[str, ...]] = ()

    inferred: ClassVar[dict[tuple[ArrayType, ...], tuple[ArrayType, ...]]]
    """The output types of each instance for the input types asked about so far."""

    taylor: ClassVar[Callable[..., Any]] = None  # type: ignore[assignment]
    """The rule for Taylor series of an operation with one output, where that costs less than to
    expand what ``jvp`` gives: ``taylor(k, out, *args)`` is the derivative of order ``k`` along a
    curve, where each argument, and ``out`` for orders below, is a function from an order to the
    derivative, ``None`` for zero."""

    infer: ClassVar[Callable[..., Any]]
    reference: ClassVar[Callable[..., Any]]
    lower: ClassVar[Callable[..., Any]]
    onnx: ClassVar[Callable[..., Any]] = _onnx_by_lowering
    jvp: ClassVar[Callable[..., Any]]
    transpose: ClassVar[Callable[..., Any]]
    vmap: ClassVar[Callable[..., Any]]
    padded: ClassVar[Callable[..., Any]]

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Only a class with parameters must become a dataclass: its own, or those of a base class
        # that is not one yet.
        inherited = any([getattr(base, "_unfinished", False) for base in cls.__bases__])
        cls._unfinished = inherited or _has_parameters(cls)
        cls._instances = {}
        cls.interned = cls.interned and not (cls.holds_programs or cls.calls_python)
        cls.reducible = cls.simpler is not Primitive.simpler
        cls.chooses = bool(cls.picks or cls.counts)
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
        """Make an instance with an empty cache of inferred types."""
        new = object.__new__(cls)
        vars(new)["inferred"] = {}
        return new

    def __call__(self, *args: Any) -> Any:
        """Apply to values, under the current interpreter."""
        return state.interpreter.process(self, args)

    def __instancecheck__(self, other: object) -> bool:
        """Say whether ``other`` is this instance: so ``isinstance`` takes classes and instances."""
        return other is self

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Apply the jvp rule, by default; the caller separates the linear part. See the class."""
        return self.jvp(primals, tangents)

    @property
    def accumulates(self) -> tuple[int, ...]:
        """The operands of which it reads a part.

        To the sums of their cotangents so far (``Linear.so_far``) ``transpose`` adds itself, since
        it changes few of the elements.
        """
        return ()

    def factored(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the outputs, and their forms; see ``ops/linalg/invariants``.

        In place of ``jvp``, so that tangents are computed when something asks for them.
        """
        raise NotImplementedError

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        """Say whether each row of the outputs is made of the same rows of operands alone.

        Asked where the outputs and some operands have a first axis of one size that varies, along
        which the rows lie; the other operands have no rows. By default it is not known.
        """
        return False

    def sums_rows(self, types: Sequence[ArrayType]) -> bool:
        """Say whether the output is the sum of what each row gives; see ``by_rows``."""
        return False

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        """Return for each axis of the output, that of operand ``k`` along which it lies, if any.

        Each place along such an axis depends on the same place of the operand alone, and linearly.
        Asked of operations that are run backwards; by default elements are mixed.
        """
        return (None,) * out.ndim

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Find something simpler with the same bits: an operation and its operands, or an atom.

        Only operations with one operand are asked: ``x`` is the operand, ``maker`` the equation
        that computed it, if any. ``None`` means that nothing simpler is known.
        """
        return None

    @property
    def effects(self) -> frozenset[Any]:
        """Return what it does besides computing outputs; see ``core/primitive``."""
        return _NO_EFFECTS

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Say whether eager evaluation on the CPU should run a compiled program, not ``reference``.

        This depends on types alone; see ``ops/thresholds``.
        """
        return False

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Return an estimate of its time, to compare one way of running a program with another.

        The unit is the time of one multiply-add in a large matrix product, some 0.05 ns on one
        core. By default it is the time to go through the largest array.
        """
        return 4 * max([t.size for t in (*types, *outs)], default=0)

    def splat_reference(self, *elements: Any) -> Any:
        """Return the element of the output for those of the inputs, if ``splat``."""
        return self.reference(*elements)

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the static parameters, by name."""
        return [(name, getattr(self, name)) for name in self._parameters]

    def out_types(self, types: tuple[ArrayType, ...]) -> tuple[ArrayType, ...]:
        """Return the output types for these input types; remembered unless sizes vary."""
        types_out = self.inferred.get(types)
        if types_out is None:
            result = self.infer(*types)
            types_out = tuple(result) if self.multiple else (result,)
            # What is asked of sizes that vary is a guard of every trace, and not of the first.
            if not any([t.varies for t in (*types, *types_out)]):
                room(self.inferred)[types] = types_out
        return types_out

    def __repr__(self) -> str:
        parameters = ", ".join(f"{key}={value!r}" for key, value in self.parameters())
        return f"{self.name}[{parameters}]" if parameters else self.name


def _snake_case(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def leibniz(f: Callable[..., Any], k: int, x: Any, y: Any, most: int | None = None) -> Any:
    """Give the rule of Leibniz: the sum over i + j = k of (k choose i) f(x_i, y_j); None for zero.

    For ``taylor`` rules of what is linear in each of two operands; ``x`` and ``y`` are functions
    from an order to the derivative, or None. With ``most``, of those whose i is not larger.
    """
    total = None
    for i in range((k if most is None else most) + 1):
        a, b = x(i), y(k - i)
        if a is not None and b is not None:
            count = math.comb(k, i)
            part = f(a, b) if count == 1 else f(a, b) * count
            total = part if total is None else total + part
    return total
