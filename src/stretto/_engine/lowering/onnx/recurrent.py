"""Rules of spelling: a Scan whose step is that of an LSTM, a GRU or an RNN is that operator.

What goes into each activation is read as a sum of products: of the state, of the step's input, and
constants. So it does not matter how a cell is written: with one matrix or one for each gate, with
the input's products in the step or before the loop.

Source: the definitions of LSTM, GRU and RNN in ONNX's specification.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.sizes import is_size
from stretto._engine.lowering.onnx.graph import FINITE, Graph, Node, Value

_F32 = np.dtype(np.float32)


@dataclasses.dataclass(slots=True)
class _Columns:
    """A source's own columns, from a start to before an end."""

    start: int
    stop: int


@dataclasses.dataclass(slots=True)
class _Sum:
    """A sum of products of sources with matrices, and of a line; of this width, -1 for a number."""

    width: int
    terms: dict[str, Any]
    line: Any = 0.0

    def cut(self, start: int, stop: int) -> _Sum:
        """Return these columns of the sum."""
        terms: dict[str, Any] = {}
        for name, m in self.terms.items():
            if isinstance(m, _Columns):
                terms[name] = _Columns(m.start + start, m.start + stop)
            else:
                terms[name] = m[:, start:stop]
        line = self.line[start:stop] if np.ndim(self.line) else self.line
        return _Sum(stop - start, terms, line)

    def plus(self, other: _Sum) -> _Sum | None:
        """Return the sum of both, unless a source's columns are in both."""
        terms = dict(self.terms)
        for name, m in other.terms.items():
            mine = terms.get(name)
            if isinstance(mine, _Columns) or (mine is not None and isinstance(m, _Columns)):
                return None
            terms[name] = m if mine is None else mine + m
        return _Sum(max(self.width, other.width), terms, self.line + other.line)

    def scaled(self, by: float) -> _Sum | None:
        """Return the sum times a number."""
        if any(isinstance(m, _Columns) for m in self.terms.values()):
            return None
        return _Sum(self.width, {n: by * m for n, m in self.terms.items()}, by * self.line)


