"""Unknowns, and functions that must give what is like them."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.higher_order.implicit import like, record_like, unknowns

X = {"a": np.float32(1), "b": np.ones((2, 3), np.float32)}
LEAVES, STRUCTURE = tree.flatten(X)
TYPES = [as_value(x).type for x in LEAVES]


def test_unknowns_are_of_strong_dtype():
    values, structure = unknowns("root", {"x": 1.0, "z": 1j}, "x0")
    assert structure == tree.structure({"x": 0, "z": 0})
    assert [str(v.type) for v in values] == ["float32[]", "complex64[]"]
    assert unknowns("root", (), "x0")[0] == []


@pytest.mark.parametrize("x", [1, True, np.uint8(2)])
def test_unknowns_are_numbers_that_move(x):
    with pytest.raises(TypeError, match=r"root: x0 must hold floating or complex numbers; x0\[1"):
        unknowns("root", (1.0, x), "x0")


def test_a_result_like_the_unknowns():
    values = like("root", "f(x)", X, STRUCTURE, TYPES)
    assert [v.type for v in values] == TYPES
    # A number of weak dtype takes that of the unknown.
    weak = like("root", "f(x)", {"a": 2, "b": X["b"]}, STRUCTURE, TYPES)
    assert [v.type for v in weak] == TYPES


@pytest.mark.parametrize(
    "result, message",
    [
        ({"a": X["a"]}, r"root: f\(x\) must have the structure of the unknowns; they part at x"),
        ([X["a"], X["b"]], "must have the structure of the unknowns"),
        ({**X, "b": np.ones((3, 2), np.float32)}, r"x\['b'\] is float32\[2,3\], got float32\[3,2"),
        ({**X, "a": np.float64(1).astype(np.float16)}, r"x\['a'\] is float32\[\], got float16"),
        ({**X, "a": np.int32(1)}, r"x\['a'\] is float32\[\], got int32\[\]"),
    ],
)
def test_a_result_unlike_them(result, message):
    with pytest.raises(TypeError, match=message):
        like("root", "f(x)", result, STRUCTURE, TYPES)


def test_a_function_of_several_trees_of_unknowns():
    outside = snp.array([10.0, 20.0, 30.0])

    def f(x, y):
        return {"a": x["a"] - y["a"], "b": x["b"] * outside}

    program, _, captured = record_like("solve", "f(x, y)", f, STRUCTURE, TYPES, 2)
    assert captured[0] is outside and len(program.inputs) == 5 and program.name == "solve"
    args = [np.float32(5), X["b"], np.float32(3), X["b"], outside]
    a, b = evaluate(program, [as_value(v) for v in args])
    assert float(a) == 2
    np.testing.assert_array_equal(b, X["b"] * [10, 20, 30])


def test_aux():
    program, structure, _ = record_like(
        "solve", "f(x)", lambda x: (x, {"n": x["a"] + 1}), STRUCTURE, TYPES, has_aux=True
    )
    assert structure == tree.structure({"n": 0}) and len(program.outputs) == 3
    with pytest.raises(TypeError, match=r"solve: with has_aux, f\(x\) must be a pair .* got dict"):
        record_like("solve", "f(x)", lambda x: x, STRUCTURE, TYPES, has_aux=True)


def test_no_unknowns():
    _, nothing = tree.flatten(())
    seen = []
    for count in (1, 2):
        f = lambda *trees: seen.append(trees) or ()
        program, _, _ = record_like("solve", "f(x)", f, nothing, [], count)
        assert not program.inputs and not program.outputs
    assert seen == [((),), ((), ())]
    assert st.lax.custom_linear_solve(lambda x: x, (), lambda matvec, b: matvec(b)) == ()


def test_examples_of_a_result_that_no_example_changes():
    """A solver may give the same for all examples; each has it in a row of its own."""
    product = lambda x: x * 2.0

    def solve(matvec, b):
        return snp.zeros_like(b) + 1.0

    x = st.vmap(lambda b: st.lax.custom_linear_solve(product, b, solve))(snp.arange(3.0))
    np.testing.assert_array_equal(x, [1, 1, 1])
    same = lambda matvec, b: (snp.ones(2), snp.float32(3))

    def with_aux(b):
        return st.lax.custom_linear_solve(product, snp.ones(2) * b, same, has_aux=True)

    x, aux = st.vmap(with_aux)(snp.arange(3.0))
    assert x.tolist() == [[1, 1]] * 3 and aux.tolist() == [3] * 3
    root = lambda g: st.lax.custom_root(
        lambda x: x - g, 0.0, lambda f, x: snp.float32(7), lambda g, y: y
    )
    np.testing.assert_array_equal(st.vmap(root)(snp.arange(3.0)), [7] * 3)
