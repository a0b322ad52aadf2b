"""Arrays: immutable, copied in, read-only out, converted, kept."""

import copy
import gc
import pickle
import weakref

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.core.types import array_type
from stretto._engine.xla import array as holder
from stretto._engine.xla.array import Array

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "int32",
    "uint32",
    "float16",
    "bfloat16",
    "float32",
    "complex64",
    "float8_e4m3fn",
    "int4",
    "uint4",
]
WIDE = ["int64", "uint64", "float64", "complex128"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def test_memory_given_is_copied():
    for given in (np.zeros(5, np.float32), np.zeros(5), np.zeros((4, 4), np.int32)[::2, 1:]):
        for make in (snp.asarray, snp.array, st.jit(lambda y: y)):
            given[...] = 0
            x = make(given)
            given[...] = 7
            np.testing.assert_array_equal(x, np.zeros(given.shape))


def test_views_handed_out_are_read_only():
    for x in (
        snp.arange(4.0),
        st.jit(lambda x: x + 1)(snp.arange(4.0)),
        snp.ones((2, 3)).T,
        snp.ones(5),
    ):
        view = np.asarray(x)
        assert not view.flags.writeable
        with pytest.raises(ValueError):
            view[0] = 1
        own = np.array(x)
        own[0] = 100
        assert np.asarray(x).max() < 100


def test_array_protocol():
    x = snp.arange(3.0)
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x, copy=True).flags.writeable
    assert np.asarray(x, copy=False) is not None
    with pytest.raises(ValueError, match=r"float32\[3\] to .*float64.* needs a copy"):
        np.asarray(x, np.float64, copy=False)
    assert np.sin(x).shape == (3,)
    for mixed in (np.ones(3, np.float32) + x, np.float32(1) + x, x * np.ones(3)):
        assert isinstance(mixed, st.Array)


def test_delete():
    on_device, on_host = st.jit(lambda: snp.ones(3))(), snp.array(np.ones(3, np.float32))
    for x in (on_device, on_host):
        y, view = snp.copy(x), np.asarray(x)
        x.delete()
        x.delete()
        assert x.is_deleted() and not y.is_deleted()
        assert x.shape == (3,) and (view + y).tolist() == [2, 2, 2]
        for use in (np.asarray, st.jit(lambda x: x + 1), snp.sin, st.Array.is_ready):
            with pytest.raises(
                st.errors.DonatedArrayError, match=r"this float32\[3\] was deleted by its"
            ):
                use(x)


def test_ready():
    x = st.jit(lambda x: x @ x)(snp.ones((300, 300)))
    assert x.is_ready() in (True, False)
    assert x.block_until_ready().is_ready()
    assert snp.array(np.ones(2)).is_ready()


def test_assignment_is_refused():
    x = snp.arange(3)
    with pytest.raises(TypeError, match=r"(?s)immutable.*x\.at\["):
        x[0] = 1
    with pytest.raises(AttributeError):
        x.shape = (3, 1)
    y = x
    y += 1
    np.testing.assert_array_equal(x, [0, 1, 2])


@pytest.mark.parametrize("name", DTYPES + WIDE)
def test_kept_and_brought_back(name):
    with st.enable_x64(name in WIDE):
        x = snp.asarray(np.array([[0, 1], [1, 3]]).astype(dtype_of(name)))
        assert x.dtype == dtype_of(name)
        on_device = st.jit(lambda x: x)(x)
        for y in (
            pickle.loads(pickle.dumps(x)),
            copy.copy(x),
            copy.deepcopy(x),
            on_device,
            pickle.loads(pickle.dumps(on_device)),
            copy.deepcopy({"x": [x]})["x"][0],
        ):
            assert isinstance(y, st.Array) and y.type is x.type
            np.testing.assert_array_equal(np.asarray(y), np.asarray(x))
    weak = pickle.loads(pickle.dumps(snp.float32(1) * 0 + snp.asarray(2)))
    assert float(weak) == 2


def test_weakness_is_kept():
    x = st.jit(lambda x: x)(2.0)
    assert x.weak_type and pickle.loads(pickle.dumps(x)).weak_type


