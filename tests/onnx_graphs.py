"""What a function is exported as, for tests: its operators, and what onnxruntime computes."""

import contextlib
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest

from stretto import export
from stretto._engine.core import tree
from stretto._engine.core.sizes import SizeVariable, is_size, size_of
from stretto._engine.core.types import array_type
from stretto._engine.lowering.onnx.graph import Operand
from stretto._engine.lowering.onnx.products import Onnx
from stretto._engine.lowering.onnx.spelling import UNKNOWN, Spelling, spell
from stretto.export import onnx_model


@contextlib.contextmanager
def spelling(function):
    """Have this function in the place of the one that spells graphs."""
    before = onnx_model.spell
    onnx_model.spell = function
    try:
        yield
    finally:
        onnx_model.spell = before


def unspelled():
    """Leave graphs as they were written."""
    return spelling(lambda b: None)


def spell_and_check(b):
    """Spell a graph; assert that nothing is left to change, and that types are as inferred."""
    spell(b)
    again = Spelling(b)
    again._survey(b.graph)
    assert not again._walk(b.graph)
    types_are_as_inferred(b)


def spell_and_check_types(b):
    """Spell a graph; assert that types are as inferred before and after."""
    types_are_as_inferred(b)
    spell(b)
    types_are_as_inferred(b)


def types_are_as_inferred(b):
    """Assert that what a writer knows of its tensors is what inference finds."""
    for info in _inferred(_model(b)):
        dtype, shape = _type_of(info)
        if info.name in b.types and dtype is not None and shape is not None:
            known, sizes = b.types[info.name]
            assert len(sizes) == len(shape) and known in (dtype, UNKNOWN), info.name
            assert all(n is None or is_size(m) or n == m for n, m in zip(shape, sizes, strict=True))


def graphs(graph):
    """Give a graph and those inside of it."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graphs(attribute.g)


FLAGS = {"allowzero", "fmod", "inverse", "keepdims", "largest", "onesided", "reverse", "sorted"}


def flags_are_set_or_not(model):
    """Assert that attributes that say yes or no are 1 or 0, as the standard has it."""
    nodes = [n for graph in graphs(model.graph) for n in graph.node]
    flags = {(n.op_type, a.name, a.i) for n in nodes for a in n.attribute if a.name in FLAGS}
    assert {value for *_, value in flags} <= {0, 1}, flags


def operators(model):
    """Return the operators of the outermost graph, in order."""
    return [node.op_type for node in model.graph.node]


def run(model, *arrays, as_it_is=False):
    """Run a model on arrays, in the order of its inputs; ``as_it_is`` has nothing fused."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    if as_it_is:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [taken.name for taken in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))


def agrees(f, *arrays, rtol=2e-5, **settings):
    """Export a function, assert that its file gives its values, and return the operators."""
    with spelling(spell_and_check):
        model = export.onnx(f, *arrays, **settings)
    flags_are_set_or_not(model)
    with np.errstate(all="ignore"):
        expected = tree.leaves(f(*arrays))
    for got, value in zip(run(model, *arrays), expected, strict=True):
        value = np.asarray(value)
        assert got.dtype == value.dtype and got.shape == value.shape
        finite = np.abs(value[np.isfinite(value)]) if value.dtype.kind == "f" else np.zeros(0)
        atol = rtol * float(finite.max(initial=0.0))
        is_close(got, value, rtol, atol)
    return operators(model)


def is_close(got, value, rtol, atol):
    """Assert that floats are close, and other numbers equal."""
    if value.dtype.kind in "biu":
        np.testing.assert_array_equal(got, value)
    else:
        np.testing.assert_allclose(got, value, rtol=rtol, atol=atol)


# Graphs written by hand


def _sized(shape):
    return tuple([size_of(SizeVariable(n)) if isinstance(n, str) else n for n in shape])


def _inputs(b, arrays, shapes):
    """Declare arrays as inputs; a name in place of a size is one that varies."""
    operands = []
    for k, x in enumerate(arrays):
        shape = _sized(x.shape if shapes is None else shapes[k])
        operands.append(onnx_model._input(b, b.graph.inputs, f"x{k}", array_type(shape, x.dtype)))
    for name in dict.fromkeys(n for shape in shapes or () for n in shape if isinstance(n, str)):
        onnx_model._bind(b, b.graph.inputs, SizeVariable(name))
    return operands


