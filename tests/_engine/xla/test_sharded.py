"""Arrays on devices of choice: where they are, what is computed from them, what is refused."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto._engine.core import caches
from stretto._engine.core.shardings import Placement
from stretto._engine.core.types import array_type
from stretto._engine.xla import sharded
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices


def over(spec, *shape, names="xyz"):
    shape = shape or (8,)
    return NamedSharding(st.make_mesh(shape, tuple(names[: len(shape)])), spec)


A = np.arange(64.0, dtype=np.float32).reshape(8, 8)
WAYS = [P("x"), P(None, "x"), P(("x", "y")), P("y", "x"), P(None, ("y", "x")), P()]


@pytest.mark.parametrize("spec", WAYS, ids=str)
def test_elements_are_the_same_wherever_they_are(spec):
    sharding = over(spec, 2, 4)
    x = st.device_put(A, sharding)
    assert x.sharding == sharding and x.committed and isinstance(x, st.Array)
    np.testing.assert_array_equal(np.asarray(x), A)
    doubled = (x * 2).to_host()
    np.testing.assert_array_equal(doubled, A * 2)
    assert not doubled.flags.writeable
    np.testing.assert_array_equal(x, A)
    assert x.devices() == set(st.devices())
    parts = x.addressable_shards
    assert [part.device for part in parts] == list(sharding.device_list)
    for part in parts:
        np.testing.assert_array_equal(part.data, A[part.index])
        assert part.data.devices() == {part.device}
    copies = [part.replica_id for part in parts if part.index == parts[0].index]
    assert copies == list(range(len(copies)))
    for again in (copy.copy(x), copy.deepcopy(x)):
        assert again.sharding == sharding and again is not x
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), A)
    assert repr(x) == repr(snp.array(A)) and x[3, 4].item() == A[3, 4]


@pytest.mark.parametrize("after", WAYS, ids=str)
@pytest.mark.parametrize("before", WAYS, ids=str)
def test_putting_elsewhere(before, after):
    x = st.device_put(A, over(before, 2, 4))
    moved = st.device_put(x, over(after, 2, 4))
    assert moved.sharding == over(after, 2, 4)
    np.testing.assert_array_equal(moved, A)
    assert st.device_put(x, x.sharding) is x


def test_to_and_from_one_device():
    x = st.device_put(A, st.devices()[3])
    assert x.device == st.devices()[3] and x.sharding == st.sharding.SingleDeviceSharding(x.device)
    split = st.device_put(x, over(P("x")))
    back = st.device_put(split, "cpu:0")
    assert back.__class__ is st.Array and not back.committed
    for array in (x, split, back, st.device_put(split, "cpu:5")):
        np.testing.assert_array_equal(array, A)
    assert split.to_device("cpu:5").device.id == 5 and split.device == split.sharding


def test_donated_where_it_moves():
    x = st.device_put(A, over(P("x")))
    y = st.device_put(x, over(P(None, "x")), donate=True)
    np.testing.assert_array_equal(y, A)
    with pytest.raises(st.errors.DonatedArrayError):
        np.asarray(x)


OPERATIONS = {
    "elementwise": (lambda x: snp.sin(x) * 2 + x, P("x")),
    "sum": (snp.sum, P()),
    "sums of rows": (lambda x: x.sum(1), P("x")),
    "product": (lambda x: x @ x.T, None),
    "sorted rows": (lambda x: snp.sort(x, 1), P("x")),
    "index": (lambda x: x[2:6:3, ::-1], None),
    "update": (lambda x: x.at[1].set(0), None),
    "softmax": (lambda x: st.nn.functional.softmax(x, 0), None),
    "maximum": (lambda x: x.max(0), None),
    "argmax": (lambda x: x.argmax(), None),
    "reshape": (lambda x: x.reshape(2, 4, 8), None),
    "scan": (lambda x: st.lax.scan(lambda c, r: (c + r, c * r), x[0], x), None),
    "cond": (lambda x: st.lax.cond(x[0, 0] > 1, snp.sin, snp.cos, x), None),
    "cholesky": (lambda x: snp.linalg.cholesky(x @ x.T + 1e4 * snp.eye(8)), None),
    "gradient": (st.grad(lambda x: (snp.tanh(x) ** 2).sum()), P("x")),
    "vmap": (st.vmap(lambda r: r / r.sum()), P("x")),
    "random": (lambda x: x + st.random.normal(st.random.key(0), x.shape), P("x")),
    "convolution": (lambda x: snp.convolve(x.ravel(), snp.ones(3), "same"), None),
}


@pytest.mark.parametrize("way", ["eager", "jitted"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_computed_stays_on_the_devices(name, way):
    fun, spec = OPERATIONS[name]
    x = st.device_put(A / 64, over(P("x")))
    out = (st.jit(fun) if way == "jitted" else fun)(x)
    expected = fun(snp.array(A / 64))
    for got, wanted in zip(st.tree.leaves(out), st.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(wanted), rtol=2e-6, atol=2e-6)
        assert got.committed and got.devices() == set(st.devices())
        if spec is not None:
            assert got.sharding.is_equivalent_to(over(spec), got.ndim), got.sharding


def test_arrays_that_are_nowhere_in_particular_join():
    x = st.device_put(A, over(P("x")))
    for other in (1, 2.5, np.ones(8, np.float32), snp.ones((8, 1))):
        out = other + x
        assert out.sharding.is_equivalent_to(x.sharding, 2)
        np.testing.assert_array_equal(out, np.asarray(other, np.float32) + A)


def test_different_devices_are_refused():
    x, y = (st.device_put(A, device) for device in st.devices()[1:3])
    part = st.device_put(A, NamedSharding(st.make_mesh((4,), ("x",)), P("x")))
    product = st.jit(lambda a, b: a @ b)
    for one, other in [(x, y), (x, part), (part, y)]:
        with pytest.raises(ValueError, match="must be on the same devices"):
            one + other
        with pytest.raises(ValueError, match=r"a is on .* and b on .*device_put"):
            product(one, other)


def test_random_wrong_placements_are_errors():
    """Sizes that do not split, axes that are not there, and other orders of devices."""
    random = np.random.default_rng(0)
    count = 0
    for _ in range(200):
        shape = tuple(random.integers(1, 9, random.integers(0, 3)))
        parts = [[None, "x", "y", ("x", "y"), "z"][k] for k in random.integers(0, 5, len(shape))]
        try:
            sharding = over(P(*parts, None if random.integers(2) else "x"), 2, 4)
            x = st.device_put(np.zeros(shape, np.float32), sharding)
        except ValueError:
            count += 1
        else:
            assert all(
                part.data.shape == sharding.shard_shape(shape) for part in x.addressable_shards
            )
    assert count > 20


def test_live_arrays_and_waiting():
    x = st.device_put(A, over(P("x")))
    assert any(y is x for y in st.debug.live_arrays())
    assert st.block_until_ready([x + 1])[0].is_ready() and x.block_until_ready() is x
    np.testing.assert_array_equal(st.device_get({"x": x})["x"], A)


def test_many_programs_with_collectives_in_flight():
    x = st.device_put(A / 64, over(P("x")))
    step = st.jit(lambda x: x - 0.01 * x.mean())
    for _ in range(300):
        x = step(x)
    expected = (A / 64).astype(np.float64)
    for _ in range(300):
        expected = expected - 0.01 * expected.mean()
    np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_extrema_over_devices_keep_nan(dtype):
    rows = np.array([[1, -2, np.nan, np.inf, -np.inf], [-1, 3, 5, 2, -7]] * 4, np.float32)
    rows[3, 4] = -np.nan
    whole = snp.array(rows, dtype)
    x = st.device_put(whole, over(P("x")))
    for extremum in (snp.max, snp.min):
        for axis in (0, 1, None):
            got = extremum(x, axis=axis)
            np.testing.assert_array_equal(
                np.asarray(got, np.float32), np.asarray(extremum(whole, axis=axis), np.float32)
            )


def test_what_was_compiled_can_be_forgotten():
    x = st.device_put(A, over(P("x")))
    st.jit(lambda x: x @ x.T - 3)(x)
    assert sharded._by_text
    st.clear_caches()
    assert not sharded._by_text
    np.testing.assert_array_equal(x + 1, A + 1)


def test_python_is_not_called_from_several_devices():
    x = st.device_put(A, over(P("x")))
    f = lambda x: st.pure_callback(np.sin, st.ShapeDtypeStruct((8, 8), "float32"), x)
    with pytest.raises(NotImplementedError, match="cannot call Python"):
        st.lax.scan(lambda c, _: (f(c), None), x, None, length=2)


# What an array does, whoever has its parts


T = array_type((2, 4), np.dtype(np.float32))


@pytest.fixture
def waited(monkeypatch):
    found = []
    monkeypatch.setattr(sharded.pjrt, "wait", lambda buffer: found.append(("here", buffer)))
    monkeypatch.setattr(sharded.processes, "finish", lambda x: found.append(("others", x)))
    monkeypatch.setattr(sharded.pjrt, "to_host", lambda part: part)
    monkeypatch.setattr(sharded, "parts_of", lambda buffer: ["a part", "another"])
    return found


def made(buffer="buffer", **about):
    usual = {"is_fully_addressable": True, "is_fully_replicated": False, "device_list": (0, 1)}
    return sharded.of_parts(T, buffer, SimpleNamespace(**{**usual, **about}))


def test_parts_are_read_once_they_are_computed(waited):
    assert made().parts() == ["a part", "another"] and waited == [("here", "buffer")]
    assert made(is_fully_addressable=False).parts() == ["a part", "another"]
    assert waited[1:] == [("others", "buffer")]
    one = made(device_list=(0,))
    assert one.parts() == ["buffer"] and len(waited) == 2  # it waits as it reads
    assert one.block_until_ready() is one and len(waited) == 3


@pytest.mark.parametrize(
    ("addressable", "replicated", "is_whole"),
    [(True, False, True), (False, True, True), (False, False, False)],
)
def test_text_of_what_may_be_in_other_processes(monkeypatch, addressable, replicated, is_whole):
    x = made(is_fully_addressable=addressable, is_fully_replicated=replicated)
    x._host = np.zeros((2, 4), np.float32)
    monkeypatch.setattr(type(x).__base__, "__repr__", lambda self: "whole")
    monkeypatch.setattr(type(x).__base__, "__str__", lambda self: "the elements")
    words = f"Array(float32[2,4], {x._sharding})"
    assert (repr(x), str(x)) == (("whole", "the elements") if is_whole else (words, words))
    x.delete()
    assert repr(x) == "whole"  # which says that it is gone
    with pytest.raises(st.errors.DonatedArrayError):
        copy.copy(x)


def test_a_buffer_of_all_elements_is_a_copy(monkeypatch):
    x = st.device_put(A, over(P("x")))
    asked, put = [], sharded.pjrt.to_device
    monkeypatch.setattr(
        sharded.pjrt, "to_device", lambda host, type, own: asked.append(own) or put(host, type, own)
    )
    np.testing.assert_array_equal(sharded.pjrt.to_host(x.to_buffer()), A)
    assert asked == [False]


def test_parts_are_put_together_where_they_are(monkeypatch):
    """Those of this process's devices alone; others go by way of the host."""
    here = [part.data for part in st.device_put(A, over(P("x"))).addressable_shards]
    ways = []
    monkeypatch.setattr(sharded, "put_together", lambda parts, *about: ways.append("there"))
    monkeypatch.setattr(sharded, "put", lambda parts, *about: ways.append("host"))
    plain = [snp.array(A[:1]) for _ in here]
    for parts, addressable in [(here, True), (plain, True), (here, False), (plain, False)]:
        sharding = SimpleNamespace(is_fully_addressable=addressable)
        assert sharded.of_arrays(parts, T, sharding)._sharding is sharding
    assert ways == ["there", "host", "host", "host"]