@pytest.mark.parametrize("name", ["int8", "int32", "uint8", "float16", "float32", "complex64"])
def test_dlpack(name):
    x = snp.asarray(np.arange(6).reshape(2, 3).astype(name))
    for y in (x, st.jit(lambda x: x)(x), x.T):
        out = np.from_dlpack(y)
        np.testing.assert_array_equal(out, np.asarray(y))
        assert y.__dlpack_device__() == (1, 0)
    back = snp.asarray(np.from_dlpack(x))
    np.testing.assert_array_equal(back, x)


def test_python_numbers():
    assert (int(snp.array(3.7)), float(snp.array([[2]])), complex(snp.array(1j))) == (3, 2.0, 1j)
    assert (bool(snp.array([0.0])), bool(snp.array(2))) == (False, True)
    assert snp.array([1, 2, 3])[1].item() == 2 and snp.array([[1, 2]]).item(0, 1) == 2
    assert snp.array([[1.5, 2]]).tolist() == [[1.5, 2.0]]
    assert type(snp.ones((), snp.bfloat16).item()) is float
    assert [10, 20, 30][snp.array(1)] == 20 and "ab" * snp.array(2) == "abab"
    assert range(snp.array(3, snp.uint8)) == range(3)
    assert [1, 2, 3][snp.asarray(np.array(1, ml_dtypes.int4))] == 2
    assert (f"{snp.array(1.5):.3f}", f"{snp.arange(2)}", f"{snp.arange(2)!s:>7}") == (
        "1.500",
        "[0 1]",
        "  [0 1]",
    )
    assert len(snp.ones((4, 2))) == 4


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_formats_of_one_number(dtype, shape):
    x = snp.full(shape, 1, dtype)
    number = np.asarray(x).item()
    for spec in (".2f", ">8", "e", "+"):
        assert f"{x:{spec}}" == format(number, spec)
    assert f"{x}" == str(x)


@pytest.mark.parametrize("shape", [(2,), (0,), (2, 0), (3, 4)])
def test_formats_of_more_say_what_to_do(shape):
    x = snp.ones(shape)
    with pytest.raises(TypeError) as caught:
        f"{x:.2f}"
    for word in ("'.2f'", str(shape), "array_str", ".item()", "printoptions"):
        assert word in str(caught.value)
    assert f"{x}" == str(x) and f"{x:>80}" == str(x).rjust(80)


def test_formats_of_traced_values():
    x = snp.array([1.5, 2.0])
    for one, shown in ((x, '"{x}"'), (x[0], '"{x:.2f}"')):
        with pytest.raises(st.errors.TracedValueError, match="the argument x") as caught:
            st.jit(lambda x: f"{x:.2f}")(one)
        assert "'.2f'" in str(caught.value) and f"stretto.debug.print({shown}" in str(caught.value)
    assert st.jit(lambda x: len(f"{x}") + x)(x[0]) == len("<traced float32[]>") + 1.5
    texts = []
    st.grad(lambda x: (texts.append(f"{x:.2f}"), x * x)[1])(2.0)  # there the number is known
    assert texts == ["2.00"]


