"""The compiler's options for a program: ours, those of ``XLA_FLAGS``, and the user's."""

from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.errors import ConfigError
from stretto._engine.core.types import array_type
from stretto._engine.lowering.text import Facts, Product
from stretto._engine.xla import options as module
from stretto._engine.xla import pjrt
from stretto._engine.xla.options import (
    EFFORTS,
    SCHEDULER,
    SMALL_LOOPS,
    asks_for_dumps,
    library_of,
    library_work,
    most_bytes,
    options_for,
    quick_options,
    set_effort,
)

pytestmark = pytest.mark.usefixtures("without_kernels")

LIBRARY, WITHOUT = "xla_cpu_experimental_ynn_fusion_type", "xla_disable_hlo_passes"


def facts_of(f, *args):
    """The facts about the program of a function."""
    return st.jit(f).lower(*args)._entry.text().facts


PLAIN = facts_of(lambda x: x @ x, snp.ones((4, 4)))
BARRED = facts_of(lambda x: st.lax.optimization_barrier(x) @ x, snp.ones((4, 4)))


def test_barriers_stay(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert WITHOUT not in dict(options_for(PLAIN, ()))
    assert "cse_barrier_expander" in dict(options_for(BARRED, ()))[WITHOUT].split(",")


def test_the_users_options_come_first(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=fusion")
    assert WITHOUT not in dict(options_for(BARRED, ()))
    assert LIBRARY in dict(options_for(BARRED, ()))
    assert dict(options_for(BARRED, ((LIBRARY, ""),)))[LIBRARY] == ""
    looped = facts_of(lambda x: st.lax.fori_loop(0, 9, lambda _, x: barred(x), x), snp.ones(4))
    assert SMALL_LOOPS not in dict(options_for(looped, ()))


def test_the_library_is_theirs_to_choose(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    assert library_of(PLAIN, ()).work == dict(options_for(PLAIN, ()))[LIBRARY] != ""
    chosen = library_of(PLAIN, ((LIBRARY, "LIBRARY_FUSION_TYPE_DOT"),))
    assert (chosen.work, chosen.products) == ("LIBRARY_FUSION_TYPE_DOT", True)
    assert "decide" in chosen.reason
    monkeypatch.setenv("XLA_FLAGS", f"--{LIBRARY}=LIBRARY_FUSION_TYPE_DOT")
    assert library_of(PLAIN, ()).work == ""
    assert LIBRARY not in dict(options_for(PLAIN, ()))


def long_sum(rows):
    """The facts of 40 products and sums of rows of 1,024 numbers, which make 80 × 4 kB each."""

    def f(x):
        total = x
        for _ in range(40):
            x = snp.tanh(x @ snp.eye(1024))
            total = total + x
        return total.sum(), x

    return facts_of(st.value_and_grad(lambda x: f(x)[0]), snp.ones((rows, 1024)))


def test_large_programs_are_put_into_the_order_of_least_memory(monkeypatch):
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    small, large = long_sum(4), long_sum(1024)
    assert SCHEDULER not in dict(options_for(small, ()))
    assert "MEMORY" in dict(options_for(large, ()))[SCHEDULER]
    asked = ((SCHEDULER, "CPU_SCHEDULER_TYPE_DEFAULT"),)
    assert dict(options_for(large, asked))[SCHEDULER] == "CPU_SCHEDULER_TYPE_DEFAULT"
    vector = lambda n: array_type((n,), np.dtype(np.float32))
    many_small = Facts(results={vector(1 << 15): 2000})  # 250 MiB in all, none need be alive
    assert SCHEDULER not in dict(options_for(many_small, ()))
    assert SCHEDULER in dict(options_for(Facts(results={vector(1 << 16): 512}), ()))
    monkeypatch.setenv("XLA_FLAGS", f"--{SCHEDULER}=CPU_SCHEDULER_TYPE_DEFAULT")
    assert SCHEDULER not in dict(options_for(large, ()))


def test_xla_leaves_barriers_in_place():
    hlo = st.jit(lambda x: snp.sin(st.lax.optimization_barrier(x @ x))).lower(snp.ones((4, 4)))
    assert "opt-barrier(" in hlo.compile().as_text()


@pytest.mark.parametrize("version", [(0, 10, 2), (0, 11, 0), (0, 11, 1), (0, 12), (0, 12, 0)])
def test_older_emitters_are_asked_for_where_there_are_any(version):
    quick = dict(quick_options(version))
    assert quick["xla_backend_optimization_level"] == 0
    assert quick.get("xla_cpu_use_fusion_emitters") is (False if version <= (0, 11, 0) else None)


def test_xla_takes_the_quick_options():
    x = snp.ones((4, 4))
    f = st.jit(lambda x: x @ x, compiler_options=dict(pjrt.quick()))
    np.testing.assert_array_equal(f(x), np.full((4, 4), 4.0))


def barred(x):
    return st.lax.optimization_barrier(x * 2) + 1


@pytest.mark.parametrize("size", [1, 4, 64, 4096])
@pytest.mark.parametrize(
    "body",
    [
        lambda i, x: barred(x),
        lambda i, x: st.lax.cond(x[0] > 0, barred, snp.negative, x),
        lambda i, x: st.lax.fori_loop(0, i + 1, lambda _, x: barred(x), x),
    ],
    ids=["loop", "cond", "loop in loop"],
)
def test_barriers_in_loops_of_any_size(size, body):
    """Of a small loop XLA would make one kernel, in which it takes no barriers."""
    turns = st.jit(lambda n, x: st.lax.fori_loop(0, n, body, x))
    np.testing.assert_array_equal(turns(1, snp.ones(size)), np.full(size, 3.0))


def test_options_for_which_jaxlib_has_no_attribute(unset):
    asked = lambda *options: pjrt.runtime().compile_options(PLAIN, options).SerializeAsString()
    assert SMALL_LOOPS.encode() not in asked()
    found = asked((SMALL_LOOPS, 12345))
    assert SMALL_LOOPS.encode() in found and b"12345" in found
    with pytest.raises(ConfigError, match="must be a number of bytes, got 'many'"):
        asked((SMALL_LOOPS, "many"))


def test_how_hard_the_compiler_tries():
    new = pjrt.runtime().compile_options(PLAIN, ()).executable_build_options
    there = [name for name in EFFORTS if hasattr(new, name)]
    assert {"memory_fitting_level", "optimization_level"} <= {*there}
    values = {name: 1 if name.endswith("level") else 0.5 for name in there}
    compiled = st.jit(lambda x: snp.sin(x) + 1).lower(0.0).compile(compiler_options=values)
    assert compiled(0.0) == 1
    chosen = pjrt.runtime().compile_options(PLAIN, tuple(values.items()))
    build = chosen.executable_build_options
    assert {name: getattr(build, name) for name in there} == values
    assert EFFORTS.isdisjoint(name for name, _ in chosen.env_option_overrides)
    with pytest.raises(ConfigError, match="optimization_level must be of type int, got 'all'"):
        st.jit(snp.sin, compiler_options={"optimization_level": "all"})(1.0)
    for name in EFFORTS - {*there}:
        with pytest.raises(ConfigError, match=f"has no {name}; it has memory_fitting_level, opti"):
            st.jit(snp.sin, compiler_options={name: 0.5})(1.0)


ABSENT = ("xla_that_no_build_has", True), (SCHEDULER, "AN_ORDER_THAT_NO_BUILD_HAS")


@pytest.fixture
def absent(monkeypatch):
    """Plant options of ours, beside the others, that this jaxlib does not know."""
    at = pjrt.runtime()
    planted = lambda facts, options: [*ABSENT, *options_for(facts, options)]
    monkeypatch.setattr(at, "options_for", planted)
    monkeypatch.setattr(at, "unknown", set())
    return at.unknown


def test_options_of_ours_that_jaxlib_does_not_know_are_left_out(absent):
    assert st.jit(lambda x: x * 3 + 1.25)(2.0) == 7.25
    assert absent == {*ABSENT}
    assert st.jit(lambda x: x * 3 + 1.5)(2.0) == 7.5
    quickly = st.jit(lambda x: st.lax.fori_loop(0, 9, lambda _, x: x + 2.5, x))
    assert quickly(1.0) == 23.5


def test_options_of_the_users_that_it_does_not_know_stay_errors(absent):
    f = lambda x: x * 3 + 1.75
    assert st.jit(f)(2.0) == 7.75  # from here on, ours are known to be unknown
    for name, value in ABSENT:
        with pytest.raises(ConfigError, match=f"compiler_options: .*{name}.*by name"):
            st.jit(f, compiler_options={name: value})(2.0)


def test_programs_are_kept_whatever_jaxlib_does_not_know(absent, kept_in, compiled_anew, again):
    f = st.jit(lambda x: x * 3 + 2.25)
    for _ in range(2):
        assert again(lambda: f(2.0)) == 8.25
        absent.clear()  # as in a new process
    assert len(compiled_anew) == 1


def test_what_would_be_wrong_without_an_option_is_not_compiled(monkeypatch):
    at = pjrt.runtime()
    monkeypatch.setattr(pjrt, "misreads", lambda module: True)
    monkeypatch.setattr(at, "unknown", {(LIBRARY, "")})
    with pytest.raises(RuntimeError, match=f"does not know the option {LIBRARY}.*another version"):
        st.jit(lambda x: x @ x + 2.75)(snp.ones((3, 3)))


SUMS, PRODUCTS = "LIBRARY_FUSION_TYPE_REDUCE", "LIBRARY_FUSION_TYPE_DOT"
X, W = snp.ones((8, 64)), snp.ones((96, 64))


def work_of(f, *args):
    return library_work(facts_of(f, *args)).work


def test_products_with_a_transposed_matrix_on_the_right():
    assert work_of(lambda x, w: x @ w.T, X, W) == f"{PRODUCTS},{SUMS}"
    assert work_of(lambda x, w: x @ w, X, W.T) == SUMS
    assert work_of(st.grad(lambda w, x: ((x @ w.T) ** 2).sum()), W, X) == f"{PRODUCTS},{SUMS}"


def test_a_matrix_whose_rows_are_summed_counts_as_transposed():
    product = lambda x, w: lax.dot_general(x, w, (((1,), (1,)), ((), ())))
    assert work_of(product, X, W) == f"{PRODUCTS},{SUMS}"
    assert work_of(lambda x, w: product(x, w.T), X, W.T) == SUMS  # transposed twice
    slope = st.grad(lambda x, w: ((x @ w) ** 2).sum())
    assert work_of(slope, X, W.T) == f"{PRODUCTS},{SUMS}"


def test_batches():
    def turned(x, w):
        return x @ w.mT

    def straight(x, w):
        return x @ w

    x, w = snp.ones((5, 8, 128)), snp.ones((5, 256, 128))
    assert work_of(turned, x, w) == f"{PRODUCTS},{SUMS}"
    assert work_of(straight, x, w.mT) == SUMS
    assert work_of(straight, x, w.mT[..., :32]) == f"{PRODUCTS},{SUMS}"  # small matrices
    shape = st.ShapeDtypeStruct  # nothing of this size is made
    large = shape((300, 8, 784), np.float32), shape((300, 128, 784), np.float32)
    assert work_of(turned, *large) == SUMS


def test_no_products():
    assert work_of(lambda x: x.sum(), X) == SUMS
    assert work_of(lambda x: x.T + 1, X) == SUMS


def test_kinds_are_weighed_by_their_work():
    def both(x, w, stack, wide):
        return (x @ w.T).sum() + (stack @ wide).sum()

    weights, wide = snp.ones((512, 64)), snp.ones((5, 128, 256))
    assert work_of(both, X, weights, snp.ones((5, 2, 128)), wide) == f"{PRODUCTS},{SUMS}"
    assert work_of(both, X, weights, snp.ones((5, 32, 128)), wide) == SUMS


def test_one_matrix_with_many():
    one = lambda x, w: snp.matmul(snp.broadcast_to(w, (5, 96, 64)), x)
    assert work_of(one, snp.ones((5, 64, 8)), W) == f"{PRODUCTS},{SUMS}"


def test_reasons():
    turned = library_work(facts_of(lambda x, w: x @ w.T, X, W))
    straight = library_work(facts_of(lambda x, w: x @ w, X, W.T))
    assert (turned.products, straight.products) == (True, False)
    assert turned.reason == "YNNPACK is expected to take 60% of Eigen's time for them"
    assert straight.reason == "YNNPACK is expected to take 100% of Eigen's time for them"


# The bounds at which the choices turn.


def vector(n, dtype="float32"):
    return array_type((n,), np.dtype(dtype))


@pytest.fixture
def unset(monkeypatch):
    """Nothing is said by ``XLA_FLAGS``."""
    monkeypatch.delenv("XLA_FLAGS", raising=False)


@pytest.mark.parametrize(
    ("results", "is_large"),
    [
        ({vector(1 << 16): 512}, True),  # 512 times 256 KiB are 128 MiB
        ({vector(1 << 16): 511}, False),
        ({vector(1 << 16): 511, vector((1 << 16) - 1): 512}, False),  # of the smaller none counts
        ({vector(1 << 16): 511, vector(1 << 15, "float64"): 1}, True),
        ({vector(1 << 16, "complex64"): 512}, False),
    ],
)
def test_how_much_a_large_program_makes(unset, results, is_large):
    assert (SCHEDULER in dict(options_for(Facts(results=results), ()))) is is_large


def product(left, right, out, dtype="float32", **changes):
    """A product of matrices, or of batches of them, as it is noted while it is written."""
    given = {
        "summed": ((len(left) - 1,), (len(right) - 2,)),
        "is_batch": len(out) > 2,
        "swapped": (False, False),
        "repeats": False,
        "in_loop": True,
    }
    types = [array_type(shape, np.dtype(dtype)) for shape in (left, right, out)]
    return Product(*types, **{**given, **changes})


SQUARES = (16, 16), (16, 16), (16, 16)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, 1 << 18),
        ({"has_loops": False}, None),
        ({"has_convolutions_in_loops": True}, None),
        ({"largest_call_in_loops": 256}, 1 << 18),
        ({"largest_call_in_loops": 257}, None),
        ({"products": [product(*SQUARES)]}, 1 << 18),  # 4,096 multiply-adds
        ({"products": [product((17, 16), (16, 16), (17, 16))]}, None),
        ({"products": [product((17, 16), (16, 16), (17, 16), in_loop=False)]}, 1 << 18),
        ({"products": [product((17, 16), (16, 16), (17, 16), dtype="complex64")]}, 1 << 18),
        # A product that reads each element of its largest array twice, and one that does not.
        ({"products": [product((2, 4096), (4096, 4096), (2, 4096))]}, None),
        ({"products": [product((1, 4096), (4096, 4096), (1, 4096))]}, 1 << 18),
    ],
)
def test_loops_that_are_one_kernel(unset, facts, expected):
    assert most_bytes(Facts(**{"has_loops": True, **facts})) == expected
    chosen = dict(options_for(Facts(**{"has_loops": True, **facts}), ()))
    assert chosen.get(SMALL_LOOPS) == expected


