"""Damage what a merge reads: each is merged, or refused in words, and no more happens.

Recipes in TOML, JSON and YAML, indexes, configurations, adapters' configurations, and headers of
safetensors files are changed in their values, or in their bytes. Whatever becomes of them takes
little time and memory, opens no file outside of its folder, and runs nothing: an audit hook of
Python's watches.

``python -m tests.merge.fuzz --count 10000`` tries that many, from ``--seed`` on.
"""

import argparse
import copy
import json
import os
import random
import resource
import shutil
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import yaml

import stretto as st
from tests.merge import models

SECONDS = 2.0
"""The most processor time that a file may take; to compile a method takes most of it."""

MEBIBYTES = 600
"""The most memory that all may take together, beyond that of the first of each kind."""

ODD = (
    None, True, False, -1, 0, 1, 7, 2**31, 2**63, -(2**63), 10**30, 10**400, 1.5, 1e308,
    float("nan"), float("inf"), "", "x", "float32", "bfloat16", "LORA", "ties", "slerp", "F64",
    "__import__", "../../secret.safetensors", "/etc/passwd", "secret.safetensors", "\0", "a" * 9999,
    "(a+)+$", "*", "**", "[", "(", "..", ".", "base", "m\n", "\N{SNOWMAN}", [], {}, [[]],
    [0] * 1000, [0.1, "x"], {"value": 1}, {"match": "*", "value": [0, 1]},
    {"regex": "(", "value": 1}, {"path": "a"}, {"model": "a"}, {"filter": "mlp", "value": 0.3},
    [0, 2], [2, 0], [0, 10**12],
)  # fmt: skip

BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{y}: &{y} [{','.join([f'*{x}'] * 9)}]\n"
    for x, y in zip("abcdefghijk", "bcdefghijkl", strict=True)
)  # fmt: skip
"""Nine to the power of twelve numbers, in some hundred bytes of YAML."""

ALLOWED = (ValueError, TypeError, OSError)
NEVER = ("exec", "os.system", "os.exec", "os.fork", "subprocess.Popen", "pickle.find_class",
         "socket.connect", "ctypes.dlopen")  # fmt: skip


# What is damaged


def nodes(x):
    """Where something is in a tree of JSON: the container and the key."""
    if isinstance(x, (dict, list)):
        for key in list(x) if isinstance(x, dict) else range(len(x)):
            yield x, key
            yield from nodes(x[key])


