"""The walk: what goes, what is one, names of outputs; and random programs with and without it."""

import argparse
import itertools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import export
from stretto._engine.core import tree
from stretto._engine.lowering.onnx.graph import Value
from stretto._engine.lowering.onnx.products import Onnx
from stretto._engine.lowering.onnx.spelling import Spelling
from stretto.nn import functional as F
from tests.onnx_graphs import agrees, by_hand, graphs, operators, run, spelled, unspelled

pytest.importorskip("onnxruntime")

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def names(model):
    return [v.name for v in model.graph.output]


def test_outputs_are_named_in_place():
    model = export.onnx(lambda x: {"a": snp.sin(x), "b": snp.cos(x)}, X)
    assert operators(model) == ["Sin", "Cos"]
    assert {n.output[0] for n in model.graph.node} == {*names(model)}


def test_an_output_that_is_another_or_an_input_is_a_copy():
    def f(x):
        y = snp.sin(x)
        return y, y, x, snp.ones(3)

    assert agrees(f, X) == ["Sin", "Identity", "Identity", "Expand"] or agrees(f, X).count(
        "Identity"
    ) in (2, 3)


def test_equal_nodes_are_one_and_dead_ones_go():
    def f(x):
        snp.exp(x)
        return snp.sin(x).T.T + snp.sin(x)

    assert agrees(f, X) == ["Sin", "Add"]


def test_constants_are_computed():
    f = lambda x: x + (snp.sqrt(snp.arange(6.0) + 1) / 2)[None]
    assert agrees(f, X) == ["Add"]


def test_a_mask_that_repeats_is_kept_once():
    mask = np.tri(6, dtype=bool)
    f = lambda x: snp.where(snp.broadcast_to(mask, (8, 4, 6, 6)), x, 0.0)
    x = np.ones((8, 4, 6, 6), np.float32)
    model = export.onnx(f, x)
    assert max(np.prod(t.dims, dtype=int) for t in model.graph.initializer) <= 36
    np.testing.assert_array_equal(run(model, x)[0], np.asarray(f(x)))


@pytest.mark.parametrize("length", [12, 300])
def test_masks_of_layers_are_one(length):
    mask = np.tri(length, dtype=bool)[None, None]

    def f(x):
        for _ in range(3):
            x = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
        return x

    x = np.ones((2, 3, length, 4), np.float32)
    model = export.onnx(f, x, exact=False)
    sizes = [np.prod(t.dims, dtype=int) for t in model.graph.initializer]
    assert sizes.count(length**2) == 1
    np.testing.assert_allclose(run(model, x)[0], np.asarray(f(x)), rtol=1e-5)


def test_names_are_of_one_tensor_each():
    row = np.arange(6, dtype=np.float32)
    # "constant_1" is what the writer calls a constant of its own.
    f = lambda constant, constant_1: (constant + 2.0, constant_1 * 3.0, constant - row)
    model = export.onnx(f, X, X)
    made = [o for g in graphs(model.graph) for n in g.node for o in n.output]
    made += [t.name for t in model.graph.initializer] + [v.name for v in model.graph.input]
    assert len(made) == len({*made})
    agrees(f, X, X)


def test_insides_of_loops_are_spelled_too():
    def f(x):
        def step(carry, row):
            y = F.softmax(F.relu(carry + row), -1)
            return y, y.sum()

        return st.lax.scan(step, snp.zeros(6), x)

    model = export.onnx(f, X)
    found = {n.op_type for g in graphs(model.graph) for n in g.node}
    assert {"Scan", "Relu", "Softmax"} <= found and "Exp" not in found
    agrees(f, X)


def test_branches_may_give_what_is_outside():
    def f(x):
        y = snp.sin(x)
        return st.lax.cond(x[0, 0] > 0, lambda: y, lambda: snp.cos(x))

    agrees(f, X)
    agrees(f, -X)


def test_branches_on_the_same_are_two():
    def f(x):
        going = x[0, 0] > 0
        first = st.lax.cond(going, snp.sin, snp.cos, x)
        return first, st.lax.cond(going, snp.exp, snp.abs, x)

    assert agrees(f, X).count("If") == agrees(f, -X).count("If") == 2


