"""The other side of an exchange of files: run by real JAX, in an environment of its own.

``python jax_side.py write FOLDER`` writes files of ``jax.export``, each with arguments and what JAX
makes of them; ``read FOLDER`` reads files written by Stretto, calls and differentiates them, and
prints a line for each that fails, and the counts. It imports neither Stretto nor its tests.
"""

import pathlib
import sys
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

jax.config.update("jax_enable_x64", True)
# The paths of this machine do not go into files.
jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*")

F32 = np.float32


def draw(*shape, dtype=F32, seed=0):
    rng = np.random.default_rng([seed, *shape])
    return rng.uniform(0.1, 0.9, shape).astype(dtype)


# What is written: a function, arguments, and options: the shapes that are symbolic, platforms, and
# the order of derivatives.

PROGRAMS = {}


def program(*args, order=1, shapes=None, platforms=None, **kwargs):
    def add(fun):
        PROGRAMS[fun.__name__] = fun, args, kwargs, order, shapes, platforms
        return fun

    return add


@program(draw(3, 4), order=2)
def sine_and_sum(x):
    return {"sine": jnp.sin(x), "sum": [jnp.sum(x), None]}


@program(draw(2), order=1, y=draw(2, seed=1))
def by_name(x, *, y):
    return x * y


@program(draw(2, 3), np.arange(6, dtype=np.int32).reshape(2, 3), np.array([True, False]))
def integers_and_booleans(x, n, b):
    return jnp.where(b[:, None], x * n, x), n + 1, ~b


@program(draw(5), np.int32(2))
def indexed(x, i):
    return x[i], lax.dynamic_slice(x, (i,), (2,)), x.at[i].set(0.0)


@program(draw(8, 3))
def scanned(x):
    return lax.scan(lambda c, row: (jnp.tanh(c + row), jnp.sum(c)), jnp.zeros(3, F32), x)


@program(F32(3.0), order=0)
def while_loop(x):
    return lax.while_loop(lambda c: c < 100, lambda c: c * 2, x)


@program(np.int32(1), draw(4))
def branches(i, x):
    return lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x)


@program(draw(4, 4) + 4 * np.eye(4, dtype=F32))
def linear_algebra(a):
    solved = jnp.linalg.solve(a, jnp.ones(4, F32))
    return solved, jnp.linalg.cholesky(a @ a.T), jnp.linalg.det(a)


@program(draw(5, 3), order=0)
def decompositions(a):
    q, r = jnp.linalg.qr(a)
    return q @ r, jnp.linalg.svd(a, compute_uv=False), jnp.linalg.eigvalsh(a.T @ a)


@program(draw(1, 2, 6, 6), draw(3, 2, 3, 3))
def convolution(x, w):
    return lax.conv(x, w, (1, 1), "SAME")


@program(draw(6))
def sorted_values(x):
    return jnp.sort(x), jnp.argsort(x), lax.top_k(x, 2)


@program(np.array([0, 7], np.uint32), order=0)
def random_numbers(words):
    key = jax.random.wrap_key_data(words)
    split = jax.random.key_data(jax.random.split(key, 2))
    return jax.random.normal(key, (4,)), jax.random.permutation(key, 5), split


@program(draw(4), draw(4, dtype=np.float64), draw(4, dtype=jnp.bfloat16), order=1)
def several_dtypes(x, y, z):
    return x * y, z + 1, x.astype(jnp.float16)


@program((draw(3) + 1j * draw(3, seed=2)).astype(np.complex64), order=1)
def complex_numbers(z):
    return jnp.abs(z), jnp.fft.fft(z), z * z


@program(draw(3, 2), draw(2, 4), draw(4))
def layers(x, w, b):
    return jax.nn.softmax(jax.nn.gelu(x @ w + b)) ** 2


@program(draw(3), order=1)
def special_functions(x):
    return jax.scipy.special.erf(x), jax.scipy.special.gammaln(x), jnp.arctanh(x)


@program(draw(2, 3), draw(2, 1))
def unused(x, y):
    return x + 1


@program()
def no_arguments():
    return jnp.arange(3), jnp.ones(2)


@program(draw(4, 2))
def constrained(x):
    mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    where = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    return lax.with_sharding_constraint(x, where) * 2


@program(draw(3), order=1, platforms=("cpu", "cuda"))
def two_platforms(x):
    return lax.platform_dependent(x, cpu=jnp.sin, cuda=jnp.cos)


@program(draw(3), order=0, platforms=("tpu",))
def for_tpu(x):
    return jnp.sin(x)