class _Cell:
    """The step of a loop: what it reads and gives by name; of one member, where it is for many.

    Tensors of many members have an axis of them in front, and so have matrices.
    """

    def __init__(self, s: Any, graph: Graph, states: int, member: int | None = None) -> None:
        self.s, self.graph, self.member = s, graph, member
        self.ndim = 2 if member is None else 3
        names = [v.name for v in graph.inputs]
        self.states, self.slices = names[:states], names[states:]
        given = [self._source(v.name) for v in graph.outputs]
        self.new, self.stacked = given[:states], given[states:]
        self.sources = {*names}
        self._sums: dict[str, _Sum | None] = {}

    def _source(self, name: str) -> str:
        copy = self.s.by(name, "Identity")
        return copy.inputs[0] if copy is not None else name

    # Sums of products

    def sum(self, name: str) -> _Sum | None:
        """Return a tensor as a sum of products, if it is one."""
        if name not in self._sums:
            self._sums[name] = self._read(name)
        return self._sums[name]

    def _read(self, name: str) -> _Sum | None:
        s = self.s
        value, shape = self.own(s.value(name)), s.shape(name)
        if value is not None:
            if value.size == 1:
                return _Sum(-1, {}, float(value.reshape(()).item()))
            if value.size != value.shape[-1]:
                return None
            return _Sum(value.size, {}, value.ravel())
        if shape is None or len(shape) != self.ndim:
            return None
        width = shape[-1]
        if not isinstance(width, int):
            return None
        if name in self.sources:
            return _Sum(width, {name: _Columns(0, width)})
        node = s.made.get(name)
        if node is None:
            return None
        if node.op in ("Add", "Sub"):
            x, y = [self.sum(n) for n in node.inputs]
            if y is not None and node.op == "Sub":
                y = y.scaled(-1.0)
            if x is None or y is None or {x.width, y.width} - {width, -1}:
                return None
            return x.plus(y)
        if node.op in ("MatMul", "Gemm"):
            return self._product(node)
        if node.op == "Slice":
            return self._slice(node, width)
        return None

    def own(self, value: np.ndarray | None) -> np.ndarray | None:
        """Return the member's part of a constant, which may be one for all."""
        if value is None or self.member is None or value.ndim < 3:
            return value
        return value[self.member % len(value)]

    def total(self, part: _Part) -> _Sum | None:
        """Return what an activation is of, as a sum of products."""
        sums = [self.sum(n) for n in part.names]
        total = sums[0] if sums else None
        for other in sums[1:]:
            total = None if total is None or other is None else total.plus(other)
        return total if total is None or part.sign == 1 else total.scaled(part.sign)

    def _product(self, node: Node) -> _Sum | None:
        s = self.s
        if any(node.attributes.get(k, 1) != 1 for k in ("alpha", "beta")):
            return None
        if node.attributes.get("transA"):
            return None
        m = self.own(s.value(node.inputs[1]))
        if m is None or m.ndim != 2:
            return None
        m = m.T if node.attributes.get("transB") else m
        out = self._times(node.inputs[0], m)
        if out is None or len(node.inputs) < 3:
            return out
        bias = self.sum(node.inputs[2])
        return None if bias is None else out.plus(bias)

    def _times(self, name: str, m: np.ndarray) -> _Sum | None:
        """Return a tensor times a matrix; of one that is joined, part by part."""
        s = self.s
        joined = s.by(name, "Concat")
        if joined is not None and joined.attributes["axis"] in (self.ndim - 1, -1):
            total: _Sum | None = _Sum(m.shape[1], {})
            at = 0
            for part in joined.inputs:
                n = (s.static(part) or (0, 0))[-1]
                product = self._times(part, m[at : at + n])
                if product is None or total is None:
                    return None
                total, at = total.plus(product), at + n
            return total
        if name in self.sources:
            return _Sum(m.shape[1], {name: m})
        return None

    def _slice(self, node: Node, width: int) -> _Sum | None:
        s = self.s
        x = self.sum(node.inputs[0])
        starts, axes = [s.ints(n) for n in (node.inputs[1], node.inputs[3])]
        if (
            x is None
            or axes not in ([self.ndim - 1], [-1])
            or len(node.inputs) > 4
            or starts[0] < 0
        ):
            return None
        return x.cut(starts[0], starts[0] + width)

    # Activations

    def sigmoid(self, name: str) -> tuple[str, float] | None:
        """Return z and a sign, where a tensor is the logistic function of z with this sign."""
        s = self.s
        gate, inverse = s.by(name, "Sigmoid"), s.by(name, "Reciprocal")
        if gate is not None:
            turned = s.by(gate.inputs[0], "Neg")
            return (gate.inputs[0], 1.0) if turned is None else (turned.inputs[0], -1.0)
        return self._under(inverse.inputs[0]) if inverse is not None else None

    def _under(self, name: str) -> tuple[str, float] | None:
        """Return z and the sign of 1 + exp(-z)."""
        s = self.s
        total = s.by(name, "Add")
        if total is None:
            return None
        for power, one in (total.inputs, total.inputs[::-1]):
            e = s.by(power, "Exp")
            if e is None or s.scalar(one) != 1:
                continue
            turned = s.by(e.inputs[0], "Neg")
            return (e.inputs[0], -1.0) if turned is None else (turned.inputs[0], 1.0)
        return None

    def gated(self, name: str) -> list[tuple[tuple[str, float], str]]:
        """Return the ways to read a tensor as sigmoid(z) * y: z with its sign, and y."""
        s = self.s
        quotient, product = s.by(name, "Div"), s.by(name, "Mul")
        if quotient is not None:
            z = self._under(quotient.inputs[1])
            return [(z, quotient.inputs[0])] if z is not None else []
        if product is None:
            return []
        pairs = [(self.sigmoid(a), b) for a, b in (product.inputs, product.inputs[::-1])]
        return [(z, y) for z, y in pairs if z is not None]


class _Part(NamedTuple):
    """Holds the tensors that an activation adds up, and the sign before all."""

    names: tuple[str, ...]
    sign: float = 1.0


