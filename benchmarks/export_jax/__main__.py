"""Exchange files with real JAX, both ways, and count what agrees.

Run by ``make export-jax``, or by hand:

    python -m benchmarks.export_jax build/export-jax --jax .venv-export-jax/bin/python

It has that Python, of an environment that has JAX, run the cases of ``cases``, which Stretto passes
under JAX's names; writes calls of the table of functions as StableHLO, with derivatives, and has
JAX read, call and differentiate them; and reads what JAX writes. Arrays are of one dtype, float32
by default.
"""

import argparse
import importlib
import pathlib
import pkgutil
import subprocess
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import export
from tests.export import exchange
from tests.functions import checks, entries, table

for _, name, _ in pkgutil.iter_modules(entries.__path__):
    importlib.import_module(f"tests.functions.entries.{name}")

SIDE, CASES = [pathlib.Path(__file__).with_name(name) for name in ("jax_side.py", "cases.py")]


def written(folder: pathlib.Path, only: str, dtype: str, most: int, second: bool) -> Counter:
    """Write a file for calls of each function; return how many went which way."""
    counts: Counter = Counter()
    for function in sorted(table.ENTRIES):
        if not function.startswith(only):
            continue
        entry, done = table.ENTRIES[function], 0
        for of_dtype, each, ours, _, arrays, _ in checks.instances(entry):
            if of_dtype != dtype or done >= most:
                continue
            done += 1
            path = folder / f"{function}-{done}".replace(".", "_")
            try:
                counts[_write(path, ours, arrays, dtype, second)] += 1
            except Exception as error:  # counted, by kind
                words = " ".join(str(error).split())[:200]
                print(f"{checks.words(entry, each, dtype)}\t{type(error).__name__}: {words}")
                counts[f"not written: {type(error).__name__}"] += 1
    return counts


def _write(path: pathlib.Path, ours: Any, arrays: Any, dtype: str, second: bool) -> str:
    with checks.bits(dtype), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        outs = checks.leaves(ours(*arrays))
        if not all([isinstance(o, st.Array) for o in outs]):
            return "no arrays"
        file = export.stablehlo(ours, *arrays)
        values = {f"arg{k}": np.asarray(snp.asarray(x)) for k, x in enumerate(arrays)}
        values |= {f"out{k}": np.asarray(o) for k, o in enumerate(outs)}
        kind = "values"
        try:
            of, moving = exchange.score(ours, list(arrays), {})
            if moving:
                file = export.stablehlo(ours, *arrays, vjp_order=1 + second)
                slope = st.grad(of, tuple(range(len(moving))))
                for k, g in enumerate(slope(*moving)):
                    values[f"grad{k}"] = np.asarray(g)
                kind = "values and derivatives"
                if second:
                    total = lambda *m: sum([snp.sum(g.astype("float64")) for g in slope(*m)])
                    values["second"] = np.asarray(st.grad(total)(*moving))
        except (st.errors.MissingRuleError, TypeError):
            pass
        path.with_suffix(".shlo").write_bytes(file.serialize())
        _store(path.with_suffix(".npz"), values)
        return kind


def _store(path: pathlib.Path, values: dict[str, np.ndarray]) -> None:
    plain = {}
    for name, x in values.items():
        odd = x.dtype.name == "bfloat16"
        plain[f"{name}:bfloat16" if odd else name] = x.astype(np.float32) if odd else x
    np.savez(path, **plain)


def _softmax(x: Any) -> Any:
    return st.nn.functional.softmax(x @ x.T, -1) @ x


def _scanned(x: Any) -> Any:
    step = lambda c, row: (snp.tanh(c + row), snp.sum(c))
    return st.lax.scan(step, snp.zeros(4), x)


def _normalized(x: Any) -> Any:
    return (x - snp.mean(x, 0)) / snp.std(x, 0), x.reshape(-1), snp.arange(2 * x.shape[0])


def _ordered(x: Any) -> Any:
    return snp.sort(x, 0), snp.cumsum(x, 0), x[::2], snp.concatenate([x, x])


def _masked(x: Any) -> Any:
    return snp.tril(x @ x.T), snp.where(x > 0.5, x, 0.0), x[: x.shape[0] // 2]


def _by_platform(x: Any) -> Any:
    return st.lax.platform_dependent(x, cuda=snp.cos, default=snp.sin)


SIZED = (_softmax, _scanned, _normalized, _ordered, _masked, _by_platform)
"""Functions of an array whose first axis has any size."""


def sized(folder: pathlib.Path) -> Counter:
    """Write functions of arrays of any size, once for each of some sizes; return how many."""
    counts: Counter = Counter()
    example = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4)).astype(np.float32)
    for fun in SIZED:
        file = export.stablehlo(
            fun, example, dynamic_axes=({0: "b"},), platforms=("cpu", "cuda"), vjp_order=1
        )
        for n in (2, 3, 7, 33):
            x = np.random.default_rng(n).uniform(0.1, 0.9, (n, 4)).astype(np.float32)
            of, moving = exchange.score(fun, [x], {})
            with warnings.catch_warnings():  # the score is of float64, where that is on
                warnings.simplefilter("ignore")
                (grad,) = st.grad(of, (0,))(*moving)
            outs = checks.leaves(fun(snp.asarray(x)))
            values = {"arg0": x, "grad0": np.asarray(grad)}
            values |= {f"out{k}": np.asarray(o) for k, o in enumerate(outs)}
            path = folder / f"sized{fun.__name__}_{n}"
            path.with_suffix(".shlo").write_bytes(file.serialize())
            _store(path.with_suffix(".npz"), values)
            counts["values and derivatives"] += 1
    return counts


def main() -> None:
    """Exchange files, and print the counts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--jax", required=True, help="the Python of an environment with JAX")
    parser.add_argument("--only", default="", help="the beginning of the functions' names")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--most", type=int, default=1, help="the most calls of a function")
    parser.add_argument("--second", action="store_true", help="second derivatives as well")
    options = parser.parse_args()
    subprocess.run([options.jax, CASES], check=True)
    ours, theirs = options.folder / "ours", options.folder / "theirs"
    ours.mkdir(parents=True, exist_ok=True)
    print("of any size:", dict(sized(ours)), flush=True)
    print(
        "written:",
        dict(written(ours, options.only, options.dtype, options.most, options.second)),
        flush=True,
    )
    subprocess.run([options.jax, SIDE, "read", ours], check=True)
    subprocess.run([options.jax, SIDE, "write", theirs], check=True)
    counts: Counter = Counter()
    for path in sorted(theirs.glob("*.jax")):
        try:
            exchange.check(path)
            counts["read, and right"] += 1
        except ValueError as error:
            kind = "refused, for another platform" if path.stem == "for_tpu" else "not read"
            counts[kind] += 1
            print(f"{path.stem}\t{error}")
        except Exception as error:  # counted, by kind
            counts["not read"] += 1
            print(f"{path.stem}\t{type(error).__name__}: {error}")
    print("of JAX's:", dict(counts))


if __name__ == "__main__":
    sys.exit(main())
