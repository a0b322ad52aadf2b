"""What is traced for a file: names, weights, sizes, guards."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.exported import trace

X = np.ones((4, 3), np.float32)


def traced(f, *args, axes=None, outputs=None):
    return trace(f, args, axes, outputs, "test")


def test_arrays_of_a_module_are_weights_by_name_and_others_captured():
    w = snp.arange(3.0)
    module = nn.Linear(3, 2, key=st.random.key(0))
    assert dict(traced(module, X).weights).keys() == {"weight", "bias"}
    names = [name for name, _ in traced(lambda x: x * w, X).weights]
    assert names == ["captured_0"]


def test_sizes_are_in_the_types_and_the_program_is_as_written():
    found = traced(lambda x: x.sum(0) / x.shape[0], X, axes=({0: "n"},))
    ((variable, n),) = found.sizes.items()
    assert (variable.name, n) == ("n", 4)
    assert str(found.in_types[0].shape[0]) == "n"


def test_what_was_taken_to_hold_is_kept():
    found = traced(lambda x: snp.pad(x, ((0, 0), (0, 1)))[:2], X, axes=({0: "n"},))
    assert all(guard.of(found.sizes) for guard in found.guards)


def test_outputs_are_functions_of_the_result():
    found = traced(lambda x: x + 1, X, outputs={"b": lambda y: y.sum(), "a": lambda y: (y, y * 2)})
    assert found.outputs == ("a[0]", "a[1]", "b")


class Pair:
    """No tree."""


class Estimator:
    def function(self):
        """Give no function."""


@pytest.mark.parametrize(
    ("function", "example", "words"),
    [
        (snp.sin, "fast", r"x must be .* got builtins\.str\. Settings are part of the function"),
        (snp.sin, Pair(), r"Pair\. .*by stretto\.tree\.register_dataclass"),
        (Estimator(), X, r"got Estimator: export what its function\(\) gives"),
    ],
)
def test_errors_say_where_settings_objects_and_estimators_go(function, example, words):
    with pytest.raises(TypeError, match=words):
        traced(function, example)


def test_a_static_argument_is_no_input():
    times = st.jit(lambda x, n: x * n, static_argnums=1)
    with pytest.raises(ValueError, match=r"argument 1 must be.*traced: close over its value"):
        traced(times, X, 3)
    assert traced(lambda x: times(x, 3), X).inputs == ("x",)


def test_outputs_have_text_as_names():
    with pytest.raises(TypeError, match=r"outputs must be a dictionary.*got the name 1"):
        traced(snp.sin, X, outputs={1: snp.sum})


def test_inside_of_another_trace_it_is_refused():
    def outer(y):
        traced(lambda x: x * y, X)
        return y

    with pytest.raises(st.errors.ExportError, match="being traced"):
        st.jit(outer)(1.0)