TURNED = {"swapped": (False, True), "summed": ((2,), (1,))}


def batch(count, rows, inner, columns, **changes):
    return product((count, rows, inner), (count, inner, columns), (count, rows, columns), **changes)


@pytest.mark.parametrize(
    ("product", "share"),
    [
        (batch(4, 2, 64, 128), 70),  # 8,192 elements in each matrix on the right
        (batch(4, 2, 64, 129), 110),
        (batch(4, 2, 64, 129, **TURNED), 80),
        (batch(4, 2, 64, 129, swapped=(True, False)), 100),
        (batch(1 << 6, 2, 128, 128, repeats=True), 90),  # 2**20 elements in all
        (batch((1 << 6) + 1, 2, 128, 128, repeats=True), 110),
        (batch(1 << 10, 2, 128, 128), 110),  # 2**24
        (batch((1 << 10) + 1, 2, 128, 128), 200),
        (batch((1 << 10) + 1, 2, 128, 128, dtype="float64"), 100),
    ],
)
def test_the_expected_time_of_batches(product, share):
    found = library_work(Facts(products=[product]))
    assert found.reason.startswith(f"YNNPACK is expected to take {share}% of")
    assert found.products is (share < 98)


def test_a_gain_of_two_in_a_hundred_is_worth_it():
    """One product takes 0.6 of the time: beside others, YNNPACK gets all where that is noticed."""
    turned = product((8, 64), (64, 64), (8, 64), swapped=(False, True))
    straight = product((8, 64), (64, 64), (8, 64))
    for others, expected in [(18, True), (20, False)]:  # 0.979 and 0.981 of Eigen's time
        assert library_work(Facts(products=[turned, *[straight] * others])).products is expected