class _Pattern(NamedTuple):
    """An operator, what its activations are of, and which states are h and c."""

    op: str
    parts: list[_Part]
    order: list[int]
    turned: str = ""
    """What a GRU's reset gate multiplies."""
    attributes: Mapping[str, Any] = MappingProxyType({})


def _recurrent(s: Any, node: Node) -> Any:
    """Find an operator for a loop."""
    graph = node.attributes["body"]
    if any(isinstance(v, Graph) for n in graph.nodes for v in n.attributes.values()):
        return False
    count = node.attributes["num_scan_inputs"]
    states = len(node.inputs) - count
    shape = s.shape(graph.inputs[0].name)
    members = [None]
    if shape is not None and len(shape) == 3 and isinstance(shape[0], int):
        members = list(range(shape[0]))
    cells = [_Cell(s, graph, states, member) for member in members]
    inside = {o for n in graph.nodes for o in n.outputs} | cells[0].sources
    if any(n not in inside and s.value(n) is None for k in graph.nodes for n in k.inputs):
        return False
    if s.dtype(node.inputs[0]) != _F32 or states not in (1, 2):
        return False
    for find in (_lstm, _gru, _rnn):
        pattern = find(s, cells[0])
        if pattern is not None:
            return _operators(s, node, cells, pattern)
    return False


def _lstm(s: Any, cell: _Cell) -> _Pattern | None:
    """c' = sigmoid(f) c + sigmoid(i) tanh(g); h' = sigmoid(o) tanh(c')."""
    if len(cell.states) != 2:
        return None
    for h, c in ((0, 1), (1, 0)):
        total = s.by(cell.new[c], "Add")
        if total is None or any(y != cell.new[h] for y in cell.stacked):
            continue
        for o, squashed in cell.gated(cell.new[h]):
            tanh = s.by(squashed, "Tanh")
            if tanh is None or tanh.inputs[0] != cell.new[c]:
                continue
            for kept, added in (total.inputs, total.inputs[::-1]):
                gates = _lstm_gates(s, cell, kept, added, cell.states[c])
                if gates is None:
                    continue
                i, f, g = gates
                parts = [*[_Part((z,), sign) for z, sign in (i, o, f)], _Part((g,))]
                return _Pattern("LSTM", parts, [h, c])
    return None


def _lstm_gates(
    s: Any, cell: _Cell, kept: str, added: str, state: str
) -> tuple[Any, Any, str] | None:
    for f, before in cell.gated(kept):
        if before != state:
            continue
        for i, squashed in cell.gated(added):
            tanh = s.by(squashed, "Tanh")
            if tanh is not None:
                return i, f, tanh.inputs[0]
    return None


def _gru(s: Any, cell: _Cell) -> _Pattern | None:
    """h' = n + sigmoid(z) (h - n); n = tanh(x + sigmoid(r) y), where y is a product of h."""
    if len(cell.states) != 1 or any(y != cell.new[0] for y in cell.stacked):
        return None
    (h,), (new,) = cell.states, cell.new
    for z, n in _mixtures(s, cell, new, h):
        tanh = s.by(n, "Tanh")
        addends = _addends(s, cell, tanh.inputs[0]) if tanh is not None else []
        for k, reset in enumerate(addends):
            plain = _Part(tuple(addends[:k] + addends[k + 1 :]))
            for (r, sign), product in cell.gated(reset):
                turned = cell.sum(product)
                if turned is None or {*turned.terms} != {h}:
                    continue
                parts = [_Part((z[0],), z[1]), _Part((r,), sign), plain]
                return _Pattern("GRU", parts, [0], product, {"linear_before_reset": 1})
    return None


def _addends(s: Any, cell: _Cell, name: str) -> list[str]:
    """Return what is added up, as far as it is no sum of products."""
    total = s.by(name, "Add")
    if total is None or cell.sum(name) is not None:
        return [name]
    return [part for n in total.inputs for part in _addends(s, cell, n)]