def test_what_was_compiled_is_forgotten():
    t = array_type((8, 8), np.dtype(np.float32))
    one, other = over(P("x")), over(P(None, "x"))
    sharded._identity(t, Placement(one.device_list, None, (one,), (other,)))
    snp.sin(st.device_put(A, one) + 3.25)
    assert sharded._identity.cache_info().currsize and len(sharded._by_text)
    sharded.clear()
    assert not sharded._identity.cache_info().currsize and not len(sharded._by_text)


def test_programs_are_compiled_once_for_shardings(monkeypatch):
    """Found by the shardings themselves, or else by what they say."""
    compiled, compile_cached = [], sharded.compile_cached
    monkeypatch.setattr(
        sharded, "compile_cached", lambda *about: compiled.append(1) or compile_cached(*about)
    )
    program = st.make_graph(lambda x, y: (x * y + 4.25,))(A, A)
    x, y = (st.device_put(A, over(P("x"))) for _ in range(2))
    for _ in range(2):
        (out,) = sharded.run_placed(program, [x, y])
        np.testing.assert_array_equal(out, A * A + 4.25)
    assert len(compiled) == 1
    known = dict(program.cache["placed"])
    equal = sharded.of_parts(x.type, x.to_give(), over(P("x")))
    assert equal._sharding is not x._sharding
    np.testing.assert_array_equal(sharded.run_placed(program, [equal, y])[0], A * A + 4.25)
    assert len(compiled) == 1 and len(program.cache["placed"]) == len(known) + 1
    np.testing.assert_array_equal(sharded.run_placed(program, [x, snp.array(A)])[0], A * A + 4.25)
    assert len(compiled) == 2


