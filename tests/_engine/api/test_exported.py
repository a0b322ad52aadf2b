"""What is traced for a file: names, weights, sizes, guards."""

import dataclasses
from typing import Any

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.api.exported import trace
from stretto._engine.autodiff.evaluate import evaluate

X = np.ones((4, 3), np.float32)


def traced(f, *args, axes=None, outputs=None, **more):
    return trace(f, args, axes, outputs, "test", **more)


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


STATE = {"w": X, "b": X[0]}


@pytest.mark.parametrize(
    ("f", "args", "names"),
    [
        (lambda a, b: a * b, (X, X), ("out",)),
        (lambda a, b: (a, []), (X, X), ("out[0]",)),
        (lambda a: [a[0].astype(int)], ([X],), ("out[0]",)),
        (lambda a, b: [b[0]], ([X], [X[0]]), ("new_b[0]",)),
        (lambda a: {"y": a, "x": (a, a)}, (X,), ("x[0]", "x[1]", "y")),
        (lambda a: {1: a, 2: a}, (X,), ("out[1]", "out[2]")),
        (lambda a: {}, (X,), ()),
        (lambda s, x: (dict(s), x), (STATE, X), ("new_s['b']", "new_s['w']", "out[1]")),
        (lambda a, b: (b, b), ([X], [X[0]]), ("new_b[0]", "out[1][0]")),
        (lambda old, new, n: (new, old, n), ([X], [X], X), ("new_old[0]", "new_new[0]", "out[2]")),
    ],
)
def test_results_are_named_after_keys_and_the_arguments_that_they_replace(f, args, names):
    assert traced(f, *args).outputs == names


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (snp.mean, r"{'mean': st.ensemble.mean}; got <"),
        ([snp.mean], "got "),
        ({"mean": snp.mean, "most": 1}, "got 1 for 'most'"),
    ],
)
def test_outputs_are_a_dictionary_of_functions(outputs, said):
    with pytest.raises(TypeError, match="test: outputs must be a dictionary from names") as error:
        traced(lambda x: x, X, outputs=outputs)
    assert said in str(error.value)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="test: expected a function or a module, got int"):
        traced(3, X)


def test_what_only_derivatives_need_is_kept_for_them():
    f = lambda x: snp.sin(x) + snp.sin(x)
    simplified, whole = traced(f, X).program, traced(f, X, derivatives=True).program
    assert len(simplified.equations) < len(whole.equations)
    varying = traced(f, X, axes=({0: "n"},)).program
    assert len(varying.equations) == len(whole.equations)


def test_a_function_with_arrays_is_called_with_the_weights_of_the_file():
    module = nn.Linear(3, 2, key=st.random.key(0))
    found = traced(module, X)
    assert found.inputs == ("input",) and found.name == "Linear"
    assert [t.shape for t in found.in_types] == [(4, 3)]
    assert [t.shape for t in found.program.in_types] == [(4, 3), (2, 3), (2,)]
    outs = evaluate(found.program, [snp.array(X), snp.ones((2, 3)), snp.full(2, 4.0)])
    np.testing.assert_array_equal(outs[0], np.full((4, 2), 7))


def test_a_guard_is_kept_once():
    ends = lambda x: st.lax.slice(x, (2, 0), (4, 3))
    once = traced(ends, X, axes=({0: "n"},)).guards
    assert traced(lambda x: (ends(x), ends(x)), X, axes=({0: "n"},)).guards == once != ()


class Sampled:
    """A callable that describes itself as arrays do, and is none."""

    shape, dtype = (2,), np.dtype(np.float32)

    def __call__(self, x):
        return x.sum()


@st.tree.register_dataclass
@dataclasses.dataclass
class Converted:
    """A tree with a leaf that has a dtype and no shape."""

    to: Any

    def __call__(self, x):
        return x.astype(self.to)


def test_only_arrays_of_a_tree_are_weights():
    assert traced(Sampled(), X).weights == () == traced(Converted(snp.float16), X).weights
    ((name, _),) = traced(nn.Linear(3, 2, bias=False, key=st.random.key(0)), X).weights
    assert name == "weight"
