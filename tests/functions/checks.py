"""The checks that the table drives: values, compiled, vmapped, gradients, and settings.

Read `table.py` first.
"""

import contextlib
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Value
from stretto._engine.core.types import is_inexact, kind_of
from tests.functions.table import DTYPES, WIDE, Call, Draw, Entry

RELATIVE = {2: 4e-3, 4: 2e-5, 8: 1e-11}
"""Tolerances by item size: some tens of units in the last place, relative to the largest element
too."""


# Arguments


def is_draw(value: Any) -> bool:
    """Whether this is an array to be drawn."""
    return isinstance(value, Draw)


def split(call: Call) -> tuple[list[Draw], Callable]:
    """The Draws of a call, and a function that puts arrays in their places."""
    draws: list[Draw] = []

    def walk(value: Any) -> Any:
        if is_draw(value):
            draws.append(value)
            return len(draws) - 1, Draw
        if isinstance(value, (list, tuple)) and any(map(_has_draw, value)):
            return [walk(v) for v in value], type(value)
        return value, None

    def fill(marked: Any, arrays: Any) -> Any:
        value, kind = marked
        if kind is Draw:
            handed = draws[value].handed
            return handed(arrays[value]) if handed else arrays[value]
        if kind is None:
            return value
        return kind([fill(v, arrays) for v in value])

    args = [walk(a) for a in call.args]
    kwargs = {k: walk(v) for k, v in call.kwargs.items()}

    def place(arrays: Any) -> tuple[list, dict]:
        return [fill(a, arrays) for a in args], {k: fill(v, arrays) for k, v in kwargs.items()}

    return draws, place


def _has_draw(value: Any) -> bool:
    return is_draw(value) or (isinstance(value, (list, tuple)) and any(map(_has_draw, value)))


def instances(entry: Entry, dtypes: tuple[str, ...] | None = None):
    """For each dtype and call: the function of arrays, that of the like, and the arrays."""
    rng = np.random.default_rng(zlib.crc32(entry.name.encode()))
    function = entry.function
    for dtype in entry.dtypes if dtypes is None else dtypes:
        in_turn = dtype.split("+")
        for each in entry.calls:
            draws, place = split(each)
            names = [in_turn[i % len(in_turn)] for i in range(len(draws))]
            arrays = [d.make(rng, n) for d, n in zip(draws, names)]
            again = [d.make(rng, n) for d, n in zip(draws, names)]

            def ours(*arrays, place=place):
                args, kwargs = place(arrays)
                return function(*args, **kwargs)

            def theirs(*arrays, place=place):
                args, kwargs = place(arrays)
                return entry.like(*args, **kwargs)

            yield dtype, each, ours, theirs, arrays, again


def kinds_of(dtype: str) -> set[str]:
    """The kinds of these dtypes."""
    return {kind_of(np.dtype(DTYPES[d])) for d in dtype.split("+")}


def wide(dtype: str) -> bool:
    """Whether arrays of these dtypes need 64-bit types."""
    return any(d in WIDE for d in dtype.split("+"))


def bits(dtype: str):
    """The context in which arrays of this dtype exist."""
    return st.enable_x64() if wide(dtype) else contextlib.nullcontext()


# Comparison


def leaves(out: Any) -> list:
    """The arrays of a result, in order."""
    return [v for v in tree.leaves(out) if v is not None]