def _mixtures(s: Any, cell: _Cell, new: str, h: str) -> list[tuple[tuple[str, float], str]]:
    """Return z and n of (1 - sigmoid(z)) n + sigmoid(z) h, in the forms that are written."""
    total = s.by(new, "Add")
    if total is None:
        return []
    found = []
    for first, second in (total.inputs, total.inputs[::-1]):
        for z, y in cell.gated(second):
            apart = s.by(y, "Sub")
            if apart is not None and apart.inputs == (h, first):
                found.append((z, first))
            if y != h:
                continue
            found += [(z, n) for (w, sign), n in cell.gated(first) if (w, -sign) == z]
            other = s.by(first, "Mul")
            for rest, n in (other.inputs, other.inputs[::-1]) if other is not None else ():
                one = s.by(rest, "Sub")
                if one is None or s.scalar(one.inputs[0]) != 1:
                    continue
                if cell.sigmoid(one.inputs[1]) == z:
                    found.append((z, n))
    return found


def _rnn(s: Any, cell: _Cell) -> _Pattern | None:
    """h' = tanh(x + y), or of a ReLU."""
    if len(cell.states) != 1 or any(y != cell.new[0] for y in cell.stacked):
        return None
    last = s.by(cell.new[0], "Tanh", "Relu")
    if last is None:
        return None
    activation = {} if last.op == "Tanh" else {"activations": ["Relu"]}
    return _Pattern("RNN", [_Part((last.inputs[0],))], [0], "", activation)


def _operators(s: Any, node: Node, cells: Sequence[_Cell], pattern: _Pattern) -> Any:
    """Write an operator for each member; return what stands for the loop's outputs."""
    op, attributes = pattern.op, dict(pattern.attributes)
    shape = s.shape(cells[0].states[0])
    if len(shape) != cells[0].ndim:
        return False
    size, dtype = shape[-1], s.dtype(node.inputs[0])
    if s.exact and "activations" in attributes:
        return False
    if node.attributes.get("scan_input_directions", [0])[0]:
        attributes["direction"] = "reverse"
    attributes["hidden_size"] = size
    made = [_gates(s, node, cell, pattern, size, dtype) for cell in cells]
    found = [f for f in made if f is not None]
    if len(found) < len(made):
        return False
    count, length = len(cells), s.shape(node.inputs[-1])[0]
    starts = [node.inputs[k] for k in pattern.order]
    checked = [*{f.rows: None for f in found}, *[n for n in starts if not _is_zero(s, n)]]
    # The RNN of tanh keeps NaN.
    guarded = s.exact and op != "RNN"
    if guarded and any(np.abs(m).sum() > _BOUNDED for f in found for g in f.gates for m in g):
        return False
    if cells[0].member is not None:
        rows = _rows_of_members(s, found, (length, *shape[1:2]))
        starts = [_parts_of(s, n, count, (1, *shape[1:])) for n in starts]
    else:
        rows = [found[0].rows]
        starts = [[n] for n in starts]
    loops = [
        _Loop(s, op, rows[k], [n[k] for n in starts], f.gates, (length, *shape[-2:]), attributes)
        for k, f in enumerate(found)
    ]
    types = [(dtype, (length, *shape)), *[(dtype, tuple(shape))] * len(starts)]
    write = lambda way: _joined(s, [getattr(loop, way)(op) for loop in loops], types)
    if guarded:
        read = [any(s.uses[n] for n in node.outputs[len(starts) :])]
        read += [s.uses[node.outputs[k]] > 0 for k in pattern.order]
        stack, *last = _guarded(s, checked, types, write, read)
    else:
        stack, *last = write("operator")
    finals = [last[pattern.order.index(k)] for k in range(len(last))]
    return (*finals, *[stack] * len(cells[0].stacked))


class _Found(NamedTuple):
    """Holds the rows that go into a member's operator, and its gates."""

    rows: str
    gates: list[_Gate]