def test_copies_go():
    assert spelled(lambda n, x: n("Neg", n("Identity", n("Identity", x))), X) == ["Neg"]
    f = lambda n, x: (y := n("Sin", x), n("Identity", y), n("Neg", y))
    assert spelled(f, X) == ["Sin", "Neg", "Identity"]


def test_equal_nodes_of_several_outputs_are_one():
    def f(n, x):
        first = n("Split", x, outputs=2, axis=1, num_outputs=2)
        second = n("Split", n("Identity", x), outputs=2, axis=1, num_outputs=2)
        return n("Add", first[0], n("Sin", second[1]))

    assert spelled(f, X) == ["Split", "Sin", "Add"]


def test_equal_nodes_of_other_attributes_are_two():
    f = lambda n, x: (n("ReduceSum", x, [1], keepdims=0), n("ReduceSum", x, [1], keepdims=1))
    assert spelled(f, X) == ["ReduceSum", "ReduceSum"]


def test_what_a_node_no_longer_reads_is_released():
    b = Onnx(26, True)
    first = b.node("Sin", ["x"])
    last = b.node("Exp", [b.node("Neg", [first])])
    other = b.node("Cos", [first])
    b.graph.outputs += [Value(name, X.dtype, X.shape) for name in (last, other)]
    s = Spelling(b)
    s._survey(b.graph)
    assert s.uses == {"x": 1, first: 2, "neg": 1, last: 1, other: 1}
    node = s.made[last]
    assert s.become(node, "Abs", ["x"]) and (node.op, node.inputs) == ("Abs", ("x",))
    assert +s.uses == {"x": 2, first: 1, last: 1, other: 1} and s.once(first)
    s.become(s.made[other], "Abs", ["x"])  # the last that reads the first, and what that reads
    assert +s.uses == {"x": 2, last: 1, other: 1}


def test_nodes_of_several_outputs_stay_where_one_is_read():
    f = lambda n, x: n("Neg", n("TopK", x, [2], outputs=2, axis=1)[1])
    assert spelled(f, X) == ["TopK", "Neg"]


LARGE = np.arange((1 << 16) + 1, dtype=np.float32)
TWO = np.stack([LARGE, LARGE])


@pytest.mark.parametrize(
    ("build", "given", "names"),
    [
        # What is made larger is so only where it stays small, or where what it was made of goes.
        (lambda n, x: n("Add", x, n("Expand", np.float32([1, 2]), [32, 2])), X[:1, :2], ["Add"]),
        (lambda n, x: n("Add", x, n("Expand", np.float32([1, 2]), [33, 2])), X[:1, :2],
         ["Expand", "Add"]),
        (lambda n, x: n("Add", x, n("Neg", LARGE)), LARGE, ["Add"]),
        (lambda n, x: n("Add", n("Add", x, n("Neg", LARGE)), LARGE), LARGE, ["Neg", "Add", "Add"]),
        (lambda n, x: n("Add", n("Add", x, n("Neg", LARGE[1:])), LARGE[1:]), LARGE[1:],
         ["Add", "Add"]),
    ],
)  # fmt: skip
def test_which_constants_are_computed(build, given, names):
    assert spelled(build, given) == names


def test_large_masks_are_one_and_large_numbers_have_names():
    mask = np.tri(300, dtype=bool)

    def f(n, x):
        first = n("Where", n("Not", mask), x, np.float32(0))
        second = n("Where", n("Not", mask.copy()), n("Sin", x), np.float32(0))
        return n("Add", first, second)

    model, _ = by_hand(f, np.ones((300, 300), np.float32))
    assert [tuple(t.dims) for t in model.graph.initializer if len(t.dims)] == [(300, 300)]


@pytest.mark.parametrize(("size", "count"), [(64, 1), (65, 2)])
def test_equal_numbers_that_are_computed_are_one_where_they_are_few(size, count):
    row = np.arange(size, dtype=np.float32)

    def f(n, x):
        first = n("Add", x, n("Neg", row))
        return n("Add", n("Sin", x), n("Mul", row, np.float32(-1))), first

    model, _ = by_hand(f, np.ones((3, size), np.float32))
    assert len(model.graph.initializer) == count


