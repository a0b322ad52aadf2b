"""``explain``: the choices made for a call, what they cost, and how it reads."""

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto._engine.core import cost
from stretto._engine.core.cost import TABLES
from stretto._engine.core.machine import Kind

KEY = st.random.PRNGKey(0)
X = st.random.normal(KEY, (64, 32))


def linears(*widths):
    keys = st.random.split(KEY, len(widths))
    return [
        nn.Sequential(nn.Linear(32, w, key=k), nn.ReLU(), nn.Linear(w, 8, key=k))
        for w, k in zip(widths, keys, strict=True)
    ]


@pytest.mark.parametrize(("plan", "count"), [("batched", 2), ("written out", 2), ("in turn", 0)])
def test_a_forced_plan_is_what_is_shown(plan, count):
    found = st.Ensemble(linears(32, 32, 32), plan=plan).explain(X)
    assert found.plan == plan
    assert len(found.decisions) == count
    for decision in found.decisions:
        assert decision.chosen in dict(decision.choices)
    assert found.predicted_microseconds == pytest.approx(
        sum(dict(d.choices)[d.chosen] for d in found.decisions)
    )
    assert found.measured_microseconds > 0
    assert found.temporary_bytes >= 0
    assert found.predicted_bytes > 0


def test_every_group_is_explained():
    ensemble = st.Ensemble(linears(32, 48, 32, 48))
    found = ensemble.explain(X)
    assert found.plan == "auto"
    assert len(found.decisions) == 4


def test_the_same_and_each():
    ensemble = st.Ensemble(linears(32, 32, 32))
    same = ensemble.explain(X).decisions[0]
    each = ensemble.explain(snp.stack([X] * 3), each=True).decisions[0]
    assert "wide" in " ".join(dict(same.choices))  # all members multiply one input
    assert "wide" not in " ".join(dict(each.choices))


def test_chunks_are_told():
    found = st.Ensemble(linears(32, 32), chunk_size=1).explain(X)
    assert found.chunk_size == 1


def test_keys_and_keyword_arguments():
    models = [nn.Sequential(nn.Dropout(0.5), nn.Linear(32, 32))] * 3
    assert st.Ensemble(models).explain(X, key=KEY).decisions
    scaled = st.Ensemble(lambda w, x, *, scale: scale * (x @ w), [snp.ones((32, 32))] * 3)
    assert scaled.explain(X, scale=2.0).decisions


def test_it_reads_as_a_table():
    text = str(st.Ensemble(linears(32, 32, 32)).explain(X))
    assert text.startswith("plan 'auto', chunk_size None: ")
    assert text.count("->") == 2
    assert "test_explaining.py" in text or "linear" in text


def test_what_has_no_products():
    found = st.Ensemble(lambda p, x: p * x, [1.0, 2.0]).explain(snp.ones(3))
    assert found.decisions == ()
    assert found.predicted_microseconds == 0


@pytest.mark.parametrize("kind", Kind)
def test_the_processor_that_estimates_are_for_is_named(monkeypatch, kind):
    monkeypatch.setattr(cost, "CPU", TABLES[kind])
    found = st.Ensemble(lambda w, x: snp.tanh(x @ w), snp.ones((3, 16, 8))).explain(X[:, :16])
    assert found.machine == TABLES[kind].name
    assert f"predicted by the costs of {kind.value}, " in str(found)
