"""Rows of which rounding decides single numbers: what passes, and that what is wrong does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import stretto.numpy as snp
from benchmarks import rounding
from benchmarks.measure import disagreement, measure
from benchmarks.networks import cases_stretto, stretto_images, table
from benchmarks.process import WorkerError
from benchmarks.worker import run_once
from benchmarks.workloads import Exact, Workload
from stretto import nn
from tests.benchmarks.test_measure import Fake

WORKLOAD = Workload(
    "step", "step", "ms", rtol=0.02, atol=0.02, exact=Exact("step", 1e-9, by_norm=(1,))
)
TARGET = [np.float64([1.0]), np.float64([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])]


def single(loss=0.0, *distances):
    """Results in float32 that are so far from the target; each row has one distance."""
    rows = TARGET[1] + np.float64([[one, 0.0] for one in distances or (0.0, 0.0, 0.0)])
    return [np.float32(TARGET[0] + loss), np.float32(rows)]


@pytest.mark.parametrize(
    ("results", "far"),
    [
        # One number of a row may be off by the whole tolerance, and by no more.
        ({"jax": single(0, 0.019, 0, 0), "stretto": single(0, 0, 0, 0.019)}, set()),
        ({"jax": single(), "stretto": single(0, 0, 0, 0.021)}, {"stretto"}),
        # Beyond it, the farthest of the others is the measure.
        ({"jax": single(0, 0.04, 0, 0), "stretto": single(0, 0, 0.15, 0)}, set()),
        ({"jax": single(0, 0.04, 0, 0), "stretto": single(0, 0, 0.17, 0)}, {"stretto"}),
        ({"jax": single(0, np.nan, 0, 0), "stretto": single()}, {"jax"}),
        ({"jax": single(0, np.nan, 0, 0), "stretto": single(0, 0.03, 0, 0)}, {"jax", "stretto"}),
        ({"stretto": single(0, 0.03, 0, 0)}, {"stretto"}),
        ({"jax": single()[:1], "stretto": single()}, {"jax"}),
    ],
)
def test_rows_are_as_far_from_float64_as_the_others_rows(results, far):
    rest, messages = rounding.apart(WORKLOAD, results, TARGET)
    assert set(messages) == far
    assert all(len(arrays) == 1 for arrays in rest.values())


def test_results_may_come_as_one_vector():
    flat = [np.concatenate([array.ravel() for array in single(0.5, 0, 0, 0.03)])]
    rest, messages = rounding.apart(WORKLOAD, {"jax": flat}, TARGET)
    assert rest["jax"][0] == pytest.approx([1.5])
    assert "row 2 by 0.03" in messages["jax"]
    assert rounding.apart(WORKLOAD, {"jax": [flat[0][1:]]}, TARGET)[1]["jax"].startswith("expected")


class Contestant(Fake):
    """One with these results."""

    def __init__(self, name, results):
        super().__init__(name, [])
        self.results = results

    def prepare(self):
        if self.results is None:
            raise WorkerError("out of memory")
        return self.results


def failures(results, exact):
    """Who fails, of contestants with these results and references with those."""
    row = measure(
        WORKLOAD,
        [Contestant(*one) for one in results.items()],
        rounds=0,
        seconds=0.1,
        references=[Contestant(*one) for one in exact.items()],
    )
    return [(one.contestant, one.message) for one in row.failures]


def test_contestants_are_beside_float64_and_float64_is_exact():
    exact = {"stretto": TARGET, "jax": [array + 1e-10 for array in TARGET]}
    assert failures({"stretto": single(), "jax": single(), "jax loop": single()}, exact) == []
    ((name, message),) = failures({"stretto": single(0.1), "jax": single()}, exact)
    assert name == "stretto" and "differs from float64" in message
    ((name, message),) = failures({"stretto": single(0, 0, 0.1, 0), "jax": single()}, exact)
    assert name == "stretto" and "row 1 by 0.1" in message


@pytest.mark.parametrize("reference", [[array + 1e-8 for array in TARGET], None])
def test_a_framework_that_is_wrong_in_float64_is_not_timed(reference):
    found = failures({"stretto": single(), "jax": single()}, {"stretto": reference, "jax": TARGET})
    assert [name for name, _ in found] == ["stretto", "stretto"]
    assert "float64" in found[1][1]


TASK = next(task for task in table.all_tasks() if task.name == "tiny-resnet18-224-n1-step")


def test_steps_of_networks_with_kinks_are_exact():
    names = {"resnet18-32", "resnet18-224", "resnet50-32", "resnet50-224", "mobilenet-v3-small"}
    exact = {name for name, row in table.ROWS.items() if row.exact and "tiny" not in name}
    assert exact == {
        f"{name}-n{members}-step{stage}"
        for name in names
        for members in (1, 5)
        for stage in ("", "-compile", "-first", "-second")
    }
    assert {table.ROWS[name].exact.name for name in exact} == {
        f"{name}-n{members}-step" for name in names for members in (1, 5)
    }


@pytest.fixture(scope="module")
def target():
    """The tiny network in float64."""
    return results(exact=True)


def results(exact):
    one = cases_stretto.exact(TASK.exact) if exact else cases_stretto.case(TASK)
    return one.arrays(run_once(one))


class Elsewhere(stretto_images.BasicBlock):
    """The stride is in the second convolution."""

    def __init__(self, width, out, stride):
        super().__init__(width, out, stride)
        self.conv1 = nn.Conv2d(width, out, 3, 1, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, stride, 1, bias=False)


class Unbiased(stretto_images.ResNet):
    """The last layer has a bias that is not used."""

    def forward(self, x):
        return super().forward(x) - self.fc.bias


class Halved(stretto_images.BasicBlock):
    """A convolution with the results of bfloat16."""

    def forward(self, x):
        y = self.conv1(x).astype(snp.bfloat16).astype(x.dtype)
        y = nn.relu(self.bn1(y))
        return nn.relu(self.bn2(self.conv2(y)) + self.downsample(x))


def norm_with(eps):
    return lambda width: nn.BatchNorm2d(width, eps=eps, track_running_stats=False)


MUTATIONS = {
    "stride": (stretto_images, "BasicBlock", Elsewhere),
    "bias": (cases_stretto, "MODELS", cases_stretto.MODELS | {"resnet": Unbiased}),
    "epsilon of a norm": (stretto_images, "norm", norm_with(1.01e-5)),
    "momentum": (cases_stretto, "ADAM", replace(table.Adam(), decay_1=0.90001)),
    "second decay": (cases_stretto, "ADAM", replace(table.Adam(), decay_2=0.9990001)),
    "rate": (cases_stretto, "ADAM", replace(table.Adam(), learning_rate=1.00001e-3)),
    "epsilon of Adam": (cases_stretto, "ADAM", replace(table.Adam(), epsilon=1.01e-8)),
    "rounding": (stretto_images, "BasicBlock", Halved),
}


def wrong_in_float32(target):
    rest, messages = rounding.apart(TASK.row, {"stretto": results(exact=False)}, target)
    singles = rounding.singles(TASK.row, target)
    return messages or disagreement(TASK.row, rest["stretto"], "float64", singles)


def test_a_tiny_network_is_itself_in_both(target):
    strict = rounding.exactly(TASK.row)
    assert disagreement(strict, results(exact=True), "itself", target) is None
    assert target[2].dtype == np.float64
    assert not wrong_in_float32(target)


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_slightly_wrong_shows_in_float64(name, target, monkeypatch):
    monkeypatch.setattr(*MUTATIONS[name])
    assert disagreement(rounding.exactly(TASK.row), results(exact=True), "the right", target)


@pytest.mark.parametrize("name", ["stride", "bias", "rounding"])
def test_what_the_compiled_program_does_wrong_shows_in_float32(name, target, monkeypatch):
    monkeypatch.setattr(*MUTATIONS[name])
    assert wrong_in_float32(target)


def test_a_wrong_update_of_a_right_gradient_shows_in_float32(target, monkeypatch):
    monkeypatch.setattr(cases_stretto, "ADAM", replace(table.Adam(), decay_2=0.9985))
    assert wrong_in_float32(target)
