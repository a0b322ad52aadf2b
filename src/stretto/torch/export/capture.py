"""A PyTorch module, exported by PyTorch itself, as a graph and a signature.

``torch.export`` traces the module; most of what it finds is decomposed into core operations, and
what has a function here stays whole (``WHOLE``): an LSTM is one operation and not a thousand. The
package's docstring says which modules import PyTorch.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]
from torch.export import ExportedProgram, default_decompositions  # pyright: ignore[reportMissingImports]
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument  # pyright: ignore[reportMissingImports]
from torch.utils import _pytree as pytree  # pyright: ignore[reportMissingImports]

from stretto.torch.crossing import to_numpy
from stretto.torch.export import attempts, exported_graphs, failures
from stretto.torch.programs.buffers import (
    is_table,
    with_counts,
    with_slopes_of_tables,
    without_idle_writes,
)
from stretto.torch.programs.signature import Argument, Signature, children_of, structure_of
from stretto.torch.programs.subgraphs import with_known_counts, with_parts, with_selections
from stretto.torch.programs.torch_graph import (
    Condition,
    DType,
    Graph,
    Input,
    Node,
    Output,
    Ref,
    Subgraph,
    TensorType,
)
from stretto.torch.programs.torch_program import differs_for_one
from stretto.torch.python_state.between_calls import in_mode, watched
from stretto.torch.python_state.captured_tensors import check_constants, exchanged
from stretto.torch.trace import substitutes
from stretto.torch.trace.derivative_marks import hooked, kept
from stretto.torch.trace.fixed_numbers import numbers_fixed

WHOLE = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "bilinear",
    "binary_cross_entropy",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d.input",
    "conv_transpose3d.input",
    "cross_entropy_loss",
    "cumsum",
    "detach",
    "einsum",
    "elu",
    "embedding",
    "gelu",
    "glu",
    "grid_sampler",
    "group_norm",
    "gru.input",
    "gru_cell",
    "hardsigmoid",
    "hardswish",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax.int",
    "logit",
    "logsumexp",
    "lstm.input",
    "lstm_cell",
    "matmul",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "mish",
    "multilabel_margin_loss_forward",
    "one_hot",
    "pad",
    "pixel_shuffle",
    "pixel_unshuffle",
    "prelu",
    "rms_norm",
    "rnn_relu.input",
    "rnn_relu_cell",
    "rnn_tanh.input",
    "rnn_tanh_cell",
    "scaled_dot_product_attention",
    "selu",
    "silu",
    "softmax.int",
    "softplus",
    "special_entr",
    "special_xlog1py",
    "std.correction",
    "std_mean.correction",
    "upsample_bicubic2d.vec",
    "upsample_bilinear2d.vec",
    "upsample_linear1d.vec",
    "upsample_nearest1d.vec",
    "upsample_nearest2d.vec",
    "upsample_nearest3d.vec",
    "upsample_trilinear3d.vec",
    "xlogy",
]
"""The operations of PyTorch that are not decomposed: all overloads of each."""

_KINDS = {"CUSTOM_OBJ": "object of a class of TorchScript"}


@dataclasses.dataclass(frozen=True)
class Captured:
    """An exported program.

    Args:
        graph: what it computes.
        signature: how it is called.
        constants: the arrays that are neither parameters nor buffers, by name.
        single: the same for one example, where that is another program.
        modes: whether each part was in train mode, by dotted name.
    """

    graph: Graph
    signature: Signature
    constants: dict[str, np.ndarray]
    single: Captured | None = None
    modes: Mapping[str, bool] = dataclasses.field(default_factory=dict)


def capture(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    train: bool,
    dynamic_batch: bool = True,
    dynamic_shapes: Any = None,
) -> Captured:
    """Export a module in train or evaluation mode; the module stays as it is.

    ``dynamic_shapes``, in PyTorch's form, take the place of ``dynamic_batch``. Raises ``Unfit`` for
    what would be lost, and what ``torch.export`` raises, with a note.
    """
    with torch.inference_mode(False):
        args, kwargs = pytree.tree_map(
            _ordinary, substitutes.all_dense((tuple(args), dict(kwargs)))
        )
    with in_mode(module, train), attempts.quiet(), watched(module, args, kwargs):
        modes = {path: part.training for path, part in module.named_modules() if path}
        try:
            shapes = dynamic_shapes
            if shapes is None and dynamic_batch:
                bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
                shapes = {
                    name: pytree.tree_map(attempts.any_batch, value)
                    for name, value in bound.items()
                }
            found = _traced(module, args, kwargs, shapes, dynamic_shapes is None, train)
        except Exception as error:
            if not failures.is_ours(error):
                error.add_note(failures.reason(error, module))
            raise
        if dynamic_shapes is None and differs_for_one(found.graph, found.signature):
            few, named = pytree.tree_map(
                lambda x: x[:1] if attempts.any_batch(x) else x, (args, kwargs)
            )
            try:
                single = _traced(module, few, named, None, True, train)
            except Exception:  # the module does not take one example: the conditions say so
                single = None
            found = dataclasses.replace(found, single=single)
    return dataclasses.replace(found, modes=modes)


def _traced(
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    shapes: Any,
    fix: bool,
    train: bool,
) -> Captured:
    with (
        numbers_fixed(module) as numbers,
        exchanged(module),
        substitutes.counting(module),
        substitutes.held_densely(module) as densely,
        hooked(module),
        kept(),
        substitutes.exportable(densely),
    ):
        exported = attempts.export(module, args, kwargs, shapes, fix)
    check_constants(exported.program, module)
    with attempts.asking_for_ones() if exported.least == 1 else nullcontext():
        found = read(exported.program, inspect.signature(module.forward), least=exported.least)
    graph = numbers.guarded(with_counts(found.graph))
    return dataclasses.replace(found, graph=graph if train else without_idle_writes(graph))


def _ordinary(leaf: Any) -> Any:
    """Return an argument that ``inference_mode`` made, as one that may have a gradient."""
    return leaf.clone() if isinstance(leaf, torch.Tensor) and leaf.is_inference() else leaf


def read(
    exported: ExportedProgram, called: inspect.Signature | None = None, *, least: int | None = None
) -> Captured:
    """Return the graph, signature and constants of an exported program.

    ``called`` is the signature of the module's ``forward``, where it is known; ``least`` the size
    from which on it holds, as ``conditions_of`` takes it.
    """
    check_constants(exported)
    with (
        attempts.quiet(),
        substitutes.unchecked(),
        substitutes.traceable(),
        substitutes.not_unrolled(),
    ):
        (attempts.recall_checks if called is None else attempts.drop_checks)(exported)
        program = exported_graphs.decomposed(
            exported_graphs.with_gradients_stopped(exported), _decompositions
        )
    inputs, leaves, constants = [], [], {}
    for spec in program.graph_signature.input_specs:
        if spec.kind is InputKind.USER_INPUT:
            if called is not None and isinstance(spec.arg, SymIntArgument):
                raise NotImplementedError(
                    f"from_torch: dynamic_shapes lets the number {spec.arg.name} vary, and only "
                    f"sizes of tensors do here: give it as a tensor, or None in dynamic_shapes"
                )
            constant = isinstance(spec.arg, ConstantArgument)
            leaves.append((spec.arg.value,) if constant else ())
            inputs.append(None if constant else ("argument", spec.arg.name))
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            inputs.append((spec.kind.name.lower(), spec.target))
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            inputs.append(("constant", spec.target))
            constants[spec.target] = to_numpy(program.constants[spec.target], "from_torch")
        elif spec.kind is InputKind.TOKEN:  # it orders effects, such as checks, and has no value
            inputs.append(None)
        else:
            raise NotImplementedError(
                f"from_torch: the module holds {spec.target or spec.arg.name}, which is no tensor "
                f"but a {_KINDS.get(spec.kind.name, spec.kind.name)}: keep what it has as tensors"
            )
    for part in program.graph_module.modules():
        if isinstance(part, torch.fx.GraphModule):
            exported_graphs.with_hooks(part)
    graph = with_parts(
        _Reader(program.graph_module).graph(inputs, _outputs_of(program)), "from_torch"
    )
    graph = with_known_counts(with_slopes_of_tables(_with_state(graph)), constants)
    graph = with_selections(graph)
    conditions = attempts.conditions_of(program, least=least)
    return Captured(graph, _signature_of(program, leaves, called, conditions), constants)


def _outputs_of(program: ExportedProgram) -> list[tuple[str, str] | None]:
    """Return the kinds and names of a program's outputs, None for what is left out."""
    outputs: list[tuple[str, str] | None] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind is OutputKind.PARAMETER_MUTATION:
            outputs.append(("parameter", spec.target))
        elif spec.kind is OutputKind.BUFFER_MUTATION:
            outputs.append(("buffer", spec.target))
        elif spec.kind is OutputKind.USER_OUTPUT:
            outputs.append(("result", ""))
        elif spec.kind is OutputKind.USER_INPUT_MUTATION:
            outputs.append(("written", spec.target))
        elif spec.kind is OutputKind.TOKEN:
            outputs.append(None)
        else:
            raise NotImplementedError(
                f"from_torch: the module changes {spec.target} in place, of kind {spec.kind.name}"
            )
    return outputs


