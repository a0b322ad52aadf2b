"""The laws that every operation obeys, and one call that checks them.

Above all other layers: for tests. For a function and the types (or values) of its arguments:

1. the inferred types are the real ones;
2. the compiled program gives what eager evaluation gives;
3. the jvp is the limit of differences (taken in 64 bits), and close to it in the dtype asked for;
4. the transpose is the adjoint: Re⟨ct, J v⟩ = Re⟨Jᵀ ct, v⟩;
5. ``vmap`` is the loop, for each mix of mapped arguments and axes, eagerly and compiled;
6. ``vmap`` of the derivative is the loop of derivatives; derivatives of derivatives exist.

Where a test run compiles with few optimizations, ``FULLY`` has the options that restore them: the
function's own program, in each dtype, and all programs of float32 are compiled as users' are.

``check_special`` checks the second of these where it most often fails: at zeros, infinities,
NaN and the ends of the range.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.api.autodiff.derivatives import jvp, vjp
from stretto._engine.api.graph import eval_shape, make_graph
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core import tree
from stretto._engine.core.config import config, enable_x64, over_axis
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Program
from stretto._engine.core.program import check as check_program
from stretto._engine.core.types import float0, is_complex, is_inexact, kind_of, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Tree
from stretto._engine.higher_order.user_primitive import UserPrimitive, primitive

__all__ = ["FULLY", "Law", "TypeOf", "b1", "bf16", "c64", "c128", "check", "check_special", "f16",
           "f32", "f64", "i8", "i32", "law", "special_pairs", "special_values", "u32"]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class TypeOf:
    """An argument drawn at random: its dtype and shape, and the range to draw from.

    ``f32(2, 3)`` and its like make one.

    Args:
        dtype: the dtype.
        shape: the sizes of the axes.
        low: the least number; of unsigned integers at least 0.
        high: the greatest; of integers up to 3 more.

    >>> from stretto.laws import TypeOf
    >>> import numpy as np
    >>> str(TypeOf(np.dtype("float32"), (2, 3)))
    'float32[2, 3]'
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    low: float = -2.0
    high: float = 2.0

    def within(self, low: float, high: float) -> TypeOf:
        """Return the same type, to be drawn from another range.

        Args:
            low: the least number.
            high: the greatest.

        Returns:
            The type.
        """
        return dataclasses.replace(self, low=low, high=high)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Draw an array of this type.

        Args:
            rng: the source of the numbers.

        Returns:
            The array, of this dtype and shape.
        """
        kind = kind_of(self.dtype)
        if kind == "bool":
            return rng.random(self.shape) < 0.5
        if kind in ("int", "uint"):
            low = max(int(self.low), 0) if kind == "uint" else int(self.low)
            return np.asarray(rng.integers(low, int(self.high) + 4, self.shape)).astype(self.dtype)
        x = rng.uniform(self.low, self.high, self.shape)
        if kind == "complex":
            x = x + 1j * rng.uniform(self.low, self.high, self.shape)
        return np.asarray(x).astype(self.dtype)

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def _maker(short: str, name: str) -> Callable[..., TypeOf]:
    dtype = np.dtype(getattr(ml_dtypes, name, name))

    def make(*shape: int) -> TypeOf:
        return TypeOf(dtype, shape)

    make.__doc__ = f"""Make an argument of dtype {name} that is drawn at random.

    Args:
        *shape: the sizes of the axes.

    Returns:
        The argument, drawn from -2 to 2; its method ``within`` sets another range.

    >>> from stretto import laws
    >>> str(laws.{short}(2, 3))
    '{name}[2, 3]'
    """
    return make


b1 = _maker("b1", "bool")


i8, i32, u32 = _maker("i8", "int8"), _maker("i32", "int32"), _maker("u32", "uint32")


bf16, f16 = _maker("bf16", "bfloat16"), _maker("f16", "float16")


f32, f64 = _maker("f32", "float32"), _maker("f64", "float64")


c64, c128 = _maker("c64", "complex64"), _maker("c128", "complex128")


FULLY: dict[str, Any] = {}
"""Options of the compiler for code as users get it; none where all code is compiled so."""


def tolerance_of(dtype: np.dtype) -> float:
    """Return a few units in the last place: XLA and NumPy round these functions differently."""
    if not is_inexact(dtype):
        return 0.0
    part = real_dtype(dtype)
    return (64 if part.itemsize >= 4 else 4) * float(ml_dtypes.finfo(part).eps)


def check_close(got: Tree, want: Tree, what: str, factor: float = 1.0) -> None:
    """Raise ``AssertionError``, which says ``what``, unless the leaves agree up to rounding."""
    got_leaves, want_leaves = tree.leaves(got), tree.leaves(want)
    assert len(got_leaves) == len(want_leaves), (
        f"{what}: {len(got_leaves)} results, expected {len(want_leaves)}"
    )
    for g, w in zip(got_leaves, want_leaves, strict=True):
        x, y = np.asarray(g), np.asarray(w)
        if x.dtype == float0:
            continue
        assert x.shape == y.shape, f"{what}: shapes {x.shape} and {y.shape}"
        assert x.dtype == y.dtype, f"{what}: dtypes {x.dtype} and {y.dtype}"
        tolerance = tolerance_of(x.dtype) * factor
        dtype = x.dtype if x.dtype.kind in "biuc" else np.dtype(np.float64)
        x, y = x.astype(dtype), y.astype(dtype)
        scale = np.max(np.abs(y), where=np.isfinite(y), initial=0) if tolerance else 0
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def as_wide(x: ArrayLike) -> np.ndarray:
    """Return the elements in 64 bits for each real part."""
    host = np.asarray(x)
    return host.astype(np.complex128 if is_complex(host.dtype) else np.float64)


class _Compiled(NamedTuple):
    """Holds what a compiled function must return."""

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    want: Tree
    what: str
    factor: float


def _check_compiled(parts: Sequence[_Compiled], options: Mapping[str, Any] | None = None) -> None:
    """Check them, compiled as one program, since most of the time is the compiler's."""
    if not parts:
        return
    together = jit(
        lambda args: [part.fun(*a) for part, a in zip(parts, args, strict=True)],
        compiler_options=options,
    )
    with config(interpret_small=False):
        results = together([part.args for part in parts])
    for part, got in zip(parts, results, strict=True):
        check_close(got, part.want, part.what, part.factor)


