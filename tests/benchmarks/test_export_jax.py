"""The exchange with JAX: files of functions, with arguments, results and derivatives to compare."""

import numpy as np

import stretto as st
from benchmarks.export_jax import __main__ as command
from tests.export import exchange


def test_a_call_of_the_table_is_written_with_what_it_gives(tmp_path):
    counts = command.written(tmp_path, "numpy.sinc", "f32", 1, second=True)
    assert dict(counts) == {"values and derivatives": 1}
    path = tmp_path / "numpy_sinc-1.shlo"
    values = exchange.stored(path.with_suffix(".npz"))
    assert {"arg0", "out0", "grad0", "second"} <= values.keys()
    file = st.export.load(path)
    assert file.vjp_order == 2
    np.testing.assert_allclose(file(values["arg0"]), values["out0"], rtol=1e-5)


def test_functions_of_any_size_are_written_once_for_several_sizes(tmp_path):
    counts = command.sized(tmp_path)
    assert dict(counts) == {"values and derivatives": 4 * len(command.SIZED)}
    assert len([*tmp_path.glob("*.shlo")]) == 4 * len(command.SIZED)


def test_both_sides_are_there():
    assert command.SIDE.exists() and command.CASES.exists()