def _model(b):
    return onnx_model._assembled(b, SimpleNamespace(name="main", guards=()), None)


def _several(made):
    return [*made] if isinstance(made, (list, tuple)) else [made]


def written(build, *arrays, shapes=None, exact=True, opset=26):
    """Return the model of the operands that ``build(b, *operands)`` has a writer write."""
    b = Onnx(opset, exact)
    for k, result in enumerate(_several(build(b, *_inputs(b, arrays, shapes)))):
        onnx_model._output(b, b.graph.outputs, f"y{k}", result)
    types_are_as_inferred(b)
    return _model(b)


def _inferred(model):
    """Give what shape inference knows of the tensors of a model, those inside of others too."""
    onnx = pytest.importorskip("onnx")
    whole = onnx.shape_inference.infer_shapes(model, data_prop=True)
    for graph in graphs(whole.graph):
        yield from (*graph.input, *graph.value_info, *graph.output)


def _type_of(info, sizes=MappingProxyType({})):
    """Return a tensor's dtype and shape, as far as they are known."""
    onnx = pytest.importorskip("onnx")
    kind = info.type.tensor_type
    dtype = (
        np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)) if kind.elem_type else None
    )
    if not kind.HasField("shape"):
        return dtype, None
    dims = kind.shape.dim
    return dtype, tuple(
        [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param) for d in dims]
    )


def _tell_types(b, shapes):
    """Give the types of tensors, which a writer knows, as inference finds them, or from here."""
    sizes = {str(n): n for value in b.graph.inputs for n in value.shape}
    for info in _inferred(_model(b)):
        dtype, shape = _type_of(info, sizes)
        shape = shapes.get(info.name, shape)
        if shape is not None and None not in shape:
            b.types[info.name] = dtype, shape


def by_hand(build, *arrays, shapes=None, exact=True, known=True, forget=None):
    """Return the model of nodes that are spelled, and that of the same as they are.

    ``build(node, *names)`` returns a tensor or several: ``node(op, *inputs, **attributes)`` writes
    a node, of tensors and of constants; ``shape`` says what inference does not find. ``known`` says
    whether the types of tensors are; ``forget`` is the number of a node whose outputs' are not.
    """
    b = Onnx(26, exact)
    operands = _inputs(b, arrays, shapes)
    told, written = {}, []

    def node(op, *inputs, outputs=1, shape=None, **attributes):
        names = [x if isinstance(x, str) else b.constant(np.asarray(x)) for x in inputs]
        made = b.node(op, names, outputs, **attributes)
        written.append(_several(made))
        if shape is not None:
            told[made] = _sized(shape)
        return made

    made = _several(build(node, *[x.name for x in operands]))
    _tell_types(b, told)
    for k, name in enumerate(made):
        value = b.constants.get(name)
        dtype, shape = b.types[name] if value is None else (value.dtype, value.shape)
        operand = Operand(name, array_type(shape, dtype), shape)
        onnx_model._output(b, b.graph.outputs, f"y{k}", operand)
    if not known:
        b.types = {}
    for name in written[forget] if forget is not None else ():
        b.types.pop(name, None)
    plain = _model(b)
    spell_and_check(b)
    return _model(b), plain


def spelled(build, *arrays, feeds=(), rtol=2e-5, **settings):
    """Return the operators that nodes become, and assert that they compute the same.

    ``feeds`` are more arrays to compare with; the rest is that of ``by_hand``.
    """
    model, plain = by_hand(build, *arrays, **settings)
    flags_are_set_or_not(model)
    for fed in (arrays, *feeds):
        expected = run(plain, *fed, as_it_is=True)
        for got, value in zip(run(model, *fed, as_it_is=True), expected, strict=True):
            assert got.dtype == value.dtype and got.shape == value.shape
            is_close(got, value, rtol, rtol)
    return operators(model)


def spelled_without_a_type(build, *arrays, **settings):
    """Assert the same where the type of one tensor after the other, but outputs, is not known."""
    made = []

    def node(op, *inputs, outputs=1, **_):
        made.append([f"{len(made)}_{k}" for k in range(outputs)])
        return made[-1][0] if outputs == 1 else tuple(made[-1])

    given = _several(build(node, *[f"x{k}" for k in range(len(arrays))]))
    for k, names in enumerate(made):
        if not any(name is y for name in names for y in given):
            spelled(build, *arrays, forget=k, **settings)