@pytest.mark.parametrize(
    "use, error, message",
    [
        (
            lambda: bool(snp.ones(2)),
            ValueError,
            r"truth value of float32\[2\] is ambiguous.*\.any\(\)",
        ),
        (lambda: bool(snp.ones(0)), ValueError, "ambiguous"),
        (
            lambda: float(snp.ones(2)),
            TypeError,
            r"float\(\) needs an array of one element; got float32\[2\]",
        ),
        (lambda: int(snp.ones(0)), TypeError, r"got float32\[0\]"),
        (lambda: float(snp.array(1j)), TypeError, r"complex64\[\]: take .real"),
        (lambda: int(snp.array(1j)), TypeError, "take .real"),
        (lambda: [1, 2][snp.array(1.0)], TypeError, "only integer arrays of rank 0"),
        (lambda: [1, 2][snp.array([1])], TypeError, "only integer arrays of rank 0"),
        (lambda: [1, 2][snp.array(True)], TypeError, "only integer arrays of rank 0"),
        (lambda: len(snp.array(1)), TypeError, "rank 0"),
        (lambda: hash(snp.ones(2)), TypeError, "not hashable.*static"),
        (lambda: {snp.ones(2): 1}, TypeError, "not hashable"),
        (lambda: iter(snp.array(1.0)).__next__(), TypeError, "."),
    ],
)
def test_misuse_is_refused(use, error, message):
    with pytest.raises(error, match=message):
        use()


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: snp.array([1.0, 2.5]), "Array([1. , 2.5], dtype=float32)"),
        (lambda: snp.int32(3), "Array(3, dtype=int32)"),
        (st.jit(lambda: 2.0), "Array(2., dtype=float32, weak_type=True)"),
        (lambda: snp.ones((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
        (lambda: snp.ones(0), "Array([], dtype=float32)"),
        (lambda: snp.array([True]), "Array([ True], dtype=bool)"),
        (lambda: snp.ones(1, snp.bfloat16) * 1.5, "Array([1.5], dtype=bfloat16)"),
        (lambda: snp.array([[1, 2], [3, 4]]), "Array([[1, 2],\n       [3, 4]], dtype=int32)"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == text
    assert str(make()) == str(np.asarray(make()))


def test_shape_and_kin():
    x = snp.ones((2, 3), snp.bfloat16)
    assert (x.shape, x.ndim, x.size, x.dtype, x.weak_type) == ((2, 3), 2, 6, snp.bfloat16, False)
    assert len({id(snp.ones((2, 3)).type), id(snp.zeros((2, 3)).type)}) == 1


def test_arrays_can_be_weakly_referred_to():
    x = snp.ones(2)
    kept = weakref.ref(x)
    assert kept() is x
    del x
    assert kept() is None


# The slots of an array, in C and in Python.


TYPE = array_type((2,), np.dtype(np.float32))


@pytest.fixture(params=["as built", "in Python"])
def kind(request):
    return holder.Holder if request.param == "as built" else holder._Holder


def test_the_three_slots(kind):
    host, buffer = np.ones(2, np.float32), object()
    one = kind(host, TYPE)
    assert one._host is host and one._buffer is None and one.type is TYPE
    other = kind(None, TYPE, buffer)
    assert other._host is None and other._buffer is buffer
    other._host, other._buffer = host, None
    assert other._host is host and other._buffer is None


def test_no_others(kind):
    with pytest.raises(AttributeError):
        kind(None, TYPE).other = 1
    with pytest.raises(TypeError):
        kind()


def test_what_is_held_is_let_go(kind):
    class Buffer:
        pass

    buffer = Buffer()
    alive = weakref.ref(buffer)
    held = kind(None, TYPE, buffer)
    del buffer
    assert alive() is not None
    held._buffer = None
    gc.collect()
    assert alive() is None


def test_a_cycle_through_it_is_collected(kind):
    class Child(kind):
        __slots__ = ("__weakref__",)

    one = Child(None, TYPE)
    one._buffer = [one]
    alive = weakref.ref(one)
    del one
    gc.collect()
    assert alive() is None


def test_arrays_are_holders():
    assert issubclass(Array, holder.Holder)


@pytest.mark.parametrize("name", ["_host", "_buffer", "type"])
def test_what_was_deleted_is_missing(kind, name):
    one = kind(np.ones(2, np.float32), TYPE, object())
    delattr(one, name)
    with pytest.raises(AttributeError, match=name):
        getattr(one, name)
    setattr(one, name, None)
    assert getattr(one, name) is None


# The two faces of an array: NumPy's, and the device's.


class Late(holder.Absent):
    """A buffer that comes when it is asked for."""

    def __init__(self, buffer):
        self.buffer, self.asked = buffer, 0

    def arrived(self, type):
        self.asked += 1
        return self.buffer


@pytest.mark.parametrize("face", [Array.to_buffer, Array.to_give])
def test_a_buffer_that_is_late_arrives_once(face):
    buffer = snp.ones(2).to_buffer()
    late = Late(buffer)
    x = Array(None, TYPE, late)
    assert face(x) is face(x) is buffer is x._buffer and late.asked == 1


def test_a_buffer_to_give_away_is_not_kept():
    x = Array(np.ones(2, np.float32), TYPE)
    given = x.to_give()
    assert x._buffer is None and given is not x.to_give()
    kept = x.to_buffer()
    assert x._buffer is kept is x.to_buffer() is x.to_give()


def test_what_is_kept_for_a_call_and_taken_back():
    gone, host = holder.Donated("step", "x"), np.ones(2, np.float32)
    x = Array(host, TYPE)
    assert x.kept() is host
    x.donate(gone)
    assert x.is_deleted() and x.kept() is gone and x._host is None
    x.take_back(gone)
    assert x.is_deleted()
    x.take_back(host)
    assert x._host is host and x._buffer is None and not x.is_deleted()
    buffer = x.to_buffer()
    assert x.kept() is buffer
    x.donate(gone)
    x.take_back(buffer)
    assert x._buffer is buffer and x._host is None and np.asarray(x).tolist() == [1, 1]
    x.donate(gone)
    buffer.delete()
    x.take_back(buffer)  # the call has used it
    assert x._buffer is gone


def test_what_became_of_an_array_that_was_donated():
    x = Array(None, TYPE, holder.Donated("step", "state", None))
    for use in (Array.host, Array.to_host, Array.to_buffer, Array.to_give, Array.block_until_ready):
        with pytest.raises(st.errors.DonatedArrayError) as caught:
            use(x)
        assert str(caught.value).startswith(
            "this float32[2] was donated to step as its argument state, and its memory holds"
        )
    x.delete()  # it stays with that call
    assert x._buffer.function == "step"
    y = Array(np.ones(2, np.float32), TYPE)
    y.delete()
    assert y._buffer.function is None and y._host is None


def test_only_what_is_on_the_device_alone_is_waited_for(monkeypatch):
    waited = []
    monkeypatch.setattr(holder.pjrt, "wait", waited.append)
    monkeypatch.setattr(holder.pjrt, "wait_for_all", waited.extend)

    class Placed:
        _host = None

        def block_until_ready(self):
            waited.append("placed")

    monkeypatch.setattr(holder, "SHARDED", [Placed])
    here, there = snp.array(np.ones(2, np.float32)), snp.array(np.ones(2, np.float32))
    buffer = there.to_buffer()
    there._host = None
    assert here.block_until_ready() is here and waited == []
    assert there.block_until_ready() is there and waited == [buffer]
    waited.clear()
    both = Placed()
    both._host = np.ones(2)
    holder.wait_for_all([here, 1.0, both, None])
    assert waited == []
    holder.wait_for_all([Placed(), here, there])
    assert waited == [buffer, "placed"]


@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
@pytest.mark.parametrize("copied", [None, True, False])
def test_numpy_gets_a_copy_where_it_asks_for_one(dtype, copied):
    x = snp.array(np.ones(2, np.float32))
    if dtype == "float64" and copied is False:
        with pytest.raises(ValueError, match="needs a copy"):
            x.__array__(dtype, copied)
        return
    out = x.__array__(dtype, copied)
    is_view = copied is not True and dtype != "float64"
    assert out.flags.writeable is not is_view and np.shares_memory(out, x.to_host()) is is_view
    assert out.dtype == (dtype or "float32")


def test_no_array_that_it_is_a_view_of_can_be_written_to():
    whole = np.ones((4, 4), np.float32)
    part = whole[1:][:, 1:]
    view = holder.read_only(part)
    assert view is not part and view.base is not None
    assert not any([a.flags.writeable for a in (view, part, whole)])


def test_memory_that_may_change_is_told_from_such_that_may_not():
    fixed = np.ones(4)
    fixed.flags.writeable = False
    beside = np.ones(4)[:2]
    beside.flags.writeable = False
    of_bytes, memory = np.frombuffer(bytes(8)), bytearray(8)
    of_memory = np.frombuffer(memory)
    of_memory.flags.writeable = False
    cases = [(fixed, True), (fixed[1:], True), (np.ones(4), False), (beside, False),
             (of_bytes, True), (of_memory, False)]  # fmt: skip
    assert [holder._unchanging(x) for x, _ in cases] == [expected for _, expected in cases]


def test_memory_of_a_pickle_is_copied_where_others_may_write_to_it():
    own, memory = np.ones(2, np.float32), bytearray(8)
    assert holder._restore(own, TYPE).to_host() is own
    x = holder._restore(np.frombuffer(memory, np.float32), TYPE)
    memory[:] = b"\xff" * 8
    assert np.asarray(x).tolist() == [0, 0]
