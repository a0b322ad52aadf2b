"""Every public function where sizes vary: its values are those without padding, or it refuses.

For each function one call and choice of axes in each mode of the law (`any_size.py`), by turns;
`python -m tests.functions.sized` tries all. What is refused is written down in `any_size.txt`, so
that nothing is refused unnoticed, and nothing that is refused passes for a success.
"""

import importlib
import inspect
import pkgutil
import re
import zlib

import numpy as np
import pytest

import stretto
import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.primitive import CARRIED, PRIMITIVES, Refused
from stretto._engine.core.recorder import record
from stretto._engine.higher_order.custom_derivatives import CustomVjpForward
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.linalg.qr import Geqp3
from stretto._engine.ops.random_bits import threefry2x32
from tests.any_size import MODES, attempt, compare, holds
from tests.functions import sized
from tests.meshes import mesh

for _module in pkgutil.walk_packages(stretto.__path__, "stretto."):
    if _module.name.startswith(("stretto._engine.ops.", "stretto._engine.higher_order.")):
        importlib.import_module(_module.name)  # so that every operation is known

MEANING, ROWS, RULES = sized.read()
ENTRIES = sized.tried()


def chosen(entry, mode):
    """The number of one case of each mode, and the case."""
    cases = list(sized.cases(entry, (mode,)))
    number = zlib.crc32(f"{entry.name} {mode}".encode()) % max(len(cases), 1)
    return number, cases[number] if cases else None


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_values_are_those_without_padding(entry):
    for mode in MODES:
        number, case = chosen(entry, mode)
        if case is None:
            assert (entry.name, mode) not in ROWS
            continue
        outcome = sized.check(entry, case)
        expected = MEANING[ROWS[entry.name, mode][number]]
        kind = sized.kind_of_outcome(outcome)
        assert sized.SIGNS.get(kind, kind) == expected, (case.name, outcome.refused)
        if outcome.refused is not None:
            check_words(str(outcome.refused))


def check_words(message):
    """A refusal says what it is about, and what to do."""
    assert re.search(r"\bn\d\b", message), message


def test_the_table_is_whole():
    names = {name for name, _ in ROWS}
    assert names == {e.name for e in ENTRIES if any(True for _ in sized.cases(e, ("values",)))}


def test_the_page_says_what_is_refused():
    assert sized.PAGE.read_text(encoding="utf-8") == sized.page()


OURS = [p for p in PRIMITIVES if p.__module__.startswith("stretto.")]


def by_parts(f):
    """Run on each part of arrays that are split over one device."""
    return st.shard_map(f, mesh=mesh(x=1), in_specs=st.P(), out_specs=st.P(), check_vma=False)


def with_forward(f):
    """A function with a reverse rule of its own."""
    own = st.custom_vjp(f)
    own.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * snp.cos(x),))
    return own


def forward(x):
    """Values and residuals, as they are while a derivative is taken."""
    with_residual = record(lambda x: ([snp.sin(x), x], None), [x.type])[0]
    plain = record(lambda x: ([snp.sin(x)], None), [x.type])[0]
    return CustomVjpForward(with_residual, plain)(x)[0]


def mapped_by_hand(f):
    """A function with a rule of its own for vmap."""
    own = st.custom_vmap(f)
    own.def_vmap(lambda size, mapped, x: (st.vmap(f)(x), True))
    return own


def bits_of(state):
    """Two numbers that a state of four words gives."""
    return lax.rng_bit_generator(snp.abs(state).astype(np.uint32), (2,))[1]


def joined(a, b):
    """(1 + a) (1 + b) - 1."""
    return a * b + a + b


def windows(start, f, of=lambda x: x):
    """Windows of two rows."""
    return lambda x: lax.reduce_window(of(x), start, f, (2, 1), (1, 1), "SAME")


def scaled(by, x):
    """Linear in the second argument."""
    return x * by


def root(x):
    """The y for which 2 y is x."""
    halve = lambda f, y: y - f(y) / 2
    return lax.custom_root(lambda y: 2 * y - x, x, halve, lambda g, y: y / g(snp.ones_like(y)))