def _gates(
    s: Any, node: Node, cell: _Cell, pattern: _Pattern, size: int, dtype: np.dtype
) -> _Found | None:
    """Return the gates of a member."""
    h = cell.states[pattern.order[0]]
    sums = [cell.total(part) for part in pattern.parts]
    inputs = {n for z in sums if z is not None for n in z.terms} - {h}
    if any(z is None or z.width != size for z in sums) or len(inputs) != 1:
        return None
    (x,) = inputs
    if x not in cell.slices:
        return None
    rows = node.inputs[len(cell.states) + cell.slices.index(x)]
    rows, before, line = _before(s, rows, cell)
    if cell.member is not None and before is None:
        return None
    made = [_gate(z, x, h, before, line, dtype) for z in sums]
    gates = [gate for gate in made if gate is not None]
    if len(gates) < len(made):
        return None
    if pattern.turned:
        turned = cell.sum(pattern.turned)
        if turned is None or {*sums[2].terms} != {x}:  # type: ignore[union-attr]
            return None
        if not isinstance(turned.terms[h], np.ndarray):
            return None
        last = np.zeros(size, dtype) + turned.line
        gates[2] = gates[2]._replace(states=turned.terms[h], after=last)
    return _Found(rows, gates)


def _parts_of(s: Any, name: str, count: int, shape: Sequence[Any]) -> Sequence[str]:
    """Return a tensor's parts along its first axis, which is kept; of zeros one without it."""
    dtype = s.dtype(name)
    if _is_zero(s, name):
        first = s.constant(np.array(0, np.int64))
        return [s.new("Gather", [name, first], dtype, tuple(shape[1:]), axis=0)] * count
    if count == 1:
        return [name]
    return s.new_many("Split", [name], [(dtype, tuple(shape))] * count, axis=0, num_outputs=count)


def _rows_of_members(s: Any, found: Sequence[Any], lead: Sequence[Any]) -> list[str]:
    """Return each member's rows (T, B, I), of all members' (G, T B, I) or of what they share."""
    (name,) = {f.rows for f in found}
    *first, deep = s.shape(name)
    parts = [name] * len(found)
    if len(first) == 2 and first[0] != 1:
        parts = _parts_of(s, name, len(found), (1, *first[1:], deep))
    target = s.constant(np.array([-1 if is_size(n) else n for n in (*lead, deep)], np.int64))
    dtype = s.dtype(name)
    views = {n: s.new("Reshape", [n, target], dtype, (*lead, deep)) for n in dict.fromkeys(parts)}
    return [views[n] for n in parts]


def _joined(s: Any, made: Sequence[Sequence[str]], types: Sequence[Any]) -> list[str]:
    """Return what one member gives, or what all do, along the axis of members."""
    out = []
    for k, (names, (dtype, shape)) in enumerate(zip(zip(*made), types, strict=True)):
        if len(shape) == 3 - min(k, 1):  # of a cell that has no members
            axis = s.constant(np.array([1 - min(k, 1)], np.int64))
            lifted = s.by(names[0], "Unsqueeze")
            if lifted is not None and lifted.inputs[1] == axis:
                out.append(lifted.inputs[0])
            else:
                out.append(s.new("Squeeze", [names[0], axis], dtype, shape))
        else:
            out.append(s.new("Concat", names, dtype, shape, axis=1 - min(k, 1)))
    return out


def _guarded(
    s: Any, checked: Sequence[str], types: Sequence[Any], write: Any, read: Sequence[bool]
) -> list[str]:
    """Write the operators for rows that are finite, and the steps for others.

    The operators lose NaN. The sum of squares is finite for no NaN, and for no numbers that could
    become one; the states stay within bounds. Of what the branches make, they give what
    is ``read``.
    """
    dtype = types[0][0]
    totals = [s.new("ReduceSumSquare", [n], dtype, (), keepdims=0) for n in checked]
    total = totals[0] if len(totals) == 1 else s.new("Sum", totals, dtype, ())
    nothing = s.new("Sub", [total, total], dtype, ())
    zero = s.constant(np.zeros((), dtype))
    finite = s.new("Equal", [nothing, zero], np.dtype(bool), ())
    branches = {}
    for name, stem, way in (
        ("then_branch", FINITE, "operator"),
        ("else_branch", STEPS, "steps"),
    ):
        graph = Graph(s.b.fresh(stem), s.b.graph)
        with s.inside(graph):
            for made, (dtype, shape), is_read in zip(write(way), types, read, strict=True):
                if is_read:
                    out = s.new("Identity", [made], dtype, shape)
                    graph.outputs.append(Value(out, dtype, shape))
        branches[name] = graph
    kept = [type for type, is_read in zip(types, read, strict=True) if is_read]
    made = s.new_many("If", [finite], kept, **branches)
    left = iter(made)
    return [next(left) if is_read else made[0] for is_read in read]