def changed(rng, tree):
    """The tree with some changed, lost, twice, or under another name."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 2, 4])):
        places = list(nodes(tree))
        if not places:
            return copy.deepcopy(rng.choice(ODD))
        where, key = rng.choice(places)
        kind = rng.randrange(5)
        if kind == 0:
            del where[key]
        elif kind == 1 and isinstance(where, dict):
            where[rng.choice([str(o) for o in ODD])] = where.pop(key)
        elif kind == 2 and isinstance(where, list):
            where.append(where[key])
        else:
            where[key] = copy.deepcopy(rng.choice(places)[0] if kind == 3 else rng.choice(ODD))
    return tree


def spoiled(rng, raw):
    """The bytes with some changed, inserted, or lost."""
    out = bytearray(raw)
    for _ in range(rng.choice([1, 2, 8])):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            out[at : at + rng.randrange(9)] = b""
        elif kind == 1:
            out[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(5)))
        elif kind == 2:
            out[at:at] = out[rng.randrange(len(out) + 1) :][: rng.randrange(40)]
        elif at < len(out):
            out[at] = rng.randrange(256)
    return bytes(out)


def as_toml(x):
    """A dictionary as TOML, in lines; what TOML has not is text."""
    if isinstance(x, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {as_toml(v)}" for k, v in x.items()) + "}"
    if isinstance(x, list):
        return "[" + ", ".join(map(as_toml, x)) + "]"
    if isinstance(x, bool) or not isinstance(x, (int, float, str)):
        return json.dumps(x) if x is not None else '""'
    return repr(x) if isinstance(x, (int, float)) else json.dumps(x)


# The files

OURS = [
    {"method": "linear", "models": [{"path": "a", "weight": 2}, {"path": "b", "weight": [1, 2]}],
     "parameters": {"normalize": True}, "out_dtype": "float32", "seed": 1},
    {"method": "ties", "base": "base", "models": ["a", {"path": "b", "density": 0.5}],
     "parameters": {"weight": [{"match": "*.mlp.*", "value": 0.7}, {"value": 0.3}], "lambda": 0.5}},
    {"method": "passthrough", "slices": [
        {"models": [{"path": "a", "layers": [0, 2]}]},
        {"models": [{"path": "b", "layers": [1, 4]}], "parameters": {"scale": 0.5}}]},
    {"method": "passthrough", "models": [{"path": "base", "adapter": "adapter"}]},
]  # fmt: skip
MERGEKITS = [
    {"merge_method": "slerp", "base_model": "a", "models": [{"model": "a"}, {"model": "b"}],
     "parameters": {"t": [{"filter": "mlp", "value": [0, 0.5, 1]}, {"value": 0.5}]},
     "dtype": "bfloat16"},
    {"merge_method": "linear", "dtype": "float32", "slices": [{"sources": [
        {"model": "a", "layer_range": [0, 3], "parameters": {"weight": 1}},
        {"model": "b+adapter", "layer_range": [1, 4], "parameters": {"weight": 0.5}}]}]},
]  # fmt: skip


def write(folder: Path) -> None:
    """The models, once, in a folder."""
    for i, name in enumerate(("base", "a", "b")):
        models.as_folder(folder / name, models.draw(i), shards=2, tie_word_embeddings=False)
    name = "model.layers.1.mlp.up_proj"
    rows, columns = models.shapes()[name + ".weight"]
    (folder / "adapter").mkdir()
    pairs = {f"base_model.model.{name}.lora_A.weight": np.ones((2, columns), np.float32),
             f"base_model.model.{name}.lora_B.weight": np.ones((rows, 2), np.float32)}  # fmt: skip
    models.save_file(pairs, folder / "adapter" / "adapter_model.safetensors")
    (folder / "adapter" / "adapter_config.json").write_text(json.dumps(
        {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "rank_pattern": {"up_proj": 2},
         "alpha_pattern": {}, "fan_in_fan_out": False, "use_rslora": False, "bias": "none",
         "init_lora_weights": True, "modules_to_save": None}))  # fmt: skip


def recipe(rng, folder):
    """A recipe that is damaged, and nothing else."""
    kind = rng.choice(["toml", "json", "yaml"])
    tree = rng.choice(MERGEKITS if kind == "yaml" else OURS)
    if rng.random() < 0.7:
        tree = changed(rng, tree)
    if kind == "toml":
        said = tree if isinstance(tree, dict) else {"method": tree}
        text = "\n".join(f"{json.dumps(str(k))} = {as_toml(v)}" for k, v in said.items())
    else:
        text = json.dumps(tree) if kind == "json" else yaml.safe_dump(tree)
    raw = text.encode("utf-8", "surrogatepass")
    if rng.random() < 0.4:
        raw = spoiled(rng, raw)
    if kind == "yaml" and rng.random() < 0.1:
        raw = (BOMB + rng.choice(["models", "merge_method", "parameters", "dtype", "x"])
               + ": *l\n").encode() + raw  # fmt: skip
    path = folder / f"recipe.{kind}"
    path.write_bytes(raw)
    return path, path


def good(rng, folder):
    """A recipe that reads everything."""
    path = folder / "recipe.json"
    path.write_text(json.dumps(rng.choice(OURS)))
    return path


def table(name):
    """What damages a file of JSON."""

    def kind(rng, folder):
        path = folder / name
        raw = path.read_bytes()
        if rng.random() < 0.7:
            raw = json.dumps(changed(rng, json.loads(raw))).encode()
        path.write_bytes(spoiled(rng, raw) if rng.random() < 0.4 else raw)
        return good(rng, folder), path

    kind.__name__ = name
    return kind


def header(rng, folder):
    """The header of a file of tensors."""
    path = folder / rng.choice(["a", "b", "base"]) / "model-00001-of-00002.safetensors"
    if rng.random() < 0.2:
        path = folder / "adapter" / "adapter_model.safetensors"
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    said = raw[8 : 8 + size]
    if rng.random() < 0.6:
        said = json.dumps(changed(rng, json.loads(said))).encode()
        said += b" " * (-len(said) % 8)
    if rng.random() < 0.5:
        said = spoiled(rng, said)
    length = len(said) if rng.random() < 0.9 else rng.choice([0, 1, 2**63, 2**32, len(said) - 1])
    path.write_bytes(length.to_bytes(8, "little") + said + raw[8 + size :])
    return good(rng, folder), path


KINDS = [
    recipe, header, table("a/model.safetensors.index.json"), table("base/config.json"),
    table("adapter/adapter_config.json"),
]  # fmt: skip


# What happens


class Watch:
    """Notes what is opened and run, while it is told to."""

    def __init__(self):
        self.folder, self.seen, self.is_recipe = None, [], False
        code = sysconfig.get_paths()
        self.code = tuple(map(os.path.realpath, {*code.values(), Path(st.__file__).parent,
                                                 *(p for p in sys.path if p)}))  # fmt: skip
        sys.addaudithook(self)

    def __call__(self, event, arguments):
        if self.folder is None:
            return
        if event in NEVER and not (event == "exec" and self.is_ours(arguments[0].co_filename)):
            self.seen.append((event, str(arguments)[:200]))
        if event == "open" and isinstance(arguments[0], str):
            path = os.path.realpath(arguments[0])
            writes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            inside = path.startswith(self.folder + os.sep)
            if path == "/proc/meminfo":
                return  # how much memory there is
            # A recipe may name any file; what it names is opened as safetensors, and never written.
            if not (inside or path.startswith(self.code)) and (writes or not self.is_recipe):
                self.seen.append((event, path))

    def is_ours(self, name):
        """Say whether code is of a library, or made by one, such as the classes of named tuples."""
        return os.path.realpath(name).startswith(self.code) or name.startswith("<")


def tried(watch: Watch, rng: random.Random, folder: Path, kind) -> str:
    """Damage one, merge it, and return what became of it."""
    path, damaged = kind(rng, folder)
    watch.is_recipe = kind is recipe
    start = time.process_time()
    out = folder / "made" / "out"
    out.parent.mkdir(exist_ok=True)
    watch.folder, watch.seen = os.path.realpath(folder), []
    try:
        st.merge.run(path, out, memory="8MB")
        result = "merged"
    except ALLOWED as error:
        result = f"refused: {type(error).__name__}"
        words = str(error)
        assert words.startswith(("merge: ", "run: ", "Checkpoint: ")), (damaged, words[:300])
        assert len(words) < 20_000, (damaged, words[:300])
    finally:
        watch.folder = None
    spent = time.process_time() - start
    assert not watch.seen, (damaged, watch.seen)
    assert spent < SECONDS, (damaged, spent)
    shutil.rmtree(out.parent)
    return result


def storm(count: int, seed: int, kinds=KINDS, keep: str | None = None) -> Counter:
    """Try so many, and return what became of them; what fails is kept in a folder."""
    watch, counts = Watch(), Counter()
    with tempfile.TemporaryDirectory() as top:
        models_of = Path(top) / "models"
        models_of.mkdir()
        write(models_of)
        # What is compiled and imported before does not count.
        for i, each in enumerate([*OURS, *MERGEKITS]):
            path = models_of / f"recipe.{'yaml' if i >= len(OURS) else 'json'}"
            path.write_text(json.dumps(each))
            st.merge.run(path, Path(top) / f"warm{i}")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(seed, seed + count):
            rng = random.Random(number)
            folder = Path(top) / "tried"
            shutil.copytree(models_of, folder)
            kind = kinds[number % len(kinds)]
            try:
                result = tried(watch, rng, folder, kind)
            except BaseException:
                print(f"seed {number}, {kind.__name__}", file=sys.stderr)
                if keep:
                    shutil.copytree(folder, Path(keep) / str(number), dirs_exist_ok=True)
                raise
            counts[f"{kind.__name__}: {result}"] += 1
            shutil.rmtree(folder)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert grown < MEBIBYTES, grown
    return counts


def main() -> None:
    """Print what became of all."""
    parser = argparse.ArgumentParser(prog="python -m tests.merge.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder for the files of a failure")
    options = parser.parse_args()
    for what, count in sorted(storm(options.count, options.seed, keep=options.keep).items()):
        print(f"{count:6} {what}")


if __name__ == "__main__":
    main()