def close(ours: Any, theirs: Any, tolerance: float, where: str, kinds: bool = True) -> None:
    """Assert equal shapes, dtypes of one kind, and elements equal up to rounding."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, f"{where}: shape {ours.shape}, expected {theirs.shape}"
    if kinds:
        kind, other = kind_of(ours.dtype), kind_of(theirs.dtype)
        assert kind == other or {kind, other} == {"int", "uint"}, (
            f"{where}: dtype {ours.dtype}, expected {theirs.dtype}"
        )
    if not is_inexact(ours.dtype) and not is_inexact(theirs.dtype):
        np.testing.assert_array_equal(ours, theirs, err_msg=where)
        return
    # NumPy makes float16 of bool and int8, float64 of int32
    narrow = min(np.real(v).dtype.itemsize for v in (ours, theirs) if is_inexact(v.dtype))
    limit = RELATIVE[narrow] * tolerance
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(
        ours.astype(np.result_type(ours, np.float64)),
        theirs.astype(np.result_type(theirs, np.float64)),
        rtol=limit,
        atol=limit * min(scale, 1e30),
        err_msg=where,
    )


def words(entry: Entry, each: Call, dtype: str) -> str:
    """The call, for messages."""

    def say(value: Any) -> str:
        if is_draw(value):
            return f"x{value.shape}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(map(say, value)) + "]"
        return repr(value)

    given = [*map(say, each.args), *(f"{k}={say(v)}" for k, v in each.kwargs.items())]
    return f"{entry.name}({', '.join(given)}) in {dtype}"


# The checks


def check_values(entry: Entry) -> None:
    """Each call, eagerly, against the like."""
    for dtype, each, ours, theirs, arrays, _ in instances(entry):
        where = words(entry, each, dtype)
        with bits(dtype):
            out = ours(*arrays)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            expected = theirs(*arrays)
        if entry.compare is not None:
            entry.compare(out, expected)
            continue
        got, wanted = leaves(out), leaves(expected)
        if len(got) == 1 and len(wanted) != 1:  # a list of rows, as NumPy scalars
            wanted = [np.asarray(expected)]
        assert len(got) == len(wanted), f"{where}: {len(got)} results, expected {len(wanted)}"
        for a, b in zip(got, wanted):
            close(a, b, entry.tolerance, where)


def check_compiled(entry: Entry) -> None:
    """One program of all the calls, against the calls; of 64-bit kinds that have no other width."""
    narrow = {kind for d in entry.dtypes if not wide(d) for kind in kinds_of(d)}
    dtypes = tuple(d for d in entry.dtypes if not wide(d) or not narrow >= kinds_of(d))
    for group in (False, True):
        several = [i for i in instances(entry, dtypes) if wide(i[0]) == group]
        if entry.costly:
            several = [] if group else several[:1]
        if not several:
            continue
        with bits("f64" if group else "f32"):
            given = [[snp.asarray(a) for a in arrays] for *_, arrays, _ in several]
            eager = [leaves(ours(*a)) for (_, _, ours, *_), a in zip(several, given)]

            def program(given, several=several):
                return [leaves(ours(*a)) for (_, _, ours, *_), a in zip(several, given)]

            compiled = st.jit(program)(given)
        for (dtype, each, *_), got, wanted in zip(several, compiled, eager):
            where = f"compiled {words(entry, each, dtype)}"
            assert [_type(a) for a in got] == [_type(a) for a in wanted], where
            for a, b in zip(got, wanted):
                close(a, b, entry.tolerance, where)


def check_over_devices(entry: Entry, mesh: st.sharding.Mesh) -> None:
    """With arrays that are split over devices, eagerly and as one program, against plain ones."""
    size = mesh.size

    def spread(array: np.ndarray) -> Any:
        axis = next((d for d, n in enumerate(array.shape) if n and n % size == 0), None)
        parts = () if axis is None else (*[None] * axis, mesh.axis_names[0])
        return st.device_put(array, st.sharding.NamedSharding(mesh, st.P(*parts)))

    _check_put(entry, spread)


def check_on_device(entry: Entry, device: Any) -> None:
    """With arrays on this device, eagerly and as one program, against plain ones."""
    _check_put(entry, lambda array: st.device_put(array, device))


def _check_put(entry: Entry, put: Callable[[np.ndarray], Any]) -> None:
    dtype = entry.dtypes[0]
    with bits(dtype):
        several = [i for i in instances(entry, (dtype,)) if i[4]]
        several = several[: 1 if entry.costly else 3]
        for _, each, ours, _, arrays, _ in several:
            where = f"on devices {words(entry, each, dtype)}"
            plain = [snp.asarray(a) for a in arrays]
            wanted = leaves(ours(*plain))
            there = [put(a) for a in arrays]
            for run in (ours, st.jit(lambda *a, f=ours: leaves(f(*a)))):
                got = leaves(run(*there))
                assert [_type(a) for a in got] == [_type(a) for a in wanted], where
                for a, b in zip(got, wanted):
                    close(a, b, entry.tolerance, where)


def _type(value: Any) -> str:
    return str(value.type) if isinstance(value, st.Array) else type(value).__name__


def check_vmapped(entry: Entry) -> None:
    """Over two examples of all arrays, and of the first array alone, against the loop."""
    for dtype, each, ours, _, arrays, again in instances(entry, entry.dtypes[:1]):
        if not arrays:
            continue
        where = f"vmapped {words(entry, each, dtype)}"
        with bits(dtype):
            pairs = [np.stack(p) for p in zip(arrays, again)]
            _same(st.vmap(lambda *a, f=ours: leaves(f(*a)))(*pairs), ours, arrays, again, where)
            if len(arrays) > 1:
                axes = (0, *[None] * (len(arrays) - 1))
                out = st.vmap(lambda *a, f=ours: leaves(f(*a)), in_axes=axes)(pairs[0], *arrays[1:])
                _same(out, ours, arrays, [again[0], *arrays[1:]], where)


def _same(out: list, ours: Callable, first: list, second: list, where: str) -> None:
    one, two = leaves(ours(*first)), leaves(ours(*second))
    assert len(out) == len(one), where
    for got, a, b in zip(out, one, two):
        close(got, np.stack([a, b]), 1.0, where)


def check_gradients(entry: Entry) -> None:
    """Of real and complex arrays in 64 bits: jvp and vjp against the difference quotient."""
    kinds = {kind for d in entry.dtypes for kind in kinds_of(d)}
    dtypes = tuple(d for k, d in (("float", "f64"), ("complex", "c128")) if k in kinds)
    rng = np.random.default_rng(zlib.crc32(entry.name.encode()))
    with st.enable_x64():
        for dtype, each, ours, _, arrays, _ in instances(entry, dtypes):
            where = f"derivative of {words(entry, each, dtype)}"
            moving = [i for i, a in enumerate(arrays) if is_inexact(a.dtype) and a.size]
            if not moving:
                continue

            def fun(*some, ours=ours, arrays=arrays, moving=moving):
                full = list(arrays)
                for i, v in zip(moving, some):
                    full[i] = v
                return [v for v in leaves(ours(*full)) if _moves(v)]

            primals = [arrays[i] for i in moving]
            out = fun(*primals)
            if not out:
                continue
            tangents = [_direction(rng, p) for p in primals]
            finite = [np.isfinite(v) for v in out]  # what is infinite has no quotient
            cts = [np.where(f, _direction(rng, np.asarray(v)), 0) for f, v in zip(finite, out)]
            step = 1e-6
            ahead = fun(*[p + step * t for p, t in zip(primals, tangents)])
            behind = fun(*[p - step * t for p, t in zip(primals, tangents)])
            ahead, behind, size = (
                [np.where(f, v, 0) for f, v in zip(finite, vs)] for vs in (ahead, behind, out)
            )
            size = sum(float(np.abs(c * v).sum()) for c, v in zip(cts, size))
            quotient = sum(_dot(c, (a - b) / (2 * step)) for c, a, b in zip(cts, ahead, behind))
            limit = {"rtol": 1e-5 * entry.tolerance, "atol": 1e-7 * (1 + size) * entry.tolerance}
            _, forward = st.jvp(fun, tuple(primals), tuple(tangents))
            along = sum(_dot(c, np.asarray(t)) for c, t in zip(cts, forward))
            np.testing.assert_allclose(along, quotient, err_msg=f"jvp: {where}", **limit)
            _, back = st.vjp(fun, *primals)
            # <ct, J v> = <Jᵀ ct, v>, without conjugation
            against = sum(_dot(np.asarray(g), t) for g, t in zip(back(_like(cts, out)), tangents))
            np.testing.assert_allclose(against, along, err_msg=f"vjp: {where}", **limit)


def _moves(value: Any) -> bool:
    # results that a call asks for in 32 bits are too coarse for difference quotients
    return isinstance(value, Value) and value.dtype in (np.float64, np.complex128)


def _direction(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    out = rng.uniform(-1, 1, like.shape)
    if like.dtype.kind == "c":
        out = out + 1j * rng.uniform(-1, 1, like.shape)
    return np.asarray(out, like.dtype)


def _like(cts: list, out: list) -> list:
    return [snp.asarray(c, dtype=v.dtype) for c, v in zip(cts, out)]


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    # the real part of the product without conjugation: for real functions the usual inner product
    return float(np.real(np.sum(np.asarray(a) * np.asarray(b))))


_EDGES = np.array(
    [
        0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1e10,
        -1e10,
        1e-10,
        -1e-10,
        1,
        -1,
        0.5,
        2.5,
        -2.5,
        -100,
        100,
    ],
    np.float32,
)


def check_edges(several: list[Entry]) -> None:
    """The first call of each on infinities, NaN, zeros of both signs, large and tiny numbers.

    One program of all, which XLA compiles, against the calls at rest.
    """
    cases = []
    for entry in several:
        for _, each, ours, _, arrays, _ in instances(entry, ("f32",)):
            draws, _ = split(each)
            free = [a.dtype == np.float32 and d.values is None for a, d in zip(arrays, draws)]
            if any(f and a.size for f, a in zip(free, arrays)):
                cases += _at_edges(entry, each, ours, arrays, free)
                break
    with st.config(interpret_small=False):
        compiled = st.jit(lambda given: [leaves(c[1](*a)) for c, a in zip(cases, given)])(
            [c[2] for c in cases]
        )
    for (where, _, _, eager, tolerance), got in zip(cases, compiled):
        for a, b in zip(got, eager, strict=True):
            close(a, b, tolerance, where)


def _at_edges(entry: Entry, each: Call, ours: Callable, arrays: list, free: list[bool]) -> list:
    """The function on arrays mixed of edges, twice, and of infinities: with its results at rest."""
    rng = np.random.default_rng(zlib.crc32(entry.name.encode()))
    made = []
    for fill in (_EDGES, _EDGES, np.float32([np.inf])):
        given = [snp.asarray(rng.choice(fill, a.shape) if f else a) for f, a in zip(free, arrays)]
        try:
            eager = leaves(ours(*given))
        except (ValueError, np.linalg.LinAlgError):  # refused, as bounds that are not finite
            continue
        where = f"{words(entry, each, 'f32')} of {[np.asarray(a).tolist() for a in given]}"
        made.append((where, ours, given, eager, entry.tolerance))
    return made


def check_wide_integers(entry: Entry) -> None:
    """With NumPy's integers of over 32 bits for each array in turn: refused, or as with 64 bits."""
    for dtype, each, ours, _, arrays, _ in instances(entry, entry.dtypes[:1]):
        draws, _ = split(each)
        for i, (draw, array) in enumerate(zip(draws, arrays)):
            if wide(dtype) or draw.handed or not array.size:
                continue
            given = list(arrays)
            given[i] = np.ones(array.shape, np.int64)
            given[i].flat[-1] = 2**40 + 1
            where = f"{words(entry, each, dtype)}, with 2**40 + 1 in array {i}"
            try:
                got = ours(*given)
            except OverflowError as error:
                assert "does not fit in" in str(error) or "do not fit in" in str(error), where
                continue
            except ValueError as error:  # of an argument with bounds of its own
                assert "must be between" in str(error), where
                continue
            with st.enable_x64():
                wanted = ours(*given)
            for a, b in zip(leaves(got), leaves(wanted), strict=True):
                np.testing.assert_allclose(np.asarray(a), np.asarray(b), 1e-6, err_msg=where)


