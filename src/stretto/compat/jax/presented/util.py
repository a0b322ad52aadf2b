"""``jax.util``: small functions of lists."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = [
    "HashableFunction",
    "HashablePartial",
    "cache",
    "concatenate",
    "curry",
    "merge_lists",
    "partition_list",
    "safe_map",
    "safe_zip",
    "split_dict",
    "split_list",
    "subvals",
    "toposort",
    "unzip2",
    "unzip3",
    "weakref_lru_cache",
    "wraps",
]

wraps = functools.wraps
HashablePartial = functools.partial
cache = functools.lru_cache
weakref_lru_cache = functools.lru_cache


def _sized(sequences: Sequence[Iterable[Any]]) -> list[list[Any]]:
    lists = [list(s) for s in sequences]
    for other in lists[1:]:
        if len(other) != len(lists[0]):
            raise ValueError(f"length mismatch: {[len(x) for x in lists]}")
    return lists


def safe_map(f: Callable[..., Any], *args: Iterable[Any]) -> list[Any]:
    """``map`` of sequences of one length, as a list."""
    return list(map(f, *_sized(args)))


def safe_zip(*args: Iterable[Any]) -> list[tuple[Any, ...]]:
    """``zip`` of sequences of one length, as a list."""
    return list(zip(*_sized(args)))


def unzip2(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The firsts and the seconds of pairs."""
    made = list(pairs)
    return tuple([a for a, _ in made]), tuple([b for _, b in made])


def unzip3(triples: Iterable[tuple[Any, Any, Any]]) -> tuple[tuple[Any, ...], ...]:
    """The firsts, seconds and thirds of triples."""
    made = list(triples)
    return tuple([tuple([t[i] for t in made]) for i in range(3)])


def concatenate(xs: Iterable[Sequence[Any]]) -> list[Any]:
    """One list of several."""
    return list(itertools.chain.from_iterable(xs))


def split_list(args: Sequence[Any], ns: Sequence[int]) -> list[list[Any]]:
    """Parts of these lengths, and the rest."""
    remaining, out = list(args), []
    for n in ns:
        out.append(remaining[:n])
        remaining = remaining[n:]
    return [*out, remaining]


def partition_list(bs: Sequence[bool], xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Those where the boolean is false, and those where it is true."""
    pairs = safe_zip(bs, xs)
    return [x for b, x in pairs if not b], [x for b, x in pairs if b]


def merge_lists(bs: Sequence[bool], xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """What ``partition_list`` took apart."""
    false, true = iter(xs), iter(ys)
    return [next(true) if b else next(false) for b in bs]


def subvals(xs: Iterable[Any], replacements: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """The values, with those at some places replaced."""
    out = list(xs)
    for i, x in replacements:
        out[i] = x
    return tuple(out)


def split_dict(dct: dict[Any, Any], names: Sequence[Any]) -> list[Any]:
    """The values of a dictionary, in this order of names."""
    remaining = dict(dct)
    out = [remaining.pop(name) for name in names]
    if remaining:
        raise ValueError(f"split_dict: more keys than names: {sorted(map(str, remaining))}")
    return out


def curry(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes its first argument first, and the others later."""
    return functools.wraps(f)(functools.partial(functools.partial, f))


def toposort(end_nodes: Sequence[Any]) -> list[Any]:
    """The nodes in an order in which each comes after its ``parents``."""
    done: dict[int, Any] = {}

    def visit(node: Any) -> None:
        if id(node) not in done:
            for parent in node.parents:
                visit(parent)
            done[id(node)] = node

    for node in end_nodes:
        visit(node)
    return list(done.values())


class HashableFunction:
    """A function that is equal to another of the same code and closure."""

    def __init__(self, f: Callable[..., Any], closure: Any) -> None:
        self.f, self.closure = f, closure

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, HashableFunction)
            and self.f.__code__ == other.f.__code__
            and self.closure == other.closure
        )

    def __hash__(self) -> int:
        return hash((self.f.__code__, self.closure))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.f(*args, **kwargs)
