"""Names of functions, arguments and leaves."""

import functools

import numpy as np
import pytest

import stretto as st
from stretto._engine.api.argument_leaves import (
    argument_names,
    as_argnums,
    as_values,
    leaf_names,
    name_of,
    signature_of,
    values_of_tree,
    without_float0,
    wraps,
)
from stretto._engine.core.types import float0


def named(x, params, *rest, key=None):
    """Documented."""


class Module:
    def __call__(self, x):
        return x


def test_name_of():
    assert name_of(named) == "named"
    assert name_of(functools.partial(functools.partial(named, 1), 2)) == "named"
    assert name_of(lambda x: x) == "function"
    assert name_of(Module()) == "Module"


@pytest.mark.parametrize(
    "fun, count, want",
    [
        (named, 1, ["x"]),
        (named, 4, ["x", "params", "rest[2]", "rest[3]"]),
        (lambda *xs: xs, 2, ["xs[0]", "xs[1]"]),
        (functools.partial(named, 1), 1, ["params"]),
        (Module(), 1, ["x"]),
        (lambda x: x, 3, ["x", "args[1]", "args[2]"]),
        (dict.fromkeys, 2, None),
    ],
)
def test_argument_names(fun, count, want):
    names = argument_names(fun, count)
    assert len(names) == count and (want is None or names == want)


def test_leaf_names():
    args = (1, {"w": [2, None, 3]})
    names = ["x", "params['w'][0]", "params['w'][2]", "key[0]", "key[1]"]
    assert leaf_names(named, args, {"key": (1, 2)}) == names


@pytest.mark.parametrize(
    "argnums, want", [(0, (0,)), (-1, (2,)), ((0, -2), (0, 1)), ([2], (2,)), ((), ())]
)
def test_as_argnums(argnums, want):
    assert as_argnums(argnums, 3, "grad") == want


def test_argnums_out_of_range():
    with pytest.raises(TypeError, match=r"jacfwd: argnums names argument -4, .* with 3 positional"):
        as_argnums((0, -4), 3, "jacfwd")


def test_values_are_made_or_the_culprit_is_named():
    values, structure = values_of_tree({"a": 1, "b": (np.ones(2), None)}, "f", "tree")
    assert all(isinstance(v, st.Array) for v in values)
    assert st.tree.structure({"a": 1, "b": (2, None)}) == structure
    with pytest.raises(
        TypeError, match=r"f: tree\['b'\]\[1\] must be an array or a number; got builtins.str"
    ):
        values_of_tree({"a": 1, "b": (2, "x")}, "f", "tree")
    with pytest.raises(TypeError, match="g: second must be"):
        as_values([1, object()], "g", lambda: ["first", "second"])


def test_signature_of():
    assert list(signature_of(named).parameters) == ["x", "params", "rest", "key"]
    assert signature_of(min) is None


def test_float0_zeros_come_back():
    tree = {"n": np.zeros((2,), float0), "x": 1.0}
    flat, structure = st.tree.flatten(without_float0(tree, (5,)))
    assert flat == [1.0]
    back = st.tree.unflatten(structure, flat)
    assert (back["n"].dtype, back["n"].shape) == (float0, (5, 2))
    plain = {"x": 1.0}
    assert without_float0(plain) is plain


def test_wraps():
    @wraps(named, "grad")
    def transformed():
        pass

    assert (transformed.__name__, transformed.__doc__) == ("grad_named", "Documented.")
    assert transformed.__wrapped__ is named
    assert (transformed.__qualname__, transformed.__module__) == ("grad_named", __name__)


def test_a_function_of_no_module_is_the_packages():
    class Called:
        __module__ = None

        def __call__(self):
            pass

    transformed = wraps(Called(), "grad")(lambda: None)
    assert transformed.__module__ == wraps.__module__ and transformed.__doc__ is None