class _Gate(NamedTuple):
    """Holds the parts of an activation's argument: x @ rows + bias + h @ states + after."""

    rows: np.ndarray
    states: np.ndarray
    bias: np.ndarray
    after: np.ndarray


def _gate(
    z: _Sum | None, x: str, h: str, before: np.ndarray | None, line: Any, dtype: np.dtype
) -> _Gate | None:
    """Return a sum as a gate; ``before`` and ``line`` are what made the step's input."""
    assert z is not None
    mine, back = z.terms.get(x), z.terms.get(h)
    bias = np.zeros(z.width, dtype) + z.line
    if mine is None or isinstance(back, _Columns):
        return None
    if before is None:
        if isinstance(mine, _Columns):
            return None
    elif isinstance(mine, _Columns):
        bias = bias + line[mine.start : mine.stop]
        mine = before[:, mine.start : mine.stop]
    else:
        bias, mine = bias + line @ mine, before @ mine
    nothing = np.zeros((z.width, z.width), dtype)
    return _Gate(mine, nothing if back is None else back, bias, np.zeros(z.width, dtype))


_BOUNDED = 1e15
"""The bound of what weights add up to, for no row of a finite sum of squares to overflow."""

STEPS = "steps"
"""How the names of graphs begin in which nothing is to be found again."""


