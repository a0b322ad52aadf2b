"""The networks: that every row is there, that models are the published ones, that they run."""

from __future__ import annotations

import numpy as np
import pytest

import stretto as st
from benchmarks.catalogue import WORKLOADS
from benchmarks.networks import stages, table
from benchmarks.networks.cases_stretto import MODELS, build, case, program, register
from benchmarks.worker import Registry, run_once

ALL = [*table.NETWORKS, *table.TINY]
TASKS = {task.name: task for task in table.all_tasks()}
FAMILIES = {
    "resnet18-32", "resnet18-224", "resnet50-32", "resnet50-224", "mobilenet-v3-small",
    "efficientnet-b0", "convnext-t", "vit-s", "unet", "gpt2", "bert-base", "lstm", "graph", "ode",
}  # fmt: skip


def test_every_network_is_there_alone_and_five_of_them():
    names = {one.name for one in table.NETWORKS}
    assert names >= FAMILIES
    for model in {one.model for one in table.NETWORKS}:
        counts = {count for one in table.NETWORKS if one.model == model for count in one.members}
        assert counts == {1, 5}
    for one in table.NETWORKS:
        for count in one.members:
            assert {f"{one.name}-n{count}-{kind}" for kind in one.kinds} <= set(table.FULL)


def test_names_are_unique_and_of_no_other_row():
    rows = [row.name for task in table.all_tasks() for row in task.rows]
    assert len(set(rows)) == len(rows) == len(table.ROWS)
    assert not set(rows) & set(WORKLOADS)


def test_a_step_has_rows_of_its_first_time_and_outputs_have_none():
    assert len(TASKS["ode-n5-step"].rows) == 6
    assert [row.name for row in TASKS["ode-n5-forward"].rows] == ["ode-n5-forward"]
    first, second = TASKS["ode-n5-step"].rows[-2:]
    assert (first.timed_by, second.timed_by) == ("first start", "second start")
    assert first.program[-1] == "ode-n5-step"


def test_the_quick_run_is_of_tiny_networks_alone():
    quick = [name for name, row in table.ROWS.items() if row.quick_rounds]
    assert quick and all(name.startswith("tiny-") for name in quick)
    assert not any(name.startswith("tiny-") for name in table.FULL)


def test_those_left_out_have_a_reason():
    for one in table.NETWORKS:
        assert all(len(reason.split()) > 3 for reason in one.left_out.values())


PUBLISHED = [network for network in table.NETWORKS if network.published is not None]


@pytest.mark.parametrize("network", PUBLISHED, ids=lambda one: one.name)
def test_models_have_the_published_number_of_parameters(network):
    def make(key):
        with st.nn.keys(key):
            return MODELS[network.model](**network.settings)

    model = st.eval_shape(make, st.random.key(0))
    assert sum(leaf.size for leaf in st.tree.leaves(model)) == network.published


def test_parameters_are_drawn_by_name_member_and_shape():
    one = table.draw("layer.weight", (8, 50, 3, 3), 0)
    np.testing.assert_array_equal(one, table.draw("layer.weight", (8, 50, 3, 3), 0))
    assert np.abs(one - table.draw("layer.weight", (8, 50, 3, 3), 1)).max() > 0.01
    assert np.abs(one - table.draw("other.weight", (8, 50, 3, 3), 0)).max() > 0.01
    assert one.std() == pytest.approx(450**-0.5, rel=0.1)
    assert table.draw("norm.weight", (1000,), 0).mean() == pytest.approx(1, abs=0.02)
    assert table.draw("norm.bias", (1000,), 0).mean() == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("network", ALL, ids=lambda one: one.name)
def test_members_have_batches_of_their_own(network):
    (x, target), (other, _) = table.inputs(network, 0), table.inputs(network, 1)
    assert x[0].shape == other[0].shape and not np.array_equal(x[0], other[0])
    if target.dtype.kind == "i":
        assert 0 <= target.min() <= target.max() < 60_000


@pytest.fixture
def update():
    """Parameters before and after a step, and first moments, of two members."""
    names = {"a.weight": (2, 30, 4), "b.bias": (2, 5)}
    before = {name: np.ones(shape, np.float32) for name, shape in names.items()}
    random = np.random.default_rng(0)
    first = {name: random.normal(size=shape).astype(np.float32) for name, shape in names.items()}
    after = {name: before[name] - np.float32(1e-4) * first[name] for name in names}
    return before, after, first


def differs(update, other):
    """Which parts of two summaries differ: losses, norms, gradients, updates."""
    parts = [table.summary(np.ones(2), *one) for one in (update, other)]
    assert [part.shape for part in parts[0]] == [(2,), (4,), (42,), (42,)]
    return [not np.allclose(*both, rtol=2e-3, atol=2e-3) for both in zip(*parts)]


def test_a_wrong_gradient_and_a_wrong_update_show(update):
    before, after, first = update
    doubled = first | {"b.bias": 2 * first["b.bias"]}
    turned = first | {"a.weight": first["a.weight"][:, ::-1]}
    assert differs(update, update) == [False, False, False, False]
    assert differs(update, (before, after, doubled)) == [False, True, False, False]
    assert differs(update, (before, after, turned)) == [False, False, True, False]
    assert differs(update, (before, before, first)) == [False, False, False, True]