@program(draw(3, 4), shapes="b, 4")
def symbolic(x):
    n = x.shape[0]
    return x.reshape(-1), jnp.sum(x) * n, x[: n // 2], jnp.arange(2 * n)


@program(draw(6), draw(3), shapes=("2*b", "b"))
def symbolic_twice(x, y):
    return x.reshape(2, -1) + y


@program(draw(3, 5), draw(5, 2), shapes=("b, c", "c, d"))
def symbolic_product(x, y):
    return jnp.tanh(x @ y), jnp.concatenate([x, x], 0)


@program(draw(4, 3), shapes="b, 3", order=1)
def symbolic_scan(x):
    return lax.scan(lambda c, row: (c + row, c), jnp.zeros(3, F32), x)[0]


@program(draw(4, 3), shapes="b, 3", platforms=("cpu", "cuda"))
def symbolic_for_two(x):
    return x - jnp.mean(x, 0)


def specifications(args, shapes):
    scope = export.SymbolicScope()
    if shapes is None:
        return args
    each = (shapes,) if isinstance(shapes, str) else shapes
    return [
        jax.ShapeDtypeStruct(export.symbolic_shape(text, scope=scope), x.dtype)
        for text, x in zip(each, args, strict=True)
    ]


def is_real(x):
    return jnp.issubdtype(x.dtype, jnp.floating)


def score(fun, args, kwargs):
    """The sum of all results, each times a number of its own, by the arguments that move."""
    moving = [k for k, x in enumerate(args) if is_real(x)]

    def of(*values):
        full = list(args)
        for k, v in zip(moving, values, strict=True):
            full[k] = v
        total = 0.0
        for k, leaf in enumerate(jax.tree.leaves(fun(*full, **kwargs))):
            if is_real(leaf):
                total = total + (k + 1) * jnp.sum(leaf.astype(jnp.float64))
        return total

    return of, [args[k] for k in moving]


def write(folder):
    """Write a file for each program, with its arguments, results and derivatives."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (fun, args, kwargs, order, shapes, platforms) in PROGRAMS.items():
        jitted = jax.jit(fun)
        options = {} if platforms is None else {"platforms": platforms}
        exported = export.export(jitted, **options)(*specifications(args, shapes), **kwargs)
        (folder / f"{name}.jax").write_bytes(exported.serialize(vjp_order=order))
        values = {}
        for k, x in enumerate(args):
            values[f"arg{k}"] = x
        for k, x in kwargs.items():
            values[f"kwarg_{k}"] = x
        for k, x in enumerate(jax.tree.leaves(jitted(*args, **kwargs))):
            values[f"out{k}"] = x
        if order:
            of, moving = score(jitted, args, kwargs)
            for k, x in enumerate(
                jax.grad(of, tuple(range(len(moving))))(*moving) if moving else ()
            ):
                values[f"grad{k}"] = x
        store(folder / f"{name}.npz", values)


def store(path, values):
    """Write arrays; bfloat16, which NumPy does not know, as float32 under another name."""
    plain = {}
    for name, x in values.items():
        x = np.asarray(x)
        odd = x.dtype == jnp.bfloat16
        plain[f"{name}:bfloat16" if odd else name] = x.astype(F32) if odd else x
    np.savez(path, **plain)


def stored(path):
    found = {}
    with np.load(path) as archive:
        for name in archive.files:
            plain, _, odd = name.partition(":")
            found[plain] = archive[name].astype(jnp.bfloat16) if odd else archive[name]
    return found


def close(got, expected):
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    assert got.dtype == expected.dtype, (got.dtype, expected.dtype)
    if got.dtype == bool or np.issubdtype(got.dtype, np.integer):
        np.testing.assert_array_equal(got, expected)
        return
    wide = np.complex128 if np.issubdtype(got.dtype, np.complexfloating) else np.float64
    got, expected = got.astype(wide), expected.astype(wide)
    finite = expected[np.isfinite(expected)]
    largest = np.max(np.abs(finite), initial=0.0)
    tolerance = {1: 0.2, 2: 1e-2, 4: 1e-4, 8: 1e-4}.get(np.asarray(got).dtype.itemsize, 1e-4)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=tolerance * max(largest, 1e-2))


def second_derivative(of, moving):
    """The derivative by the first argument of the sum of all slopes."""
    slopes = jax.grad(of, tuple(range(len(moving))))
    return jax.grad(lambda *m: sum(jnp.sum(g.astype(jnp.float64)) for g in slopes(*m)))(*moving)


def read(folder):
    """Read, call and differentiate all files of a folder; return how many went which way."""
    outcomes = Counter()
    for path in sorted(folder.glob("*.shlo")):
        values = stored(path.with_suffix(".npz"))
        args = [values[f"arg{k}"] for k in range(sum(n.startswith("arg") for n in values))]
        outs = [values[f"out{k}"] for k in range(sum(n.startswith("out") for n in values))]
        try:
            exported = export.deserialize(bytearray(path.read_bytes()))
            got = jax.tree.leaves(jax.jit(exported.call)(*args))
            assert len(got) == len(outs)
            for g, o in zip(got, outs, strict=True):
                close(g, o)
            outcomes["values"] += 1
            if "grad0" in values:
                of, moving = score(exported.call, args, {})
                grads = jax.grad(of, tuple(range(len(moving))))(*moving)
                for k, g in enumerate(grads):
                    close(g, values[f"grad{k}"])
                outcomes["derivatives"] += 1
            if exported.has_vjp() and exported.vjp().has_vjp() and "second" in values:
                close(second_derivative(*score(exported.call, args, {})), values["second"])
                outcomes["second derivatives"] += 1
        except Exception as error:  # counted, by kind
            outcomes["failed"] += 1
            words = " ".join(str(error).split())[:300]
            print(f"{path.stem}\t{type(error).__name__}: {words}", flush=True)
    print(dict(outcomes), flush=True)
    return outcomes


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](pathlib.Path(sys.argv[2]))