def test_files_that_the_compiler_is_to_write(tmp_path):
    told = type("Options", (), {"xla_dump_to": ""})
    assert not asks_for_dumps(told, (("xla_cpu_scheduler_type", "x"),))
    assert asks_for_dumps(told, (("xla_dump_hlo_as_text", True),))
    told.xla_dump_to = str(tmp_path)
    assert asks_for_dumps(told, ())


def test_efforts_that_this_jaxlib_does_not_have():
    build = SimpleNamespace(optimization_level=0, memory_fitting_level=0)
    set_effort(build, "optimization_level", 2)
    assert build.optimization_level == 2
    message = (
        "has no exec_time_optimization_effort; it has memory_fitting_level, optimization_level"
    )
    with pytest.raises(ConfigError, match=message):
        set_effort(build, "exec_time_optimization_effort", 0.5)
    assert not hasattr(build, "exec_time_optimization_effort")


@pytest.mark.parametrize(("time", "is_given"), [(0.979, True), (0.98, False), (1.0, False)])
def test_the_library_must_be_two_hundredths_faster(monkeypatch, time, is_given):
    monkeypatch.setattr(module, "_time_of_products", lambda facts: time)
    found = library_work(Facts())
    assert found.products is is_given and ("FUSION_TYPE_DOT" in found.work) is is_given
    assert f"{time:.0%} of Eigen's time" in found.reason