def _primitives(program: Program) -> set[Any]:
    """Return the classes of its operations; for users' operations, what made them as well."""
    primitives: set[Any] = set()
    for equation in program.equations:
        primitives.add(type(equation.primitive))
        if isinstance(equation.primitive, UserPrimitive):
            primitives.add(equation.primitive.arguments.function)
        for _, value in equation.primitive.parameters():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Program):
                    primitives |= _primitives(inner)
    return primitives


def check(fun: Callable[..., Any], cases: Sequence[Any], **options: Any) -> None:
    """Check all laws for a function, at each of several arguments.

    Args:
        fun: the function.
        cases: for each call its argument, or a tuple of its arguments: a ``TypeOf``, drawn at
            random, or a NumPy array, taken as it is.
        **options: those of ``Law``.

    Raises:
        AssertionError: a law is broken; the message names it.

    >>> import stretto.numpy as snp
    >>> from stretto.laws import check, f32
    >>> check(snp.sin, [f32(3)])
    """
    for case in cases:
        Law(None, fun, case if isinstance(case, tuple) else (case,), options).check()


def law(
    primitive: type[Primitive] | primitive[..., Any] | None,
    fun: Callable[..., Any],
    *args: Any,
    **options: Any,
) -> Law:
    """Make a law check of a primitive, through a function that uses it; see ``Law``.

    Args:
        primitive: what the function must use: the class of an operation, or what
            ``stretto.primitive`` made; ``None`` for any.
        fun: the function.
        *args: its arguments: a ``TypeOf``, drawn at random, or a NumPy array, taken as it is.
        **options: those of ``Law``.

    Returns:
        The check, which its method ``check`` runs.

    >>> import stretto.numpy as snp
    >>> from stretto.laws import f32, law
    >>> str(law(None, snp.sin, f32(3)))
    'sin(float32[3])'
    """
    return Law(primitive, fun, args, options)