class _Loop:
    """A recurrent network: its rows, the states that it begins with, and packed weights."""

    def __init__(
        self,
        s: Any,
        op: str,
        rows: str,
        starts: Sequence[str],
        gates: Sequence[_Gate],
        shape: Sequence[Any],
        attributes: dict[str, Any],
    ) -> None:
        self.s, self.rows, self.starts, self.attributes = s, rows, starts, attributes
        self.dtype = dtype = s.dtype(starts[0])
        self.length, self.batch, self.size = shape
        packed = [np.concatenate([m.T for m in part])[None] for part in list(zip(*gates))[:2]]
        self.weights = [
            s.constant(m.astype(dtype), f"{op.lower()}_{stem}")
            for m, stem in zip(packed, ("weight", "recurrence"), strict=True)
        ]
        lines = [*[g.bias for g in gates], *[g.after for g in gates]]
        self.bias = np.concatenate(lines).astype(dtype)
        state = (dtype, (self.batch, self.size))
        self.types = [(dtype, (self.length, self.batch, self.size)), *[state] * len(starts)]
        self.kinds = [
            (dtype, (self.length, 1, self.batch, self.size)),
            *[(dtype, (1, self.batch, self.size))] * len(starts),
        ]

    def operator(self, op: str) -> Sequence[str]:
        """Write the operator; return all states of h, and the last of each, with an axis of one."""
        s = self.s
        other = self._other_way(op)
        if other is not None:
            return self._both_ways(other)
        given = [self.rows, *self.weights, s.constant(self.bias[None]) if self.bias.any() else ""]
        if not all(_is_zero(s, n) for n in self.starts):
            given += ["", *self._lifted(self.starts, self.types[1:], self.kinds[1:], 0)]
        while not given[-1]:
            given.pop()
        return s.new_many(op, given, self.kinds, **self.attributes)

    def _other_way(self, op: str) -> Node | None:
        """Return an operator of the same rows that goes forward, where this one goes backwards."""
        s = self.s
        if self.attributes.get("direction") != "reverse" or not all(
            _is_zero(s, n) for n in self.starts
        ):
            return None
        same = {k: v for k, v in self.attributes.items() if k != "direction"}
        for node in s.before():
            if node.op == op and node.inputs[0] == self.rows and node.attributes == same:
                deep = [s.shape(n)[1:] for n in node.inputs[1:3]]
                if len(node.inputs) <= 4 and deep == [s.shape(n)[1:] for n in self.weights]:
                    return node
        return None

    def _both_ways(self, node: Node) -> Sequence[str]:
        """Make an operator one that goes both ways, and return what it makes backwards."""
        s = self.s
        weights = [
            s.constant(np.concatenate([s.value(a), s.value(b)]), a)
            for a, b in zip(node.inputs[1:3], self.weights, strict=True)
        ]
        first = s.value(node.inputs[3]) if len(node.inputs) > 3 else np.zeros_like(self.bias)[None]
        bias = s.constant(np.concatenate([first, self.bias[None]]))
        attributes = {**node.attributes, "direction": "bidirectional"}
        if "activations" in attributes:
            attributes["activations"] = attributes["activations"] * 2
        kinds = [
            (dtype, tuple([2 if d == axis else n for d, n in enumerate(shape)]))
            for (dtype, shape), axis in zip(self.kinds, (1, 0, 0), strict=False)
        ]
        halves = s.divide(node, kinds, (1, 0, 0)[: len(kinds)])
        s.become(node, node.op, [self.rows, *weights, bias], **attributes)
        return halves

    def _lifted(
        self, names: Sequence[str], types: Sequence[Any], kinds: Sequence[Any], axis: int
    ) -> list[str]:
        """Return tensors with an axis of one, as those of members have it already."""
        s, at = self.s, self.s.constant(np.array([axis], np.int64))
        return [
            name if len(s.shape(name)) > len(type[1]) else s.new("Unsqueeze", [name, at], *kind)
            for name, type, kind in zip(names, types, kinds, strict=True)
        ]

    def steps(self, op: str) -> list[str]:
        """Write the loop by its steps."""
        s, dtype, size = self.s, self.dtype, self.size
        count = {"LSTM": 4, "GRU": 3}[op]
        first = s.constant(np.array([0], np.int64))
        line, back = np.split(self.bias, 2)
        line = line + back if op == "LSTM" else line
        wide = (self.length, self.batch, count * size)
        _, gates, features = s.shape(self.weights[0])
        turned = s.new("Transpose", self.weights[:1], dtype, (1, features, gates), perm=[0, 2, 1])
        rows = s.new("MatMul", [self.rows, turned], dtype, wide)
        rows = s.new("Add", [rows, s.constant(line)], dtype, wide)
        recurrence = s.new("Squeeze", [self.weights[1], first], dtype, (gates, size))
        body = Graph(s.b.fresh(STEPS), s.b.graph)
        inputs = [*self.types[1:], (dtype, (self.batch, count * size))]
        names = [s.b.fresh("x") for _ in inputs]
        body.inputs = [Value(n, *type) for n, type in zip(names, inputs, strict=True)]
        s.b.types.update(zip(names, inputs, strict=True))
        with s.inside(body):
            # The LSTM's rows are added to the product; of the GRU's a gate takes them apart.
            added = names[-1] if op == "LSTM" else s.constant(back)
            product = s.new("Gemm", [names[0], recurrence, added], *inputs[-1], transB=1)
            step = self._lstm_step if op == "LSTM" else self._gru_step
            new = step(names, product)
            for name, type in zip([*new, new[0]], [*self.types[1:], self.types[1]], strict=True):
                out = s.new("Identity", [name], *type)
                body.outputs.append(Value(out, *type))
        attributes: dict[str, Any] = {"body": body, "num_scan_inputs": 1}
        if self.attributes.get("direction") == "reverse":
            attributes |= {"scan_input_directions": [1], "scan_output_directions": [1]}
        starts = [
            name if len(s.shape(name)) == 2 else s.new("Squeeze", [name, first], *self.types[1])
            for name in self.starts
        ]
        *last, stack = s.new_many(
            "Scan", [*starts, rows], [*self.types[1:], self.types[0]], **attributes
        )
        return [
            *self._lifted([stack], self.types[:1], self.kinds[:1], 1),
            *self._lifted(last, self.types[1:], self.kinds[1:], 0),
        ]

    def _each(self, op: str, *names: str) -> str:
        return self.s.new(op, names, *self.s.b.types[names[0]])

    def _split(self, name: str, *counts: int) -> tuple[str, ...]:
        """Cut the gates of all units into parts of so many gates each."""
        types = [(self.dtype, (self.batch, n * self.size)) for n in counts]
        if len({*counts}) == 1:
            return self.s.new_many("Split", [name], types, axis=1, num_outputs=len(counts))
        sizes = self.s.constant(np.array([n * self.size for n in counts], np.int64))
        return self.s.new_many("Split", [name, sizes], types, axis=1)

    def _logistic(self, name: str) -> str:
        one = self.s.constant(np.ones((), self.dtype))
        e = self._each("Exp", self._each("Neg", name))
        return self._each("Reciprocal", self._each("Add", e, one))

    def _lstm_step(self, names: Sequence[str], total: str) -> list[str]:
        _, c, _ = names
        gates, g = self._split(total, 3, 1)
        i, o, f = self._split(self._logistic(gates), 1, 1, 1)
        kept = self._each("Mul", f, c)
        c = self._each("Add", kept, self._each("Mul", i, self._each("Tanh", g)))
        return [self._each("Mul", o, self._each("Tanh", c)), c]

    def _gru_step(self, names: Sequence[str], product: str) -> list[str]:
        h, x = names
        (xs, xn), (ys, yn) = self._split(x, 2, 1), self._split(product, 2, 1)
        z, r = self._split(self._logistic(self._each("Add", xs, ys)), 1, 1)
        n = self._each("Tanh", self._each("Add", xn, self._each("Mul", r, yn)))
        return [self._each("Add", n, self._each("Mul", z, self._each("Sub", h, n)))]


