"""The ensembles: that every row is there, on inputs that all frameworks can agree about."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.catalogue import WORKLOADS
from benchmarks.workloads_ensembles import (
    BATCHES,
    ENSEMBLES,
    GROWTH,
    GROWTH_SIZES,
    KINK,
    Ensemble,
    all_tasks,
    inputs,
    optimizer_state,
)

SMALL = [replace(one, members=min(one.members, 3), batch_size=4) for one in ENSEMBLES]
"""The same architectures, quick to make."""

BY_NAME = {one.name: one for one in SMALL}


def leaves(params):
    if isinstance(params, dict):
        return list(params.values())
    return [leaf for layer in params for leaf in layer]


def test_every_network_is_there_forward_and_gradient_on_both_batches():
    for name in ("mlp-n10-b64", "mlp-n10-b1", "mlp-n100-b64", "small-n1000-b64"):
        for kind in ("forward", "gradient"):
            assert {f"{name}-{kind}-{batch}" for batch in BATCHES} <= set(WORKLOADS)
    for name in ("wide-n32-b256", "cnn-n8-b16", "transformer-n8-b8"):
        for kind in ("forward", "gradient"):
            assert {f"{name}-{kind}-{batch}" for batch in BATCHES} <= set(WORKLOADS)
    assert "train-n10-b64-step-own" in WORKLOADS


def test_names_are_unique_and_tell_the_sizes():
    names = [task.name for task in all_tasks()]
    assert len(set(names)) == len(names)
    for one in ENSEMBLES:
        assert f"-n{one.members}-b{one.batch_size}" in one.name
        assert f"N={one.members}, B={one.batch_size}" in one.title


def test_growth_goes_from_one_member_to_a_thousand():
    for label in ("small", "mlp"):
        sizes = [one.members for one in GROWTH if one.name.startswith(f"growth-{label}-")]
        assert tuple(sizes) == GROWTH_SIZES
    assert (GROWTH_SIZES[0], GROWTH_SIZES[-1]) == (1, 1000)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("name", BY_NAME)
def test_shapes(name, batch):
    ensemble = BY_NAME[name]
    params, x, target = inputs(ensemble, batch)
    assert all(leaf.shape[0] == ensemble.members for leaf in leaves(params))
    assert all(array.dtype == np.float32 for array in [*leaves(params), x, target])
    lead = (ensemble.members,) if batch == "own" else ()
    assert x.shape[: len(lead) + 1] == target.shape[: len(lead) + 1] == (*lead, 4)


def test_both_batches_come_with_the_same_parameters():
    same, own = (inputs(BY_NAME["wide-n32-b256"], batch)[0] for batch in BATCHES)
    for one, other in zip(leaves(same), leaves(own), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("batch", BATCHES)
def test_no_unit_of_an_mlp_is_at_the_kink(batch):
    """Else rounding decides whether a unit is on, and the gradients may rightly differ."""
    params, x, _ = inputs(replace(BY_NAME["small-n1000-b64"], members=200, batch_size=64), batch)
    hidden = x.astype(np.float64)
    for weights, bias in params[:-1]:
        before = hidden @ weights.astype(np.float64) + bias[:, None]
        assert np.abs(before).min() > KINK
        hidden = np.maximum(before, 0)


def test_channels_first_are_the_same_images_and_kernels_turned():
    params, x, target = inputs(BY_NAME["cnn-n8-b16"], "own")
    turned, y, same = inputs(replace(BY_NAME["cnn-nchw-n8-b16"]), "own")
    np.testing.assert_array_equal(y, np.moveaxis(x, -1, 2))
    np.testing.assert_array_equal(same, target)
    # [member, height, width, in, out] and [member, out, in, height, width]
    np.testing.assert_array_equal(turned[0][0], np.transpose(params[0][0], (0, 4, 3, 1, 2)))


def test_second_moments_are_clear_of_zero():
    first, second = optimizer_state(inputs(BY_NAME["train-n10-b64"], "own")[0])
    assert min(leaf.min() for leaf in leaves(second)) >= np.float32(1e-4)
    assert max(np.abs(leaf).max() for leaf in leaves(first)) < 0.1


@pytest.mark.parametrize(
    ("model", "sizes", "forward", "gradient"),
    [
        # 2·3 + 3·4 products; the gradient needs no 2·3 products for the inputs.
        ("mlp", (2, 3, 4), 18, 3 * 18 - 6),
        # 9 kernel elements at 1,024 positions, 1·2 channels; then 2·5 products.
        ("cnn", (1, 2, 5), 9 * 1024 * 2 + 10, 3 * (9 * 1024 * 2 + 10) - 9 * 1024 * 2),
    ],
)
def test_flops(model, sizes, forward, gradient):
    ensemble = Ensemble("any", "any", model, sizes, members=7, batch_size=11)
    assert ensemble.flops("forward") == 2 * 7 * 11 * forward
    assert ensemble.flops("gradient") == ensemble.flops("step") == 2 * 7 * 11 * gradient


def test_those_left_out_have_a_reason():
    for ensemble in [*ENSEMBLES, *GROWTH]:
        for contestant, reason in ensemble.left_out.items():
            assert contestant.split()[0] in ("jax", "torch")
            assert len(reason.split()) > 3