def test_what_rounding_leaves_of_a_gradient_that_is_0_does_not_show(update):
    before, after, first = update
    one, other = (first | {"b.bias": sign * 1e-7 * first["b.bias"]} for sign in (1, -1))
    assert differs((before, after, one), (before, after, other)) == [False] * 4
    small = first | {"b.bias": 1e-2 * first["b.bias"]}
    wrong = first | {"b.bias": -1e-2 * first["b.bias"]}
    assert differs((before, after, small), (before, after, wrong))[2]


def test_with_kinks_norms_of_rows_are_of_parameters_and_adam_makes_the_updates(update):
    before, _, first = update
    adam, rate = table.Adam(), table.Adam().learning_rate
    after = {name: before[name] + rate * adam.update(first[name]) for name in before}
    _, norms, elements, updates, remainders = table.summary(
        np.ones(2), before, after, first, kinks=True
    )
    assert norms.shape == (4,) and elements.shape == updates.shape == (4, 120)
    roots = np.exp(norms)  # of mean squares, and what counts as 0
    least = [1e-3 * max(np.abs(leaf[member]).max() for leaf in first.values()) for member in (0, 1)]
    np.testing.assert_allclose(
        np.linalg.norm(elements, axis=1), 1 - np.repeat(least, 2) / roots, rtol=1e-6
    )
    assert np.linalg.norm(updates[1]) == pytest.approx(
        np.mean(adam.update(first["b.bias"][0]) ** 2) ** 0.5
    )
    assert np.abs(remainders).max() < 1e-12
    np.testing.assert_array_equal(elements[1, 5:], 0)


def test_adam_is_that_of_the_programs():
    one = case(TASKS["tiny-ode-n1-step"])
    (model, memory), _ = run_once(one)
    start = build(TASKS["tiny-ode-n1-step"].network, 0)
    parts = (dict(tree.named_parameters()) for tree in (start, model, memory[0].mu))
    for before, after, moment in zip(*(part.values() for part in parts)):
        update = table.Adam().learning_rate * table.Adam().update(np.asarray(moment))
        np.testing.assert_allclose(np.asarray(after) - before, update, atol=1e-6)
        assert np.abs(update).max() > 1e-5


def test_numbers_in_float64_are_those_of_float32():
    network = TASKS["tiny-resnet18-32-n1-step"].network
    exact = TASKS["tiny-resnet18-32-n1-step"].exact.network
    (single, _), (double, _) = table.inputs(network, 1), table.inputs(exact, 1)
    assert (single[0].dtype, double[0].dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(single[0], double[0])


@pytest.mark.parametrize("name", [n for n in TASKS if n in {
    "tiny-resnet18-224-n1-step", "tiny-mobilenet-v3-small-n1-forward", "tiny-unet-n1-forward",
    "tiny-vit-s-n1-forward", "tiny-bert-base-n1-forward", "tiny-lstm-n1-step",
    "tiny-graph-n5-step", "tiny-ode-n5-step", "tiny-gpt2-n1-decode",
}])  # fmt: skip
def test_tiny_networks_run(name):
    one = case(TASKS[name])
    arrays = one.arrays(run_once(one))
    assert all(np.isfinite(array).all() and np.ptp(array) > 0 for array in arrays if array.size > 1)


def test_an_ensemble_gives_what_its_members_give():
    alone, five = (case(TASKS[f"tiny-lstm-n{count}-forward"]) for count in (1, 5))
    (one,), (all_five,) = (each.arrays(run_once(each)) for each in (alone, five))
    assert all_five.shape == (5, *one.shape[1:])
    np.testing.assert_allclose(all_five[0], one[0], atol=1e-5)


def test_training_lowers_the_loss_from_state_to_state():
    one = case(TASKS["tiny-graph-n1-step"])
    losses = [float(one.call()[1]) for _ in range(20)]
    assert losses[-1] < losses[0]


def test_decoding_sees_what_stands_before():
    """A token decoded with a cache has the outputs of the whole sequence at its place."""
    network = TASKS["tiny-gpt2-n1-decode"].network
    model = build(network, 0)
    (tokens,), _ = table.inputs(network, 0)
    whole = np.asarray(model(tokens))
    _, filled, _ = table.cache(network, 0)
    cache = st.numpy.zeros_like(st.numpy.asarray(filled))
    for place in range(tokens.shape[1]):
        outputs, cache = model.step(st.numpy.asarray(tokens[:, place]), cache, place)
        np.testing.assert_allclose(outputs, whole[:, place], rtol=1e-4, atol=1e-4)


def test_stages_of_the_first_time():
    cases = Registry()
    register(cases)
    assert {name for name, _ in cases.names()} >= {
        row.name for row in table.ROWS.values() if row.timed_by == "worker"
    }
    task = TASKS["tiny-ode-n1-step"]
    with st.config(disk_cache=False):
        for stage in ("trace", "lower", "compile"):
            made = cases.make(task.stage_row(stage).name, "")
            arrays = made.arrays(run_once(made))
            run_once(made)  # again, of types alone where the arguments were given away
            assert all(np.isfinite(array).all() for array in arrays)
    # A parameter each, and both its moments; the count, and the loss.
    sizes = stages.table.sizes(st.tree.leaves(program(task).arguments[0]))[0]
    assert sizes.sum() == 3 * (8 * 8 + 8) * 2 + 1
