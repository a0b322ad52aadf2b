"""Units in another network's order: the same function, known orders found, and lower barriers."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_digits

import stretto as st
import stretto.numpy as snp
from stretto import nn
from tests.merge import models

KEYS = st.random.split(st.random.PRNGKey(3), 8)


def stack():
    """Convolutions with a batch norm, flattened, and linear layers with a layer norm."""
    model = nn.Sequential(
        nn.Conv2d(2, 6, 3, key=KEYS[0]), nn.BatchNorm2d(6), nn.ReLU(),
        nn.Conv2d(6, 4, 3, key=KEYS[1]), nn.Flatten(),
        nn.Linear(4 * 9, 16, key=KEYS[2]), nn.LayerNorm(16), nn.Tanh(),
        nn.Linear(16, 3, key=KEYS[3]),
    )  # fmt: skip
    rng = np.random.default_rng(0)
    draw = lambda x: snp.array(rng.uniform(0.5, 1.5, x.shape).astype(np.float32))
    norms = {n: draw(x) for n, x in model.state_dict().items() if n.startswith(("1.", "6."))
             and x.ndim}  # fmt: skip
    model.load_state_dict(norms, strict=False)
    return model.eval()


def shuffled(arrays, graph, sizes, seed):
    """The arrays with each group of units in a random order."""
    rng = np.random.default_rng(seed)
    orders = {group: rng.permutation(size) for group, size in sizes.items()}
    found = {}
    for name, x in arrays.items():
        x = np.asarray(x)
        for axis, group in enumerate(graph.axes[name]):
            if group is not None:
                parts = np.split(x, sizes[group], axis)
                x = np.concatenate([parts[i] for i in orders[group]], axis)
        found[name] = x
    return found


def test_a_stack_keeps_its_function_and_finds_its_order():
    model = stack()
    graph = st.merge.stack_graph(model)
    assert graph.axes["3.weight"] == ("3", "0", None, None)
    assert graph.axes["5.weight"] == ("5", "3")
    assert graph.axes["6.bias"] == graph.axes["5.bias"] == ("5",)
    assert graph.axes["1.running_var"] == ("0",)
    assert (graph.axes["8.weight"], graph.axes["8.bias"]) == ((None, "5"), (None,))
    arrays = dict(model.state_dict())
    other = shuffled(arrays, graph, {"0": 6, "3": 4, "5": 16}, 1)
    assert not np.array_equal(other["5.weight"], arrays["5.weight"])
    turned = model.clone()
    turned.load_state_dict(other)
    x = snp.array(np.random.default_rng(2).standard_normal((5, 2, 7, 7)).astype(np.float32))
    np.testing.assert_allclose(turned(x), model(x), 1e-4, 1e-5)  # the graph is right
    for seed in range(3):
        back = st.merge.align(turned, model, graph, seed=seed)
        assert isinstance(back, nn.Sequential)
        for name, value in back.state_dict().items():
            np.testing.assert_array_equal(value, arrays[name], err_msg=name)
    stays = st.merge.align(turned, model, graph, rounds=0)
    np.testing.assert_array_equal(stays[5].weight, other["5.weight"])


def test_weights_with_the_inputs_first_and_names_by_number():
    rng = np.random.default_rng(0)
    sizes = [4, *[6] * 11, 2]
    layers = {
        f"fc{i}": {"w": rng.standard_normal((a, b)), "b": rng.standard_normal(b)}
        for i, (a, b) in enumerate(itertools.pairwise(sizes))
    }
    graph = st.merge.stack_graph(layers, inputs_first=True)
    assert graph.axes["fc10.w"] == ("fc9", "fc10")
    assert graph.axes["fc0.w"] == (None, "fc0")
    assert (graph.axes["fc11.w"], graph.axes["fc11.b"]) == (("fc10", None), (None,))


def llama():
    rng = np.random.default_rng(4)
    shapes = {"model.embed_tokens.weight": (30, 16), "model.norm.weight": (16,)}
    for i in range(2):
        prefix = f"model.layers.{i}."
        shapes |= {
            prefix + "input_layernorm.weight": (16,),
            prefix + "post_attention_layernorm.weight": (16,),
            prefix + "self_attn.q_proj.weight": (32, 16),
            prefix + "self_attn.q_proj.bias": (32,),
            prefix + "self_attn.q_norm.weight": (4,),
            prefix + "self_attn.k_proj.weight": (8, 16),
            prefix + "self_attn.v_proj.weight": (8, 16),
            prefix + "self_attn.o_proj.weight": (16, 32),
            prefix + "mlp.gate_proj.weight": (24, 16),
            prefix + "mlp.up_proj.weight": (24, 16),
            prefix + "mlp.down_proj.weight": (16, 24),
        }
    return {n: rng.standard_normal(s).astype(np.float32) for n, s in shapes.items()}


def test_a_llama(tmp_path):
    arrays = llama()
    folder = models.as_folder(tmp_path / "llama", arrays, num_key_value_heads=2)
    checkpoint = st.merge.Checkpoint(folder)
    graph = st.merge.llama_graph(checkpoint)
    first = "model.layers.0"
    assert graph == st.merge.llama_graph(arrays, key_value_heads=2)
    assert graph.sizes == {f"model.layers.{i}.heads": 2 for i in range(2)}
    assert graph.axes[f"{first}.self_attn.q_norm.weight"] == (None,)
    assert st.merge.llama_graph(arrays).axes[f"{first}.self_attn.q_proj.weight"] == (
        None, "stream"
    )  # fmt: skip
    sizes = {"stream": 16, **graph.sizes, **{f"model.layers.{i}.mlp": 24 for i in range(2)}}
    other = shuffled(arrays, graph, sizes, 5)
    found = st.merge.align(checkpoint, other, graph)
    assert list(found) == list(checkpoint)
    for name, x in found.items():
        np.testing.assert_array_equal(x, other[name], err_msg=name)
    with pytest.raises(ValueError, match=r"model.layers.0.experts.weight is no tensor of a Llama"):
        st.merge.llama_graph({"model.layers.0.experts.weight": np.ones(3)})


def test_no_permutation_is_nearer():
    rng = np.random.default_rng(6)
    graph = {"up": ("h", None), "down": (None, "h")}
    a, b = (
        {"up": rng.standard_normal((5, 3)), "down": rng.standard_normal((2, 5))} for _ in range(2)
    )
    with st.enable_x64():
        found = st.merge.align(a, b, graph)

    def far(order):
        moved = {"up": a["up"][list(order)], "down": a["down"][:, list(order)]}
        return sum(np.sum((moved[n] - b[n]) ** 2) for n in a)

    least = min(map(far, itertools.permutations(range(5))))
    own = sum(np.sum((np.asarray(found[n]) - b[n]) ** 2) for n in a)
    np.testing.assert_allclose(own, least, 1e-12)


def test_the_barrier_between_networks_from_different_starts_falls():
    digits = load_digits()
    x = snp.array((digits.data / 16).astype(np.float32))
    y = snp.array(digits.target.astype(np.int32))

    def loss(layers, x, y):
        h = x
        for w, b in layers[:-1]:
            h = nn.functional.relu(h @ w + b)
        logits = h @ layers[-1][0] + layers[-1][1]
        return nn.functional.cross_entropy(logits, y)

    def trained(seed):
        rng = np.random.default_rng(seed)
        sizes = [64, 512, 10]
        layers = [
            (snp.array(rng.standard_normal((a, b)).astype(np.float32) * np.sqrt(2 / a)),
             snp.zeros(b))
            for a, b in itertools.pairwise(sizes)
        ]  # fmt: skip
        optimizer = st.optim.adam(1e-3)
        state = optimizer.init(layers)

        @st.jit
        def step(layers, state):
            updates, state = optimizer.update(st.grad(loss)(layers, x[:1200], y[:1200]), state)
            return st.tree.map(lambda a, b: a + b, layers, updates), state

        for _ in range(200):
            layers, state = step(layers, state)
        return layers

    first, second = trained(0), trained(1)
    held_out = st.jit(lambda layers: loss(layers, x[1200:], y[1200:]))
    graph = {"0.0": (None, "h"), "0.1": ("h",), "1.0": ("h", None), "1.1": (None,)}
    aligned = st.merge.align(second, first, graph)
    np.testing.assert_allclose(held_out(aligned), held_out(second), 1e-4)
    before = float(st.ensemble.barrier(held_out, first, second).height)
    after = float(st.ensemble.barrier(held_out, first, aligned).height)
    assert before > 0.15
    assert after < 0.25 * before


def test_faults():
    model = {"a": np.ones((4, 3)), "b": np.ones(4), "n": np.arange(2)}
    graph = {"a": ("h", None), "b": ("h",)}
    assert list(st.merge.align(model, model, graph)) == ["a", "b", "n"]

    def words(model, other, graph):
        with pytest.raises(ValueError, match=r"^align: ") as caught:
            st.merge.align(model, other, graph)
        return str(caught.value)

    assert "b is not in the graph: say for each of its 1 axes" in words(
        model, model, {"a": ("h", None)}
    )
    found = words(model, {"a": np.ones((4, 2)), "b": np.full(4, np.nan)}, graph | {"c": ()})
    for part in (
        "a has shape [4, 3], and [4, 2] in the reference", "b has NaN or infinities",
        "n is in one model, and not in the other", "c of the graph is no tensor",
    ):  # fmt: skip
        assert part in found
    assert "a of shape [4, 3] has 1 axes in the graph" in words(model, model, graph | {"a": ("h",)})
    uneven = words(model, model, {"a": ("h", "h"), "b": (None,)})
    assert "an axis of a has 4 elements, which 3 units of the group 'h' cannot share" in uneven
    assert "no tensor has the group 'k'" in words(model, model, st.merge.Graph(graph, {"k": 2}))
    for shapes, part in (
        ({"0": {"w": (4, 3)}, "1": {"w": (5, 3)}}, "1.w takes 3 inputs, and 0 has 4 outputs"),
        ({"0": {"w": (4, 3), "v": (4, 3)}}, "0 has several matrices, v, w"),
        ({"0": {"w": (4, 3)}, "1": {"b": (3,)}}, "1.b of shape [3] does not follow 0 of 4"),
        ({"0": {"b": (3,)}}, "it has no matrix"),
    ):
        tree = {k: {n: np.zeros(s) for n, s in v.items()} for k, v in shapes.items()}
        with pytest.raises(ValueError, match=r"^stack_graph: ") as caught:
            st.merge.stack_graph(tree)
        assert part in str(caught.value)