def test_a_constraint_alone_needs_no_program():
    constrain = lambda sharding: st.make_graph(
        lambda x: (st.lax.with_sharding_constraint(x, sharding),)
    )(A)
    alone = sharded._constrain_alone
    one, other = over(P("x")), over(P(None, "x"))
    x = st.device_put(A, one)
    assert alone(constrain(x.sharding), [x]) is x and alone(constrain(other), [x]) is None
    placed = alone(constrain(other), [snp.array(A)])
    assert placed.sharding == other
    np.testing.assert_array_equal(placed, A)
    assert alone(constrain(over(P("x", P.UNCONSTRAINED))), [snp.array(A)]) is None
    assert alone(st.make_graph(lambda x: (snp.sin(x),))(A), [x]) is None
    both = st.make_graph(lambda x: (st.lax.with_sharding_constraint(x, one), x))(A)
    assert alone(both, [x]) is None
    more = st.make_graph(lambda x: (snp.sin(st.lax.with_sharding_constraint(x, one)),))(A)
    assert alone(more, [x]) is None


def test_arrays_are_moved_to_where_a_program_takes_them():
    one, other = over(P("x")), over(P(None, "x"))
    executable = SimpleNamespace(placement=SimpleNamespace(ins=(one, other)))
    right, wrong = sharded.runner(executable, (one, other)), sharded.runner(executable, (one, one))
    assert wrong.func is sharded.run_on and not hasattr(right, "func")
    assert sharded.runner(executable, (one, None)).func is sharded.run_on
    x, y = st.device_put(A, one), st.device_put(A, one)
    moved = sharded.all_placed([x, y], executable.placement)
    assert moved[0] is x and moved[1].sharding == other