def _is_zero(s: Any, name: str) -> bool:
    """Say whether a state begins with zeros."""
    while (wide := s.by(name, "Expand", "Gather")) is not None:
        name = wide.inputs[0]
    value = s.value(name)
    return value is not None and not value.any()


def _before(s: Any, rows: str, cell: _Cell) -> tuple[str, Any, Any]:
    """Return what rows are a product of and its matrix and line, if they are computed so.

    Those of members (T, G, B, W) are a transpose of (G, T B, W), viewed; or, of rows that members
    share, of (T B, G W).
    """
    nothing = rows, None, None
    wide = None
    if cell.member is not None:
        turned = s.by(rows, "Transpose")
        view = s.by(turned.inputs[0], "Reshape") if turned is not None else None
        shape = s.shape(rows)
        if turned is None or view is None or shape is None:
            return nothing
        length, count, batch, width = shape
        if is_size(length) and is_size(batch):
            return nothing
        perm, source = [*turned.attributes["perm"]], s.shape(view.inputs[0])
        rows = view.inputs[0]
        if perm == [0, 2, 1, 3] and source == (length * batch, count * width):
            wide = slice(cell.member * width, (cell.member + 1) * width)
        elif perm != [1, 0, 2, 3] or source != (count, length * batch, width):
            return nothing
    line: Any = 0.0
    total, gemm = s.by(rows, "Add"), s.by(rows, "Gemm")
    product = s.by(rows, "MatMul")
    for inner, bias in (total.inputs, total.inputs[::-1]) if total is not None else ():
        value = cell.own(s.value(bias))
        if value is not None and value.size == value.shape[-1]:
            product, line = s.by(inner, "MatMul"), value.ravel()
    if gemm is not None and not gemm.attributes and wide is not None:
        product, line = gemm, s.value(gemm.inputs[2])
    if product is None or line is None:
        return nothing
    if cell.member is None and len(s.shape(product.inputs[0]) or ()) != 3:
        return nothing
    matrix = cell.own(s.value(product.inputs[1]))
    if matrix is None or matrix.ndim != 2:
        return nothing
    line = np.zeros(matrix.shape[1], matrix.dtype) + line
    if wide is not None:
        matrix, line = matrix[:, wide], line[wide]
    return product.inputs[0], matrix, line


Find = Callable[[Any, Node], Any]

RULES: dict[str, tuple[Find, ...]] = {"Scan": (_recurrent,)}