WORDS = st.ragged([[1.0, 2.0], [3.0]])
X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
OWN = {
    "all_gather": (by_parts(lambda x: lax.all_gather(x, "x")), "values"),
    "all_to_all": (by_parts(lambda x: lax.all_to_all(x[None], "x", 0, 0)), "values"),
    "axis_index": (by_parts(lambda x: x + lax.axis_index("x")), "values"),
    "ppermute": (by_parts(lambda x: lax.ppermute(x, "x", [(0, 0)])), "values"),
    "psame": (by_parts(lambda x: lax.ppermute(x, "x", [(0, 0)])), "values"),
    "psum_same": (by_parts(lambda x: lax.psum(x * (1 + lax.axis_index("x")), "x")), "values"),
    "psum_scatter": (by_parts(lambda x: lax.psum_scatter(x[None], "x")), "values"),
    "pvary": (by_parts(lambda x: x + lax.axis_index("x")), "values"),
    "shard_map": (by_parts(lambda x: x.sum(0) + x), "values"),
    "sharding_constraint": (
        lambda x: lax.with_sharding_constraint(x, st.sharding.NamedSharding(mesh(x=1), st.P())),
        "values",
    ),
    "checkpoint": (st.checkpoint(lambda x: snp.sin(x).sum(0) + x), "vjp"),
    "name": (lambda x: st.checkpoint_name(snp.sin(x), "sine"), "values"),
    "custom_vmap": (mapped_by_hand(lambda x: x.sum(0) + x), "values"),
    "user_primitive": (st.primitive(lambda x: x.sum(0) + x), "values"),
    "call": (st.jit(lambda x: x.sum(0) + x), "values"),
    "sized_call": (lambda x: st.vmap(lambda y: y.sum() * x.sum(0))(WORDS), "values"),
    "geqp3": (lambda x: Geqp3()(x)[0], "values"),
    "scatter_sub": (lambda x: x.at[snp.array([0, 1])].subtract(1.0), "values"),
    "threefry2x32": (lambda x: threefry2x32(*[snp.abs(x).astype(np.uint32)] * 4)[0], "values"),
    "rng_bit_generator": (st.vmap(lambda row: bits_of(snp.append(row, 1))), "values"),
    "custom_vjp": (with_forward(snp.sin), "values"),
    "custom_vjp_forward": (forward, "values"),
    "linear_call": (lambda x: st.lax.linear_call(scaled, scaled, x.sum(), x), "vjp"),
    "optimization_barrier": (lambda x: lax.optimization_barrier(x) * 2, "values"),
    "stop_gradient": (lambda x: lax.stop_gradient(x) * x, "jvp"),
    "cond": (lambda x: lax.cond(x.sum() > 0, snp.sin, snp.cos, x), "values"),
    "reduce": (lambda x: lax.reduce(x, 0.0, joined, (0,)), "values"),
    "reduce_window": (windows(0.0, joined), "values"),
    "reduce_window_sum": (windows(0.0, lax.add), "values"),
    "reduce_window_max": (windows(-np.inf, lax.max), "values"),
    "reduce_window_min": (windows(np.inf, lax.min), "values"),
    "reduce_window_prod": (windows(1.0, lax.mul), "values"),
    "reduce_window_and": (windows(True, lax.bitwise_and, lambda x: x > 0), "values"),
    "reduce_window_or": (windows(False, lax.bitwise_or, lambda x: x > 0), "values"),
    "reduce_window_xor": (windows(0, lax.bitwise_xor, lambda x: (x * 9).astype(int)), "values"),
    "window_place": (windows(-np.inf, lax.max), "jvp"),
    "select_and_gather_add": (windows(-np.inf, lax.max), "jvp"),
    "select_and_scatter_add": (windows(-np.inf, lax.max), "vjp"),
    "custom_root": (root, "values"),
    "mapped": (lambda x: st.vmap(lambda w: x @ w)(snp.ones((64, 3, 200))).sum(0), "values"),
}
"""Programs in which the rules of operations run that no function of the table has."""


@pytest.mark.parametrize("primitive", OURS, ids=lambda p: p.name)
def test_every_rule_is_run(primitive):
    if isinstance(primitive.padded, Refused):
        assert primitive.name not in RULES
        return
    if primitive.name in RULES:
        name, mode, number = RULES[primitive.name]
        entry = sized.table.ENTRIES[name]
        outcome = sized.check(entry, list(sized.cases(entry, (mode,)))[number])
        assert primitive in outcome.primitives
        return
    if primitive.name not in OWN:
        # what passes padding through does it as others do, by the same rule
        assert inspect.getattr_static(primitive, "padded") is CARRIED
        return
    function, mode = OWN[primitive.name]
    outcome = attempt(function, [[snp.asarray(X)]] * 2, {(0, 0): 0}, mode)
    assert outcome.refused is None and primitive in outcome.primitives
    compare(outcome.got, outcome.wanted, 1, primitive.name)


def test_a_rule_that_lets_padding_through_is_found(monkeypatch):
    monkeypatch.setattr(ReduceSum, "padded", CARRIED)
    x = np.ones((3, 2), np.float32)
    with pytest.raises(AssertionError, match="nan location mismatch"):
        holds(lambda x: st.lax.reduce_sum(x, (0,)) * 2, [x], {(0, 0): 0}, ("values",))
    holds(lambda x: st.lax.reduce_sum(x, (1,)) * 2, [x], {(0, 0): 0}, ("values",))