def test_parts_of_this_process_are_not_copied(monkeypatch):
    x = st.device_put(A, over(P("x")))
    monkeypatch.setattr(sharded, "put", None)
    buffers = sharded.parts_of(x.to_give())
    assert [part.data.to_give() for part in x.addressable_shards] == buffers


def test_so_many_shardings_of_a_program_and_no_more(monkeypatch):
    monkeypatch.setattr(sharded, "room", lambda table: caches.room(table, 3))
    program = st.make_graph(lambda x: (x * 5.25,))(A)
    x = st.device_put(A, over(P("x")))
    for _ in range(9):
        here = sharded.of_parts(x.type, x.to_give(), over(P("x")))
        np.testing.assert_array_equal(sharded.run_placed(program, [here])[0], A * 5.25)
        assert len(program.cache["placed"]) <= 4


@pytest.mark.parametrize(("count", "more"), [(1, ""), (8, ""), (9, ", …"), (40, ", …")])
def test_up_to_eight_devices_are_named(count, more):
    class Split:
        device_list = tuple(f"d{k}" for k in range(count))
        num_devices = count

        def __str__(self):
            return "split"

    named = ", ".join(f"d{k}" for k in range(min(count, 8)))
    assert sharded._sharding_in_words(Split()) == f"split ({named}{more})"