def _with_state(graph: Graph) -> Graph:
    """Return the graph, in which parameters that are written to are state, as buffers are.

    Raises ``NotImplementedError`` for any but tables of embeddings with a greatest norm.
    """
    for output in graph.outputs:
        if output.kind == "parameter" and not is_table(graph, output.value):
            raise NotImplementedError(
                f"from_torch: the module writes to its parameter {output.name} when it is called, "
                f"and parameters are not state here: make it a buffer (register_buffer), or do "
                f"that in the training loop"
            )
    state = {"parameter": "buffer"}
    outputs = [dataclasses.replace(x, kind=state.get(x.kind, x.kind)) for x in graph.outputs]
    return dataclasses.replace(graph, outputs=tuple(outputs))


def _decompositions() -> dict[Any, Any]:
    """Return PyTorch's decompositions, without those of what has a function here."""
    table = default_decompositions()
    for name in WHOLE:
        packet, _, overload = name.partition(".")
        operation = getattr(torch.ops.aten, packet)
        for each in [overload] if overload else operation.overloads():
            table.pop(getattr(operation, each), None)
    return table


# Graphs


class _Reader:
    """Reads one graph, and the graphs that it calls."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self._module = module
        self._numbers: dict[torch.fx.Node, int] = {}
        self._subgraphs: dict[str, int] = {}
        self._graphs: list[Graph] = []
        self._known: set[torch.fx.Node] = set()

    def graph(
        self,
        inputs: Iterable[tuple[str, str] | None] | None = None,
        outputs: Iterable[tuple[str, str] | None] | None = None,
    ) -> Graph:
        """Return the graph, of inputs and outputs by kind and name; None for what is left out."""
        nodes = list(self._module.graph.nodes)
        placeholders = [node for node in nodes if node.op == "placeholder"]
        named = inputs or [("argument", node.name) for node in placeholders]
        taken = [
            (node, Input(*about, _type_of(node.meta.get("val"))))
            for about, node in zip(named, placeholders, strict=True)
            if about is not None
        ]
        (last,) = [node for node in nodes if node.op == "output"]
        results = last.args[0]
        given = list(outputs or [("result", "")] * len(results))
        returned = [
            (about, value) for about, value in zip(given, results, strict=True) if about is not None
        ]
        exported_graphs.check_effects(nodes)
        self._known = exported_graphs.needed(
            [value for _, value in returned if isinstance(value, torch.fx.Node)]
        )
        exported_graphs.check_inside(self._known)
        return self._made(taken, self._known, returned)

    def backward(self, rule: exported_graphs.Backward, known: set[torch.fx.Node]) -> Graph:
        """Return the graph of a rule: from cotangents and residuals to gradients."""
        self._known = known | rule.nodes | set(rule.cotangents)
        taken = [
            (node, Input("argument", node.name, _type_of(node.meta.get("val"))))
            for node in (*rule.cotangents, *rule.residuals)
        ]
        return self._made(taken, rule.nodes, [(("result", ""), x) for x in rule.gradients])

    def _made(
        self,
        taken: Sequence[tuple[torch.fx.Node, Input]],
        inside: set[torch.fx.Node],
        returned: Sequence[tuple[tuple[str, str], Any]],
    ) -> Graph:
        self._numbers = {node: k for k, (node, _) in enumerate(taken)}
        made = []
        for node in sorted(inside):
            if node.op == "call_function":
                made.append(self._node(node))
                self._numbers[node] = len(taken) + len(made) - 1
        outputs = tuple([Output(*about, self._value(value)) for about, value in returned])
        inputs = tuple([x for _, x in taken])
        return Graph(inputs, tuple(made), outputs, tuple(self._graphs))

    def _node(self, node: torch.fx.Node) -> Node:
        kwargs = {name: self._value(value) for name, value in node.kwargs.items()}
        return Node(
            exported_graphs.name_of(node.target),
            self._rule(node)
            if exported_graphs.is_rule(node)
            else tuple([self._value(x) for x in node.args]),
            tuple(sorted([(n, v) for n, v in kwargs.items() if v is not None])),
            _types_of(node.meta.get("val")),
            exported_graphs.place_of(node),
        )

    def _rule(self, node: torch.fx.Node) -> tuple[Any, ...]:
        """Return the arguments of ``with_backward``, with the graph of its rule."""
        rule = exported_graphs.backward_of(node, self._known)
        self._graphs.append(_Reader(self._module).backward(rule, self._known))
        arguments = [*node.args[:4], rule.residuals]
        return (*map(self._value, arguments), Subgraph(len(self._graphs) - 1))

    def _value(self, value: Any) -> Any:
        """Return an argument as plain data; devices and layouts of memory mean nothing here."""
        match value:
            case torch.fx.Node():
                return self._called(value) if value.op == "get_attr" else Ref(self._numbers[value])
            case bool() | int() | float() | complex() | str() | None:
                return value
            case tuple() | list():
                return tuple([self._value(part) for part in value])
            case torch.dtype():
                return DType(_dtype_name(value))
            case torch.device() | torch.layout() | torch.memory_format():
                return None
        raise NotImplementedError(f"from_torch: an argument of a {type(value).__name__}: {value}")

    def _called(self, node: torch.fx.Node) -> Subgraph:
        name = str(node.target)
        if name not in self._subgraphs:
            part = getattr(self._module, name)
            self._subgraphs[name] = len(self._graphs)
            self._graphs.append(_Reader(part).graph())
        return Subgraph(self._subgraphs[name])


def _dtype_name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _types_of(value: Any) -> tuple[TensorType | None, ...]:
    parts = value if isinstance(value, (tuple, list)) else (value,)
    return tuple([_type_of(part) for part in parts])


def _type_of(value: Any) -> TensorType | None:
    if not isinstance(value, torch.Tensor):
        return None
    return TensorType(_dtype_name(value.dtype), tuple([_size_of(n) for n in value.shape]))


def _size_of(n: Any) -> int | str | None:
    if isinstance(n, int):
        return n
    expression = n.node.expr
    if expression.is_Integer:
        return int(expression)
    return attempts.text_of(expression)


# Signatures


def _signature_of(
    program: ExportedProgram,
    leaves: Sequence[tuple[Any, ...]],
    called: inspect.Signature | None,
    conditions: tuple[Condition, ...],
) -> Signature:
    names, rest, defaults = _parameters(called)
    args, kwargs = [structure_of(spec) for spec in children_of(program.call_spec.in_spec)]
    remaining = iter(leaves)
    arguments = []
    if not names and not rest:
        names = tuple([f"argument_{k}" for k in range(len(args.children))])
    for k, nested in enumerate(args.children):
        name = names[k] if k < len(names) else f"{rest}[{k - len(names)}]"
        arguments.append((name, nested))
    arguments += [
        (str(name), nested) for name, nested in zip(kwargs.keys, kwargs.children, strict=True)
    ]
    read_ = [
        Argument(name, nested, tuple([next(remaining) for _ in range(nested.size)]))
        for name, nested in arguments
    ]
    results = structure_of(program.call_spec.out_spec)
    return Signature(names, rest, defaults, tuple(read_), results, conditions)


def _parameters(
    called: inspect.Signature | None,
) -> tuple[tuple[str, ...], str, tuple[Argument, ...]]:
    names, rest, defaults = [], "", []
    for parameter in called.parameters.values() if called else ():
        if parameter.kind is parameter.VAR_POSITIONAL:
            rest = parameter.name
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(parameter.name)
        leaves, spec = pytree.tree_flatten(parameter.default)
        if all([isinstance(leaf, (bool, int, float, str, type(None))) for leaf in leaves]):
            constants = tuple([(leaf,) for leaf in leaves])
            defaults.append(Argument(parameter.name, structure_of(spec), constants))
    return tuple(names), rest, tuple(defaults)