def check_settings(entry: Entry) -> None:
    """Calls with arrays of one dtype, and of one rank, under the settings that refuse others.

    Eagerly, lowered, and their derivatives recorded: nothing is compiled.
    """
    for dtype, each, ours, _, arrays, _ in instances(entry):
        ranks = {a.ndim for a in arrays if a.ndim}
        alike = len({a.dtype for a in arrays}) <= 1 and not _of_higher_kind(each, arrays)
        chosen = {
            "numpy_dtype_promotion": "strict" if alike else "standard",
            "numpy_rank_promotion": "raise" if len(ranks) <= 1 else "allow",
        }
        where = f"{words(entry, each, dtype)}, {chosen}"
        with bits(dtype), st.config(**chosen):
            values = [snp.asarray(a) for a in arrays]
            try:
                ours(*values)
                if not entry.uncompiled and dtype == entry.dtypes[0]:
                    st.jit(lambda *a, f=ours: leaves(f(*a))).lower(*values).as_text()
                if not entry.uncompiled:
                    _record_derivatives(entry, ours, values)
            except Exception as error:
                error.add_note(where)
                raise


def _of_higher_kind(each: Call, arrays: list) -> bool:
    """Whether numbers are among the arguments whose kind is above that of all arrays."""
    kinds = ["bool", "int", "float", "complex"]
    most = max([kinds.index(kind_of(a.dtype).lstrip("u")) for a in arrays], default=3)
    return any(kinds.index(type(v).__name__) > most for v in each.args if type(v) in (int, float))


def _record_derivatives(entry: Entry, ours: Callable, values: list) -> None:
    """Traced, forwards and backwards, with respect to what is inexact."""
    moving = [i for i, v in enumerate(values) if is_inexact(v.dtype) and v.size]
    if not moving or entry.undifferentiated:
        return

    def of_moving(*some: Any) -> list:
        full = list(values)
        for i, v in zip(moving, some):
            full[i] = v
        return [v for v in leaves(ours(*full)) if isinstance(v, Value) and is_inexact(v.dtype)]

    def both(*primals: Any) -> Any:
        _, tangents = st.jvp(of_moving, primals, primals)
        out, back = st.vjp(of_moving, *primals)
        return tangents, back(out)

    st.eval_shape(both, *[values[i] for i in moving])
