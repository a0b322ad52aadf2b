"""Arrays made of their parts: by a function, of arrays on devices, of what one process has."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto._engine.api.sharding.shardings import local_parts
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices

A = np.arange(64.0, dtype=np.float32).reshape(8, 8)
SPECS = [P("x"), P(None, "y"), P("y", "x"), P(("x", "y")), P(("y", "x")), P()]


def over(spec, *shape):
    shape = shape or (2, 4)
    return NamedSharding(st.make_mesh(shape, ("x", "y")[: len(shape)]), spec)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_a_function_gives_each_part_once(spec):
    sharding, asked = over(spec), []

    def part(index):
        asked.append(tuple((axis.start, axis.stop) for axis in index))
        return A[index]

    x = st.sharding.make_array_from_callback((8, 8), sharding, part)
    assert x.sharding == sharding and x.dtype == np.float32
    np.testing.assert_array_equal(x, A)
    assert len(asked) == len(set(asked)) == len(set(sharding.tiling(2)[1]))
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(shard.data, A[shard.index])


def test_what_the_function_gives():
    sharding = over(P("x"))
    scalars = st.sharding.make_array_from_callback((), over(P()), lambda index: 3)
    assert scalars.shape == () and int(scalars) == 3 and not scalars.weak_type
    half = st.sharding.make_array_from_callback((8,), sharding, lambda i: snp.ones(4, "bfloat16"))
    assert half.dtype == snp.bfloat16 and half.shape == (8,)
    with st.sharding.set_mesh(sharding.mesh):
        x = st.sharding.make_array_from_callback((8,), P("x"), lambda i: np.ones(4))
    assert x.sharding == sharding
    lone = st.sharding.SingleDeviceSharding(st.devices()[0])
    plain = st.sharding.make_array_from_callback((2,), lone, lambda i: np.ones(2))
    assert type(plain) is st.Array and not plain.committed

    @st.jit
    def traced(x):
        return x + st.sharding.make_array_from_callback((8, 8), sharding, lambda index: A[index])

    np.testing.assert_array_equal(traced(snp.ones((8, 8))), A + 1)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shape": (9, 8)}, ValueError, r"shape \(9, 8\) cannot be split evenly: axis 0"),
        ({"sharding": "x"}, TypeError, "sharding must be a sharding, such as"),
        ({"sharding": P("x")}, ValueError, "no mesh is in use"),
        ({"data_callback": A}, TypeError, "data_callback must be a function of a slice for each"),
        (
            {"data_callback": lambda i: A},
            ValueError,
            r"data_callback\(\[0:4, 0:8\]\) must have the shape \(4, 8\) of a part of \(8, 8\) "
            r"with .*; got float32\[8,8\]",
        ),
        (
            {"data_callback": lambda i: A[i].astype(int if i[0].start else float)},
            TypeError,
            r"data_callback\(\[4:8, 0:8\]\) must have the dtype float32, that of "
            r"data_callback\(\[0:4, 0:8\]\); got int32\[4,8\]: convert it, x.astype\('float32'\)",
        ),
        ({"dtype": "int8"}, TypeError, "must have the dtype int8, dtype; got float32"),
        ({"data_callback": lambda i: "x"}, TypeError, r"data_callback\(\[0:4.* must be an array"),
        ({"shape": 2.5}, TypeError, "shape"),
    ],
)
def test_callbacks_are_checked(change, error, message):
    given = {"shape": (8, 8), "sharding": over(P("x")), "data_callback": lambda i: A[i]}
    with pytest.raises(error, match=rf"make_array_from_callback: .*{message}"):
        st.sharding.make_array_from_callback(**{**given, **change})


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_arrays_on_devices_in_any_order(spec):
    sharding = over(spec)
    where = sharding.devices_indices_map((8, 8))
    parts = [st.device_put(A[index], device) for device, index in where.items()]
    for arrays in (parts, parts[::-1], tuple(parts[3:] + parts[:3])):
        x = st.sharding.make_array_from_single_device_arrays((8, 8), sharding, arrays)
        assert x.sharding == sharding
        np.testing.assert_array_equal(x, A)


def test_parts_of_an_array_make_it_again_and_outlive_it():
    sharding = over(P("x", "y"))
    x = st.device_put(A, sharding)
    parts = [shard.data for shard in x.addressable_shards]
    again = st.sharding.make_array_from_single_device_arrays(x.shape, x.sharding, parts)
    st.jit(lambda x: x * 2, donate_argnums=0)(again)
    assert again.is_deleted()
    np.testing.assert_array_equal(parts[5], A[sharding.indices((8, 8))[5]])
    plain = st.sharding.make_array_from_single_device_arrays(
        (2,), st.sharding.SingleDeviceSharding(st.devices()[0]), [snp.ones(2)]
    )
    assert plain.tolist() == [1, 1] and not plain.committed


def test_arrays_on_devices_are_checked():
    sharding = over(P("x"), 2)
    make = st.sharding.make_array_from_single_device_arrays
    one, two, three = (st.device_put(np.ones(2), d) for d in st.devices()[:3])
    who = "make_array_from_single_device_arrays: "
    cases = [
        ((4,), [one], ValueError, "arrays must have one for each of the 2 devices .* got 1"),
        ((4,), [one, one], ValueError, r"arrays\[0\] and arrays\[1\] are both on cpu:0, and each"),
        ((4,), [one, three], ValueError, r"arrays\[1\], float32\[2\], must be on one .* on cpu:2"),
        ((4,), [one, st.device_put(np.ones(2), sharding)], ValueError, "it is on cpu:0, cpu:1"),
        ((8,), [one, two], ValueError, r"arrays\[0\] must have the shape \(4,\) of a part of"),
        ((4,), [one, two > 0], TypeError, r"arrays\[1\] must have the dtype float32, that of arr"),
        ((4,), [one, np.ones(2)], TypeError, r"arrays\[1\] must be an array .* got ndarray"),
        ((4,), one, TypeError, "arrays must be a list of arrays, one for each device"),
        ((3,), [one, two], ValueError, "cannot be split evenly"),
    ]
    for shape, arrays, error, message in cases:
        with pytest.raises(error, match=who + ".*" + message):
            make(shape, sharding, arrays)
    with pytest.raises(TypeError, match="must have the dtype int8, dtype"):
        make((4,), sharding, [one, two], dtype="int8")
    with pytest.raises(TypeError, match=r"arrays\[0\] must be an array that is not traced"):
        st.jit(lambda x: make((4,), sharding, [x, two]))(one)
    st.device_put(one, sharding, donate=True)
    one.delete()
    with pytest.raises(st.errors.DonatedArrayError):
        make((4,), sharding, [one, two])


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_one_process_has_all_there_is(spec):
    for shape in (None, (8, 8), (8, None)):
        x = st.sharding.make_array_from_process_local_data(over(spec), A, shape)
        assert x.sharding == over(spec)
        np.testing.assert_array_equal(x, A)


def of_two_processes(spec, *shape):
    """A sharding over devices of which the second half belongs to another process."""
    devices = [st.typing.Device("cpu", i, int(i > 3)) for i in range(8)]
    mesh = st.sharding.Mesh(np.array(devices).reshape(shape), ("x", "y")[: len(shape)])
    return NamedSharding(mesh, spec)


@pytest.mark.parametrize(
    ("spec", "mesh", "local", "asked", "shape", "first", "last"),
    [
        (P("x"), (8,), (4, 3), None, (8, 3), (0, 1, 0, 3), (3, 4, 0, 3)),
        (P("x"), (8,), (8, 3), (8, 3), (8, 3), (0, 1, 0, 3), (3, 4, 0, 3)),
        (P("x"), (8,), (8, 3), None, (16, 3), (0, 2, 0, 3), (6, 8, 0, 3)),
        (P("x"), (8,), (8, 3), (16, None), (16, 3), (0, 2, 0, 3), (6, 8, 0, 3)),
        (P("x", "y"), (2, 4), (2, 8), None, (4, 8), (0, 2, 0, 2), (0, 2, 6, 8)),
        (P("y", "x"), (2, 4), (8, 2), None, (8, 4), (0, 2, 0, 2), (6, 8, 0, 2)),
        (P("y"), (2, 4), (4, 2), None, (4, 2), (0, 1, 0, 2), (3, 4, 0, 2)),
    ],
)
def test_what_one_of_two_processes_has(spec, mesh, local, asked, shape, first, last):
    sharding = of_two_processes(spec, *mesh)
    sizes, places = local_parts(sharding, local, asked or (None, None), "f")
    assert sizes == shape and len(places) == 4
    bounds = [sum(((axis.start, axis.stop) for axis in place), ()) for place in places]
    assert bounds[0] == first and bounds[-1] == last


def test_what_a_process_has_is_checked():
    make, who = (
        st.sharding.make_array_from_process_local_data,
        "make_array_from_process_local_data: ",
    )
    cases = [
        (over(P("x")), np.ones(3), None, ValueError, "axis 0 of local_data.* has size 3, which"),
        (over(P("x")), A, (16, 8), ValueError, "axis 0 of local_data.*size 8, and must have 2 of"),
        (over(P("x")), np.ones(3), (3,), ValueError, r"the array of shape \(3,\) cannot be split"),
        (over(P("x")), A, (8,), ValueError, "global_shape must have a size for each axis of local"),
        (over(P("x")), A, (8, 2.5), TypeError, "global_shape must be an integer"),
        (over(P("x", None, None)), A, None, ValueError, "local_data has 2 axes, .*entries for 3"),
        (over(P("x")), "text", None, TypeError, "local_data must be an array"),
        ("x", A, None, TypeError, "sharding must be a sharding"),
    ]
    for sharding, data, shape, error, message in cases:
        with pytest.raises(error, match=who + ".*" + message):
            make(sharding, data, shape)
    devices = [st.typing.Device("cpu", i, int(i in (1, 2))) for i in range(4)]
    mesh = st.sharding.Mesh(np.array(devices).reshape(2, 2), ("x", "y"))
    with pytest.raises(ValueError, match=r"f: the parts of .* do not lie side by side"):
        local_parts(NamedSharding(mesh, P("x", "y")), (2, 2), (None, None), "f")
    away = [st.typing.Device("cpu", i, 1) for i in range(2)]
    elsewhere = NamedSharding(st.sharding.Mesh(np.array(away), ("x",)), P("x"))
    with pytest.raises(ValueError, match=r"f: no device of .* belongs to this process"):
        local_parts(elsewhere, (2,), (None,), "f")
    with pytest.raises(ValueError, match=r"make_array_from_callback: no device .* dtype must be"):
        st.sharding.make_array_from_callback((2,), elsewhere, lambda index: A)
