"""Files of artifacts with damaged programs: each ends in an error in words, and nothing is run.

``python -m tests.export.hostile --count 10000`` tries that many, from ``--seed`` on.
"""

import argparse
import copy
import json
import random
import tempfile
import time
from pathlib import Path

import numpy as np

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.primitive import Primitive
from stretto.export.artifact import ENTRY
from stretto.files.load_files import load_header
from stretto.files.save_files import write

SECONDS = 1.0
"""The most processor time that a load may take, of a file of some kilobytes."""

ODD = (
    None, True, False, -1, 0, 1, 7, 2**31, 2**63, -(2**63), 10**30, 1.5, float("nan"), "", "x",
    "float32", "call", "scan", "__import__", "../../etc", "\0", "a" * 10_000, [], {}, [[]],
    [0] * 1000, [10**18] * 64, {"floor": [0, 0]}, {"floor": [[[1, [[0, 1]]]], 2]},
    {"positive": [[-1, [[0, 16]]]]}, [[1, [[0, 16], [0, 16]]]], ["policy", "print"],
    ["RefusedRule", ["words"]],
)  # fmt: skip


def deep(depth):
    """A list in a list in a list."""
    x = []
    for _ in range(depth):
        x = [x]
    return x


def of_any_size():
    net = st.nn.Sequential(st.nn.Linear(3, 4), st.nn.GELU(), st.nn.LayerNorm(4))
    return st.export.program(net, snp.ones((2, 3)), dynamic_axes=({0: "n"},))


def sine(x):
    return snp.sin(x)


def with_rules():
    own = st.custom_jvp(sine)
    own.defjvp(lambda p, t: (own(*p), snp.cos(*p) * t[0]))
    other = st.custom_vjp(lambda x: x * 2)
    other.defvjp(lambda x: (x * 2, x), lambda r, ct: (ct * r,))
    policy = st.checkpoint_policies.save_only_these_names("kept")
    kept = st.checkpoint(lambda x: st.checkpoint_name(snp.exp(x), "kept") * x, policy=policy)
    return st.export.program(lambda x: kept(own(x) + other(x)), snp.ones(3))


def with_loops():
    def f(x, n):
        table = snp.array(np.arange(12.0).reshape(4, 3))
        y, rows = lax.scan(lambda c, row: (snp.tanh(c + row), c), x, table)
        y = lax.cond(n > 0, snp.sin, lambda y: lax.while_loop(lambda c: c[0] > 1, snp.sqrt, y), y)
        return {"y": y, "rows": rows[n], "sorted": snp.sort(y), "fft": snp.fft.fft(y)}

    return st.export.program(f, snp.ones(3), 1)


def with_windows():
    def f(x, w):
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME")
        y = lax.reduce_window(y, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
        return y, st.vmap(lambda a, b: a @ b)(y[0], y[0]), st.random.normal(st.random.key(0), (3,))

    return st.export.program(f, snp.ones((1, 2, 4, 4)), snp.ones((3, 2, 3, 3)))


CORPUS = (of_any_size, with_rules, with_loops, with_windows)


def parts(path):
    """The record and the arrays of a file."""
    return json.loads(load_header(path).metadata[ENTRY]), st.load(path)


def places(node, found, path=()):
    """All places in JSON, as ways to them."""
    found.append(path)
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in children:
        if isinstance(child, (dict, list)):
            places(child, found, (*path, key))
        else:
            found.append((*path, key))


def at(node, path):
    for key in path:
        node = node[key]
    return node


def mutated(record, rng):
    """A copy of a record with one to three things in it changed."""
    record = copy.deepcopy(record)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = []
        places(record, found)
        path = rng.choice(found[1:])
        holder, key = at(record, path[:-1]), path[-1]
        kind = rng.randrange(6)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            holder[key] = copy.deepcopy(at(record, rng.choice(found[1:])))
        elif kind == 2 and isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), copy.deepcopy(holder[key]))
        elif kind == 3 and type(holder[key]) is int:
            holder[key] += rng.choice((-1, 1, 2, 1000))
        elif kind == 4:
            holder[key] = deep(rng.choice((3, 200)))
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD))
    return record


def outcome(path):
    """What loading a file says: None if it loads, else the message. Nothing may be run by it."""
    call = Primitive.__call__

    def refuse(self, *args):
        raise AssertionError(f"{self} was run")

    Primitive.__call__ = refuse
    started = time.process_time()
    try:
        st.export.load(path)
        return None
    except (ValueError, TypeError) as error:
        text = str(error)
    finally:
        Primitive.__call__ = call
        took = time.process_time() - started
    assert took < SECONDS, f"{took} s for {path}: {text}"
    assert text.startswith(f"export.load: {path}: "), text
    assert len(text) < 2000
    return text


def tried(made, count, seed, folder):
    """Load so many files like an artifact, each damaged: how many were refused."""
    path = str(Path(folder) / "own.stretto")
    made.save(path)
    record, arrays = parts(path)
    path = str(Path(folder) / "damaged.stretto")
    refused = 0
    for k in range(count):
        text = json.dumps(mutated(record, random.Random(f"{seed} {k}")))
        write(path, arrays, {ENTRY: text}, with_checksum=True)
        try:
            refused += outcome(path) is not None
        except BaseException:
            print(f"seed {seed}, file {k}")
            raise
    return refused


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for make in CORPUS:
            refused = tried(make(), options.count // len(CORPUS), options.seed, folder)
            print(f"{make.__name__}: {refused} of {options.count // len(CORPUS)} refused")


if __name__ == "__main__":
    main()