@dataclasses.dataclass(frozen=True)
class Law:
    """A law check to run: a primitive, a function that uses it, and arguments.

    The options are:

    - ``derivative=False`` for functions that have none;
    - ``reverse=False`` where only forward derivatives exist;
    - ``second=False`` to leave out second derivatives;
    - ``difference=False`` where values are too coarse for difference quotients, as those of a
      conversion to fewer bits are;
    - ``mapped=False`` to leave out ``vmap``;
    - ``factor`` to widen tolerances, with the reason at the call;
    - ``seed`` of the random arguments, 0 by default;
    - ``along="name"`` for a function of one example that uses an axis of this name: arguments have
      their examples along axis 0, and what is checked is the ``vmap`` of the function.

    For what ``stretto.primitive`` made, ``derivative`` and ``mapped`` are by default whether it has
    these rules.

    Args:
        primitive: what the function must use: the class of an operation, or what
            ``stretto.primitive`` made; ``None`` for any.
        fun: the function.
        args: its arguments: a ``TypeOf``, drawn at random, or a NumPy array, taken as it is;
            integers and booleans are not differentiated.
        options: the options, by name.

    >>> import stretto as st, stretto.numpy as snp
    >>> from stretto.laws import Law, f32
    >>> Law(None, snp.multiply, (f32(3), f32(3)), {"second": False}).check()
    >>> sine = st.primitive(lambda x: snp.sin(x), derive="vmap")
    >>> rule = sine.def_jvp(lambda p, t: (sine(*p), snp.sin(*p) * t[0]))
    >>> Law(sine, sine, (f32(3),)).check()
    Traceback (most recent call last):
    AssertionError: ...jvp and difference quotient...
    """

    primitive: Any  # what ``stretto.primitive`` makes is a descriptor, and would seem to be bound
    fun: Callable[..., Any]
    args: tuple[Any, ...]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        name = self.primitive.name if self.primitive else getattr(self.fun, "__name__", "fun")
        kinds = (
            str(a) if isinstance(a, TypeOf) else f"{np.asarray(a).dtype}{list(np.shape(a))}"
            for a in self.args
        )
        return f"{name}({', '.join(kinds)})"

    def call(self, *args: Any) -> Tree:
        """Call the function; with the option ``along``, its ``vmap``.

        Args:
            *args: arrays of any kind, or numbers.

        Returns:
            What the function returns.
        """
        along = self.options.get("along")
        fun = self.fun if along is None else vmap(self.fun, axis_name=along)
        return fun(*[as_value(a) for a in args])

    def check(self) -> None:
        """Check all laws.

        Raises:
            AssertionError: a law is broken; the message names it.
        """
        wide = any(a.dtype.name in ("float64", "complex128", "int64", "uint64")
                   for a in self.args if hasattr(a, "dtype"))  # fmt: skip
        with enable_x64(wide):
            rng = np.random.default_rng(self.options.get("seed", 0))
            values = [a.draw(rng) if isinstance(a, TypeOf) else np.asarray(a) for a in self.args]
            own, derived = self._types(values), []
            active = [i for i, v in enumerate(values) if is_inexact(v.dtype)]
            differentiable = self._has("derivative", "jvp") and active
            if differentiable:
                derived += self._adjoint(values, active, rng)
            if self._has("mapped", "vmap"):
                derived += self._mapped(values, active if differentiable else [], rng)
            if FULLY and {values[i].dtype for i in active} != {np.dtype(np.float32)}:
                _check_compiled([own], FULLY)
                _check_compiled(derived)
            else:
                _check_compiled([own, *derived], FULLY)
        if differentiable and self.options.get("difference", True):
            self._difference(values, active, rng)

    def _has(self, option: str, rule: str) -> bool:
        """Say whether to check what a rule gives: as an option says, else if there is that rule."""
        known = not isinstance(self.primitive, primitive) or self.primitive.rules.has(rule)
        return self.options.get(option, known)

    def _types(self, values: list[np.ndarray]) -> _Compiled:
        eager = self.call(*values)
        shapes = eval_shape(self.call, *values)
        for x, s in zip(tree.leaves(eager), tree.leaves(shapes), strict=True):
            host = np.asarray(x)
            assert (host.shape, host.dtype) == (s.shape, s.dtype), (
                f"{self}: inferred {s.dtype}{s.shape}, real {host.dtype}{host.shape}"
            )
            assert (x.shape, x.dtype) == (s.shape, s.dtype), f"{self}: the array's own type differs"
        program = make_graph(self.call)(*values)
        check_program(program)
        if self.primitive is not None:
            along = self.options.get("along")
            if along is not None:
                one = make_graph(self.fun)
                program = over_axis(along, len(values[0]), one, *[v[0] for v in values])
                check_program(program)
            assert self.primitive in _primitives(program), f"{self}: the function does not use it"
        return _Compiled(self.call, tuple(values), eager, f"{self}: compiled", self._factor)

    @property
    def _factor(self) -> float:
        return self.options.get("factor", 1.0)

    def _of_active(
        self, values: Sequence[Array | np.ndarray], active: Sequence[int]
    ) -> Callable[..., list[Array]]:
        def fun(*moving: Any) -> list[Array]:
            args = list(values)
            for i, x in zip(active, moving, strict=True):
                args[i] = x
            out = self.call(*args)
            return [leaf for leaf in tree.leaves(out) if is_inexact(leaf.dtype)]

        return fun

    def _tangents(
        self, values: Sequence[np.ndarray], active: Sequence[int], rng: np.random.Generator
    ) -> list[np.ndarray]:
        return [TypeOf(values[i].dtype, values[i].shape).within(-1, 1).draw(rng) for i in active]

    def _adjoint(
        self, values: list[np.ndarray], active: list[int], rng: np.random.Generator
    ) -> list[_Compiled]:
        fun = self._of_active(values, active)
        primals = [values[i] for i in active]
        tangents = self._tangents(values, active, rng)
        out, dout = jvp(fun, primals, tangents)
        forward = _Compiled(
            lambda p, t: jvp(fun, p, t),
            (primals, tangents),
            (out, dout),
            f"{self}: compiled jvp",
            4 * self._factor,
        )
        for o, d in zip(out, dout, strict=True):
            assert (o.shape, o.dtype) == (d.shape, d.dtype), f"{self}: the tangent's type differs"
        if not self.options.get("reverse", True):
            return [forward]
        cts = [TypeOf(o.dtype, o.shape).within(-1, 1).draw(rng) for o in out]
        pulled = vjp(fun, *primals)[1](cts)
        for p, g in zip(primals, pulled, strict=True):
            assert (p.shape, p.dtype) == (g.shape, g.dtype), f"{self}: the gradient's type differs"
        backward = _Compiled(
            lambda p, c: vjp(fun, *p)[1](c),
            (primals, cts),
            pulled,
            f"{self}: compiled vjp",
            4 * self._factor,
        )
        ahead, back = _pair(cts, dout), _pair(pulled, tangents)
        scale = 1e-30 + _pair([np.abs(as_wide(c)) for c in cts], [np.abs(as_wide(d)) for d in dout])
        worst = max((tolerance_of(np.asarray(p).dtype) for p in [*primals, *out]), default=0.0)
        slack = 16 * worst * self._factor * max(scale, abs(back))
        assert abs(ahead - back) <= slack or not np.isfinite(ahead), (
            f"{self}: not the adjoint: <ct, J v> = {ahead}, <J^T ct, v> = {back}"
        )
        return [forward, backward]

    def _difference(
        self, values: list[np.ndarray], active: list[int], rng: np.random.Generator
    ) -> None:
        with enable_x64():
            wide = [as_wide(v) if i in active else v for i, v in enumerate(values)]
            fun = self._of_active(wide, active)
            primals = [wide[i] for i in active]
            tangents = [as_wide(t) for t in self._tangents(wide, active, rng)]
            step = 1e-6

            def slopes(fun: Callable[..., Any], what: str, factor: float) -> Sequence[Array]:
                _, out = jvp(fun, primals, tangents)
                up = fun(*[p + step * t for p, t in zip(primals, tangents, strict=True)])
                down = fun(*[p - step * t for p, t in zip(primals, tangents, strict=True)])
                for d, u, v in zip(out, up, down, strict=True):
                    limit = (np.asarray(u) - np.asarray(v)) / (2 * step)
                    scale = 1e-3 + np.max(np.abs(limit), initial=0)
                    np.testing.assert_allclose(
                        np.asarray(d), limit, rtol=factor * 1e-5,
                        atol=factor * (1e-6 * scale + 1e-9),
                        err_msg=f"{self}: {what} and difference quotient",
                    )  # fmt: skip
                return out

            slopes(fun, "jvp", 1)
            if self.options.get("second", True):
                again = lambda *ps: jvp(fun, ps, tangents)[1]
                second = slopes(again, "second derivative", 10)
                if self.options.get("reverse", True):
                    self._reverse_over_forward(again, primals, second, tangents, rng)

    def _reverse_over_forward(
        self,
        again: Callable[..., list[Array]],
        primals: Sequence[np.ndarray],
        second: Sequence[Array],
        tangents: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> None:
        cts = [TypeOf(np.asarray(s).dtype, s.shape).within(-1, 1).draw(rng) for s in second]
        pulled = vjp(again, *primals)[1](cts)
        ahead, back = _pair(cts, second), _pair(pulled, tangents)
        assert abs(ahead - back) <= 1e-8 * max(1.0, abs(back), abs(ahead)), (
            f"{self}: reverse over forward: {ahead} and {back}"
        )

    def _mapped(
        self, values: list[np.ndarray], active: list[int], rng: np.random.Generator
    ) -> list[_Compiled]:
        size = 3
        compiled = []
        mixes = list(itertools.product((False, True), repeat=len(values)))[1:]
        if len(mixes) > 7:
            mixes = [m for m in mixes if sum(m) in (1, len(m))]
        for number, mix in enumerate(mixes):
            stacked = self._stacks(values, size, rng)
            axes = [
                None if not m else (number + i + 1) % (v.ndim + 1)  # not only axis 0
                for i, (m, v) in enumerate(zip(mix, values, strict=True))
            ]
            args = [
                v if a is None else np.moveaxis(s, 0, a)
                for v, s, a in zip(values, stacked, axes, strict=True)
            ]
            rows = [
                [v if a is None else s[k] for v, s, a in zip(values, stacked, axes, strict=True)]
                for k in range(size)
            ]
            where = f"{self}: vmap, in_axes={tuple(axes)}"
            mapped = self._same_as_loop(self.call, axes, args, rows, where)
            if number == len(mixes) - 1:
                compiled.append(mapped)
            if active and all(mix[i] for i in active):
                derivative = self._derivative_of(active)
                self._same_as_loop(derivative, axes, args, rows, f"{where} of a derivative")
        return compiled

    def _derivative_of(self, active: list[int]) -> Callable[..., Any]:
        reverse = self.options.get("reverse", True)

        def derivative(*args: Any) -> Tree:
            values = [as_value(a) for a in args]
            fun = self._of_active(values, active)
            primals = [values[i] for i in active]
            ones = tree.map(lambda p: p * 0 + 1, primals)
            if not reverse:
                return jvp(fun, primals, ones)[1]
            out, pull = vjp(fun, *primals)
            return pull(tree.map(lambda o: o * 0 + 1, out))

        return derivative

    def _stacks(
        self, values: list[np.ndarray], size: int, rng: np.random.Generator
    ) -> list[np.ndarray]:
        """Return ``size`` examples of each argument on axis 0: random if the argument was."""
        stacks = []
        for argument, v in zip(self.args, values, strict=True):
            if isinstance(argument, TypeOf):
                stacks.append(np.stack([argument.draw(rng) for _ in range(size)]))
            else:
                stacks.append(np.stack([np.roll(v, k) for k in range(size)]))
        return stacks

    def _same_as_loop(
        self,
        fun: Callable[..., Tree],
        axes: Sequence[int | None],
        args: Sequence[np.ndarray],
        rows: Sequence[Sequence[np.ndarray]],
        where: str,
    ) -> _Compiled:
        """Check that it gives mapped what the loop gives; return what it must give compiled."""
        mapped = vmap(fun, in_axes=tuple(axes))
        got = mapped(*args)
        loop = [tree.leaves(fun(*row)) for row in rows]
        want = [np.stack([np.asarray(x) for x in leaf]) for leaf in zip(*loop, strict=True)]
        factor = 4 * self._factor
        check_close(got, want, where, factor)
        return _Compiled(mapped, tuple(args), want, f"{where}, compiled", factor)


def _pair(xs: Sequence[ArrayLike], ys: Sequence[ArrayLike]) -> float:
    """Return the real part of the sum of products."""
    return float(sum(np.real(np.sum(as_wide(x) * as_wide(y))) for x, y in zip(xs, ys, strict=True)))


def special_values(dtype: DTypeLike) -> np.ndarray:
    """Make an array of the numbers of a dtype at which functions tend to be wrong.

    Zeros, ones, small and large numbers, and the ends of the range; of floats also infinities and
    NaN. Complex numbers are finite, without -0.

    Args:
        dtype: the dtype.

    Returns:
        The numbers, of this dtype and rank 1.

    >>> from stretto.laws import special_values
    >>> special_values("int8")
    array([   0,    1,    2,    3,    7,   -1,   -2,   -3,  127,  126, -128,
           -127], dtype=int8)
    """
    dtype = np.dtype(dtype)
    kind = kind_of(dtype)
    if kind == "bool":
        return np.array([False, True])
    if kind in ("int", "uint"):
        bounds = ml_dtypes.iinfo(dtype)
        low, high = int(bounds.min), int(bounds.max)
        numbers = (0, 1, 2, 3, 7, -1, -2, -3, high, high - 1, low, low + 1)
        return np.array([(n - low) % (high - low + 1) + low for n in numbers], object).astype(dtype)
    if kind == "complex":
        parts = np.array([0, 1, -1, 0.5, -0.5, 2, -2, 1e-5, -1e-5, 3], dtype)
        return (parts[:, None] + parts * dtype.type(1j)).ravel()
    f = ml_dtypes.finfo(dtype)
    ends = [float(f.max), float(f.tiny), float(f.eps), 1 + float(f.eps), 1 - float(f.eps) / 2]
    plain = [0.0, 1, 0.5, 2, 3, 1.5, 2.5, 10, 20, 88, 100, 1e-5, 0.1, 1e4, np.inf, *ends]
    with np.errstate(all="ignore"):
        return np.array([*plain, *(-x for x in plain), np.nan]).astype(dtype)


def special_pairs(dtype: DTypeLike) -> tuple[np.ndarray, np.ndarray]:
    """Make two arrays of all pairs of the special values of a dtype.

    Args:
        dtype: the dtype.

    Returns:
        The first number of each pair, and the second, of this dtype and rank 1.

    >>> from stretto.laws import special_pairs
    >>> special_pairs("bool")
    (array([False, False,  True,  True]), array([False,  True, False,  True]))
    """
    values = special_values(dtype)
    return np.repeat(values, values.size), np.tile(values, values.size)


def check_special(functions: Mapping[str, Callable[..., Any]], *args: np.ndarray) -> None:
    """Check that each function gives compiled what it gives eagerly.

    All are compiled as one program. Elements are compared up to rounding, with the sign of zeros.
    Numbers below the least normal one count as zero, since compiled programs flush them.

    Args:
        functions: the functions of these arrays, by name.
        *args: the arrays, such as those of ``special_values``.

    Raises:
        AssertionError: results differ; the message has each function and element where they do.

    >>> import stretto.numpy as snp
    >>> from stretto.laws import check_special, special_values
    >>> check_special({"abs": snp.abs}, special_values("float32"))
    """
    wide = any(x.dtype.itemsize >= 8 and x.dtype != np.complex64 for x in args)
    with enable_x64(wide):
        values = [as_value(x) for x in args]
        each = lambda *xs: {name: f(*xs) for name, f in functions.items()}
        with config(interpret_small=False):
            together = jit(each, compiler_options=FULLY)(*values)
        broken = []
        for name, got in together.items():
            compiled, eager = np.asarray(got), np.asarray(functions[name](*values))
            assert (compiled.dtype, compiled.shape) == (eager.dtype, eager.shape), name
            for place in np.argwhere(~_alike(compiled, eager)):
                at = tuple(place)
                arguments = ", ".join(str(x[at] if x.ndim else x) for x in args)
                broken.append(f"{name}({arguments}): compiled {compiled[at]}, eager {eager[at]}")
        assert not broken, "\n".join(broken)


def _alike(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not is_inexact(x.dtype):
        return x == y
    tolerance = tolerance_of(x.dtype)
    flushed = 4 * float(ml_dtypes.finfo(np.real(x).dtype).tiny)
    x, y = as_wide(x), as_wide(y)
    with np.errstate(all="ignore"):
        near = np.abs(x - y) <= tolerance * np.abs(y) + flushed
        if np.iscomplexobj(x):
            return near | (_same(np.real(x), np.real(y)) & _same(np.imag(x), np.imag(y)))
        return _same(x, y) | (near & (np.signbit(x) == np.signbit(y)))


def _same(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Say whether they are equal, with the sign of zeros, or both NaN."""
    return (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))


exports(__name__)
