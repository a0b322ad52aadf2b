"""Tables of which device has which part of an array."""

import inspect
import io
import math
import re

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import P
from stretto.sharding import NamedSharding

pytestmark = pytest.mark.devices


def over(spec, *shape):
    shape = shape or (2, 4)
    return NamedSharding(st.make_mesh(shape, ("x", "y")[: len(shape)]), spec)


ROWS = """\
┌─────────┐
│ CPU 0-3 │
├─────────┤
│ CPU 4-7 │
└─────────┘
"""
BLOCKS = """\
┌───────┬───────┐
│ CPU 0 │ CPU 4 │
├───────┼───────┤
│ CPU 1 │ CPU 5 │
├───────┼───────┤
│ CPU 2 │ CPU 6 │
├───────┼───────┤
│ CPU 3 │ CPU 7 │
└───────┴───────┘
"""
LINE = """\
┌─────────┬─────────┬─────────┬─────────┐
│ CPU 0,4 │ CPU 1,5 │ CPU 2,6 │ CPU 3,7 │
└─────────┴─────────┴─────────┴─────────┘
"""
WHOLE = """\
┌─────────┐
│ CPU 0-7 │
└─────────┘
"""
LARGE = """\
┌──────────────┐
│              │
│   CPU 0-7    │
│              │
└──────────────┘
"""


@pytest.mark.parametrize(
    ("shape", "spec", "expected"),
    [
        ((2, 3), P("x"), ROWS),
        ((4, 2), P("y", "x"), BLOCKS),
        ((8,), P("y"), LINE),
        ((3, 3), P(), WHOLE),
    ],
)
def test_tables(capsys, shape, spec, expected):
    st.debug.visualize_sharding(shape, over(spec))
    assert capsys.readouterr().out == expected
    st.debug.visualize_array_sharding(st.device_put(np.ones(shape), over(spec)))
    assert capsys.readouterr().out == expected
    with st.sharding.set_mesh(over(spec).mesh):
        st.debug.visualize_sharding(shape, spec)
    assert capsys.readouterr().out == expected


def test_size_and_color(capsys, monkeypatch):
    st.debug.visualize_sharding((4,), over(P()), scale=1.5)
    assert capsys.readouterr().out == LARGE
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    st.debug.visualize_sharding((4,), over(P("x")), use_color=False)
    assert "\x1b" not in terminal.getvalue()
    st.debug.visualize_sharding((4,), over(P("x")))
    assert terminal.getvalue().count("\x1b[0m") == 2


def of_many(spec, *shape):
    """A sharding over more devices than this process has."""
    devices = [st.typing.Device("cpu", i) for i in range(math.prod(shape))]
    return NamedSharding(st.sharding.Mesh(np.array(devices).reshape(shape), ("x", "y")), spec)


def test_parts_have_one_of_twelve_colors_each_in_turn(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", terminal)
    st.debug.visualize_sharding((7, 2), of_many(P("x", "y"), 7, 2), scale=2)
    painted = [re.findall(r"48;5;(\d+)m(.*?)\x1b", s) for s in terminal.getvalue().splitlines()]
    rows = [[int(color) for color, text in line] for line in painted if line]
    twelve = [24, 94, 22, 53, 88, 18, 58, 23, 90, 130, 30, 60]
    expected = [*twelve, *twelve[:2]]
    assert rows[1::3] == [expected[k : k + 2] for k in range(0, 14, 2)]
    assert rows[::3] == rows[1::3] == rows[2::3]  # also above and below the names


def test_a_table_is_as_wide_as_its_longest_name(capsys):
    st.debug.visualize_sharding((2,), of_many(P("y"), 40, 2))
    name = f"CPU {','.join(map(str, range(0, 80, 2)))}"
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"│ {name} │ CPU 1,3,") and len({*map(len, lines)}) == 1
    both = st.debug.visualize_sharding, st.debug.visualize_array_sharding
    assert len({inspect.signature(draw).parameters["scale"].default for draw in both}) == 1


def test_what_cannot_be_drawn():
    draw, draw_array = st.debug.visualize_sharding, st.debug.visualize_array_sharding
    with pytest.raises(ValueError, match=r"visualize_sharding: only .* shape \(2, 2, 2\) has 3"):
        draw((2, 2, 2), over(P("x")))
    with pytest.raises(
        ValueError, match=r"visualize_array_sharding: only .* arr, shape \(\) has 0"
    ):
        draw_array(snp.ones(()))
    with pytest.raises(ValueError, match=r"the array of shape cannot be split evenly: axis 0"):
        draw((3,), over(P("x")))
    with pytest.raises(ValueError, match="scale must be positive, got 0"):
        draw((4,), over(P("x")), scale=0)
    with pytest.raises(TypeError, match="sharding must be a sharding"):
        draw((4,), "x")
    with pytest.raises(TypeError, match="arr must be an array, got ndarray"):
        draw_array(np.ones(3))
    with pytest.raises(TypeError, match=r"arr, float32\[3\], is traced, .* x.sharding"):
        st.jit(draw_array)(snp.ones(3))


def test_shardings_are_handed_over():
    seen = []
    x = st.device_put(np.ones(8), over(P("x")))
    st.debug.inspect_array_sharding({"x": x, "y": snp.ones(2)}, callback=seen.append)
    lone = st.sharding.SingleDeviceSharding(st.devices()[0])
    assert seen == [{"x": over(P("x")), "y": lone}]
    with pytest.raises(TypeError, match=r"value\['x'\], float32\[8\], is traced"):
        st.jit(lambda x: st.debug.inspect_array_sharding({"x": x}, callback=seen.append))(x)
    with pytest.raises(TypeError, match="callback must be a function, got 3"):
        st.debug.inspect_array_sharding(x, callback=3)
    with pytest.raises(TypeError, match="value must be an array, got float"):
        st.debug.inspect_array_sharding(2.0, callback=seen.append)