def test_a_mask_that_is_computed_is_one_with_a_mask_that_is_given():
    mask = np.tri(256, dtype=bool)  # as many elements as are compared by content

    def f(n, x):
        first = n("Where", mask, x, np.float32(0))
        second = n("Where", n("Not", ~mask), n("Sin", x), np.float32(0))
        return n("Add", first, second)

    model, _ = by_hand(f, np.ones((256, 256), np.float32))
    assert [tuple(t.dims) for t in model.graph.initializer if len(t.dims)] == [(256, 256)]


def test_what_is_inside_reads_what_stands_for_a_tensor_outside():
    def f(x):
        y = x.T.T + 0.0
        return st.lax.cond(x[0, 0] > 0, lambda: snp.sin(y.reshape(-1).reshape(x.shape)), lambda: y)

    agrees(f, X)
    agrees(f, -X)


# Random programs

_NUMBERS = (0.0, 1.0, -1.0, 0.5, 2.0, 3.0, 6.0)


def _unary(rng):
    c = float(rng.choice(_NUMBERS))
    return rng.choice(
        np.array(
            [
                F.relu,
                F.relu6,
                snp.tanh,
                F.sigmoid,
                F.silu,
                F.gelu,
                F.hardswish,
                lambda x: -x,
                lambda x: x * c,
                lambda x: x + c,
                lambda x: x - c,
                lambda x: c - x,
                lambda x: snp.maximum(x, c),
                lambda x: snp.minimum(x, c),
                lambda x: snp.clip(x, -c, c + 1),
                lambda x: snp.where(x <= c, c, x),
                lambda x: snp.where(x >= c, c, x),
                lambda x: snp.where(x > c, x, c),
                lambda x: x / (c + 0.25),
                lambda x: x * snp.abs(x),
                lambda x: 1.0 / (snp.abs(x) + 1.0),
            ],
            object,
        )
    )


def _along(rng, x):
    axis = int(rng.integers(x.ndim))
    rows = rng.standard_normal(x.shape[axis]).astype(np.float32)
    shape = [1] * x.ndim
    shape[axis] = x.shape[axis]
    line = rows.reshape(shape)
    keep = bool(rng.integers(2)) or x.ndim == 1
    put = lambda v: v if keep else snp.expand_dims(v, axis)
    return rng.choice(
        np.array(
            [
                lambda x: F.softmax(x, axis),
                lambda x: F.log_softmax(x, axis),
                lambda x: x - put(snp.mean(x, axis, keepdims=keep)),
                lambda x: x + put(snp.sum(x, axis, keepdims=keep)) / x.shape[axis],
                lambda x: x / (put(snp.max(snp.abs(x), axis, keepdims=keep)) + 1.0),
                lambda x: (
                    (x - snp.mean(x, axis, keepdims=True))
                    / snp.sqrt(snp.var(x, axis, keepdims=True) + 1e-5)
                ),
                lambda x: F.layer_norm(x, x.shape[-1:]),
                lambda x: x * line,
                lambda x: x + line,
                lambda x: line - x,
                lambda x: snp.where(line > 0, x, 0.0),
                lambda x: snp.broadcast_to(x, (2, *x.shape)).sum(0),
                lambda x: snp.cumsum(x, axis) * 0.1,
                lambda x: snp.flip(x, axis),
            ],
            object,
        )
    )


def _shaped(rng, x):
    order = tuple(rng.permutation(x.ndim).tolist())
    at = int(rng.integers(x.ndim + 1))
    axis = int(rng.integers(x.ndim))
    k = int(rng.integers(x.shape[axis]))
    units = tuple(n for n in x.shape if n != 1) or (1,)
    split = next((d for d, n in enumerate(x.shape) if n % 2 == 0 and n > 2), None)
    halves = x.shape if split is None else (*x.shape[:split], 2, -1, *x.shape[split + 1 :])
    options = [
        lambda x: x.transpose(order),
        lambda x: snp.expand_dims(x, at),
        lambda x: x.reshape(units),
        lambda x: x.reshape(-1),
        lambda x: x.reshape(halves),
        lambda x: x.reshape(-1, x.shape[-1]),
        lambda x: snp.concatenate([x, x[..., :1]], -1),
        lambda x: snp.pad(x, 1),
    ]
    if x.ndim > 1:
        options.append(lambda x: snp.take(x, snp.array(k), axis))
        options.append(lambda x: x[(slice(None),) * axis + (k,)])
        options.append(lambda x: x[(slice(None),) * axis + (slice(k, k + 1),)])
    return rng.choice(np.array(options, object))


