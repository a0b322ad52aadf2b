"""The command ``stretto tune``: what it measures, writes and says."""

import json
from pathlib import Path

import pytest

import stretto as st
import stretto.numpy as snp
from stretto import cli, tune_command
from stretto._engine.core import cost


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STRETTO_CACHE_DIR", str(tmp_path))
    cost.kept.cache_clear()
    yield tmp_path / "costs"
    cost.kept.cache_clear()


def as_reference(monkeypatch, **times):
    found = {kind: time * times.get(kind, 1.0) for kind, time in tune_command._REFERENCE.items()}
    monkeypatch.setattr(tune_command, "measured", lambda: found)


def test_what_is_written_scales_the_table(folder, monkeypatch, capsys):
    as_reference(monkeypatch, copies=2.0)
    assert cli.main(["tune"]) == 0
    (file,) = folder.iterdir()
    assert json.loads(file.read_text()) == {
        "products": 1.0,
        "copies": 2.0,
        "fresh": 1.0,
        "overheads": 1.0,
    }
    said = capsys.readouterr().out
    assert str(file) in said and "copies      2.00 times as long" in said
    with st.config(tuned=True):
        assert cost.current().shared == cost.CPU.shared / 2


def test_explain_says_which_costs_it_goes_by(monkeypatch):
    as_reference(monkeypatch)
    assert cli.main(["tune"]) == 0
    ensemble = st.Ensemble([st.nn.Linear(8, 8, key=st.random.PRNGKey(i)) for i in range(2)])
    assert cost.CPU.name in str(ensemble.explain(snp.ones((4, 8))))
    with st.config(tuned=True):
        assert "tuned on this machine" in str(ensemble.explain(snp.ones((4, 8))))


def test_what_cannot_be_believed_counts_for_nothing(monkeypatch, capsys):
    as_reference(monkeypatch, fresh=1000.0)
    assert cli.main(["tune"]) == 2
    assert "counts for nothing" in capsys.readouterr().out
    assert cost.kept() is None


def test_where_it_cannot_be_written(folder, monkeypatch, capsys):
    as_reference(monkeypatch)
    Path(folder).write_text("a file")
    assert cli.main(["tune"]) == 2
    assert "stretto tune: " in capsys.readouterr().err
    monkeypatch.setattr(cost, "cache_directory", lambda: None)
    assert cli.main(["tune"]) == 2
    assert "STRETTO_CACHE_DIR" in capsys.readouterr().err


def test_each_kind_of_work_is_measured(monkeypatch):
    monkeypatch.setattr(tune_command, "_MANY_ROUNDS", 1)
    monkeypatch.setattr(tune_command, "_PARTS", 2)
    monkeypatch.setattr(tune_command, "_PART", (4, 8, 16))
    found = tune_command.measured()
    assert found.keys() == cost.SCALED.keys() == tune_command._REFERENCE.keys()
    assert all(time > 0 for time in found.values())