def _product(rng, x):
    n = x.shape[-1]
    w = rng.standard_normal((n, int(rng.integers(1, 5)))).astype(np.float32) / np.sqrt(n)
    b = rng.standard_normal(w.shape[1]).astype(np.float32)
    stack = rng.standard_normal((3, *w.shape)).astype(np.float32) / np.sqrt(n)
    options = [
        lambda x: x @ w + b,
        lambda x: (x @ w) * b + 1.0,
        lambda x: x @ w,
        lambda x: F.linear(x, w.T, b),
    ]
    if x.ndim == 2:
        options.append(lambda x: x[None] @ stack)
        options.append(lambda x: x.T @ x)
        options.append(lambda x: (x @ x.T).reshape(1, *[x.shape[0]] * 2))
    if x.ndim in (3, 4):
        kernel = rng.standard_normal((4, x.shape[-3], 1, 1)).astype(np.float32)
        image = lambda x: x if x.ndim == 4 else x[None]
        options.append(lambda x: F.conv2d(image(x), kernel, np.ones(4, np.float32)) * 0.5)
        options.append(
            lambda x: F.conv2d(snp.pad(image(x), [(0, 0), (0, 0), (1, 1), (0, 1)]), kernel)
        )
        options.append(lambda x: F.avg_pool2d(image(x), 1) + 1.0)
        options.append(lambda x: F.max_pool2d(image(x), 1, padding=0))
    return rng.choice(np.array(options, object))


def program(seed):
    """Return a random function of an array, and an array, in which numbers may not be finite."""
    rng = np.random.default_rng(seed)
    shape = [(6,), (4, 6), (1, 4, 6), (2, 3, 4, 5)][int(rng.integers(4))]
    x = rng.standard_normal(shape).astype(np.float32)
    if rng.integers(3) == 0:
        x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e9])
    steps, now = [], snp.array(x)
    results = []
    for k in range(int(rng.integers(2, 8))):
        kind = rng.integers(5)
        make = [lambda r, _: _unary(r), lambda r, _: _unary(r), _along, _shaped, _product][kind]
        step = make(rng, now)
        with np.errstate(all="ignore"):
            after = step(now)
        if after.size > 4096 or after.size == 0:
            continue
        joins = after.shape == now.shape and rng.integers(4) == 0
        steps.append((step, joins))
        now = now + after if joins else after
        if rng.integers(6) == 0:
            results.append(k)

    def f(x):
        out = []
        for k, (step, joins) in enumerate(steps):
            x = x + step(x) if joins else step(x)
            if k in results:
                out.append(x)
        return (x, *out)

    return f, x


def same(seed, exact):
    """Assert that a program's file gives the same with and without the pass, and our values."""
    f, x = program(seed)
    with np.errstate(all="ignore"):
        expected = [np.asarray(v) for v in tree.leaves(f(x))]
    model = export.onnx(f, x, exact=exact)
    with unspelled():
        plain = export.onnx(f, x, exact=exact)
    assert len(model.graph.node) <= len(plain.graph.node)
    finite = all(np.isfinite(v).all() for v in (x, *expected))
    written = run(plain, x, as_it_is=True)
    for got, before, value in zip(run(model, x), written, expected, strict=True):
        scale = float(np.abs(value[np.isfinite(value)]).max(initial=1.0))
        if exact or finite:
            np.testing.assert_allclose(got, before, rtol=1e-4, atol=1e-4 * scale, err_msg=f"{seed}")
            np.testing.assert_allclose(got, value, rtol=1e-4, atol=1e-4 * scale, err_msg=f"{seed}")


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_have_the_same_values(seed):
    same(seed, exact=seed % 2 == 0)


def main():
    """Run random programs for as long as it takes, or so many."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    last = None if options.programs is None else options.first + options.programs
    for seed in itertools.count(options.first):
        if seed == last:
            return
        try:
            same(seed, exact=seed % 2 == 0)
        except Exception as error:
            print(seed, type(error).__name__, " ".join(str(error).split())[:400], flush=True)


if __name__ == "__main__":
    main()
